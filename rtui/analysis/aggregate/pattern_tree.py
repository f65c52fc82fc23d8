"""The namespaces and key patterns of a keyspace, as a tree of bounded size whose shape does not depend on key order.

A namespace with up to `MOST_CHILDREN` names keeps them all. One with more is *crowded*: a further name is not decided
on when it comes, but later and by its weight (`undecided`), and in the end only the names that are heavy
enough remain; all others become the pattern `{*}`. Say that `user:<name>` has 10,000 names of a key each and one of
600 keys in a keyspace of 20,000: 128 names, those that come first, get a node at once, the one of 600 keys gets its
node when all keys of names that wait are looked at together, and at last `user` has that one and `{*}`, whichever came
first. Likewise for all nodes together: what is beyond the budget is decided by weight, too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rtui.analysis.aggregate.buffers import Cell
from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.tally import Tally
from rtui.analysis.report.document import NodeKind
from rtui.keyspace.text.identifiers import DIGITS, LONGEST, MARKS, PLACEHOLDERS, Identifiers
from rtui.keyspace.text.segments import Separators

MOST_CHILDREN: Final = 128
"""A namespace with more names than this keeps those that are heavy; all others become one pattern."""

WORKING_NODES: Final = 2
"""While keys are counted there may be so many times the budget of nodes before the lightest are given up."""

DEEPEST: Final = 32
"""So many levels are told apart at most: more are no namespaces that anyone laid out."""

ANY: Final = b"{*}"
"""The pattern of a namespace with too many names."""

REST: Final = b""
"""The name of what is beyond the budget: none."""

Name: TypeAlias = tuple[bytes, bytes, NodeKind]
"""What tells siblings apart: segment or pattern, separator, kind. A key and a namespace differ by the separator."""


@dataclass(frozen=True, slots=True)
class Heavy:
    """Which names of a crowded namespace keep their own node: those that reach one of these bounds."""

    of_all: int
    """A share of all keys, or of the memory of all keys, in 1/10,000."""
    of_parent: int
    """A share of the keys of the namespace, in 1/10,000."""
    least: int
    """A share of the keys of the namespace is too little if it is less than so many keys."""

    def holds(self, weight: Weight, parent: Weight, whole: Weight) -> bool:
        """Whether a name of this weight is heavy in that namespace of that keyspace."""
        keys, size = weight
        return (
            10_000 * keys >= self.of_all * whole[0]
            or (size > 0 and 10_000 * size >= self.of_all * whole[1])
            or (keys >= self.least and 10_000 * keys >= self.of_parent * parent[0])
        )


Weight: TypeAlias = tuple[int, int]
"""Keys, and the bytes that are known of them."""

SHOWN: Final = Heavy(100, 200, 4)
"""Which names a finished summary shows."""

KEPT: Final = Heavy(25, 50, 2)
"""Which names are kept while keys are still being counted: lighter ones, since they may become heavier."""


class Pattern:
    """One segment of the keys that have it in this place, and what comes behind it."""

    __slots__ = ("cells", "children", "is_crowded", "kind", "likeness", "name", "named", "separator", "undecided")

    def __init__(self, name: Name, *, likeness: int) -> None:
        self.name, self.separator, self.kind = name
        self.likeness = likeness
        """Which segments get here besides the one that it was made for."""
        self.is_crowded = False
        """Whether it has had too many names."""
        self.named = 0
        """How many children have a name of their own."""
        self.children: dict[Name, Pattern] = {}
        self.cells: dict[bytes | None, Cell] = {}
        """By type, what is known of the keys that end here, or are not followed further."""
        self.undecided: dict[bytes | None, Tally] = {}
        """By type, keys below here whose place is not decided yet; only while somebody looks."""

    @property
    def keys(self) -> int:
        """All keys here and below."""
        own = sum(tally.keys for tally in self.own())
        return own + sum(child.keys for child in self.children.values())

    def own(self) -> Iterator[Tally]:
        """What has been counted of each type here, not below."""
        for cell in self.cells.values():
            yield cell.tally
        yield from self.undecided.values()

    def walk(self) -> Iterator[Pattern]:
        """Yield this one and all below it, parents first."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def tallies(self) -> Iterator[Tally]:
        """What has been counted of each type, here and below."""
        for pattern in self.walk():
            yield from pattern.own()


Slot: TypeAlias = tuple[Pattern, Name]
"""A place that there is no node for: below which pattern, under which name."""

_NOTHING: Final[Mapping[Slot, bool]] = {}


