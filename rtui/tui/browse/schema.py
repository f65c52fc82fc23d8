"""The schema of a keyspace as rows: the levels of a report, where segments that are identifiers are one row each.

A report has a node for each key pattern (`analysis/report/document`), in a tree whose levels are segments of names:
`user:`, below it `<id>:` for 50,000 different ones, below that `orders`. A `Level` is such a node as a row. Where there
is no analysis the report is one of names alone (`NamePatterns`), so both look the same here.

An analysis of the keys that the tree shows has all figures, so its report is shown. Without one, and for filtered
names, which no report tells apart, the loaded names are walked over (`NamePatterns`), and again as a scan brings more;
also while an analysis has seen fewer keys than there are names.

The walk starts when the patterns are to be shown, since a scan that counted names would be slower for a rare use, and
could not follow a filter or removed names. It reads a few hundred names at a time, and their patterns are found in
another thread, many thousands at once, by the code of an analysis.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from rtui.analysis.humanize import Known, NamespaceFigures
from rtui.analysis.query.behind import Behind, keys_of, within_report
from rtui.analysis.report.document import (
    Coverage,
    CoverageKind,
    Head,
    Node,
    NodeKind,
    Report,
    Scope,
    ServerReport,
    Step,
    Summary,
)
from rtui.analysis.report.namespaces import ReportedNamespaces, ReportPlace
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.rows.listing import BY_NAME, Sort
from rtui.keyspace.slices import Slicer, Steps, elsewhere
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.identifiers import DEEPEST_LEVEL, KeySegments
from rtui.keyspace.text.matching import natural
from rtui.keyspace.text.segments import Separators, swapped
from rtui.server.analysis.table_import import import_counting
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.tree_figures import FIGURE_OF, TreeFigures
from rtui.tui.kit.command_screen import Work, drive

if TYPE_CHECKING:
    from textual.worker import Worker

NO_KEYS: Final = Known(0)

_Weight: TypeAlias = tuple[float, bytes]


class Level:
    """A segment of names at a place in the tree, or the placeholder of folded segments."""

    __slots__ = ("below", "depth", "is_open", "node", "parent", "path", "place")

    def __init__(self, parent: Level | None, place: ReportPlace) -> None:
        self.parent = parent
        """The level before; None for the root, which has no row."""
        self.place, self.node, self.path = place, place.node, place.path
        self.depth: int = -1 if parent is None else parent.depth + 1
        """The depth of the row; the root is at -1."""
        self.is_open = False
        self.below: list[Level] = []
        """The sorted children, once they have been listed."""

    @property
    def is_folded(self) -> bool:
        """Whether it is the placeholder of different segments."""
        return self.node.kind is NodeKind.PATTERN

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(one.node for one in self.upwards())[::-1]

    def upwards(self) -> Iterator[Level]:
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

    def keys(self, level: Level) -> Known:
        return self.reported.known(level.node.stats.keys) or NO_KEYS

    def distinct(self, level: Level) -> Known | None:
        """Return the number of different segments of a level; None for a name, or if they were not counted."""
        return self.reported.known(level.node.distinct) if level.is_folded else None

    def share(self, level: Level) -> float:
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

    def path_of(self, name: bytes, *, is_key: bool) -> tuple[Step, ...]:
        """Return the path of the level that counts a key or a namespace, or of the innermost one on it."""
        place = self.root.place
        segments = KeySegments(self.reported.separators).of(name, DEEPEST_LEVEL)
        for segment, separator in segments if is_key else segments[:-1]:
            below = self.reported.below(place, segment, separator)
            if below is None:
                break
            place = below
        return place.path

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
        if sort is Sort.COUNT:
            return -self.keys(level).value, b""
        if sort in BY_NAME:
            return 0.0, b""
        if sort is Sort.TYPE:
            types = level.node.stats.types
            return (0.0, types[0][0]) if types else None
        found = FIGURE_OF[sort](self.figures(level))
        return None if found is None else (-found.value, b"")


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
        if figures is not None:
            coverage = figures.report.head.coverage
            if coverage.kind is not CoverageKind.PARTIAL or coverage.counted_keys >= store.keys:
                self.stop()
                self._names = None
                shown = None if self.schema is None else (self.schema.report, self.schema.is_current)
                if shown != (figures.report, figures.is_current):
                    self.schema = Schema(figures.report, is_current=figures.is_current)
                return
        names = self._names if self._names is not None and self._names.is_of(store) else None
        if names is None:
            self.schema = None
        is_idle = self._worker is None or self._worker.is_finished
        if names is None or (is_idle and names.is_due(store, is_complete=is_complete)):
            work = NamePatterns(store, is_complete=is_complete, match=status.match, key_type=status.key_type)
            self._names = work

            async def walk() -> None:
                try:
                    await asyncio.to_thread(import_counting)
                except RtuiError as error:
                    self._on_failure(error.happened)
                    return
                report = await drive(work.work())
                if work is self._names:
                    self.schema = Schema(report, is_of_names=True)
                    self._on_change()

            self._worker = self._run(walk)

    def stop(self) -> None:
        if self._worker is not None and not self._worker.is_finished:
            self._worker.cancel()
            self._names = None
        self._worker = None


AT_ONCE: Final = 50_000
"""The approximate number of names whose patterns are found at once."""

GROWTH: Final = 1.5
"""The growth of the number of names during a scan at which they are walked over again."""


class NamePatterns:
    """Walks over the names of a store once."""

    def __init__(
        self, store: NamespaceStore, *, is_complete: bool, match: bytes | None = None, key_type: bytes | None = None
    ) -> None:
        """`is_complete` is whether the store has all keys, or all those that match and are of this type."""
        self.read = 0
        self.is_complete = is_complete
        self._store = store
        self._root, self._of = store.root, store.keys
        separators = tuple(store.separators.values)
        self._scope = Scope(separators=separators, match=match, key_type=key_type)

    @property
    def fraction(self) -> float:
        return min(1.0, self.read / max(1, self._of))

    def is_due(self, store: NamespaceStore, *, is_complete: bool) -> bool:
        """Return whether to walk over the names again: for another store, a scan that has ended, or many more names."""
        if store is not self._store or store.root is not self._root or is_complete is not self.is_complete:
            return True
        return store.keys != self._of if is_complete else store.keys > self._of * GROWTH

    def is_of(self, store: NamespaceStore) -> bool:
        return store is self._store and store.root is self._root

    def work(self) -> Steps[Report]:
        """Return the report; exact if every key of a complete store was read.

        The modules that find patterns must have been imported (`table_import`).
        """
        from rtui.table.aggregates import NameTree  # noqa: PLC0415 - imports Polars

        tree, slicer, names = NameTree(Separators(self._scope.separators)), Slicer(), HeldNames(self._store)
        batch: list[bytes] = []
        for page in names.pages():
            batch += page
            self.read += len(page)
            if len(batch) >= AT_ONCE:
                yield from elsewhere(tree.add(batch))
                batch = []
            yield from slicer.pause()
        yield from elsewhere(tree.add(batch))
        root = yield from elsewhere(tree.root())
        is_exact = self.is_complete and not names.missing and self.read == self._store.keys
        coverage = Coverage(
            CoverageKind.EXACT if is_exact else CoverageKind.PARTIAL,
            keys=0,
            total_keys=self._store.keys if self.is_complete else None,
            unread=self.read,
        )
        return Report(Head(0.0, ServerReport(""), self._scope, coverage), Summary(root=root))
