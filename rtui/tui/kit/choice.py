"""Modal screens with a text, or with a short list to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, LiteralString

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen, ScreenResultType
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.command_screen import FocusScreen
from rtui.tui.kit.line_view import ScrollingPanel
from rtui.tui.kit.styled_text import ROLE_CLASSES, Line, literal


class CardScreen(ModalScreen[ScreenResultType], FocusScreen[ScreenResultType]):
    """Shows a text in a card with a title; the text is scrolled with the keyboard."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*ROLE_CLASSES}

    def __init__(self, title: str, name: str) -> None:
        """`name` is the beginning of the ids of the card and of the text."""
        super().__init__()
        self.body = ScrollingPanel(id=f"{name}-body")
        self._card = Vertical(self.body, id=f"{name}-card")
        self._card.border_title, self._card.border_subtitle = title, "esc closes"

    @property
    def focus_home(self) -> Widget:
        """The text."""
        return self.body

    def compose(self) -> ComposeResult:
        """Show the card."""
        yield self._card

    def on_mount(self) -> None:
        """Show the text."""
        self.body.set_content(self.lines)
        self.set_focus(self.body)

    def lines(self, width: int) -> list[Line]:
        """Return the text for this width."""
        raise NotImplementedError


class ChoiceList(OptionList):
    """Entries that can be laid out in any width: Textual's own fail where no column is left for their text.

    The keys that move the cursor in rows move it here.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("g", "first", show=False),
        Binding("G", "last", show=False),
        Binding("ctrl+f", "page_down", show=False),
        Binding("ctrl+b", "page_up", show=False),
    ]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines that the entries take, for one column at least."""
        padding = self.get_component_styles("option-list--option").padding.width
        return super().get_content_height(container, viewport, max(width, padding + 1))

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        """Go up or down by a screenful, where there is any room for one."""
        if self.scrollable_content_region.area:
            super()._move_page(direction)


class ListScreen(ModalScreen[ScreenResultType], FocusScreen[ScreenResultType]):
    """Shows a list with a title and what its keys do; Escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Close", show=False)]

    def __init__(self, title: SafeText, subtitle: LiteralString, *entries: Option | Content) -> None:
        super().__init__()
        self.options = ChoiceList(*entries, markup=False, id="choices")
        self.options.border_title = Content(title)
        self.options.border_subtitle = subtitle

    @property
    def focus_home(self) -> Widget:
        """The list."""
        return self.options

    def compose(self) -> ComposeResult:
        """Show the list."""
        yield self.options


class ChoiceScreen(ListScreen[int | None]):
    """Returns the number of the chosen entry, None when nothing was chosen."""

    def __init__(self, title: SafeText, entries: Sequence[SafeText]) -> None:
        super().__init__(title, "enter chooses · esc closes", *map(Content, entries))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


class QuitScreen(ListScreen[bool]):
    """Asks whether to quit although something is lost; returns whether."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "dismiss(False)", show=False),
        Binding("q,y", "dismiss(True)", show=False),
    ]

    def __init__(self, lost: SafeText) -> None:
        """`lost` is a sentence on what is lost; the cursor begins on the answer that loses nothing."""
        entries = Option(Content(lost), disabled=True), Content("Stay"), Content("Quit")
        super().__init__(literal("Quit?"), "q quits · esc stays", *entries)
        self.options.highlighted = 1

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index == 2)
