"""The tree of namespaces as a flat list, so that neither depth nor a tool's patience limits it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rtui.analysis.formats.json_records import Record
from rtui.analysis.formats.json_shapes import (
    Json,
    ReportFormatError,
    Shape,
    Whole,
    json_list,
    member,
    path,
)
from rtui.analysis.report.document import Node
from rtui.keyspace.text.display import display

DEEPEST: Final = 400
"""Levels of namespaces that are read: more than any name has, few enough for every way through the tree."""

_LABEL_BYTES: Final = 512


class Tree(Shape[Node]):
    """A node and all below it: a list in which each stands before those below it, with its depth.

    Depth 0 is the whole keyspace. `namespace` is for people, cut where it is very long, and not read back.
    """

    def __init__(self, node: Record[Node]) -> None:
        """Take the shape of a node without its children."""
        self._node = node
        self._depth = Whole(0, DEEPEST)

    def put(self, into: Json, name: str, value: Node) -> None:
        """Add the list."""
        items = into[name] = []
        for node, depth, label in _flat(value):
            items.append({"depth": depth, "namespace": display(label), **self._node.write(node)})

    def take(self, of: Json, name: str, where: str) -> Node:
        """Build the tree of the list."""
        items = json_list(member(of, name, where), where, name)
        here = path(where, name)
        built: list[tuple[Json, int, str]] = []
        last = -1
        for at, one in enumerate(items):
            place = f"{here}[{at}]"
            depth = self._depth.take(one if isinstance(one, dict) else {}, "depth", place)
            if depth > last + 1 or (depth == 0) != (at == 0):
                raise ReportFormatError(f"{place}.depth does not follow from the one before")
            last = depth
            built.append((one, depth, place))
        if not built:
            raise ReportFormatError(f"{here} has no item for the whole keyspace")
        return self._built(built)

    def _built(self, items: list[tuple[Json, int, str]]) -> Node:
        """Make the nodes, the last first, so that each finds its children made."""
        waiting: dict[int, list[Node]] = {}
        for one, depth, place in reversed(items):
            children = tuple(reversed(waiting.pop(depth + 1, [])))
            waiting.setdefault(depth, []).append(self._node.read(one, place, children=children))
        return waiting[0][0]

    def schema(self, name: str) -> Json:
        """Return the list."""
        item: dict[str, Any] = self._node.described()
        added = {**self._depth.schema("depth"), "namespace": {"type": "string"}}
        item["properties"] = {**added, **item["properties"]}
        item["required"] = ["depth", *item["required"]]
        return {name: {"type": "array", "items": item, "minItems": 1}}


def _flat(root: Node) -> Iterator[tuple[Node, int, bytes]]:
    """Yield every node with its depth and how its keys begin, each before those below it."""
    waiting = [(root, 0, b"")]
    while waiting:
        node, depth, before = waiting.pop()
        label = (before + node.name + node.separator)[:_LABEL_BYTES]
        yield node, depth, label
        waiting.extend((child, depth + 1, label) for child in reversed(node.children))
