"""The line over the tree in which names are filtered, a key is looked up, a glob is scanned for or a query is typed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual import on
from textual.worker import Worker

from rtui.server.browsing.session import BrowsingSession
from rtui.tui.browse.tree_search import TreeSearch
from rtui.tui.kit.bars import FilterInput
from rtui.tui.kit.command_screen import KeysWanted
from rtui.tui.kit.query_line import QueryLine
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.styled_text import Line, Role, Span, literal

if TYPE_CHECKING:
    from rtui.analysis.query.completion import Vocabulary

FILTER_HINT: Final[Line] = (
    Span(literal(" enter"), Role.ACCENT),
    Span(literal(" goes to exactly that key, or scans the server for a glob"), Role.MUTED),
    Span(literal("  down"), Role.ACCENT),
    Span(literal(" moves into the list"), Role.MUTED),
    Span(literal("  esc"), Role.ACCENT),
    Span(literal(" shows all"), Role.MUTED),
)
"""Stands in the footer while a filter is typed."""

FILTER_PLACEHOLDER: Final = "name, part of one, a glob such as user:*:cart, or terms such as ttl:none size>1M"


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
        """What stands in the footer while it is open."""
        return super().keys_hint if self.is_query else FILTER_HINT

    def _known_words(self) -> Vocabulary:
        """Return what is known of the keyspace, for the completion of queries."""
        from rtui.tui.kit.vocabulary import vocabulary_of  # noqa: PLC0415 - with all that adds up

        analysed = self._session.analysed
        nodes = [one.label for one in self._session.status.nodes]
        return vocabulary_of(self._session.store, None if analysed is None else analysed.report, nodes)

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
        """Go to the key of exactly this name; where there is none, go to what is wrong with the query."""
        if await self._session.keys.lookup(text):
            self._leave()
            await self._search.look_up(text)
        elif self.reading.problems:
            self.refuse()
