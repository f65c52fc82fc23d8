"""Modal screens with a short list to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.command_screen import FocusScreen

LIST_BINDINGS: list[BindingType] = [
    Binding("escape,q", "dismiss", "Close", show=False),
    Binding("j", "app.simulate_key('down')", show=False),
    Binding("k", "app.simulate_key('up')", show=False),
]
"""Keys of every list: Escape closes, vim's keys move."""


class ChoiceList(OptionList):
    """Entries that can be laid out in any width: Textual's own fail where no column is left for their text."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines that the entries take, for one column at least."""
        padding = self.get_component_styles("option-list--option").padding.width
        return super().get_content_height(container, viewport, max(width, padding + 1))

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        """Go up or down by a screenful, where there is any room for one."""
        if self.scrollable_content_region.area:
            super()._move_page(direction)


class ChoiceScreen(ModalScreen[int | None], FocusScreen[int | None]):
    """Returns the number of the chosen entry, None when nothing was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = LIST_BINDINGS

    def __init__(self, title: SafeText, entries: Sequence[SafeText]) -> None:
        super().__init__()
        self._title = title
        self.options = ChoiceList(*(Option(Content(entry)) for entry in entries), markup=False, id="choices")

    @property
    def focus_home(self) -> Widget:
        """The entries."""
        return self.options

    def compose(self) -> ComposeResult:
        """Show the entries."""
        self.options.border_title = Content(self._title)
        self.options.border_subtitle = "enter chooses · esc closes"
        yield self.options

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


class QuitScreen(ModalScreen[bool], FocusScreen[bool]):
    """Asks whether to quit although something is lost; returns whether the user has agreed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "answer(False)", show=False),
        Binding("q,y", "answer(True)", show=False),
        Binding("j", "app.simulate_key('down')", show=False),
        Binding("k", "app.simulate_key('up')", show=False),
    ]

    def __init__(self, lost: SafeText) -> None:
        """`lost` is a sentence on what is lost."""
        super().__init__()
        self.options = ChoiceList(Option(Content(lost), disabled=True), "Stay", "Quit", markup=False, id="choices")

    @property
    def focus_home(self) -> Widget:
        """The answers."""
        return self.options

    def compose(self) -> ComposeResult:
        """Show what is lost and the answers."""
        self.options.border_title = "Quit?"
        self.options.border_subtitle = "q quits · esc stays"
        yield self.options

    def on_mount(self) -> None:
        """Begin on the answer that loses nothing."""
        self.options.highlighted = 1

    def action_answer(self, is_wanted: bool) -> None:
        """Give the answer of a key."""
        self.dismiss(is_wanted)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index == 2)
