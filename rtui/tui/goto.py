"""The line that goes to anything by name, over the screen that is shown, with a list of matches.

It is a screen of our own and not Textual's palette: that one shows the hits of its providers for an earlier text while
they look for the present one, so that Enter may run an unwanted command; it makes a widget option of each hit; and it
has two lines for each. Here a million names are searched in slices, the list is painted from lines, kinds and notes
have columns, and Enter waits for the search.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Final, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker

from rtui.analysis import humanize as fmt
from rtui.keyspace.store.name_search import NameSearch
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.matching import Match, MatchKind, TextMatcher
from rtui.tui.kit.bars import InputLine
from rtui.tui.kit.command_screen import PAUSE_S, FocusScreen
from rtui.tui.kit.layout import display
from rtui.tui.kit.line_view import RowsView, set_content_height
from rtui.tui.kit.styled_text import ROLE_CLASSES, Line, Role, Span, cut, cut_middle, gap, left, literal, width_of


class GotoKind(Enum):
    """The kind of a destination; the first kinds come first, in a whole list and of equally good matches."""

    TASK = literal("task")
    PANEL = literal("panel")
    SCREEN = literal("screen")
    LIST = literal("list")
    QUERY = literal("query")
    DATABASE = literal("database")
    PROFILE = literal("profile")
    SERVER = literal("server")
    NAMESPACE = literal("namespace")
    KEY = literal("key")
    COMMAND = literal("command")
    THEME = literal("theme")
    MOVE = literal("move")
    METRIC = literal("metric")


KIND_CELLS: Final = max(len(kind.value) for kind in GotoKind)

COMMAND_KINDS: Final = frozenset({GotoKind.TASK, GotoKind.COMMAND, GotoKind.MOVE})

RANKS: Final = {kind: rank for rank, kind in enumerate(GotoKind)}

NARROWING: Final = {
    "panel": (frozenset({GotoKind.PANEL, GotoKind.SCREEN}), literal("panels of the analysis and other screens")),
    "ns": (frozenset({GotoKind.NAMESPACE}), literal("loaded namespaces")),
    "key": (frozenset({GotoKind.KEY}), literal("loaded keys, or any key by exact name")),
    "db": (frozenset({GotoKind.DATABASE}), literal("databases of this server with key counts")),
    "profile": (frozenset({GotoKind.PROFILE, GotoKind.SERVER}), literal("profiles and recent servers")),
    "theme": (frozenset({GotoKind.THEME}), literal("colour themes")),
    "cmd": (COMMAND_KINDS, literal("commands of this screen")),
}
"""Words that narrow the list when a blank follows them: to which kinds, and a name for these."""


class Wanted(NamedTuple):
    """A typed line: the text to match, and the kinds to look among."""

    text: str
    kinds: frozenset[GotoKind]


def wanted(typed: str) -> Wanted:
    """Return a typed line as text and kinds: `db 3` is the text `3` among databases."""
    typed = typed.removeprefix(":")
    word, blank, rest = typed.partition(" ")
    if blank and word in NARROWING:
        return Wanted(rest.strip(), NARROWING[word][0])
    return Wanted(typed.strip(), frozenset(GotoKind))


@dataclass(frozen=True, slots=True)
class Destination:
    """Something to go to."""

    kind: GotoKind
    text: SafeText
    name: bytes
    """The name that is matched with the typed text."""
    note: SafeText = field(default=literal(""), compare=False)
    """The text at the right: keys of a command, numbers of a database."""
    go: Callable[[], object] | None = field(default=None, compare=False)
    """Goes there, once the list is closed; may return an awaitable. None for an entry that fills the line instead."""
    fill: str = ""
    words: str = field(default="", compare=False)
    """Other words by which it is found."""

    def match(self, matcher: TextMatcher) -> Match | None:
        """Return how well it matches: by its name, by the beginning of one of its words, at last by its note."""
        of_name, text = matcher.match(self.name), self.words.encode()
        found = [] if of_name is None else [of_name]
        for also in (text, self.note.encode()) if self.words else ():
            one = matcher.match(also, in_order=False)
            if one is not None and one.kind < MatchKind.INSIDE:
                found.append(one if also is text else Match(MatchKind.INSIDE, *one[1:]))
        return min(found, default=None)


def list_entries(kinds: Iterable[GotoKind]) -> list[Destination]:
    """Return the entries that narrow the list to kinds of which there is any."""
    there = frozenset(kinds)
    return [
        Destination(GotoKind.LIST, SafeText(f"{word} …"), word.encode(), note, fill=f"{word} ")
        for word, (narrowed, note) in NARROWING.items()
        if narrowed & there
    ]


Ranked = tuple[Match, int, Destination]
"""An entry with how well it matches and the rank of its kind."""


def matching(entries: Sequence[Destination], query: Wanted) -> list[Ranked]:
    """Return the entries that match, the best first; without a text all but metrics, by kind, in the order given."""
    among = sorted((entry for entry in entries if entry.kind in query.kinds), key=lambda entry: RANKS[entry.kind])
    if not query.text:
        among = [entry for entry in among if entry.kind is not GotoKind.METRIC]
        return [(Match(MatchKind.EXACT, 0, at), 0, entry) for at, entry in enumerate(among)]
    matcher = TextMatcher(query.text.encode("utf-8", "surrogateescape"))
    found = [(entry.match(matcher), entry) for entry in among]
    return ranked((match, entry) for match, entry in found if match is not None)


def ranked(found: Iterable[tuple[Match, Destination]]) -> list[Ranked]:
    """Return entries in their order: by kind of match, kind of entry, how close the letters are, and length."""
    made = [(match, RANKS[entry.kind], entry) for match, entry in found]
    return sorted(made, key=lambda one: (one[0].kind, one[1], one[0].spread, one[0].length, one[2].name))


MOST_SHOWN: Final = 120
MOST_TYPED: Final = 512
GOTO: Final = literal("Go to")
PLACEHOLDER: Final = "panel, command, namespace, key, database, profile, theme"

NAME_LIMIT: Final = 200
NAME_CELLS: Final = 16
"""Cells of names before the notes, unless a name is longer."""

NOTE_CELLS: Final = 12
"""A note that would get fewer cells is left out."""


SHOW_S: Final = 0.15
"""Interval in seconds at which the names found so far are shown during a search."""

_OVER: Final = object()


class EntryList(RowsView):
    """The entries, of which one is highlighted; the keyboard stays in the line above."""

    class Clicked(Message):
        """An entry was clicked."""

    def __init__(self) -> None:
        super().__init__(id="goto-list")
        self.can_focus = False
        self.entries: Sequence[Destination] = ()
        self.has_moved = False
        """Whether the user has chosen another entry than the first one."""

    @property
    def entry(self) -> Destination | None:
        return self.entries[self.cursor_line] if self.cursor_line < len(self.entries) else None

    def show(self, entries: Sequence[Destination], *, keeps_cursor: bool) -> None:
        """Show other entries; with `keeps_cursor`, one that the user has moved to stays highlighted."""
        before = self.entry if keeps_cursor and self.has_moved else None
        self.entries = entries
        self.has_moved = before is not None and before in entries
        set_content_height(self, len(entries))
        self.put_cursor(entries.index(before) if before is not None and self.has_moved else 0)
        self.repaint_changes()

    def move_to(self, line: int) -> None:
        """Highlight an entry; above the first is the last."""
        if self.entries:
            self.has_moved = True
            self.put_cursor(
                line % len(self.entries)
                if line in (-1, len(self.entries))
                else max(0, min(line, len(self.entries) - 1))
            )

    def line_at(self, number: int) -> Line | None:
        if not 0 <= number < len(self.entries):
            return None
        return entry_line(self.entries[number], self.scrollable_content_region.width)

    def on_click(self, event: events.Click) -> None:
        line = event.y + self.scroll_offset.y
        if 0 <= line < len(self.entries):
            self.move_to(line)
            self.post_message(self.Clicked())


def entry_line(entry: Destination, width: int) -> Line:
    """Return the line of an entry: its kind, its name, and its note if that fits."""
    kind = (gap(1), Span(left(entry.kind.value, KIND_CELLS), Role.MUTED), gap(2))
    room = max(0, width - KIND_CELLS - 4)
    shorten = cut_middle if entry.kind in (GotoKind.KEY, GotoKind.NAMESPACE) else cut
    name_room = max(NAME_CELLS, width_of(entry.text))
    note_room = room - name_room - 2
    if not entry.note or note_room < NOTE_CELLS:
        return (*kind, Span(shorten(entry.text, room)))
    return (*kind, Span(left(entry.text, name_room)), gap(2), Span(cut(entry.note, note_room), Role.MUTED))


class Loaded:
    """The names that are loaded, and how to go to one of them; it need not be loaded where the server is asked."""

    def __init__(
        self, store: NamespaceStore, go: Callable[[bytes, bool], object], look_up: Callable[[bytes], object]
    ) -> None:
        """`go` goes to a loaded key, or to a namespace if its second argument is true; `look_up` asks the server."""
        self.store = store
        self._go = go
        self._look_up = look_up

    def found(self, search: NameSearch, kinds: frozenset[GotoKind]) -> list[Ranked]:
        namespaces = search.namespaces if GotoKind.NAMESPACE in kinds else []
        keys = search.keys if GotoKind.KEY in kinds else []
        entries = [(match, self._entry(GotoKind.NAMESPACE, name)) for match, name in namespaces]
        return ranked([*entries, *((match, self._entry(GotoKind.KEY, name)) for match, name in keys)])

    def asked(self, name: bytes) -> Destination:
        note = literal("looks up exactly this key on the server")
        return Destination(GotoKind.KEY, display(name, limit=NAME_LIMIT), name, note, lambda: self._look_up(name))

    def _entry(self, kind: GotoKind, name: bytes) -> Destination:
        return Destination(
            kind, display(name, limit=NAME_LIMIT), name, go=lambda: self._go(name, kind is GotoKind.NAMESPACE)
        )


class GotoScreen(ModalScreen[Destination | None], FocusScreen[Destination | None]):
    """Returns the entry that was chosen, None when none was."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*ROLE_CLASSES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("up,ctrl+p", "list('cursor_up')", show=False, priority=True),
        Binding("down,ctrl+n", "list('cursor_down')", show=False, priority=True),
        Binding("pageup", "list('page_up')", show=False, priority=True),
        Binding("pagedown", "list('page_down')", show=False, priority=True),
        Binding("tab", "complete", show=False, priority=True),
    ]

    def __init__(
        self, entries: Sequence[Destination], loaded: Loaded | None, typed: str = "", *, title: SafeText = GOTO
    ) -> None:
        """`entries` are all destinations but names of keys; `loaded` is None if those are not searched."""
        super().__init__()
        self._entries = list(entries)
        self._loaded = loaded
        self.line = InputLine(
            typed,
            placeholder=PLACEHOLDER if title is GOTO else "a command, a panel, or Redis' word for it",
            id="goto-line",
            compact=True,
            select_on_focus=False,
            max_length=MOST_TYPED,
        )
        self.line.cursor_blink = False
        self.list = EntryList()
        self._card = Vertical(self.line, self.list, id="goto-card")
        self._card.border_title = title
        self._hint = literal("")
        """The text below the list; setting the same again would paint the whole list again."""
        self._search: Worker[None] | None = None
        self._is_entered = False
        """Whether Enter was pressed before the search was over."""

    @property
    def focus_home(self) -> Widget:
        return self.line

    def compose(self) -> ComposeResult:
        yield self._card

    def on_mount(self) -> None:
        self.set_focus(self.line)
        self._find(self.line.value)

    def add(self, entries: Sequence[Destination]) -> None:
        self._entries += entries
        self._find(self.line.value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._is_entered = False
        self.list.has_moved = False
        self._find(event.value)

    def _find(self, typed: str) -> None:
        if self._search is not None:
            self._search.cancel()
            self._search = None
        query = wanted(typed)
        names = () if self._loaded is None else (GotoKind.NAMESPACE, GotoKind.KEY)
        lists = list_entries([*names, *(entry.kind for entry in self._entries)])
        found = matching([*lists, *self._entries], query)
        is_about_names = query.text and query.kinds & {GotoKind.NAMESPACE, GotoKind.KEY}
        if self._loaded is None or not is_about_names:
            self._show(found)
            return
        work = self._search_names(self._loaded, query.text.encode("utf-8", "surrogateescape"), query.kinds, found)
        self._search = self.run_worker(work, exit_on_error=False, description="search")

    async def _search_names(self, loaded: Loaded, name: bytes, kinds: frozenset[GotoKind], found: list[Ranked]) -> None:
        """Show matching names as they are found, among the other entries."""
        search = NameSearch(loaded.store, name)
        work, now_s = search.work(), asyncio.get_running_loop().time
        shown_s = now_s()
        self._show(found)
        while next(work, _OVER) is not _OVER:
            await asyncio.sleep(PAUSE_S)
            if now_s() - shown_s > SHOW_S:
                self._show([*found, *loaded.found(search, kinds)])
                shown_s = now_s()
        names = loaded.found(search, kinds)
        has_it = any(match.kind is MatchKind.EXACT and entry.kind is GotoKind.KEY for match, _, entry in names)
        asked = [loaded.asked(name)] if GotoKind.KEY in kinds and not has_it else []
        self._search = None
        self._show([*found, *names], asked, not_searched=search.not_searched)
        if self._is_entered:
            self._choose()

    def _show(self, found: Sequence[Ranked], last: Sequence[Destination] = (), *, not_searched: int = 0) -> None:
        shown = ranked((match, entry) for match, _, entry in found)[: MOST_SHOWN - len(last)]
        entries = [entry for _, _, entry in shown]
        self.list.show([*entries, *last], keeps_cursor=True)
        hint = literal("enter opens · tab completes · esc closes")
        if self._search is not None:
            hint = literal("searching the names…")
        elif not self.list.entries:
            hint = literal("no matches · esc closes")
        elif not_searched:
            hint = SafeText(f"the names of {fmt.keys(not_searched)} are not in memory · esc closes")
        if hint != self._hint:
            self._hint = hint
            self._card.border_subtitle = Content(hint)

    @on(Input.Submitted)
    @on(EntryList.Clicked)
    def _entered(self) -> None:
        """Choose the entry, once the search is over unless the user has moved to one."""
        if self._search is not None and not self.list.has_moved:
            self._is_entered = True
        else:
            self._choose()

    def _choose(self) -> None:
        entry = self.list.entry
        if entry is None:
            return
        if entry.go is None:
            self._fill(entry.fill)
        else:
            self.dismiss(entry)

    def action_list(self, move: str) -> None:
        getattr(self.list, f"action_{move}")()

    def action_complete(self) -> None:
        """Fill the line with the entry that is highlighted, to type more behind it."""
        entry = self.list.entry
        if entry is not None and entry.kind in (GotoKind.NAMESPACE, GotoKind.KEY, GotoKind.LIST):
            self._fill(entry.fill if entry.kind is GotoKind.LIST else entry.name.decode("utf-8", "surrogateescape"))

    def _fill(self, text: str) -> None:
        self.line.value = text
        self.line.cursor_position = len(text)

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)

    def action_leave(self) -> None:
        self.dismiss(None)
