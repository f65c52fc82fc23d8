"""Frees what a store forgot bit by bit: a million names at once would hold everything else for a third of a second."""

from __future__ import annotations

from rtui.keyspace.namespace import Namespace
from rtui.keyspace.wide import WideDict

SWEPT = 8_192
"""About so many names are freed at a time, in a millisecond."""


class Waste:
    """Namespaces that nobody needs any more, with all that is below them."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes: list[Namespace] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def put(self, node: Namespace) -> None:
        """Have a namespace taken to pieces; it is not to be looked into any more."""
        self._nodes.append(node)

    def sweep(self) -> None:
        """Free some of it."""
        swept = 0
        while self._nodes and swept < SWEPT:
            node = self._nodes.pop()
            children = node.children
            if isinstance(children, WideDict) and children.parts:
                part = children.parts.pop()
                self._nodes.append(node)
            elif isinstance(children, dict):
                part, node.children = children, None
                self._nodes.append(node)
            elif len(node.labels) > SWEPT:
                swept += SWEPT
                del node.labels[-SWEPT:]
                self._nodes.append(node)
                continue
            else:
                swept += 1 + len(node.labels)
                node.forget_children()
                node.kept = None
                continue
            self._nodes += [child for child in part.values() if isinstance(child, Namespace)]
            swept += len(part)
