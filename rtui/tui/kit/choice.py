"""Modal screens with a text or a short list to choose from, and copying to the clipboard, at once or by such a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, Literal, LiteralString, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.geometry import Size
from textual.screen import ModalScreen, ScreenResultType
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.text.display import SafeText, quoted
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.redis_cli import copied_commands, key_as_text
from rtui.server.wire.target import Target
from rtui.tui.kit.command_screen import FocusScreen
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.line_view import ScrollingPanel
from rtui.tui.kit.styled_text import ROLE_CLASSES, Line, cut_middle, literal


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
        self.body.focus()

    def lines(self, width: int) -> list[Line]:
        """Return the text for this width."""
        raise NotImplementedError


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


class ListScreen(ModalScreen[ScreenResultType], FocusScreen[ScreenResultType]):
    """Shows a list with a title and what its keys do; Escape closes it, vim's keys move."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", show=False),
        Binding("j", "app.simulate_key('down')", show=False),
        Binding("k", "app.simulate_key('up')", show=False),
    ]

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
    """Asks whether to quit although something is lost; returns whether the user has agreed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "answer(False)", show=False),
        Binding("q,y", "answer(True)", show=False),
    ]

    def __init__(self, lost: SafeText) -> None:
        """`lost` is a sentence on what is lost; the cursor begins on the answer that loses nothing."""
        entries = Option(Content(lost), disabled=True), Content("Stay"), Content("Quit")
        super().__init__(literal("Quit?"), "q quits · esc stays", *entries)
        self.options.highlighted = 1

    def action_answer(self, is_wanted: bool) -> None:
        """Give the answer of a key."""
        self.dismiss(is_wanted)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index == 2)


class Copy(NamedTuple):
    """An entry of the menu and what it copies."""

    title: SafeText
    text: str
    """Printable, but not safe to show: it may resemble something else. Only for the clipboard."""


def copies(target: Target, name: bytes, facts: KeyFacts | None) -> list[Copy]:
    """Return the entries for a key, or for the prefix of a namespace when there are no facts."""
    entries = [
        Copy(literal("name as text"), key_as_text(name)),
        Copy(literal("name as escaped bytes"), quoted(name)),
    ]
    if facts is None:
        return [*entries, Copy(literal("pattern of everything below"), key_as_text(prefix_pattern(name)))]
    for command in copied_commands(target, facts):
        warning = " (changes data)" if command.writes else ""
        entries.append(Copy(SafeText(f"redis-cli: {command.title}{warning}"), command.line))
    return entries


SHOWN_CELLS: Final = 60
"""So much of what was copied is shown."""


def copy_text(node: DOMNode, text: str) -> None:
    """Send a text to the terminal's clipboard by OSC 52, and say so."""
    node.app.copy_to_clipboard(text)
    shown = cut_middle(display_text(text), SHOWN_CELLS)
    node.app.notify(shown, title="Sent to the terminal", markup=False, timeout=2)


def choose_copy(node: DOMNode, entries: Sequence[Copy]) -> None:
    """Have the user choose what to copy."""

    def chosen(index: int | None) -> None:
        if index is not None:
            copy_text(node, entries[index].text)

    node.app.push_screen(ChoiceScreen(literal("Copy"), [entry.title for entry in entries]), chosen)
