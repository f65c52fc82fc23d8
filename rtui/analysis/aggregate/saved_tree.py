"""The tree of patterns as nodes that a file can hold, parents first, and a tree made of such nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rtui.analysis.aggregate.distinct import MOST_HASHES
from rtui.analysis.aggregate.pattern_tree import LONGEST_EXAMPLE, MOST_EXAMPLES, PatternNode, PatternTree
from rtui.analysis.aggregate.saved import SavedNode, expect, packed, unpacked
from rtui.analysis.aggregate.tally import Tally
from rtui.analysis.report.document import NodeKind
from rtui.keyspace.text.identifiers import LONGEST

MOST_DEPTH: Final = 80
"""No node is so deep: between two levels there is at most one more, for names that differ in their numbers."""


def saved_nodes(tree: PatternTree) -> Iterator[SavedNode]:
    """Yield all nodes, each before those below it; what waits is counted, and nothing may be added meanwhile."""
    tree.weigh()
    nodes = [(0, tree.root)]
    while nodes:
        depth, node = nodes.pop()
        tree.flush(node, 1)
        yield SavedNode(
            depth,
            node.name,
            node.separator,
            node.kind,
            node.holds_names,
            (node.has_lost[0], node.has_lost[1]),
            node.keys,
            packed(node.bytes),
            node.paid_keys,
            float(node.paid_bytes),
            None if node.distinct is None else tuple(sorted(node.distinct.hashes)),
            tuple(node.examples),
            tuple((key_type, tally.saved()) for key_type, tally in node.tallies.items()),
        )
        nodes += [(depth + 1, child) for child in reversed(node.children.values())]


def restore_nodes(tree: PatternTree, nodes: Iterable[SavedNode]) -> Iterator[None]:
    """Put nodes into an empty tree, one at a time; raises NotSavedError."""
    path: list[PatternNode] = []
    for saved in nodes:
        check_node(saved, len(path))
        del path[saved.depth :]
        node = _made(tree, path[-1], saved) if path else tree.root
        path.append(node)
        node.holds_names, node.has_lost = saved.holds_names, list(saved.has_lost)
        node.keys, node.bytes = saved.keys, unpacked(saved.memory_bytes)
        node.paid_keys, node.paid_bytes = saved.paid_keys, saved.paid_bytes
        if node.distinct is not None and saved.hashes is not None:
            node.distinct.add(saved.hashes)
        node.examples = list(saved.examples)
        node.tallies = {key_type: Tally.of_saved(tree.scale, tally) for key_type, tally in saved.tallies}
        yield


def check_node(saved: SavedNode, known: int) -> None:
    """Raise NotSavedError for what can't be a node below one of those on a path of so many."""
    expect(0 <= saved.depth <= known and saved.depth < MOST_DEPTH and (saved.depth > 0) == (known > 0))
    expect(saved.hashes is None or len(saved.hashes) <= MOST_HASHES)
    expect(len(saved.examples) <= MOST_EXAMPLES and all(len(key) <= LONGEST_EXAMPLE for _, key in saved.examples))


def _made(tree: PatternTree, parent: PatternNode, saved: SavedNode) -> PatternNode:
    name = saved.name, saved.separator, saved.kind
    expect(name not in parent.children)
    is_short_name = saved.kind is NodeKind.LITERAL and len(saved.name) <= LONGEST
    likeness = tree.identifiers.form(saved.name)[1] if is_short_name else 0
    return tree.make(parent, name, likeness=likeness)
