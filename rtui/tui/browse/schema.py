"""The schema of a keyspace as rows: the levels of a report, where segments that are identifiers are one row each.

A report has a node for each key pattern (`analysis/report/document`), in a tree whose levels are segments of names:
`user:`, below it `{id}:` for 50,000 different ones, below that `orders`. A `Level` is such a node as a row. Where there
is no analysis the report is one of names alone (`server/browsing/name_patterns`), so both look the same here.

A report replaces the previous one while an analysis or a scan goes on. Levels of the same path are the same for the
user: open levels stay open, and once the user has been there rows keep their places, with new ones behind them.

There are some thousands of levels at most, so that rows are a plain list.

An analysis of the keys that the tree shows has all figures, so its report is shown. Without one, and for filtered
names, which no report tells apart, the loaded names are walked over (`NamePatterns`), and again as a scan brings more;
also while an analysis has seen fewer keys than there are names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from rtui.analysis.humanize import Mark
from rtui.analysis.namespace_figures import Known, NamespaceFigures
from rtui.analysis.query.behind import Behind, keys_of, within_report
from rtui.analysis.report.document import CoverageKind, Node, NodeKind, Report, Step
from rtui.analysis.report.namespaces import ReportedNamespaces, ReportPlace
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.rows.listing import BY_NAME, Sort
from rtui.keyspace.slices import Steps
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.identifiers import DEEPEST_LEVEL, KeySegments
from rtui.keyspace.text.matching import natural
from rtui.keyspace.text.segments import swapped
from rtui.server.analysis.table_import import import_counting
from rtui.server.browsing.name_patterns import NamePatterns
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.tree_figures import FIGURE_OF, TreeFigures
from rtui.tui.kit.command_screen import PAUSE_S, Work

if TYPE_CHECKING:
    from textual.worker import Worker

FIRST_ROWS: Final = 18
"""The number of rows up to which levels are open at first: it fits a terminal of 24 lines."""

NO_KEYS: Final = Known(0)

_Weight: TypeAlias = tuple[float, bytes]


class Level:
    """A segment of names at a place in the tree, or the placeholder of folded segments."""

    __slots__ = ("below", "depth", "is_open", "parent", "place")

    def __init__(self, parent: Level | None, place: ReportPlace) -> None:
        self.parent = parent
        """The level before; None for the root, which has no row."""
        self.place = place
        self.depth: int = -1 if parent is None else parent.depth + 1
        """The depth of the row; the root is at -1."""
        self.is_open = False
        self.below: list[Level] = []
        """The sorted children, once they have been listed."""

    @property
    def node(self) -> Node:
        return self.place.node

    @property
    def path(self) -> tuple[Step, ...]:
        """The steps from the root, which identify the level."""
        return self.place.path

    @property
    def is_folded(self) -> bool:
        """Whether it is the placeholder of different segments."""
        return self.node.kind is NodeKind.PATTERN

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes from the root of the report to its own."""
        return tuple(one.node for one in self.upwards())[::-1]

    def upwards(self) -> Iterator[Level]:
        """Yield this level, its parent, and so on up to the root."""
        level: Level | None = self
        while level is not None:
            yield level
            level = level.parent


class Schema:
    """The levels of a report with their figures."""

    def __init__(self, report: Report, *, is_of_names: bool = False, is_current: bool = True) -> None:
        """`is_of_names`: only names are known; `is_current`: the report is of the current keyspace."""
        self.reported = ReportedNamespaces(report)
        self.report = report
        self.is_of_names = is_of_names
        self.is_current = is_current
        self.root = Level(None, self.reported.root)

    @property
    def mark(self) -> Mark:
        """How far its counts can be trusted that come without an interval."""
        return self.reported.mark

    def keys(self, level: Level) -> Known:
        return self.reported.known(level.node.stats.keys) or NO_KEYS

    def distinct(self, level: Level) -> Known | None:
        """Return the number of different segments of a level; None for a name, or if they were not counted."""
        return self.reported.known(level.node.distinct) if level.is_folded else None

    def share(self, level: Level) -> float:
        """Return the part of a level in all keys, 0 … 1."""
        return plain(level.node.stats.share_keys)

    def figures(self, level: Level) -> NamespaceFigures:
        return self.reported.all_figures(level.place)

    def behind(self, level: Level) -> Behind:
        return within_report(self.report, keys_of(level.nodes))

    def prefix(self, level: Level) -> tuple[bool, bytes]:
        """Return whether a level is one key, and its name or the longest prefix that all of its keys have."""
        path = level.path
        for at, step in enumerate(path):
            if step.kind is not NodeKind.LITERAL:
                path = path[:at]
                break
        is_key = len(path) == len(level.path) and bool(path) and not path[-1].separator
        name = b"".join(step.name + step.separator for step in path)
        return is_key, swapped(name, self.reported.separators.java_separator) if is_key else name

    def below(self, level: Level) -> list[Level]:
        return [Level(level, place) for place in self.reported.children(level.place)]

    def sorted(self, levels: Sequence[Level], sort: Sort, *, is_reversed: bool) -> list[Level]:
        """Sort levels: levels without a figure follow, ordered by their keys, and the rest of a namespace is last."""
        known: list[tuple[_Weight, bytes, Step, Level]] = []
        unknown: list[tuple[_Weight, bytes, Step, Level]] = []
        rest = []
        for level in levels:
            if level.node.kind is NodeKind.OTHER:
                rest.append(level)
                continue
            weight = self._weight(level, sort)
            by_keys = -self.keys(level).value, b""
            name = level.node.name if sort is Sort.NAME_BYTES else natural(level.node.name)
            entry = by_keys if weight is None else weight, name, level.node.step, level
            (unknown if weight is None else known).append(entry)
        known.sort(key=itemgetter(0, 1, 2), reverse=is_reversed)
        unknown.sort(key=itemgetter(0, 1, 2))
        return [one[3] for one in (*known, *unknown)] + rest

    def _weight(self, level: Level, sort: Sort) -> _Weight | None:
        """Return the sort weight of a level, the least first; None if it is not known."""
        if sort is Sort.COUNT:
            return -self.keys(level).value, b""
        if sort in BY_NAME:
            return 0.0, b""
        if sort is Sort.TYPE:
            types = level.node.stats.types
            return (0.0, types[0][0]) if types else None
        found = FIGURE_OF[sort](self.figures(level))
        return None if found is None else (-found.value, b"")


