"""The tree of patterns as a report shows it: light names merged, at most a budget of nodes, nothing counted twice.

While keys are counted the tree has far more nodes than anybody wants to read. A `folded` copy of it is made for each
report, level by level from the root: in a crowded namespace the names that hold less than a hundredth of all keys and
of all bytes are merged into `{*}`, with all that is below them, before the level below is looked at. So every name is
judged by the weights of all keys, and those below `{*}` by what has come together there. At last the heaviest nodes
within the budget stay, and all others are merged into those for the rest of their parents.

The tree itself stays as it is, so a report of a running pass decides nothing about the next one. Nodes are copied, the
tallies of each node are shared: merging two nodes joins their lists of tallies, and adding them up is left to the
report.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from heapq import nsmallest
from operator import itemgetter
from typing import Final

from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.pattern_tree import (
    ANY,
    FINAL,
    REST,
    Layout,
    Name,
    PatternNode,
    PatternTree,
    Rows,
    is_generic_name,
)
from rtui.analysis.aggregate.tally import Tally
from rtui.analysis.report.document import NodeKind
from rtui.keyspace.slices import Slicer, Slices

FEWEST_ROWS: Final = 8
"""Nodes with so many rows that wait are counted before they are copied: most of those that a report shows."""


class FoldedNode:
    """A node of the folded tree."""

    __slots__ = (
        *("bytes", "children", "is_crowded", "keys", "kind", "name", "rows", "separator", "tallies"),
        *("expiring", "is_alike", "own_keys", "tally", "types"),
    )

    def __init__(self, name: Name) -> None:
        self.name, self.separator, self.kind = name
        self.is_crowded = False
        self.keys = 0
        """All keys here and below."""
        self.bytes = 0
        """Their bytes, as far as they are known."""
        self.children: dict[Name, FoldedNode] = {}
        self.tallies: dict[bytes | None, list[Tally]] = {}
        """By type, what all keys here add up to, together."""
        self.rows: list[Rows] = []
        """Rows of keys here that are in no tally, while the tree is folded."""
        self.tally: Tally
        """What all keys here and below add up to; this and the following once the tree is summed."""
        self.types: Counter[bytes | None]
        """How many of them are of which type, under None for those whose type is not known."""
        self.own_keys = 0
        """Keys here, not below."""
        self.expiring = 0
        """Keys here and below that expire."""
        self.is_alike = False
        """Whether it adds up to the same as its only child."""

    @property
    def below(self) -> list[FoldedNode]:
        """The nodes below it."""
        return list(self.children.values())

    def own_tallies(self) -> Iterator[Tally]:
        """Yield what has been counted of each type here, not below."""
        for tallies in self.tallies.values():
            yield from tallies

    def all_tallies(self) -> Iterator[Tally]:
        """Yield what has been counted of each type, here and below."""
        yield from self.own_tallies()
        for child in self.children.values():
            yield from child.all_tallies()


def folded(tree: PatternTree, budget: int, slicer: Slicer) -> Slices[FoldedNode]:
    """Return the root of a folded copy of at most `budget` nodes beside those for the rest."""
    tree.weigh()
    root = yield from _copy(tree, tree.root, slicer)
    nodes = [root]
    for node in nodes:  # grows while it is walked
        yield from _merge_light(node, root, tree.limits.children, slicer)
        nodes += node.children.values()
        yield from slicer.pause()
    if len(nodes) > budget:
        yield from _trim(root, budget, slicer)
    yield from _count_rows(root, tree.scale, slicer)
    return root


def _copy(tree: PatternTree, node: PatternNode, slicer: Slicer) -> Slices[FoldedNode]:
    tree.flush(node, FEWEST_ROWS)
    made = FoldedNode((node.name, node.separator, node.kind))
    made.is_crowded = node.is_crowded
    made.keys, made.bytes = node.keys, node.bytes
    made.tallies = {key_type: [tally] for key_type, tally in node.tallies.items()}
    made.rows = [rows for rows in node.rows.values() if rows]
    for name, child in node.children.items():
        made.children[name] = yield from _copy(tree, child, slicer)
    yield from slicer.pause()
    return made


def _merge_light(parent: FoldedNode, root: FoldedNode, most_children: int, slicer: Slicer) -> Slices[None]:
    """Merge the light names of a crowded namespace into `{*}`."""
    named = [name for name in parent.children if not is_generic_name(name)]
    if not parent.is_crowded and len(named) <= most_children:
        return
    for name in named:
        child = parent.children[name]
        if not FINAL.is_reached(child, parent, root):
            del parent.children[name]
            _merge_as(parent, (ANY, name[1], NodeKind.PATTERN), child)
            yield from slicer.pause()


def _merge_as(parent: FoldedNode, name: Name, child: FoldedNode) -> None:
    """Merge a node that was taken out of the tree into the child of this name, which is made if need be."""
    target = parent.children.get(name)
    if target is None:
        target = parent.children[name] = FoldedNode(name)
    _merge(target, child)


def _merge(target: FoldedNode, node: FoldedNode) -> None:
    """Add all that is at and below a node to another one; in a node for the rest nothing is told apart."""
    target.is_crowded = target.is_crowded or node.is_crowded
    target.keys += node.keys
    target.bytes += node.bytes
    for key_type, tallies in node.tallies.items():
        target.tallies.setdefault(key_type, []).extend(tallies)
    target.rows += node.rows
    for name, child in node.children.items():
        if target.kind is NodeKind.OTHER:
            target.keys -= child.keys
            target.bytes -= child.bytes
            _merge(target, child)
        else:
            _merge_as(target, name, child)


def _trim(root: FoldedNode, budget: int, slicer: Slicer) -> Slices[None]:
    """Keep the heaviest nodes, ties by their names, and merge all others into those for the rest of their parents."""
    all_keys, all_bytes = float(max(1, root.keys)), float(max(1, root.bytes))
    by_weight: defaultdict[float, list[tuple[tuple[Name, ...], FoldedNode]]] = defaultdict(list)
    paths: list[tuple[tuple[Name, ...], FoldedNode]] = [((), root)]
    for path, node in paths:  # grows while it is walked
        if node.kind is not NodeKind.OTHER:
            by_weight[max(node.keys / all_keys, node.bytes / all_bytes)].append((path, node))
        paths += [((*path, name), child) for name, child in node.children.items()]
        yield from slicer.pause()
    kept: set[FoldedNode] = set()
    for weight in sorted(by_weight, reverse=True):
        alike, left = by_weight[weight], budget - len(kept)
        if len(alike) > left:  # names decide only here
            alike = nsmallest(left, alike, key=itemgetter(0))
        kept.update(node for _, node in alike)
        if len(kept) == budget:
            break
    yield from slicer.pause()
    parents = [root]
    for parent in parents:  # grows while it is walked
        for name, child in list(parent.children.items()):
            if child in kept:
                parents.append(child)
            elif child.kind is not NodeKind.OTHER:
                del parent.children[name]
                _merge_as(parent, (REST, b"", NodeKind.OTHER), child)
        yield from slicer.pause()


def _count_rows(node: FoldedNode, scale: ExpiryScale, slicer: Slicer) -> Slices[None]:
    joined: dict[tuple[bytes | None, Layout], Rows] = {}
    for rows in node.rows:
        kind = rows.key_type, rows.layout
        joined.setdefault(kind, Rows(rows.node, *kind)).extend(rows)
    node.rows = []
    for (key_type, _), rows in joined.items():
        count, columns = rows.columns()
        tally = Tally(scale)
        tally.add(count, **columns)
        node.tallies.setdefault(key_type, []).append(tally)
    yield from slicer.pause()
    for child in node.children.values():
        yield from _count_rows(child, scale, slicer)
