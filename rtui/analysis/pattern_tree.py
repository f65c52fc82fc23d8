"""The namespaces and key patterns of a keyspace, as a tree of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from rtui.analysis.cell import Cell
from rtui.analysis.expiry_bins import ExpiryScale
from rtui.analysis.report import NodeKind
from rtui.analysis.tally import Tally
from rtui.keyspace.identifiers import DIGITS, LONGEST, MARKS, PLACEHOLDERS, Identifiers
from rtui.keyspace.segments import Separators

MOST_CHILDREN: Final = 128
"""A namespace with more names than this keeps those that matter; all others become one pattern."""

KEPT_SHARE: Final = 0.02
"""A name matters that has at least this share of the keys of its namespace."""

DEEPEST: Final = 32
"""So many levels are told apart at most: more are no namespaces that anyone laid out."""

ANY: Final = b"{*}"
"""The pattern of a namespace with too many names."""

REST: Final = b""
"""The name of what is beyond the budget: none."""

Name: TypeAlias = tuple[bytes, bytes, NodeKind]
"""What tells siblings apart: segment or pattern, separator, kind. A key and a namespace differ by the separator."""


class Pattern:
    """One segment of the keys that have it in this place, and what comes behind it."""

    __slots__ = ("cells", "children", "is_folded", "kind", "likeness", "name", "separator")

    def __init__(self, name: Name, *, likeness: int) -> None:
        self.name, self.separator, self.kind = name
        self.likeness = likeness
        """Which segments get here besides the one that it was made for."""
        self.is_folded = False
        """Whether it has had too many names."""
        self.children: dict[Name, Pattern] = {}
        self.cells: dict[bytes | None, Cell] = {}
        """By type, what is known of the keys that end here, or are not followed further."""

    @property
    def keys(self) -> int:
        """All keys here and below."""
        own = sum(cell.keys for cell in self.cells.values())
        return own + sum(child.keys for child in self.children.values())

    def walk(self) -> Iterator[Pattern]:
        """Yield this one and all below it, parents first."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def tallies(self) -> Iterator[Tally]:
        """What has been counted of each type, here and below."""
        for pattern in self.walk():
            for cell in pattern.cells.values():
                yield cell.tally


class PatternTree:
    """Finds the place of keys, and keeps the number of places small."""

    def __init__(
        self, separators: Separators, scale: ExpiryScale, *, depth: int | None = None, budget: int = 4096
    ) -> None:
        self.root = Pattern((b"", b"", NodeKind.LITERAL), likeness=DIGITS | MARKS)
        self.folds = 0
        """How often a namespace was folded: cells that are known from before may have been poured into others."""
        self._nodes = 1
        self._crowded: dict[Pattern, None] = {}
        self._separators = separators
        self._single = separators.values[0] if len(separators.values) == 1 else None
        self._identifiers = Identifiers(separators.values)
        self._scale = scale
        self._levels = DEEPEST if depth is None else max(0, min(depth, DEEPEST))
        self._budget = budget

    def place(self, key: bytes) -> tuple[Pattern, int]:
        """Find where a key belongs, making room for it, and which keys belong there too, now and until a fold."""
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

    def cell(self, node: Pattern, kind: bytes | None) -> Cell:
        """What collects the keys of this type there."""
        found = node.cells.get(kind)
        if found is None:
            found = node.cells[kind] = Cell(self._scale)
        return found

    def fold(self) -> None:
        """Fold every namespace with too many names: to be called when the keys of all places are in their cells."""
        while self._crowded:
            parent, _ = self._crowded.popitem()
            self._fold(parent)

    def merge(self, other: PatternTree) -> None:
        """Take up what another tree has; its buffers were flushed before, and it is not used any more."""
        self._graft(other.root, self.root)
        self.fold()

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

    def _find(self, parent: Pattern, name: bytes, separator: bytes) -> tuple[Pattern, int]:
        """Find the child that stands for a segment, which is not there under its own name."""
        if len(name) > LONGEST:
            return self._child(parent, (ANY, separator, NodeKind.PATTERN), likeness=0), 0
        pattern, likeness = self._identifiers.form(name)
        kind = NodeKind.LITERAL if pattern is None else NodeKind.PATTERN
        wanted = (name if pattern is None else pattern, separator, kind)
        child = self._child(parent, wanted, likeness=likeness)
        return child, likeness if child.kind is kind and child.name == wanted[0] else 0

    def _child(self, parent: Pattern, name: Name, *, likeness: int) -> Pattern:
        """Find a child or make it; where there is no room for it, return what stands for it."""
        found = parent.children.get(name)
        if found is not None:
            return found
        if not _is_plain(name):
            if parent.is_folded:
                name = (ANY, name[1], NodeKind.PATTERN)
            elif len(parent.children) >= MOST_CHILDREN:
                self._crowded[parent] = None
        if self._nodes >= self._budget and name[0] != ANY:
            name = (REST, b"", NodeKind.OTHER)
        found = parent.children.get(name)
        if found is not None:
            return found
        made = parent.children[name] = Pattern(name, likeness=likeness)
        self._nodes += 1
        return made

    def _fold(self, parent: Pattern) -> None:
        """Keep the names that matter and pour all others into one pattern."""
        self.folds += 1
        parent.is_folded = True
        counts = {name: child.keys for name, child in parent.children.items()}
        enough = KEPT_SHARE * sum(counts.values())
        for name in [name for name, count in counts.items() if count < enough and not _is_plain(name)]:
            child = parent.children.pop(name)
            self._nodes -= sum(1 for _ in child.walk())
            into = self._child(parent, (ANY, child.separator, NodeKind.PATTERN), likeness=0)
            self._graft(child, into)

    def _graft(self, node: Pattern, into: Pattern) -> None:
        """Pour all that is at and below a node into another one."""
        self._crowded.pop(node, None)
        for kind, cell in node.cells.items():
            cell.pour(self.cell(into, kind))
        for name, child in node.children.items():
            is_end = into.kind is NodeKind.OTHER
            self._graft(child, into if is_end else self._child(into, name, likeness=child.likeness))


def _is_plain(name: Name) -> bool:
    """Tell whether this is one of the few patterns that any namespace has room for."""
    return name[2] is NodeKind.PATTERN and (name[0] == ANY or name[0] in PLACEHOLDERS)