class SchemaRows:
    """The rows of a schema: which levels are open, their order, and which of both a new report keeps."""

    def __init__(self, sort: Sort, *, is_reversed: bool = False) -> None:
        self.schema: Schema | None = None
        """None before there is a report."""
        self.rows: list[Level] = []
        self.sort_order = sort
        self.is_reversed = is_reversed

    def show(self, schema: Schema | None, *, keeps_places: bool = False, room: int = FIRST_ROWS) -> None:
        """Show the levels of another report, open as they were; with `keeps_places` in their order, too.

        Levels of the first report are opened as far as their rows fit into `room`.
        """
        before, self.schema = self.schema, schema
        if schema is not None:
            self._list(schema.root)
            if before is not None and before.root.below:
                self._take_over(before.root, schema.root, keeps_places=keeps_places)
            else:
                self._open_first(schema.root, room)
        self._flatten()

    def _take_over(self, before: Level, now: Level, *, keeps_places: bool) -> None:
        """Open the levels that were open, and put known ones before new ones in the order in which they were."""
        pairs = [(before, now)]
        while pairs:
            old, new = pairs.pop()
            if old.below:
                self._list(new)
                new.is_open = old.is_open
            places = {one.node.step: at for at, one in enumerate(old.below)}
            if keeps_places:
                new.below.sort(key=lambda one: places.get(one.node.step, len(places)))
            pairs += [(old.below[places[one.node.step]], one) for one in new.below if one.node.step in places]

    def _open_first(self, root: Level, room: int) -> None:
        """Open the levels with the most keys first, as far as their rows fit into `room`."""
        rows = len(root.below)
        waiting = [(-plain(one.node.stats.keys), one.path, one) for one in root.below]
        heapify(waiting)
        while waiting:
            level = heappop(waiting)[2]
            more = len(level.node.children)
            if more and rows + more <= room:
                rows += more
                self._list(level)
                for one in level.below:
                    heappush(waiting, (-plain(one.node.stats.keys), one.path, one))

    def _list(self, level: Level) -> None:
        """Open a level that has others below."""
        schema = self.schema
        if schema is None or not level.node.children:
            return
        level.is_open = True
        if not level.below:
            level.below = schema.sorted(schema.below(level), self.sort_order, is_reversed=self.is_reversed)

    def _flatten(self) -> None:
        self.rows = []
        waiting = [] if self.schema is None else self.schema.root.below[::-1]
        while waiting:
            level = waiting.pop()
            self.rows.append(level)
            if level.is_open:
                waiting += level.below[::-1]

    def open(self, level: Level) -> None:
        """List the levels below a level; an only child is opened, too."""
        self._list(level)
        while len(level.below) == 1 and level.below[0].node.children:
            (level,) = level.below
            self._list(level)
        self._flatten()

    def open_all(self, level: Level) -> None:
        """List all that is below a level."""
        waiting = [level]
        while waiting:
            one = waiting.pop()
            self._list(one)
            waiting += one.below
        self._flatten()

    def close(self, level: Level) -> None:
        """Hide the levels below a level; which of them are open is kept for the next time."""
        level.is_open = False
        self._flatten()

    def sort(self, order: Sort, *, is_reversed: bool = False) -> None:
        """Sort each level's children."""
        self.sort_order, self.is_reversed = order, is_reversed
        waiting = [] if self.schema is None else [self.schema.root]
        while waiting and self.schema is not None:
            level = waiting.pop()
            level.below = self.schema.sorted(level.below, order, is_reversed=is_reversed)
            waiting += level.below
        self._flatten()

    def index_of(self, level: Level) -> int:
        """Return the number of the row of a level, of the innermost visible ancestor if it is hidden, else 0."""
        for one in level.upwards():
            if one in self.rows:
                return self.rows.index(one)
        return 0

    def reveal(self, path: Sequence[Step]) -> Level | None:
        """Open the ancestors of a level and return it, or the innermost known level of its path; None if none is."""
        level, found = None if self.schema is None else self.schema.root, None
        for step in path:
            if level is None:
                break
            self._list(level)
            level = next((one for one in level.below if one.node.step == step), None)
            found = level or found
        self._flatten()
        return found

    def reveal_names(self, name: bytes, *, is_key: bool) -> Level | None:
        """Open the ancestors of the level that counts a key or a namespace; return it, or the innermost known one."""
        if self.schema is None:
            return None
        place = self.schema.root.place
        segments = KeySegments(self.schema.reported.separators).of(name, DEEPEST_LEVEL)
        for segment, separator in segments if is_key else segments[:-1]:
            below = self.schema.reported.below(place, segment, separator)
            if below is None:
                break
            place = below
        return self.reveal(place.path)

    def end_sibling(self, level: Level, *, last: bool) -> Level:
        """Return the first, or the last, level beside this one."""
        return level if level.parent is None else level.parent.below[-1 if last else 0]

    def find_sibling(self, level: Level, prefix: bytes) -> Level | None:
        """Return the level beside this one, from it on and around, whose name begins so in any case; None without."""
        beside = [] if level.parent is None else level.parent.below
        start = beside.index(level) if level in beside else 0
        lowered = prefix.lower()
        return next((one for one in beside[start:] + beside[:start] if one.node.name.lower().startswith(lowered)), None)


