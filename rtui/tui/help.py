"""The help: every command with its keys, pages about rtui's features, and a search through all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from rtui.keyspace.text.display import SafeText
from rtui.tui.help_pages import Entry, HelpPage, found_lines, page_lines
from rtui.tui.kit.bars import FilterInput
from rtui.tui.kit.choice import CardScreen
from rtui.tui.kit.command import Group, HelpSubject, Owner, ScreenCommand
from rtui.tui.kit.styled_text import Line, literal

FOCUSED: Final[dict[str, SafeText]] = {
    Owner.TREE: literal("tree"),
    Owner.ROWS: literal("value"),
    Owner.TABLE: literal("tables of an analysis"),
    Owner.FOUND: literal("keys found by a query"),
    Owner.ENTRIES: literal("command log"),
    Owner.SERVER: literal("server"),
}
"""The names of widgets that can have the focus, by their owner of commands."""

KEYS_HINT: Final = "tab next page · / search · esc closes"
SEARCH_HINT: Final = "enter goes to the text · esc ends the search"


def groups_for(commands: Sequence[ScreenCommand], owners: Sequence[str]) -> list[Group]:
    """Return the groups of commands, those of the first owners first.

    `owners` begin with the focused widget and end with the screen around it; groups of other screens follow.
    """
    first: dict[Group, None] = {}
    for owner in owners:
        of_owner = {command.group for command in commands if command.owner == owner} - {Group.APP, Group.MOVE}
        first |= dict.fromkeys(group for group in Group if group in of_owner)
    return list(first | dict.fromkeys(Group))


def keys_page(commands: Sequence[ScreenCommand], groups: Iterable[Group] = Group) -> HelpPage:
    """Return the page of the commands under their headings, those with words of Redis first in each.

    The keys that move a cursor are the same in every list, and are there once.
    """
    entries: list[Entry] = []
    for group in groups:
        of_group: dict[str, ScreenCommand] = {}
        for one in commands:
            if one.group is group and one.owner is not Owner.CONNECT:
                of_group.setdefault(one.id if group is Group.MOVE else one.action, one)
        if of_group:
            entries.append(Entry(term=SafeText(group.value)))
        for one in sorted(of_group.values(), key=lambda one: not one.words):
            term, words = SafeText(one.key_text or "–"), SafeText(one.words)
            entries.append(Entry(SafeText(one.help), term, SafeText(one.title), words))
    return HelpPage(literal("Keys"), tuple(entries))


class HelpScreen(CardScreen[None]):
    """Shows a page of the help at a time, first the commands of the focused widget."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Close", show=False),
        Binding("q,question_mark,f1", "dismiss", "Close", show=False),
        Binding("tab,right,l,right_square_bracket,n", "turn(1)", "Next page", show=False),
        Binding("shift+tab,left,h,left_square_bracket,b", "turn(-1)", "Previous page", show=False),
        Binding("slash", "search", "Search", show=False),
    ]

    def __init__(
        self,
        commands: Sequence[ScreenCommand],
        owners: Sequence[str] = (),
        topics: Sequence[HelpPage] = (),
        subject: HelpSubject | None = None,
    ) -> None:
        """`owners` of commands are the focused widget, the widgets that hold it, and last the screen.

        With a `subject` it begins there.
        """
        super().__init__("Help", "help")
        self._focused = next((FOCUSED[owner] for owner in owners if owner in FOCUSED), None)
        self.pages = (keys_page(commands, groups_for(commands, owners)), *topics)
        self.page = 0
        """Which page is shown, unless something is searched."""
        self._term = ""
        if subject is not None:
            self.page = next((at for at, page in enumerate(self.pages) if page.title == subject.page), 0)
            self._term = subject.term
        self.search_input = FilterInput("one or more words", id="help-search")

    def compose(self) -> ComposeResult:
        with self._card:
            yield self.search_input

    def on_mount(self) -> None:
        super().on_mount()
        self._show()

    def lines(self, width: int) -> list[Line]:
        if self.search_input.value:
            return found_lines(self.pages, self.search_input.value, width)
        return page_lines(self.pages[self.page], width)

    def _show(self) -> None:
        title = self.pages[self.page].title
        if not self.page:
            title = SafeText("Help" if self._focused is None else f"Help: {self._focused}")
        if self.search_input.value:
            title = literal("Help: found")
        elif len(self.pages) > 1:
            title = SafeText(f"{title} · {self.page + 1} of {len(self.pages)}")
        self._card.border_title = title
        self._card.border_subtitle = SEARCH_HINT if self.search_input.is_open else KEYS_HINT
        self.body.set_content(self.lines)
        self.body.scroll_home(animate=False, force=True, immediate=True)
        if self._term:
            self.call_after_refresh(self._show_term, self._term)
            self._term = ""

    def _show_term(self, term: str) -> None:
        """Bring the entry of a term to the top."""
        starts = (
            at
            for at, line in enumerate(self.body.lines)
            if "".join(span.text for span in line).strip().startswith(term)
        )
        self.body.scroll_to(y=next(starts, 0), animate=False, force=True, immediate=True)

    def action_turn(self, step: int) -> None:
        """Show the page `step` places after this one; after a search, the page before it."""
        if self.search_input.value:
            self.search_input.value = ""
        else:
            self.page = (self.page + step) % len(self.pages)
        self._show()

    def action_search(self) -> None:
        self.search_input.open(self.search_input.value)
        self._show()

    @on(FilterInput.Changed)
    def _typed(self) -> None:
        if self.search_input.is_open:
            self._show()

    @on(FilterInput.Submitted)
    def action_leave_filter(self) -> None:
        """Go from the typed line to the text."""
        self.search_input.close()
        self.set_focus(self.body)
        self._show()

    def action_back(self) -> None:
        """End the search, or close the help."""
        if self.search_input.is_open or self.search_input.value:
            self.search_input.value = ""
            self.action_leave_filter()
        else:
            self.dismiss(None)
