"""A short list to choose from, over the screen that asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rtui.keyspace.display import SafeText
from rtui.tui.columns import Column

LIST_BINDINGS: list[BindingType] = [
    Binding("escape,q", "dismiss", "Close", show=False),
    Binding("j", "app.simulate_key('down')", show=False),
    Binding("k", "app.simulate_key('up')", show=False),
]
"""Keys of every list: Escape closes, vim's keys move."""


class ChoiceScreen(ModalScreen[int | None]):
    """Returns the number of the chosen entry, None when nothing was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = LIST_BINDINGS

    def __init__(self, title: SafeText, entries: Sequence[SafeText]) -> None:
        super().__init__()
        self._title = title
        self._entries = entries

    def compose(self) -> ComposeResult:
        """Show the entries."""
        options = OptionList(*(Option(Content(entry)) for entry in self._entries), markup=False, id="choices")
        options.border_title = Content(self._title)
        options.border_subtitle = "enter chooses · esc closes"
        yield options

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


class ColumnsScreen(ModalScreen[None]):
    """Switches columns on and off; each change shows at once."""

    BINDINGS: ClassVar[list[BindingType]] = LIST_BINDINGS

    def __init__(self, chosen: frozenset[Column], on_change: Callable[[frozenset[Column]], None]) -> None:
        super().__init__()
        self._chosen = chosen
        self._on_change = on_change

    def compose(self) -> ComposeResult:
        """Show the columns."""
        options = OptionList(*map(self._prompt, Column), markup=False, id="choices")
        options.border_title = "Columns"
        options.border_subtitle = "enter switches · esc closes"
        yield options

    @on(OptionList.OptionSelected)
    def _switched(self, event: OptionList.OptionSelected) -> None:
        column = list(Column)[event.option_index]
        self._chosen ^= {column}
        event.option_list.replace_option_prompt_at_index(event.option_index, self._prompt(column))
        self._on_change(self._chosen)

    def _prompt(self, column: Column) -> Content:
        sign: Literal["x", " "] = "x" if column in self._chosen else " "
        return Content(f"[{sign}] {column.value}")