class SchemaSource:
    """Chooses the report of a schema, and makes one from names if there is no analysis."""

    def __init__(
        self,
        run: Callable[[Work], Worker[None]],
        on_change: Callable[[], object],
        on_failure: Callable[[SafeText], object],
    ) -> None:
        """`run` starts a worker and cancels the previous one; `on_change` is called after a walk over names.

        `on_failure` is called with the reason if that fails.
        """
        self.schema: Schema | None = None
        """The schema; None before the first names have been walked over."""
        self._run, self._on_change, self._on_failure = run, on_change, on_failure
        self._worker: Worker[None] | None = None
        self._names: NamePatterns | None = None
        """The latest walk over names, perhaps still under way."""

    @property
    def fraction(self) -> float | None:
        """The finished part of a walk, from 0 to 1; None if no walk is under way."""
        is_under_way = self._worker is not None and not self._worker.is_finished
        return self._names.fraction if is_under_way and self._names is not None else None

    def update(
        self, store: NamespaceStore, status: BrowsingStatus, figures: TreeFigures | None, *, is_complete: bool
    ) -> None:
        """Follow the report of an analysis, of which `figures` are, or the names of a store."""
        report = None if figures is None else figures.report
        if figures is not None and report is not None and knows_more(report, store):
            self.stop()
            self._names = None
            shown = None if self.schema is None else (self.schema.report, self.schema.is_current)
            if shown != (report, figures.is_current):
                self.schema = Schema(report, is_current=figures.is_current)
            return
        names = self._names
        if self.schema is not None and (names is None or not names.is_of(store)):
            self.schema = None
        is_idle = self._worker is None or self._worker.is_finished
        is_other = names is None or not names.is_of(store)
        if is_other or (is_idle and names is not None and names.is_due(store, is_complete=is_complete)):
            work = NamePatterns(store, is_complete=is_complete, match=status.match, key_type=status.key_type)
            self._names = work

            async def walk() -> None:
                try:
                    await asyncio.to_thread(import_counting)
                except RtuiError as error:
                    self._on_failure(error.happened)
                    return
                report = await _driven(work.work())
                if work is self._names:
                    self.schema = Schema(report, is_of_names=True)
                    self._on_change()

            self._worker = self._run(walk)

    def stop(self) -> None:
        """End a walk that is under way; it begins again when it is wanted."""
        if self._worker is not None and not self._worker.is_finished:
            self._worker.cancel()
            self._names = None
        self._worker = None


def knows_more(report: Report, store: NamespaceStore) -> bool:
    """Return whether a report covers all keys, or at least as many as a store has names of."""
    coverage = report.head.coverage
    return coverage.kind is not CoverageKind.PARTIAL or coverage.counted_keys >= store.keys


async def _driven(work: Steps[Report]) -> Report:
    """Do all slices, some in another thread, and return the result."""
    try:
        while True:
            elsewhere = next(work)
            if elsewhere is None:
                await asyncio.sleep(PAUSE_S)
            else:
                await asyncio.to_thread(elsewhere)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
