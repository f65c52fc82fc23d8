"""The comparison of two reports of a keyspace: growth, shrinkage, new and gone namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rtui.analysis.humanize import counted, keys
from rtui.analysis.report.document import ClusterReport, ColumnState, CoverageKind, Head, Node, NodeKind, Report
from rtui.analysis.report.readings import (
    Direction,
    FigureChange,
    Interval,
    Reading,
    ReportNamespace,
    ReportSide,
    Sides,
    below,
)
from rtui.keyspace.text.display import display, display_text
from rtui.keyspace.text.identifiers import from_braces


class Fate(StrEnum):
    """The kind of change of a namespace."""

    CAME = "came"
    WENT = "went"
    GREW = "grew"
    """In bytes, or where these do not tell, in keys."""
    SHRANK = "shrank"
    SHIFTED = "no-TTL share changed"
    """As large as before, with another share of keys that never expire."""
    LITTLE = "changed by less than 1 %"
    """By less than 1 %, or its share of keys without TTL by less than a point: too little to be listed."""
    SAME = "same"
    UNCLEAR = "not distinguishable"
    """The intervals of both reports overlap, or one of them may have missed it."""


LEAST_GROWTH: Final = 0.01
"""A namespace is listed as grown or shrunk where the change is at least this share of the larger of both numbers."""

MOST_NODES: Final = 5

LEAST_POINTS: Final = 1
"""Percentage points from which a change in the share of keys without TTL is listed."""

_FATES: Final = {Direction.GREW: Fate.GREW, Direction.SHRANK: Fate.SHRANK}


@dataclass(frozen=True, slots=True)
class NamespaceChange:
    """One namespace in two reports."""

    path: tuple[Node, ...]
    """Its nodes from the first level on; empty for the whole keyspace."""
    keys: FigureChange
    memory: FigureChange
    no_ttl: FigureChange
    """The share of keys that never expire, 0 … 1."""
    children: tuple[NamespaceChange, ...] = ()

    @property
    def raw(self) -> bytes:
        """How its keys begin, names and separators as they are: `shop:session:`."""
        return b"".join(node.name + node.separator for node in self.path)

    @property
    def label(self) -> str:
        if not self.path:
            return "all keys"
        if self.path[-1].kind is not NodeKind.OTHER:
            return display(b"".join(node.shown + node.separator for node in self.path))
        above = b"".join(node.shown + node.separator for node in self.path[:-1])
        return f"{display(above)}(other)"

    def is_called(self, name: str) -> bool:
        """Tell whether it has this name: with or without last separator, raw or displayed, `{id}` for `<id>`."""
        separator = self.path[-1].separator if self.path else b""
        names = {self.raw, self.raw.removesuffix(separator)}
        given = name.encode("utf-8", "surrogateescape")
        return given in names or from_braces(given) in names or name in {self.label, *map(display, names)}

    @property
    def is_new(self) -> bool | None:
        """Whether only the later report has it; None when the earlier one may have missed it."""
        return _is_only_in(self.keys.after, self.keys.before)

    @property
    def is_gone(self) -> bool | None:
        """Whether only the earlier report has it; None when the later one may have missed it."""
        return _is_only_in(self.keys.before, self.keys.after)

    @property
    def fate(self) -> Fate:
        if self.is_new:
            return Fate.CAME
        if self.is_gone:
            return Fate.WENT
        for change in (self.memory, self.keys):
            if change.before is not None and change.after is not None and change.direction in _FATES:
                larger: float = max(change.before.high, change.after.high)
                if _reaches(change.difference(), LEAST_GROWTH * larger):
                    return _FATES[change.direction]
        if self.no_ttl.direction in _FATES and _reaches(self.no_ttl.points(), LEAST_POINTS):
            return Fate.SHIFTED
        directions = {self.memory.direction, self.keys.direction, self.no_ttl.direction}
        if directions & _FATES.keys():
            return Fate.LITTLE
        return Fate.UNCLEAR if Direction.UNCLEAR in directions else Fate.SAME

    def walk(self, depth: int | None = None) -> Iterator[NamespaceChange]:
        yield self
        if depth is None or len(self.path) < depth:
            for child in self.children:
                yield from child.walk(depth)

    def outlined(self, depth: int | None = None) -> Iterator[NamespaceChange]:
        """Yield these changes without those below new or gone namespaces; of a chain with equal keys only the last."""
        whole = self.is_new or self.is_gone
        deeper = not whole and (depth is None or len(self.path) < depth)
        only = self.children[0] if self.path and len(self.children) == 1 else None
        is_link = only is not None and (only.keys, only.memory, only.no_ttl) == (self.keys, self.memory, self.no_ttl)
        if not (deeper and is_link):
            yield self
        if deeper:
            for child in self.children:
                yield from child.outlined(depth)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two reports compared."""

    before: Head
    after: Head
    root: NamespaceChange
    notes: tuple[str, ...] = ()
    levels: int | None = None
    """Levels that both reports have, None without a limit; 0 where their namespaces can't be compared."""

    def find(self, name: str) -> NamespaceChange | None:
        """Return the namespace of a name (see `is_called`), a single key only where no namespace has it."""
        found = [change for change in self.root.walk() if change.path and change.is_called(name)]
        return max(found, key=lambda change: bool(change.path[-1].separator), default=None)


