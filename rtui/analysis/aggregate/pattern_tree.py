"""The namespaces and key patterns of a keyspace, as a tree of bounded size.

Each level of the tree is a segment of the keys. An identifier is replaced by its placeholder, so `user:42:cart` and
`user:97:cart` share the path `user`, `{id}`, `cart`. A name that is no identifier gets a node of its own. A keyspace
may have millions of such names, and which of them are kept must not depend on the order of the keys.

* Names that differ in their numbers only, such as `page_7` and `page_8`, are below one node for what they fold to,
  `page_{n}`. When there are more than MOST_NUMBERED_KEYS of them, or as namespaces more than MOST_NUMBERED, they are
  merged into it, for good. How many there are says the keyspace, not the order.
* All other names of a namespace are counted as frequent items are (Misra and Gries, 1982; Anderson et al., IMC 2017).
  When there are more than MOST_NAMES, each has to pay what a light one has: as many keys and as many bytes as three of
  four names have that have not been paid yet. Those that can pay neither are merged into one pattern `{*}`; a name that
  comes again gets a node again. As each payment is made by a quarter of MOST_NAMES at least, and nobody pays more than
  he has, all payments together are at most 4 / MOST_NAMES, one 500th, of the keys or bytes of the namespace: whatever
  has more than that is never merged, and at most so much of any name is counted in `{*}`, however the keys come.
  Names whose hash tag holds a separator, as `{user:ann}`, become a pattern of their own, `{{**}}`, or `{**}` where the
  tag is only a part of the name. The empty name always has a node of its own.
* Keys, which end at a name, and namespaces, which go on, are counted apart, so a flood of keys takes no namespace away.
* When all nodes together are more than WORKING_NODES, fewer names are kept in each namespace, down to MOST_CHILDREN. If
  that is not enough the lightest nodes are merged into one node for the rest, below their parent, keys before
  namespaces.

Say that `user:<name>` has 10,000 names with one key each and `user:bot:…` 600 keys. When 2,048 names have come, three
of four become `{*}`; and so on. What is shown is decided by `folding`, by the weights of all keys, where a namespace
with more than MOST_CHILDREN names shows only the heavy ones. The result depends on the keys alone, but for the 500th of
a namespace that a heavy name may lack where there are more than MOST_NAMES names, and as long as there are no more than
WORKING_NODES nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias
from zlib import crc32

from rtui.analysis.aggregate.distinct import Distinct, name_hash
from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.tally import Tally
from rtui.analysis.report.document import NodeKind
from rtui.keyspace.text.identifiers import ANY_NAMES, DIGITS, LONGEST, MARKS, PLACEHOLDERS, Identifiers
from rtui.keyspace.text.java_names import HEADER
from rtui.keyspace.text.key_segments import KeySegments
from rtui.keyspace.text.segments import Separators

MOST_CHILDREN: Final = 128
"""A namespace with more names than this shows only those that are heavy; all others become one pattern."""

MOST_NAMES: Final = 2_048
"""A namespace with more names than this, while keys are counted, loses those that are light by then."""

MOST_NUMBERED_KEYS: Final = 32
"""More keys than this that differ in their numbers only are one pattern."""

MOST_NUMBERED: Final = 1_024
"""More namespaces than this that differ in their numbers only are one pattern while keys are counted."""

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
    numbered_keys: int = MOST_NUMBERED_KEYS
    numbered: int = MOST_NUMBERED
    nodes: int = WORKING_NODES
    expiry_bins: int = MOST_EXPIRY_BINS
    keys_between_coarsening: int = KEYS_BETWEEN_COARSENING


REST: Final = b""
"""The name of the node for what is beyond the budget."""

Name: TypeAlias = tuple[bytes, bytes, NodeKind]
"""What tells siblings apart: segment or pattern, separator, kind. A key and a namespace differ by the separator."""


EMPTY_KEY: Final[Name] = b"", b"", NodeKind.LITERAL
"""The name of keys that end in a separator."""


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

Example: TypeAlias = tuple[int, bytes]
"""A key and, in front, its hash, by which examples are chosen: so the order of keys has no say in it."""

MOST_EXAMPLES: Final = 3
LONGEST_EXAMPLE: Final = 256
"""Longer keys, in bytes, are no examples."""


def best_examples(*lists: Iterable[Example]) -> list[Example]:
    """Return those examples of several lists that are kept."""
    return sorted({one for some in lists for one in some})[:MOST_EXAMPLES]


class Rows(list[int]):
    """The facts of keys of one node, type and layout that wait to be counted: one row after the other."""

    __slots__ = ("key_type", "layout", "node", "shapes", "weighed")

    def __init__(self, node: PatternNode, key_type: bytes | None, layout: Layout) -> None:
        super().__init__()
        self.node = node
        self.key_type = key_type
        self.layout = layout
        self.weighed = 0
        """How many values are in the weights of nodes."""
        self.shapes: list[bytes] = []
        """The shapes of keys by which these rows are found without the tree."""

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
        *(
            "bytes",
            "children",
            "distinct",
            "examples",
            "has_lost",
            "holds_names",
            "keys",
            "kind",
            "likeness",
        ),
        *("name", "named", "paid_bytes", "paid_keys", "parent", "positions", "rows", "separator", "tallies"),
    )

    def __init__(self, name: Name, parent: PatternNode | None, *, likeness: int) -> None:
        self.name, self.separator, self.kind = name
        self.parent = parent
        self.likeness = likeness
        """Which other segments belong here as well: see `rtui.keyspace.text.identifiers`."""
        self.holds_names = False
        """Whether its children are names that would fold to it, if there were more of them, not what is behind it."""
        self.named = [0, 0]
        """How many children have a name of their own: keys, namespaces."""
        self.has_lost = [False, False]
        """Whether some of these have been merged since there were too many."""
        self.keys = 0
        """All keys here and below that have been weighed."""
        self.bytes = 0
        """Their bytes, as far as they are known."""
        self.paid_keys = 0
        """How many of its keys count no more in favour of it; see the walk-through."""
        self.paid_bytes = 0.0
        self.distinct = Distinct() if self.kind is NodeKind.PATTERN else None
        """How many different segments a pattern stands for."""
        self.positions: tuple[tuple[int, Distinct], ...] | None = None
        """The levels of its keys at which a pattern stands for segments, from 0; None where nobody has asked yet."""
        self.examples: list[Example] = []
        """Some of the keys that end here, in order."""
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

    def name_keys(self, keys: Sequence[bytes], segments: KeySegments) -> None:
        """Take examples from keys that end here, and count what patterns on their path stand for."""
        limit = self.examples[-1][0] if len(self.examples) == MOST_EXAMPLES else 1 << 32
        hashes = map(crc32, keys)
        found = [
            (one, key) for one, key in zip(hashes, keys, strict=True) if one <= limit and len(key) <= LONGEST_EXAMPLE
        ]
        if found:
            self.examples = best_examples(self.examples, found)
        if self.positions is None:
            path = enumerate(self.path())
            self.positions = tuple([(level, node.distinct) for level, node in path if node.distinct is not None])
        if self.positions:
            names = segments.at(keys, [level for level, _ in self.positions])
            for (_, distinct), some in zip(self.positions, names, strict=True):
                distinct.add_names(some)

    def path(self) -> list[PatternNode]:
        """Return the nodes for the levels of its keys, from the first level on."""
        found: list[PatternNode] = []
        node = self
        while node.parent is not None:
            if not node.holds_names:
                found.append(node)
            node = node.parent
        return found[::-1]


class PatternTree:
    """Finds the nodes of keys, and keeps the number of nodes small."""

    def __init__(
        self, separators: Separators, scale: ExpiryScale, *, depth: int | None = None, limits: Limits | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.root = PatternNode((b"", b"", NodeKind.LITERAL), None, likeness=DIGITS | MARKS)
        self.segments = KeySegments(separators)
        self.removed: list[Rows] = []
        """Rows of nodes that were merged, and have shapes by which they are found without the tree."""
        self.waiting = 0
        """Rows that wait in all nodes."""
        self.unweighed: set[Rows] = set()
        """Rows of which some may not have been weighed."""
        self.scale = scale
        self.levels = DEEPEST_LEVEL if depth is None else max(0, min(depth, DEEPEST_LEVEL))
        self._size = 1
        """How many nodes there are."""
        self._most_names = self.limits.names
        self._most_numbered = self.limits.numbered
        self._crowds: dict[PatternNode, None] = {}
        """Nodes with too many names."""
        self.identifiers = Identifiers(separators.values)

    def locate(self, key: bytes) -> tuple[PatternNode, int]:
        """Return the node of a key, a new one if need be, and its likeness: which other keys have this node, too.

        A node that is new has likeness 0: most of those have one key only.
        """
        node, size, literal = self.root, self._size, NodeKind.LITERAL
        likeness = DIGITS | MARKS
        for name, separator in self.segments.of(key, self.levels):
            child = node.children.get((name, separator, literal))
            if child is None:
                child, others = self._find(node, name, separator)
                likeness &= others
            else:
                likeness &= child.likeness
            node = child
        if likeness and (self._size > size or self.segments.may_have_whole(key) or key.startswith(HEADER)):
            likeness = 0
        return node, likeness

    def _find(self, parent: PatternNode, name: bytes, separator: bytes) -> tuple[PatternNode, int]:
        """Return the child for a segment that has none under its literal name, and the likeness of the segment."""
        wanted: Name
        if len(name) > LONGEST:
            wanted = (self.identifiers.any_name(name), separator, NodeKind.PATTERN)
            return parent.children.get(wanted) or self.make(parent, wanted, likeness=0), 0
        pattern, likeness, numbered, numbered_likeness = self.identifiers.form(name)
        if pattern is None and numbered is None:
            return self.make(parent, (name, separator, NodeKind.LITERAL), likeness=likeness), likeness
        wanted = (pattern or numbered or b"", separator, NodeKind.PATTERN)
        found = parent.children.get(wanted)
        if found is None:
            found = self.make(parent, wanted, likeness=0)
            found.holds_names = pattern is None
        if found.holds_names:
            if pattern is not None:
                self._crowds[found] = None
                likeness = 0
            return self._numbered(found, name, likeness)
        return found, likeness if pattern is not None else numbered_likeness

    def _numbered(self, parent: PatternNode, name: bytes, likeness: int) -> tuple[PatternNode, int]:
        """Return the node of a name among those that differ in their numbers, and its likeness."""
        wanted: Name = (name, parent.separator, NodeKind.LITERAL)
        found = parent.children.get(wanted)
        if found is None:
            found = self.make(parent, wanted, likeness=likeness)
            if parent.distinct is not None:
                parent.distinct.add_names((name,))
        return found, likeness

    def make(self, parent: PatternNode, name: Name, *, likeness: int) -> PatternNode:
        """Add a node below another one, which has none of this name."""
        made = parent.children[name] = PatternNode(name, parent, likeness=likeness)
        self._size += 1
        if not is_generic_name(name):
            is_space = bool(name[1])
            parent.named[is_space] += 1
            if parent.named[is_space] > self._most(parent, is_space=is_space):
                self._crowds[parent] = None
        return made

    def _most(self, parent: PatternNode, *, is_space: bool) -> int:
        """Return how many keys or namespaces below a node have a name of their own."""
        if not parent.holds_names:
            return self._most_names
        return self._most_numbered if is_space else min(self._most_numbered, self.limits.numbered_keys)

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

    @property
    def is_too_large(self) -> bool:
        """Whether nodes have to be merged."""
        return bool(self._crowds) or self._size > self.limits.nodes

    def shrink(self) -> None:
        """Merge names and nodes where there are too many; see the walk-through."""
        if self.is_too_large:
            self.weigh()
        self._merge_crowds()
        fewest = self.limits.children
        while self._size > self.limits.nodes and max(self._most_names, self._most_numbered) > fewest:
            self._most_names = max(min(fewest, self._most_names), self._most_names // 2)
            self._most_numbered = max(min(fewest, self._most_numbered), self._most_numbered // 2)
            for node in self.root.walk():
                if any(node.named[group] > self._most(node, is_space=bool(group)) for group in (0, 1)):
                    self._crowds[node] = None
            self._merge_crowds()
        if self._size > self.limits.nodes:
            self._trim(self.limits.nodes // 2)
            self._merge_crowds()

    def _merge_crowds(self) -> None:
        """Merge names of all nodes that have too many."""
        while self._crowds:
            node = self._crowds.popitem()[0]
            if node.holds_names:
                self._fold_numbers(node)
                continue
            for is_space in (False, True):
                if node.named[is_space] > self._most_names:
                    self._merge_light(node, is_space=is_space)

    def _fold_numbers(self, parent: PatternNode) -> None:
        """Merge all names that differ in their numbers only."""
        parent.holds_names = False
        members, parent.children, parent.named = parent.children, {}, [0, 0]
        for member in members.values():
            parent.keys -= member.keys
            parent.bytes -= member.bytes
            self._merge_into(parent, member)

    def _merge_light(self, parent: PatternNode, *, is_space: bool) -> None:
        """Have all keys or namespaces pay, and merge those that cannot into `{*}`."""
        names = [
            (name, child)
            for name, child in parent.children.items()
            if bool(name[1]) is is_space and not is_generic_name(name)
        ]
        at = 3 * len(names) // 4
        keys = sorted(child.keys - child.paid_keys for _, child in names)[at]
        size = sorted(child.bytes - child.paid_bytes for _, child in names)[at]
        parent.has_lost[is_space] = True
        for name, child in names:
            if child.keys - child.paid_keys <= keys and child.bytes - child.paid_bytes <= size:
                self._replace(parent, name, any_name(name, self.identifiers))
                continue
            child.paid_keys = min(child.keys, child.paid_keys + keys)
            child.paid_bytes = min(float(child.bytes), child.paid_bytes + size)

    def _trim(self, budget: int) -> None:
        """Keep the heaviest nodes, and merge all others into those for the rest of their parents."""
        root, keys, size = self.root, float(max(1, self.root.keys)), float(max(1, self.root.bytes))
        ranked = sorted(root.walk(), key=lambda one: (is_light_key(one, root), -max(one.keys / keys, one.bytes / size)))
        kept = set(ranked[:budget])
        parents = [root]
        for parent in parents:  # grows while it is walked
            if parent.holds_names:
                if not kept.issuperset(parent.children.values()):
                    self._crowds[parent] = None
                parents += [child for child in parent.children.values() if child in kept]
                continue
            for name, child in list(parent.children.items()):
                if child in kept:
                    parents.append(child)
                elif child.kind is not NodeKind.OTHER and not is_empty_key(name):
                    self._replace(parent, name, (REST, b"", NodeKind.OTHER))

    def _replace(self, parent: PatternNode, name: Name, target: Name) -> None:
        """Merge the child of this name into the one of another name, which is made if need be."""
        child = parent.children.pop(name)
        parent.named[bool(name[1])] -= not is_generic_name(name)
        into = parent.children.get(target) or self.make(parent, target, likeness=0)
        if into.distinct is not None and child.kind is NodeKind.LITERAL:
            into.distinct.add((name_hash(child.name),))
        self._merge_into(into, child)

    def _merge_into(self, target: PatternNode, node: PatternNode) -> None:
        """Count all that is at and below a node, which has been taken out of the tree, in another one."""
        self._size -= 1
        self._crowds.pop(node, None)
        if target.holds_names and not node.holds_names:
            self._fold_numbers(target)
        target.has_lost = [one or other for one, other in zip(target.has_lost, node.has_lost, strict=True)]
        target.keys += node.keys
        target.bytes += node.bytes
        if target.distinct is not None and node.distinct is not None:
            target.distinct.add(node.distinct.hashes)
        if node.examples:
            target.examples = best_examples(target.examples, node.examples)
        for rows in node.rows.values():
            joined = self.rows_of(target, rows.key_type, rows.layout)
            joined += rows
            joined.weighed += rows.weighed
            rows.clear()
            if rows.shapes:
                self.removed.append(rows)
        for key_type, tally in node.tallies.items():
            same_type = target.tallies.get(key_type)
            if same_type is None:
                target.tallies[key_type] = tally
            else:
                same_type.merge(tally)
        is_flat = target.kind is NodeKind.OTHER or (node.holds_names and not target.holds_names)
        for name, child in node.children.items():
            if is_flat:
                target.keys -= child.keys
                target.bytes -= child.bytes
                self._merge_into(target, child)
            else:
                self._merge_into(self._same(target, name, child), child)
        node.rows, node.children = {}, {}  # no cycles, so that memory is free at once

    def _same(self, parent: PatternNode, name: Name, like: PatternNode) -> PatternNode:
        """Return the child of this name, one like another node if there is none."""
        found = parent.children.get(name)
        if found is None:
            found = self.make(parent, name, likeness=like.likeness)
            found.holds_names = like.holds_names
        return found


def is_generic_name(name: Name) -> bool:
    """Whether this is the empty name or one of the few patterns that any namespace has room for."""
    text, _, kind = name
    if kind is NodeKind.LITERAL:
        return not text
    return kind is NodeKind.OTHER or text in ANY_NAMES or text in PLACEHOLDERS


def is_empty_key(name: Name) -> bool:
    """Whether keys end here, in a separator: a rest is something behind it."""
    return name == EMPTY_KEY


def any_name(name: Name, identifiers: Identifiers) -> Name:
    """Return what a name becomes that is one of too many."""
    text, separator, kind = name
    pattern = identifiers.any_name(text, is_pattern=kind is NodeKind.PATTERN)
    return pattern, separator, NodeKind.PATTERN


class Named(Weighed, Protocol):
    """A node with its weight and name."""

    @property
    def separator(self) -> bytes: ...  # noqa: D102
    @property
    def kind(self) -> NodeKind: ...  # noqa: D102


def is_light_key(node: Named, root: Weighed) -> bool:
    """Whether a node is a name that keys end at, and has less than a hundredth of all: merged before others are."""
    return (
        node.kind is NodeKind.LITERAL
        and not node.separator
        and node is not root
        and 100 * node.keys < root.keys
        and (not node.bytes or 100 * node.bytes < root.bytes)
    )
