"""The filter of the tree, and going to a single key.

A text is looked for in the names that are loaded. A name that may not be loaded is asked of the server by one TYPE. A
glob is left to a SCAN with MATCH, whose keys are shown in the place of all until the filter is cleared.

`TreeFilter` is the line over the tree in which all of this, or a query, is typed. `TreePlaces` goes to places of the
tree and comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual import on
from textual.screen import Screen
from textual.worker import Worker

from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import raw_forms
from rtui.server.browsing.session import BrowsingSession
from rtui.tui.browse.detail_pane import DetailPane
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.tree_pane import TreePane
from rtui.tui.browse.value_view import ItemKind, RowItem
from rtui.tui.kit.bars import FilterInput
from rtui.tui.kit.command_screen import HoldKeypresses, KeysWanted, TreePlace, Work
from rtui.tui.kit.layout import display
from rtui.tui.kit.query_line import QueryLine
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.styled_text import Line, Role, Span, literal

if TYPE_CHECKING:
    from rtui.analysis.query.hints import Vocabulary
    from rtui.analysis.query.query import Query
    from rtui.tui.browse.level_lines import LevelDetail


class TreeSearch:
    """Filters the tree of a screen and finds keys for it."""

    def __init__(
        self,
        session: BrowsingSession,
        tree_pane: TreePane,
        detail_pane: DetailPane,
        run: Callable[[Work, str], Worker[Any]],
        on_other_rows: Callable[[], object],
    ) -> None:
        """`run` starts workers; `on_other_rows` is called when the tree shows other rows than before."""
        self._session, self._tree_pane, self._detail_pane = session, tree_pane, detail_pane
        self._run, self._on_other_rows = run, on_other_rows
        self.returns_to: str | TreePlace = ""
        """Where Escape leads back to: the action of another screen that the user came from, or a row of the tree."""

    @property
    def needle(self) -> bytes | None:
        return self._tree_pane.names.needle

    @property
    def is_filtered(self) -> bool:
        return self.needle is not None or self._session.status.match is not None

    @property
    def can_clear(self) -> bool:
        """Whether there is a filter without which all keys are shown at once.

        One that was there from the start is not: without it, all keys would have to be scanned.
        """
        return self.needle is not None or (self._session.status.match is not None and self._session.keeps_all_keys)

    def show_names(self, text: bytes) -> None:
        self._choose_names(text)
        if self.needle is not None:
            self._run(self._tree_pane.names.work, "search")

    def show_names_at(self, text: bytes, name: bytes, *, is_namespace: bool) -> None:
        """Show the names with this text, or all for none, and go to one of them once it has been searched for."""
        pane = self._tree_pane
        if text != (self.needle or b"") or pane.names.is_searching:
            self._choose_names(text)
        rows = pane.names.rows

        def go() -> None:
            (pane.reveal_namespace if is_namespace else pane.reveal)(name)

        async def search() -> None:
            await pane.names.work()
            if pane.names.rows is rows:
                go()

        if pane.names.is_searching:
            self.hold_keypresses(self._run(search, "search"))
        else:
            go()

    def _choose_names(self, text: bytes) -> None:
        if text:
            self.returns_to = ""
        self._tree_pane.names.choose(text, self._tree_pane.key_tree.cursor)
        self._tree_pane.show_rows()
        self._on_other_rows()

    def clear(self) -> None:
        if self.needle is not None:
            self.show_names(b"")
        if self._session.status.match is not None:
            self._run(partial(self._filter_keys, None), "filter")

    async def look_up(self, name: bytes, *, is_glob: bool = False) -> bool | None:
        """Go to the key of exactly this name, or of its Java form; otherwise let the server filter by a glob.

        Returns whether the key exists, None if the server refuses to answer.
        """
        is_there = await self._session.keys.lookup(name)
        for form in raw_forms(name) if is_there is False and not is_glob else ():
            if form != name and await self._session.keys.lookup(form):
                name, is_there = form, True
        if is_there:
            # the row that the tree falls back to is not wanted
            with self._tree_pane.key_tree.prevent(KeyTree.Highlighted):
                self.show_names(b"")
            self._detail_pane.fetcher.show_key(name)
            self._tree_pane.reveal(name)
        elif is_glob:
            self.show_names(b"")
            await self._filter_keys(name)
        return is_there

    async def _filter_keys(self, match: bytes | None) -> None:
        self.returns_to = ""
        before = self._session.store
        if match is not None or self._session.status.match is None:
            self._tree_pane.reset_for_scan()
        await self._session.filter(match)
        if self._tree_pane.follow_store():
            self._on_other_rows()
        if match is None and self._session.store is before:
            self._tree_pane.reset_for_scan()

    def go_to(self, name: bytes) -> None:
        """Open the namespaces of the key of exactly this name, loaded or not, and go to it; warn if it is missing."""

        async def go() -> None:
            is_there = await self.look_up(name)
            if not is_there:
                why = "is no such key" if is_there is False else "may be such a key, but TYPE is denied"
                text = SafeText(f"{display(name, limit=60)}: there {why}.")
                self._tree_pane.notify(text, markup=False, timeout=4)

        self.hold_keypresses(self._run(go, "look up"))

    def hold_keypresses(self, looking_up: Worker[Any]) -> None:
        def is_over() -> bool:
            return looking_up.is_finished and not self._tree_pane.is_going

        self._tree_pane.app.post_message(HoldKeypresses(is_over))

    @property
    def namespace(self) -> bytes:
        """The path of the namespace under the cursor, or of the key's there; empty at the top and without rows."""
        row = self._tree_pane.key_tree.cursor
        return b"" if row is None else row.namespace.path()

    def query_of(self, row: Row) -> Query:
        from rtui.analysis.query.query import one_of, query_of  # noqa: PLC0415 - when it is wanted

        status = self._session.status
        shown = (("glob", status.match), ("type", status.key_type), ("text", self.needle))
        terms = [one_of(name, [] if value is None else [value]) for name, value in shown]
        return query_of(one_of("in", [row.namespace.path()]), *terms)


