"""The namespaces and key patterns of a keyspace, as a tree of bounded size.

Each level of the tree is a segment of the keys. An identifier is replaced by its placeholder, so `user:42:cart` and
`user:97:cart` share the path `user`, `{id}`, `cart`. A name that is no identifier gets a node of its own. A keyspace
may have millions of such names, but only heavy ones matter: those with a hundredth of all keys or bytes. So names are
counted as in lossy counting (Manku and Motwani, VLDB 2002):

* A namespace with more than MOST_CHILDREN names is *crowded*. When it has more than MOST_NAMES, those that are light by
  then are merged into one pattern `{*}`, and counting goes on; a name that comes again gets a node again.
* When all nodes together are more than WORKING_NODES, the lightest are merged into one node for the rest, below their
  parent.

Say that `user:<name>` has 10,000 names with one key each and `user:bot` with 600 keys. When 2,048 names have come,
`bot` has about 120 keys and stays, and 2,047 others become `{*}`; and so on. What is shown is decided by `folding`, by
the weights of all keys: the result is `user` with `bot` (600 keys) and `{*}` (10,000). A name that is heavy in the
whole is heavy, or nearly so, among any few thousand consecutive keys, unless they come ordered by name; only then are
keys counted in `{*}` that came before it was. Where no namespace has more than MOST_NAMES names, and there are no more
than WORKING_NODES nodes, the result depends on the keys alone, not on their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.tally import Tally
from rtui.analysis.report.document import NodeKind
from rtui.keyspace.text.identifiers import DIGITS, LONGEST, MARKS, PLACEHOLDERS, Identifiers
from rtui.keyspace.text.segments import Separators

MOST_CHILDREN: Final = 128
"""A namespace with more names than this shows only those that are heavy; all others become one pattern."""

MOST_NAMES: Final = 2_048
"""A namespace with more names than this, while keys are counted, loses those that are light by then."""

WORKING_NODES: Final = 16_384
"""While keys are counted there may be about so many nodes before the lightest are merged, down to half as many."""

DEEPEST_LEVEL: Final = 32
"""At most so many levels are told apart: nobody lays out more namespaces within each other."""

MOST_EXPIRY_BINS: Final = 65_536
"""Bins of expiries of all patterns and types together: about 18 MB."""

KEYS_BETWEEN_COARSENING: Final = 32_768
"""After so many keys the bins of expiries are counted again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept while keys are counted."""

    children: int = MOST_CHILDREN
    names: int = MOST_NAMES
    nodes: int = WORKING_NODES
    expiry_bins: int = MOST_EXPIRY_BINS
    keys_between_coarsening: int = KEYS_BETWEEN_COARSENING


ANY: Final = b"{*}"
"""The pattern of a namespace with too many names."""

REST: Final = b""
"""The name of the node for what is beyond the budget."""

Name: TypeAlias = tuple[bytes, bytes, NodeKind]
"""What tells siblings apart: segment or pattern, separator, kind. A key and a namespace differ by the separator."""


class Weighed(Protocol):
    """A node with its weight: the keys at and below it, and their bytes as far as they are known."""

    @property
    def keys(self) -> int: ...  # noqa: D102
    @property
    def bytes(self) -> int: ...  # noqa: D102


Layout: TypeAlias = tuple[str, ...]
"""Which facts the rows of a node have, in this order: names of parameters of `Tally.add`."""

NO_FACTS: Final = (0,)
"""The row of a key of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """Which names of a crowded namespace keep a node of their own: those that reach one of these bounds."""

    of_all: int
    """A share of all keys, or of the memory of all keys, in 1/10,000."""
    of_parent: int
    """A share of the keys of the namespace, in 1/10,000."""
    least_keys: int
    """A share of the keys of the namespace counts only from this many keys on."""

    def is_reached(self, name: Weighed, parent: Weighed, whole: Weighed) -> bool:
        """Whether a name is heavy in a namespace and a keyspace."""
        keys, size = name.keys, name.bytes
        return (
            10_000 * keys >= self.of_all * whole.keys
            or (size > 0 and 10_000 * size >= self.of_all * whole.bytes)
            or (keys >= self.least_keys and 10_000 * keys >= self.of_parent * parent.keys)
        )


FINAL: Final = Threshold(100, 200, 4)
"""Which names a finished summary shows."""

INTERIM: Final = Threshold(25, 50, 2)
"""Which names keep their node while keys are being counted: lighter ones, too, since they may become heavier."""


