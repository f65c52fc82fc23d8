"""Where a namespace stands in the tree of a report, so that it is found again in the next one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from rtui.analysis.report import Node, NodeKind


class Step(NamedTuple):
    """One level: what tells a node from its siblings."""

    name: bytes
    separator: bytes
    kind: NodeKind


Path: TypeAlias = tuple[Step, ...]
"""The levels from the first one on; empty for the whole keyspace."""


def step_of(node: Node) -> Step:
    """Return what tells a node from its siblings."""
    return Step(node.name, node.separator, node.kind)


def path_of(nodes: Sequence[Node]) -> Path:
    """Return the path of nodes as `Node.walk` gives them, the root first."""
    return tuple(map(step_of, nodes[1:]))


def find(root: Node, path: Sequence[Step | bytes]) -> tuple[Node, ...] | None:
    """Return the nodes along a path, the root first; None if one is not there.

    A name alone stands for the child of that name that has most below it.
    """
    nodes = [root]
    for wanted in path:
        found = [child for child in nodes[-1].children if wanted in (child.name, step_of(child))]
        if not found:
            return None
        nodes.append(max(found, key=lambda child: (len(child.children), child.separator != b"")))
    return tuple(nodes)


def label(nodes: Iterable[Node | Step]) -> bytes:
    """Return how keys of a namespace begin: `shop:session:`; a key of its own has no separator at the end."""
    return b"".join(node.name + node.separator for node in nodes)