class PatternTree:
    """Finds the place of keys, and keeps the number of places small."""

    def __init__(
        self, separators: Separators, scale: ExpiryScale, *, depth: int | None = None, budget: int = 4096
    ) -> None:
        self.root = Pattern((b"", b"", NodeKind.LITERAL), likeness=DIGITS | MARKS)
        self.folds = 0
        """How often nodes were merged: cells that are known from before may have been poured into others."""
        self.scale = scale
        self._nodes = 1
        self._separators = separators
        self._single = separators.values[0] if len(separators.values) == 1 else None
        self._identifiers = Identifiers(separators.values)
        self._levels = DEEPEST if depth is None else max(0, min(depth, DEEPEST))
        self._budget = budget

    def place(self, key: bytes, decided: Mapping[Slot, bool] = _NOTHING) -> tuple[Pattern, int, Slot | None]:
        """Find where a key belongs, making room for it, and which keys belong there too, now and until a fold.

        Where there is no room for one of its segments, the third is the place that it would need. Of such places it
        is `decided` whether they are heavy and get a node, or light, so that a stand-in takes their keys.
        """
        node = self.root
        likeness = DIGITS | MARKS
        for name, separator in self._segments(key):
            child = node.children.get((name, separator, NodeKind.LITERAL))
            if child is None:
                child, others, wanted = self._find(node, name, separator)
                if child is None:
                    is_heavy = decided.get((node, wanted))
                    if is_heavy is None:
                        return node, 0, (node, wanted)
                    make = self._named if is_heavy else self.stand_in
                    child = make(node, wanted)
                likeness &= others
            else:
                likeness &= child.likeness
            node = child
            if node.kind is NodeKind.OTHER:
                break
        return node, likeness, None

    def cell(self, node: Pattern, kind: bytes | None) -> Cell:
        """What collects the keys of this type there."""
        found = node.cells.get(kind)
        if found is None:
            found = node.cells[kind] = Cell(self.scale)
        return found

    def stand_in(self, parent: Pattern, name: Name) -> Pattern:
        """The child that takes the keys of a light name."""
        if parent.is_crowded and not is_plain(name):
            name = (ANY, name[1], NodeKind.PATTERN)
        else:
            name = (REST, b"", NodeKind.OTHER)
        return parent.children.get(name) or self.make(parent, name, likeness=0)

    def make(self, parent: Pattern, name: Name, *, likeness: int) -> Pattern:
        """Make a child that is not there yet, whether there is room for it or not."""
        made = parent.children[name] = Pattern(name, likeness=likeness)
        self._nodes += 1
        if not is_plain(name):
            parent.named += 1
            parent.is_crowded = parent.is_crowded or parent.named > MOST_CHILDREN
        return made

    def _named(self, parent: Pattern, name: Name) -> Pattern:
        """Make a child whose keys are not taken for those of any other."""
        return self.make(parent, name, likeness=0)

    def hide_undecided(self) -> None:
        """Have no key counted whose place is undecided."""
        for node in self.root.walk():
            node.undecided.clear()

    def sweep(self, wanted: Container[Pattern] = ()) -> None:
        """Remove the stand-ins that were made for undecided keys only, but not those `wanted` as parents."""
        for node in list(self.root.walk()):
            for name, child in list(node.children.items()):
                if _is_stand_in(name) and not child.cells and not child.children and child not in wanted:
                    del node.children[name]
                    self._nodes -= 1

    def fold(self, heavy: Heavy) -> None:
        """Merge the light names of every crowded namespace: to be called when all buffers are flushed."""
        weights = weigh(self.root)
        for level in self.levels():
            self.fold_level(level, heavy, weights)

    def levels(self) -> Iterator[list[Pattern]]:
        """Yield all nodes, level by level; the next level is looked up when it is asked for, as it is by then."""
        level = [self.root]
        while level:
            yield level
            level = [child for node in level for child in node.children.values()]

    def fold_level(self, level: Iterable[Pattern], heavy: Heavy, weights: dict[Pattern, Weight]) -> list[Slot]:
        """Merge the light names of the crowded namespaces among these, and say which; `weights` are of the tree now."""
        whole = weights[self.root]
        merged: list[Slot] = []
        for parent in level:
            if parent.is_crowded:
                merged += [(parent, name) for name in self._fold_here(parent, heavy, weights, whole)]
        return merged

    def trim(self, most: int | None = None) -> None:
        """Keep the heaviest nodes within the budget (or `most`), and merge all others into what stands for the rest."""
        most = self._budget if most is None else most
        if self._nodes <= most:
            return
        weights = weigh(self.root)
        keys, size = (max(1, value) for value in weights[self.root])
        ranked: list[tuple[float, tuple[Name, ...], Pattern]] = []
        _rank(self.root, (), lambda one: -max(weights[one][0] / keys, weights[one][1] / size), ranked)
        ranked.sort(key=lambda one: one[:2])
        self._cut(self.root, {one for *_, one in ranked[:most]})

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self._nodes

    @property
    def is_over_budget(self) -> bool:
        """Whether there are so many nodes that none gets a node at once any more."""
        return self._nodes >= WORKING_NODES * self._budget

    def merge(self, other: PatternTree) -> None:
        """Take up what another tree has; its buffers were flushed before, and it is not used any more."""
        self._graft(other.root, self.root)

    def _segments(self, key: bytes) -> Sequence[tuple[bytes, bytes]]:
        """The segments that are told apart, each with the separator that ends it."""
        levels = self._levels
        separator = self._single
        if separator is not None and b"{" not in key:
            names = key.split(separator, levels)
            pairs = [(name, separator) for name in names[:-1]]
            return pairs if len(names) > levels else [*pairs, (names[-1], b"")]
        pairs = []
        for segment in self._separators.segments(key):
            if len(pairs) == levels:
                break
            pairs.append((segment.name, segment.separator))
        return pairs

    def _find(self, parent: Pattern, name: bytes, separator: bytes) -> tuple[Pattern | None, int, Name]:
        """Find the child for a segment that is not there under its own name; None where there is no room for it."""
        if len(name) > LONGEST:
            wanted = (ANY, separator, NodeKind.PATTERN)
            return parent.children.get(wanted) or self.make(parent, wanted, likeness=0), 0, wanted
        pattern, likeness = self._identifiers.form(name)
        kind = NodeKind.LITERAL if pattern is None else NodeKind.PATTERN
        wanted = (name if pattern is None else pattern, separator, kind)
        found = parent.children.get(wanted)
        if found is None and self._has_room(parent, wanted):
            found = self.make(parent, wanted, likeness=likeness)
        return found, likeness, wanted

    def _has_room(self, parent: Pattern, name: Name) -> bool:
        """Whether a name that is new there gets a node at once."""
        if not is_plain(name) and parent.named >= MOST_CHILDREN:
            parent.is_crowded = True
            return False
        return not self.is_over_budget and (not parent.is_crowded or is_plain(name))

    def _fold_here(self, parent: Pattern, heavy: Heavy, weights: dict[Pattern, Weight], whole: Weight) -> list[Name]:
        """Keep the names that are heavy and pour all others into one pattern for each separator; return those."""
        light = [
            name
            for name, child in parent.children.items()
            if not is_plain(name) and not heavy.holds(weights[child], weights[parent], whole)
        ]
        poured = set()
        for name in light:
            child = parent.children.pop(name)
            parent.named -= 1
            into = self.stand_in(parent, name)
            self._graft(child, into)
            poured.add(into)
        for into in poured:
            weights.update(weigh(into))
        self.folds += bool(light)
        return light

    def _cut(self, node: Pattern, kept: set[Pattern]) -> None:
        """Merge the children that are not kept into the one that stands for the rest."""
        given_up = [
            name for name, child in node.children.items() if child not in kept and child.kind is not NodeKind.OTHER
        ]
        for name in given_up:
            child = node.children.pop(name)
            node.named -= not is_plain(name)
            rest = (REST, b"", NodeKind.OTHER)
            self._graft(child, node.children.get(rest) or self.make(node, rest, likeness=0))
        self.folds += bool(given_up)
        for child in node.children.values():
            self._cut(child, kept)

    def _graft(self, node: Pattern, into: Pattern) -> None:
        """Pour all that is at and below a node into another one."""
        self._nodes -= 1
        into.is_crowded = into.is_crowded or node.is_crowded
        for kind, cell in node.cells.items():
            cell.pour(self.cell(into, kind))
        for kind, tally in node.undecided.items():
            into.undecided.setdefault(kind, Tally(self.scale)).merge(tally)
        for name, child in node.children.items():
            if into.kind is NodeKind.OTHER:
                self._graft(child, into)
            else:
                target = into.children.get(name)
                self._graft(child, target or self.make(into, name, likeness=child.likeness))


