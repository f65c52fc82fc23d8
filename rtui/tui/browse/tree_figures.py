"""The last analysis's figures for the namespaces of the tree: looked up row by row, and to sort many namespaces by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from rtui.analysis.humanize import Known, Mark, NamespaceFigures
from rtui.analysis.query.behind import Behind, keys_of, scope_of
from rtui.analysis.report.document import KeyRecord, Node, Report, Stats
from rtui.analysis.report.namespaces import Fit, ReportedNamespaces, ReportPlace
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.table import find
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.store.namespace import Namespace

KEPT_PLACES: Final = 4_096
"""Places of namespaces that are kept: of the rows on screen and of the levels above."""

FIGURE_OF: Final[dict[Sort, Callable[[NamespaceFigures], Known | None]]] = {
    Sort.MEMORY: lambda found: found.memory_bytes,
    Sort.MEAN: lambda found: found.mean_bytes,
    Sort.TTL: lambda found: found.no_ttl,
    Sort.IDLE: lambda found: found.idle,
}
"""The figures by which namespaces are sorted, largest first."""


MOST_LISTED: Final = 8
"""Biggest keys, and patterns, that are shown of a namespace."""


@dataclass(frozen=True, slots=True)
class InsideNamespace:
    """The figures of a report for the keys below a namespace."""

    biggest: Sequence[KeyRecord]
    complete_above: int | None
    """No key of more bytes is missing in `biggest`, except beyond its length; None if any key may be missing."""
    patterns: Sequence[tuple[Node, ...]]
    """The patterns of keys, as paths from the namespace down, most bytes first."""
    behind: Sequence[Behind]
    more_patterns: int
    mark: Mark
    """Of the figures of patterns."""
    whole: Stats

    def share(self, node: Node) -> float:
        """Return the share of a pattern in the bytes of the namespace, or in its keys if bytes are not known."""
        part, whole = node.stats.memory_bytes, self.whole.memory_bytes
        if part is None or whole is None:
            part, whole = node.stats.keys, self.whole.keys
        return plain(part) / max(1.0, plain(whole))


class TreeFigures:
    """The figures of one report, by the namespaces of a store that has the same separators."""

    def __init__(self, report: Report, *, is_current: bool = True) -> None:
        """`is_current` is whether the report is of the keyspace as it is: of the same server, not emptied since."""
        self.reported, self.report = ReportedNamespaces(report), report
        self.is_current = is_current
        self._places: dict[Namespace, ReportPlace | None] = {}
        self._inside: tuple[Namespace, InsideNamespace] | None = None

    def place(self, node: Namespace) -> ReportPlace | None:
        """Return the place where the report counts the keys of a namespace, None if it does not count them."""
        if node.parent is None:
            return self.reported.root
        if node not in self._places:
            if len(self._places) >= KEPT_PLACES:
                self._places.clear()
            levels = [node]
            while (parent := levels[-1].parent) is not None and parent.parent is not None:
                levels.append(parent)
            place: ReportPlace | None = self.reported.root
            for level in reversed(levels):
                place = None if place is None else self.reported.below(place, level.name, level.separator)
            self._places[node] = place
        return self._places[node]

    def figures(self, node: Namespace, keys: Known) -> NamespaceFigures:
        return self.reported.figures(self.place(node), keys)

    def inside(self, node: Namespace) -> InsideNamespace:
        if self._inside is None or self._inside[0] is not node:
            self._inside = node, self._look_inside(node)
        return self._inside[1]

    def _look_inside(self, node: Namespace) -> InsideNamespace:
        place, root = self.place(node), self.reported.root.node
        biggest, least = self.reported.biggest(node.path(), MOST_LISTED)
        if place is None or place.fit is Fit.MANY:
            known_above = None if place is None else least  # None: it may have come after the report
            return InsideNamespace(biggest, known_above, (), (), 0, self.reported.mark, root.stats)
        patterns, more = self.reported.patterns(place, MOST_LISTED)
        above, scope = find(root, place.path) or (root,), scope_of(self.report.head.scope)
        found = [keys_of((*above, *nodes)) for nodes in patterns]
        behind = [Behind(scope & one.query, one.note) for one in found]
        return InsideNamespace(biggest, least, patterns, behind, more, self.reported.mark, place.node.stats)

    def weights(self, node: Namespace, sort: Sort) -> Callable[[Sequence[int]], list[float]] | None:
        """Return a function from ordinals of child namespaces to sort weights, least first; None without figures."""
        figure_of, above, reported = FIGURE_OF.get(sort), self.place(node), self.reported
        if figure_of is None or above is None:
            return None

        of_patterns: dict[int, float] = {}
        is_sum, labels = sort is Sort.MEMORY, node.labels
        cut = len(node.root.separator)

        def weight(place: ReportPlace, count: int) -> float:
            known = figure_of(reported.figures(place, Known(count, Mark.EXACT)))
            return inf if known is None else -known.value

        def weights_at(ordinals: Sequence[int]) -> list[float]:
            found = []
            for ordinal in ordinals:
                label = labels[ordinal]
                separator = label[-cut:] if cut else node.separator_at(ordinal)
                place = reported.below(above, label[: len(label) - len(separator)], separator)
                if place is None:
                    found.append(inf)
                elif place.fit < Fit.PATTERN:
                    found.append(weight(place, node.count_at(ordinal)))
                else:
                    of_one = of_patterns.get(id(place))
                    if of_one is None:
                        of_one = of_patterns[id(place)] = weight(place, 1)
                    found.append(of_one * node.count_at(ordinal) if is_sum else of_one)
            return found

        return weights_at
