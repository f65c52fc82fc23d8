"""Modal screens with a text, or with a short list to choose from.

Rows are sorted the same way everywhere: `s` shows the list of columns, `>` and `<` take its next and previous entry,
`S` reverses the order. The same column again sorts again, for rows that have come or moved since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, Generic, Literal, LiteralString, TypeVar

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
from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand
from rtui.tui.kit.command_screen import FocusScreen
from rtui.tui.kit.line_view import ScrollingPanel
from rtui.tui.kit.styled_text import ROLE_CLASSES, Line, literal

K = TypeVar("K")


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
        return self.body

    def compose(self) -> ComposeResult:
        yield self._card

    def on_mount(self) -> None:
        self.body.set_content(self.lines)
        self.set_focus(self.body)

    def lines(self, width: int) -> list[Line]:
        raise NotImplementedError


class TextCard(CardScreen[None]):
    """Shows a text until one of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,left,h", "dismiss", "Close", show=False)]

    def __init__(self, title: str, name: str, make: Callable[[int], list[Line]]) -> None:
        """`make` returns the lines for a width; `name` as in `CardScreen`."""
        super().__init__(title, name)
        self._make_lines = make

    def lines(self, width: int) -> list[Line]:
        return self._make_lines(width)


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
        if self.scrollable_content_region.area:
            super()._move_page(direction)


class ListScreen(ModalScreen[ScreenResultType], FocusScreen[ScreenResultType]):
    """Shows a list with a title and a hint on its keys; Escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Close", show=False)]

    def __init__(self, title: SafeText, subtitle: LiteralString, *entries: Option | Content) -> None:
        super().__init__()
        self.options = ChoiceList(*entries, markup=False, id="choices")
        self.options.border_title = Content(title)
        self.options.border_subtitle = subtitle

    @property
    def focus_home(self) -> Widget:
        return self.options

    def compose(self) -> ComposeResult:
        yield self.options


class AnswerScreen(ListScreen[ScreenResultType]):
    """Returns the answer that was chosen."""

    def __init__(
        self,
        title: SafeText,
        subtitle: LiteralString,
        answers: Sequence[tuple[ScreenResultType, SafeText]],
        *,
        about: SafeText | None = None,
        at: int = 0,
    ) -> None:
        """`about` stands over the answers, `at` is the number of the answer that the cursor begins on."""
        above = [] if about is None else [Option(Content(about), disabled=True)]
        super().__init__(title, subtitle, *above, *(Content(text) for _, text in answers))
        self._answers = [*(None for _ in above), *(answer for answer, _ in answers)]
        self.options.highlighted = len(above) + at

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._answers[event.option_index])


class ChoiceScreen(AnswerScreen[int | None]):
    """Returns the number of the chosen entry, None when nothing was chosen."""

    def __init__(self, title: SafeText, entries: Sequence[SafeText]) -> None:
        super().__init__(title, "enter chooses · esc closes", [*enumerate(entries)])


class SwitchScreen(ListScreen[None], Generic[K]):
    """Switches entries on and off; each change shows at once."""

    def __init__(
        self,
        title: SafeText,
        entries: Mapping[K, SafeText],
        chosen: Collection[K],
        on_change: Callable[[frozenset[K]], object],
    ) -> None:
        """`entries` are the switches with their texts; `on_change` is called with the switches that are on."""
        self._entries, self._chosen, self._on_change = entries, frozenset(chosen), on_change
        super().__init__(title, "enter switches · esc closes", *map(self._prompt, entries))

    @on(OptionList.OptionSelected)
    def _switched(self, event: OptionList.OptionSelected) -> None:
        entry = [*self._entries][event.option_index]
        self._chosen ^= {entry}
        event.option_list.replace_option_prompt_at_index(event.option_index, self._prompt(entry))
        self._on_change(self._chosen)

    def _prompt(self, entry: K) -> Content:
        return Content(f"[{'x' if entry in self._chosen else ' '}] {self._entries[entry]}")


class QuitScreen(AnswerScreen[bool]):
    """Asks whether to quit although something is lost; returns whether."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "dismiss(False)", show=False),
        Binding("q,y", "dismiss(True)", show=False),
    ]

    def __init__(self, lost: SafeText) -> None:
        """`lost` is a sentence on the loss; the cursor begins on the answer that loses nothing."""
        answers = [(False, literal("Stay")), (True, literal("Quit"))]
        super().__init__(literal("Quit?"), "q quits · esc stays", answers, about=lost)


def sort_commands(
    group: Group, owner: Owner, *, footer: int = 0, when: tuple[Condition, ...] = (), chooser: Owner | None = None
) -> tuple[ScreenCommand, ...]:
    """Return the commands that sort rows; `chooser` owns the command that shows the list, if not `owner`."""
    return (
        ScreenCommand("sort", ("s",), "Sort",
            "Choose the sort order; press again to re-sort.",
            group, chooser or owner, when, footer),
        ScreenCommand("sort_next", ("greater_than_sign",), "Sort by next", "Sort by the next entry of the list.",
            group, owner, when, label=">", call="sort_step(1)"),
        ScreenCommand("sort_before", ("less_than_sign",), "Sort by previous", "Sort by the previous entry of the list.",
            group, owner, when, label="<", call="sort_step(-1)"),
        ScreenCommand("sort_reverse", ("S",), "Reverse sort", "Reverse the sort order.", group, owner, when),
    )  # fmt: skip


class SortScreen(AnswerScreen[int | None]):
    """Returns the number of the chosen sort order, None if none was chosen."""

    def __init__(self, names: Sequence[SafeText], now: int) -> None:
        answers = [(at, SafeText(f"{'•' if at == now else ' '} {name}")) for at, name in enumerate(names)]
        super().__init__(literal("Sort by"), "enter sorts · esc closes", answers, at=now)