def weigh(node: Pattern) -> dict[Pattern, Weight]:
    """What a node and each one below it weighs."""
    weights: dict[Pattern, Weight] = {}
    for one in reversed(list(node.walk())):
        keys = size = 0
        for tally in one.own():
            keys += tally.keys
            size += 0 if tally.memory is None else tally.memory.sum
        for child in one.children.values():
            below = weights[child]
            keys += below[0]
            size += below[1]
        weights[one] = keys, size
    return weights


def _rank(
    node: Pattern,
    path: tuple[Name, ...],
    rank: Callable[[Pattern], float],
    found: list[tuple[float, tuple[Name, ...], Pattern]],
) -> None:
    """List all nodes that may be given up, each with its rank and its path."""
    if node.kind is not NodeKind.OTHER:
        found.append((rank(node), path, node))
    for name, child in node.children.items():
        _rank(child, (*path, name), rank, found)


def is_plain(name: Name) -> bool:
    """Tell whether this is one of the few patterns that any namespace has room for."""
    return _is_stand_in(name) or (name[2] is NodeKind.PATTERN and name[0] in PLACEHOLDERS)


def _is_stand_in(name: Name) -> bool:
    """Tell whether this takes the keys of names without a node."""
    return name[2] is NodeKind.OTHER or (name[2] is NodeKind.PATTERN and name[0] == ANY)