def compare(before: Report, after: Report) -> Comparison:
    sides = ReportSide(before), ReportSide(after)
    scopes = before.head.scope, after.head.scope
    levels = min((scope.depth for scope in scopes if scope.depth is not None), default=None)
    if scopes[0].separators != scopes[1].separators:
        levels = 0
    roots = [
        ReportNamespace(side, report.summary.root, side.read(report.summary.root))
        for side, report in zip(sides, (before, after), strict=True)
    ]
    root = _change((), (roots[0], roots[1]), levels)
    return Comparison(before.head, after.head, root, tuple(notes(before, after)), levels)


def _reaches(found: Interval | None, least: float) -> bool:
    return found is not None and max(abs(float(found.low)), abs(float(found.high))) >= least


def _is_only_in(here: Reading | None, there: Reading | None) -> bool | None:
    if here is None or there is None or there.is_present:
        return False
    return True if there.high == 0 else None


def _change(path: tuple[Node, ...], sides: Sides, levels: int | None) -> NamespaceChange:
    children = []
    if levels is None or len(path) < levels:
        named = [side.children for side in sides]
        apart = named[0].keys() - named[1].keys(), named[1].keys() - named[0].keys()
        for name, node in {**named[0], **named[1]}.items():
            children.append(_change((*path, node), below(sides, name, apart), levels))
    before, after = (side.readings for side in sides)
    return NamespaceChange(
        path,
        FigureChange(before.keys, after.keys),
        FigureChange(before.memory, after.memory),
        FigureChange(before.no_ttl, after.no_ttl),
        tuple(children),
    )


def notes(before: Report, after: Report) -> Iterator[str]:
    if after.head.made_at_s < before.head.made_at_s:
        yield "The first report is the later one."
    one, two = before.head.server, after.head.server
    if one.label != two.label:
        yield f"The servers differ: {display_text(one.label)} and {display_text(two.label)}."
    if one.db != two.db:
        yield f"The databases differ: {one.db} and {two.db}."
    if one.role != two.role:
        yield f"The roles differ: {display_text(one.role) or 'unknown'} and {display_text(two.role) or 'unknown'}."
    versions = [f"{server.product} {server.version}".strip() for server in (one, two)]
    if versions[0] != versions[1]:
        shown = [display_text(version) or "unknown" for version in versions]
        yield f"The servers' versions differ, and with them memory per key: {shown[0]} and {shown[1]}."
    first, second = before.head.scope, after.head.scope
    if first.separators != second.separators:
        yield "The separators differ, so only the totals are compared."
    for what, *asked in (("patterns", first.match, second.match), ("types asked for", first.key_type, second.key_type)):
        if asked[0] != asked[1]:
            wanted = ["all keys" if raw is None else display(raw, limit=80) for raw in asked]
            yield f"The {what} differ: {wanted[0]} and {wanted[1]}."
    if first.depth != second.depth:
        yield "The depths differ: namespaces are compared as far down as both go."
    yield from _nodes(before.cluster, after.cluster)
    yield from _gaps("first", before)
    yield from _gaps("second", after)


def _nodes(before: ClusterReport | None, after: ClusterReport | None) -> Iterator[str]:
    if before is None or after is None:
        if before is not after:
            only = "second" if before is None else "first"
            yield f"Only the {only} report is of all nodes of a cluster."
        return
    first, second = ({node.id: node for node in cluster.nodes} for cluster in (before, after))
    for what, came in (("are new", second.keys() - first.keys()), ("are gone", first.keys() - second.keys())):
        labels = sorted(display_text({**first, **second}[one].label) for one in came)
        if len(labels) == 1:
            yield f"Node {labels[0]} {what.replace('are', 'is')}."
        elif labels:
            named = [*labels[:MOST_NODES], *(["…"] if len(labels) > MOST_NODES else [])]
            yield f"{counted(len(labels), 'node')} {what}: {', '.join(named)}."
    was, now = ({slot: node.id for node in one.nodes for slot in node.served} for one in (before, after))
    moved = sum(was.get(slot) != now.get(slot) for slot in was.keys() | now.keys())
    if moved:
        yield f"{counted(moved, 'slot')} {'is' if moved == 1 else 'are'} served by another node."


def _gaps(name: str, report: Report) -> Iterator[str]:
    coverage = report.head.coverage
    if coverage.kind is CoverageKind.PARTIAL:
        because = f" ({display_text(coverage.reason)})" if coverage.reason else ""
        yield f"The {name} report is partial{because}: its figures are lower bounds."
    if coverage.kind is CoverageKind.ESTIMATE:
        yield (
            f"The {name} report is an estimate from {keys(coverage.keys)}: "
            "differences within its intervals are not distinguishable."
        )
    if coverage.repeats_possible:
        why = "" if report.cluster is not None else ", since the server resized its table meanwhile"
        yield f"The {name} report may count keys twice{why}."
    for column in ("memory", "ttl"):
        found = report.head.columns.get(column)
        if found is not None and found.state is not ColumnState.COMPLETE:
            reason = f", {display_text(found.reason)}" if found.reason else ""
            yield f"The {name} report's {column} is {found.state.value}{reason}."
    if report.summary.folded:
        yield f"In the {name} report {keys(report.summary.folded)} exceed the budget of namespaces."