FILTER_HINT: Final[Line] = (
    Span(literal(" enter"), Role.ACCENT),
    Span(literal(" goes to that exact key, or scans the server for a glob"), Role.MUTED),
    Span(literal("  down"), Role.ACCENT),
    Span(literal(" moves into the list"), Role.MUTED),
    Span(literal("  esc"), Role.ACCENT),
    Span(literal(" shows all"), Role.MUTED),
)
"""Stands in the footer while a filter is typed."""

FILTER_PLACEHOLDER: Final = "name, part of a name, glob such as user:*:cart, or terms such as ttl:none size>1M"


class TreeFilter(QueryLine):
    """Searches the names that are loaded while one types; a glob or a query has to wait for Enter."""

    def __init__(
        self,
        session: BrowsingSession,
        search: TreeSearch,
        settings: SettingsFile,
        run: Callable[[Callable[[], Coroutine[Any, Any, object]], str], Worker[Any]],
        leave: Callable[[], object],
    ) -> None:
        """`run` starts workers; `leave` closes the line and gives the keyboard to the tree."""
        super().__init__(FILTER_PLACEHOLDER, self._known_words, settings, session.target)
        self._session, self._search, self._run, self._leave = session, search, run, leave

    @property
    def keys_hint(self) -> Line:
        return super().keys_hint if self.is_query else FILTER_HINT

    @property
    def is_glob(self) -> bool:
        """Whether the text has characters that only a server's glob understands."""
        return any(character in "*?[]\\" for character in self.value)

    def _known_words(self) -> Vocabulary:
        from rtui.tui.kit.query_hints import vocabulary_of  # noqa: PLC0415 - with all that adds up

        known, here = vocabulary_of(self._session), self._search.namespace

        def namespaces(prefix: bytes) -> Iterator[bytes]:
            if here and here.startswith(prefix):
                yield here
            yield from (one for one in known.namespaces(prefix) if one != here)

        return replace(known, namespaces=namespaces)

    @on(FilterInput.Changed)
    def _typed(self) -> None:
        if not self.is_open:
            return
        self.show_hint()
        if self.is_query:
            if self._search.needle is not None:
                self._search.show_names(b"")
        elif not self.is_glob:
            self._search.show_names(self.value.encode("utf-8", "surrogateescape"))

    @on(FilterInput.Submitted)
    def _submitted(self) -> None:
        is_query, reading = self.is_query, self.reading
        text, is_glob = self.value.encode("utf-8", "surrogateescape"), self.is_glob
        if is_query and reading.problems:
            self._search.hold_keypresses(self._run(partial(self._look_up_or_mark, text), "filter"))
            return
        self._leave()
        if is_query:
            self.post_message(KeysWanted(reading.query))
        elif text:
            looking_up = self._run(partial(self._search.look_up, text, is_glob=is_glob), "filter")
            self._search.hold_keypresses(looking_up)

    async def _look_up_or_mark(self, text: bytes) -> None:
        """Go to the key of exactly this name; if there is none, go to the problem in the query."""
        if await self._session.keys.lookup(text):
            self._leave()
            await self._search.look_up(text)
        elif self.reading.problems:
            self.refuse()