class Rows(list[int]):
    """The facts of keys of one node, type and layout that wait to be counted: one row after the other."""

    __slots__ = ("key_type", "layout", "node", "weighed")

    def __init__(self, node: PatternNode, key_type: bytes | None, layout: Layout) -> None:
        super().__init__()
        self.node = node
        self.key_type = key_type
        self.layout = layout
        self.weighed = 0
        """How many values are in the weights of nodes."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        """Tell whether this is the same object."""
        return self is other

    def columns(self) -> tuple[int, dict[str, list[int]]]:
        """Return how many rows there are, and the values of each fact."""
        width = max(1, len(self.layout))
        return len(self) // width, {name: self[at::width] for at, name in enumerate(self.layout)}


class PatternNode:
    """One segment in one place of the tree: what is known of the keys that end here, and the segments behind it."""

    __slots__ = (
        "bytes",
        "children",
        "is_crowded",
        "is_remembered",
        "keys",
        "kind",
        "likeness",
        "name",
        "named",
        "parent",
        "rows",
        "separator",
        "tallies",
    )

    def __init__(self, name: Name, parent: PatternNode | None, *, likeness: int) -> None:
        self.name, self.separator, self.kind = name
        self.parent = parent
        self.likeness = likeness
        """Which other segments belong here as well: see `rtui.keyspace.text.identifiers`."""
        self.is_crowded = False
        """Whether it has had too many names."""
        self.is_remembered = False
        """Whether its rows may be found without the tree."""
        self.named = 0
        """How many children have a name of their own."""
        self.keys = 0
        """All keys here and below that have been weighed."""
        self.bytes = 0
        """Their bytes, as far as they are known."""
        self.children: dict[Name, PatternNode] = {}
        self.tallies: dict[bytes | None, Tally] = {}
        """By type, what has been counted of the keys that end here, or are not followed further."""
        self.rows: dict[tuple[bytes | None, Layout], Rows] = {}
        """What waits to be counted in the tallies."""

    def walk(self) -> Iterator[PatternNode]:
        """Yield this node and all below it, parents first."""
        nodes = [self]
        while nodes:
            node = nodes.pop()
            yield node
            nodes += node.children.values()


class PatternTree:
    """Finds the nodes of keys, and keeps the number of nodes small."""

    def __init__(
        self, separators: Separators, scale: ExpiryScale, *, depth: int | None = None, limits: Limits | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.root = PatternNode((b"", b"", NodeKind.LITERAL), None, likeness=DIGITS | MARKS)
        self.removals = 0
        """Grows when a node was merged whose rows may be found without the tree."""
        self.waiting = 0
        """Rows that wait in all nodes."""
        self.unweighed: set[Rows] = set()
        """Rows of which some may not have been weighed."""
        self.scale = scale
        self._size = 1
        """How many nodes there are."""
        self._crowds: dict[PatternNode, None] = {}
        """Namespaces with more than MOST_NAMES names."""
        self._separators = separators
        self._single = separators.values[0] if len(separators.values) == 1 else None
        self._identifiers = Identifiers(separators.values)
        self._levels = DEEPEST_LEVEL if depth is None else max(0, min(depth, DEEPEST_LEVEL))

    def locate(self, key: bytes) -> tuple[PatternNode, int]:
        """Return the node of a key, a new one if need be, and its likeness: which other keys have this node, too."""
        node = self.root
        likeness = DIGITS | MARKS
        for name, separator in self._segments(key):
            child = node.children.get((name, separator, NodeKind.LITERAL))
            if child is None:
                child, others = self._find(node, name, separator)
                likeness &= others
            else:
                likeness &= child.likeness
            node = child
            if node.kind is NodeKind.OTHER:
                break
        return node, likeness

    def _segments(self, key: bytes) -> Sequence[tuple[bytes, bytes]]:
        """Return the segments that are told apart, each with the separator that ends it."""
        levels, separator = self._levels, self._single
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

    def _find(self, parent: PatternNode, name: bytes, separator: bytes) -> tuple[PatternNode, int]:
        """Return the child for a segment that has none under its literal name, and the likeness of the segment."""
        wanted: Name
        if len(name) > LONGEST:
            wanted = (ANY, separator, NodeKind.PATTERN)
            return parent.children.get(wanted) or self._make(parent, wanted, likeness=0), 0
        pattern, likeness = self._identifiers.form(name)
        wanted = (name, separator, NodeKind.LITERAL)
        if pattern is not None:
            wanted = (pattern, separator, NodeKind.PATTERN)
            found = parent.children.get(wanted)
            if found is not None:
                return found, likeness & found.likeness
        if parent.is_crowded and not is_generic_name(wanted):
            likeness = 0  # not worth remembering: it may lose its node soon
        return self._make(parent, wanted, likeness=likeness), likeness

    def _make(self, parent: PatternNode, name: Name, *, likeness: int) -> PatternNode:
        made = parent.children[name] = PatternNode(name, parent, likeness=likeness)
        self._size += 1
        if not is_generic_name(name):
            parent.named += 1
            if parent.named > self.limits.children:
                parent.is_crowded = True
                if parent.named > self.limits.names:
                    self._crowds[parent] = None
        return made

    def rows_of(self, node: PatternNode, key_type: bytes | None, layout: Layout) -> Rows:
        """Return what the facts of keys of a node, type and layout are appended to."""
        found = node.rows.get((key_type, layout))
        if found is None:
            found = node.rows[key_type, layout] = Rows(node, key_type, layout)
        return found

    def flush(self, node: PatternNode, fewest: int) -> None:
        """Count the rows of a node in its tallies where there are at least so many of a type and layout."""
        for rows in node.rows.values():
            if len(rows) < fewest * max(1, len(rows.layout)):
                continue
            self._weigh(rows)
            count, columns = rows.columns()
            tally = node.tallies.get(rows.key_type)
            if tally is None:
                tally = node.tallies[rows.key_type] = Tally(self.scale)
            tally.add(count, **columns)
            rows.clear()
            rows.weighed = 0
            self.waiting -= count

    def weigh(self) -> None:
        """Bring the weights of all nodes up to date."""
        while self.unweighed:
            self._weigh(self.unweighed.pop())

    def _weigh(self, rows: Rows) -> None:
        """Add what is new to the weights of the node and of those above it."""
        layout = rows.layout
        width = max(1, len(layout))
        keys = (len(rows) - rows.weighed) // width
        if not keys:
            return
        size = sum(rows[rows.weighed + layout.index("memory_bytes") :: width]) if "memory_bytes" in layout else 0
        rows.weighed = len(rows)
        node: PatternNode | None = rows.node
        while node is not None:
            node.keys += keys
            node.bytes += size
            node = node.parent

    def shrink(self) -> None:
        """Merge light nodes where there are too many; see the walk-through."""
        most = self.limits.nodes
        if self._crowds or self._size > most:
            self.weigh()
        while self._crowds:
            self._merge_light(self._crowds.popitem()[0])
        if self._size > most:
            self._trim(most // 2)

    def _merge_light(self, parent: PatternNode) -> None:
        """Merge the light names of a crowded namespace into `{*}`."""
        for name, child in list(parent.children.items()):
            if is_generic_name(name):
                continue
            if not INTERIM.is_reached(child, parent, self.root):
                self._replace(parent, name, (ANY, name[1], NodeKind.PATTERN))
            elif child.kind is NodeKind.LITERAL:
                child.likeness = self._identifiers.form(child.name).likeness

    def _trim(self, budget: int) -> None:
        """Keep the heaviest nodes, and merge all others into those for the rest of their parents."""
        keys, size = float(max(1, self.root.keys)), float(max(1, self.root.bytes))
        ranked = sorted(self.root.walk(), key=lambda one: -max(one.keys / keys, one.bytes / size))
        kept = set(ranked[:budget])
        parents = [self.root]
        for parent in parents:  # grows while it is walked
            for name, child in list(parent.children.items()):
                if child in kept:
                    parents.append(child)
                elif child.kind is not NodeKind.OTHER:
                    self._replace(parent, name, (REST, b"", NodeKind.OTHER))

    def _replace(self, parent: PatternNode, name: Name, target: Name) -> None:
        """Merge the child of this name into the one of another name, which is made if need be."""
        child = parent.children.pop(name)
        parent.named -= not is_generic_name(name)
        self._merge_into(parent.children.get(target) or self._make(parent, target, likeness=0), child)

    def _merge_into(self, target: PatternNode, node: PatternNode) -> None:
        """Count all that is at and below a node, which has been taken out of the tree, in another one."""
        self._size -= 1
        self._crowds.pop(node, None)
        self.removals += node.is_remembered
        target.is_crowded = target.is_crowded or node.is_crowded
        target.keys += node.keys
        target.bytes += node.bytes
        for rows in node.rows.values():
            joined = self.rows_of(target, rows.key_type, rows.layout)
            joined += rows
            joined.weighed += rows.weighed
            rows.clear()
        for key_type, tally in node.tallies.items():
            same_type = target.tallies.get(key_type)
            if same_type is None:
                target.tallies[key_type] = tally
            else:
                same_type.merge(tally)
        for name, child in node.children.items():
            if target.kind is NodeKind.OTHER:
                target.keys -= child.keys
                target.bytes -= child.bytes
                self._merge_into(target, child)
            else:
                same = target.children.get(name) or self._make(target, name, likeness=child.likeness)
                self._merge_into(same, child)
        node.rows, node.children = {}, {}  # no cycles, so that memory is free at once


def is_generic_name(name: Name) -> bool:
    """Whether this is one of the few patterns that any namespace has room for."""
    kind = name[2]
    if kind is NodeKind.LITERAL:
        return False
    return kind is NodeKind.OTHER or (kind is NodeKind.PATTERN and (name[0] == ANY or name[0] in PLACEHOLDERS))
