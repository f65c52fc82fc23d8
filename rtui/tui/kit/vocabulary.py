"""What a keyspace is known to hold, for the completion of queries: out of the tree and of the latest analysis.

Nothing is asked of the server, and only so much is looked at as takes less than a frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import islice
from typing import Final

from rtui.analysis.query.behind import step_of
from rtui.analysis.query.completion import MOST, Vocabulary
from rtui.analysis.query.patterns import Step, pattern_text
from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import count_inline
from rtui.keyspace.store.store import NamespaceStore

MOST_LOOKED_AT: Final = 5_000
"""Of the namespaces beside each other, so many are looked at."""

MOST_NODES: Final = 2_000
"""Of the patterns of a report, so many are looked at."""


def vocabulary_of(store: NamespaceStore, report: Report | None, nodes: Iterable[str] = ()) -> Vocabulary:
    """Return what is known of the names in a store, of an analysis, and of the nodes of a cluster by host and port."""
    labels = tuple(node.encode() for node in nodes)

    def namespaces(prefix: bytes) -> Iterable[bytes]:
        return loaded_namespaces(store.root, prefix)

    if report is None:
        return Vocabulary(namespaces, nodes=labels)
    summary = report.summary

    def patterns(prefix: bytes) -> Iterator[bytes]:
        found = islice(_patterns(summary.root), MOST_NODES)
        return (pattern for pattern in found if pattern.startswith(prefix))

    def tags(prefix: bytes) -> Iterator[bytes]:
        tagged = () if summary.slots is None else summary.slots.tags
        return (one.tag for one in tagged if one.tag.startswith(prefix))

    return Vocabulary(
        namespaces,
        patterns,
        tags,
        tuple(one.name for one in summary.types),
        tuple(dict.fromkeys(one.encoding for one in summary.encodings)),
        labels,
    )


def _patterns(root: Node) -> Iterator[bytes]:
    """Yield the patterns of a report that are no mere namespaces or keys, those of most memory first at each level."""
    waiting: list[tuple[Node, tuple[Step, ...]]] = [(root, ())]
    for node, steps in waiting:
        for child in node.children:
            if child.kind is NodeKind.OTHER or len(waiting) > MOST_NODES:
                continue
            path = (*steps, step_of(child))
            waiting.append((child, path))
            if any(step.is_folded for step in path):
                yield pattern_text(path)


def loaded_namespaces(root: Namespace, prefix: bytes) -> list[bytes]:
    """Return namespaces that are loaded and begin with some bytes, those with most keys first."""
    node, done = root, b""
    while True:
        inner = _child_on_the_way(node, prefix[len(done) :])
        if inner is None:
            break
        node, done = inner, done + inner.label
    if node.children is None:
        return []
    rest, found = prefix[len(done) :], []
    labels = node.labels if len(node.labels) <= MOST_LOOKED_AT else node.labels[:MOST_LOOKED_AT]
    for label in labels:
        if label.startswith(rest):
            child = node.children.get(label)
            if isinstance(child, Namespace):
                found.append((child.count, label))
            else:
                found.append((child if isinstance(child, int) else count_inline(child or b""), label))
    return [done + label for _, label in nlargest(MOST, found)]


def _child_on_the_way(node: Namespace, rest: bytes) -> Namespace | None:
    """Return the child whose whole label a name begins with, if it is listed."""
    if node.children is None:
        return None
    for end in range(1, len(rest) + 1):
        child = node.children.get(rest[:end])
        if isinstance(child, Namespace) and child.children is not None:
            return child
    return None