class TreePlaces:
    """The row of a screen's tree or schema as a place to come back to, and going to places, with or without details."""

    def __init__(
        self, screen: Screen[Any], tree_pane: TreePane, detail_pane: DetailPane, search: TreeSearch, line: TreeFilter
    ) -> None:
        """`line` is the line of the filter, which is closed when another place is shown."""
        self._screen, self._tree_pane, self._detail_pane = screen, tree_pane, detail_pane
        self._search, self._line = search, line

    def enter_detail(self) -> None:
        self._screen.add_class("-reading")
        self._screen.set_focus(self._detail_pane.body)

    def leave_detail(self) -> None:
        self._screen.remove_class("-reading")
        self._screen.set_focus(self._tree_pane.view)

    @property
    def is_reading(self) -> bool:
        """Whether the details have the keyboard, or are all that is shown."""
        return self._detail_pane.value.has_keyboard or self._screen.has_class("-reading")

    @property
    def level(self) -> LevelDetail | None:
        """The level of the schema under the cursor; None without one, and while the names are shown."""
        from rtui.tui.browse.level_lines import LevelDetail  # noqa: PLC0415 - with all that adds up

        view = self._tree_pane.schema
        if view.rows.schema is None or view.cursor is None or not view.is_shown:
            return None
        return LevelDetail(view.rows.schema, view.cursor, self._search.needle)

    @property
    def here(self) -> TreePlace:
        """The row under the cursor, and whether its details have the keyboard."""
        row, needle, pane = self._tree_pane.key_tree.cursor, self._search.needle, self._tree_pane
        if pane.is_schema:
            level = pane.schema.cursor
            return TreePlace(is_reading=self.is_reading, needle=needle, level=() if level is None else level.path)
        if row is None:
            return TreePlace(is_reading=self.is_reading, needle=needle)
        return TreePlace(row.key(), row.kind is RowKind.NAMESPACE, self.is_reading, needle)

    def show(self, place: TreePlace) -> None:
        """Go to a row and open its ancestors; nothing is asked of the server to find it."""
        self._line.close()
        self._search.returns_to = ""
        pane = self._tree_pane
        if place.level is None:
            pane.hide_schema()
        if place.name is not None:
            self._search.show_names_at(place.needle or b"", place.name, is_namespace=place.is_namespace)
        elif place.needle != self._search.needle:
            self._search.show_names(place.needle or b"")
        if place.level is not None:
            pane.show_schema(place.level)
        if place.is_reading:
            self.enter_detail()
        else:
            self.leave_detail()

    def go_to_key(self, key: bytes, returns_to: str | TreePlace = "") -> None:
        """Go to a key and open its namespaces; Escape then runs the action, or goes to the place, `returns_to`."""
        self._search.go_to(key)
        self._search.returns_to = returns_to

    def keys_wanted(self, sort: str | None = None) -> KeysWanted | None:
        """Return the query for the keys of the namespace or level under the cursor; None if neither is.

        With a sort column, it is for the first keys by that column.
        """
        if self._tree_pane.is_schema:
            level = self.level
            return None if level is None else KeysWanted(level.behind.query, level.behind.note, sort=sort)
        row = self._tree_pane.key_tree.cursor
        if row is None or row.kind is not RowKind.NAMESPACE:
            return None
        return KeysWanted(self._search.query_of(row), sort=sort)

    def follow(self, item: RowItem) -> None:
        """Go to the key or namespace of a row beside the tree; Escape comes back here."""
        here, detail = self.here, self._detail_pane
        if item.data is None:
            return
        if detail.is_among_references:
            detail.value.trail.follow(here, item.data)
            self._search.go_to(item.data)
            return
        self.leave_detail()
        if item.kind is ItemKind.KEY:
            self.go_to_key(item.data, here)
        else:
            self._tree_pane.reveal_namespace(item.data)
            self._search.returns_to = here
