"""The result of decoding, a tree of plain values with the rows in which it is shown; the limits of decoding.

A tree holds text and bytes as they were found: none of it is safe to show until it went through
`keyspace/text/display.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple


class ValueKind(StrEnum):
    """The kind of a node."""

    MAP = "map"
    LIST = "list"
    TEXT = "text"
    BYTES = "bytes"
    NUMBER = "number"
    """The value is the number in decimal digits, as exactly as it was written."""
    CONSTANT = "constant"
    NOTE = "note"
    """Words of rtui, or an instruction of a disassembly, whose operand is the value."""


@dataclass(slots=True)
class ValueNode:
    """One value of a tree: a map or a list with children, or a single value."""

    kind: ValueKind
    value: str | bytes = ""
    """Bytes if the kind is BYTES, else text; empty for maps and lists. Raw: it may hold any character."""
    type_name: str = ""
    """The format's own type: `uint32`, `ObjectId`, a class name; it may come from the data."""
    name: ValueNode | None = None
    """The name in its map; None in a list. Mostly TEXT, but formats may use any value."""
    children: list[ValueNode] = field(default_factory=list)
    total: int | None = None
    """The declared number of children, if there is one; more than `children` if the rest was not read."""
    is_cut: bool = False
    """Whether the bytes ended, or a limit was reached, within it."""

    @property
    def raw(self) -> bytes:
        return self.value if isinstance(self.value, bytes) else self.value.encode("utf-8", "surrogatepass")

    @property
    def missing(self) -> int:
        return max(0, (self.total or 0) - len(self.children))


class ValueForm(StrEnum):
    """The best way to show the result."""

    TREE = "tree"
    TEXT = "text"
    """One TEXT or NUMBER node: show its lines."""
    HEX = "hex"
    """One BYTES node: show a hex dump."""
    LISTING = "listing"
    """A disassembly: instructions in their order; sorting makes no sense."""


@dataclass(frozen=True, slots=True)
class DecodingStep:
    """The result of one decoder: other bytes, which are decoded further, or a tree."""

    content: bytes | ValueNode
    notes: tuple[str, ...] = ()
    """Notes for the reader; raw, like all texts."""
    truncated: bool = False
    """Whether more would follow: the bytes were cut, or a limit was reached."""
    form: ValueForm = ValueForm.TREE
    limited: bool = False
    """Whether it is truncated because of a limit."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded value."""

    chain: tuple[str, ...]
    """The decoders in their order, the outermost first: `("base64", "gzip", "JSON")`."""
    form: ValueForm
    root: ValueNode
    data: bytes
    """The bytes that the last decoder of the chain has read, for a pager or a file."""
    notes: tuple[str, ...] = ()
    """Notes for the reader: limits, damage, missing libraries, dates. Raw, for `display_text`."""
    truncated: bool = False
    """Whether this is the beginning only."""
    has_failed: bool = False
    """Whether the last decoder of the chain failed: the last note says why."""
    is_data_whole: bool = True
    """Whether `data` is complete, though the tree may end earlier."""

    @property
    def title(self) -> str:
        """The chain as it is shown, and as `choose` accepts it."""
        return SEPARATOR.join(self.chain)


SEPARATOR: Final = " › "

_PIECES: Final = frozenset({ValueKind.TEXT, ValueKind.BYTES})
"""Kinds that are shown even if cut: a piece of a number or of a constant would be another one."""


def drop_unfinished(root: ValueNode) -> None:
    """Remove incomplete elements from a cut tree: a piece of a name or number, an empty container.

    The beginning of a text or of bytes stays.
    """
    way = [root]
    while way[-1].is_cut and way[-1].children:
        way.append(way[-1].children[-1])
    while len(way) > 1:
        last, holder = way.pop(), way[-1]
        is_name = holder.kind is ValueKind.MAP and last.name is None
        if not last.is_cut or last.children or (last.kind in _PIECES and not is_name):
            return
        holder.children.pop()


class OutlineRow(NamedTuple):
    """One row of a tree in its layout."""

    depth: int
    node: ValueNode
    path: tuple[int, ...]
    """The index of each child on the path from the root; empty for the root."""
    is_folded: bool = False


def outline(
    root: ValueNode,
    *,
    folded: Callable[[tuple[int, ...]], bool] = lambda _: False,
    by_name: bool = False,
    is_reversed: bool = False,
) -> Iterator[OutlineRow]:
    """Yield the rows of a tree, parents before their children; children of a path that is `folded` are left out.

    `by_name` sorts the children of maps by their names, `is_reversed` the last first; paths stay those of the unsorted
    tree, so that folded nodes stay folded. Never recurses.
    """
    pending: list[tuple[tuple[int, ...], ValueNode]] = [((), root)]
    while pending:
        path, node = pending.pop()
        if not node.children:
            yield OutlineRow(len(path), node, path)
            continue
        is_folded = folded(path)
        yield OutlineRow(len(path), node, path, is_folded)
        if is_folded:
            continue
        inside = list(enumerate(node.children))
        if by_name and node.kind is ValueKind.MAP:
            inside.sort(key=lambda one: _order(one[1]), reverse=is_reversed)
        pending.extend(((*path, at), child) for at, child in reversed(inside))


def _order(node: ValueNode) -> tuple[int, float, bytes]:
    """Return the sort key of a member: numbers before text, by value."""
    name = node.name
    if name is None:
        return (2, 0.0, b"")
    if name.kind is ValueKind.NUMBER and isinstance(name.value, str):
        try:
            return (0, float(name.value), b"")
        except ValueError:
            pass
    return (1, 0.0, name.raw)


@dataclass(frozen=True, slots=True)
class DecodingLimits:
    """Limits of decoding one value, which hold whatever the bytes are."""

    output_bytes: int = 1 << 20
    """The most bytes that one layer may decompress to; the rest is dropped."""
    layers: int = 8
    """The most decoders in a row, as in base64 › gzip › JSON."""
    depth: int = 64
    """The deepest nesting of maps and lists. At most 100, since some readers recurse."""
    elements: int = 5_000
    seconds: float = 0.25
    """The processor time of the thread, in seconds, after which every decoder stops at its next step."""


DEFAULT: Final = DecodingLimits()

PROBE_ELEMENTS: Final = 256
"""The elements read to recognise a value without a mark of its own."""

_CLOCK_EVERY: Final = 64


class Stopped(Exception):  # noqa: N818 - the base of three ways to end early, of which two are no errors
    """A decoder ended early; what it has read so far is kept."""


class Cut(Stopped):
    """The bytes end before the value does."""


class Invalid(Stopped):
    """The bytes are not of the decoder's format; the message is a predicate: "has no type 07"."""


class Exceeded(Stopped):
    """A limit was reached; the message is a sentence."""


class MissingLibrary(Stopped):
    """The library that a decoder needs is not installed."""


@dataclass(slots=True)
class Budget:
    """The remainder of the limits while one value is decoded."""

    limits: DecodingLimits
    deadline: float
    elements: int = field(default=0)

    @classmethod
    def starting(cls, limits: DecodingLimits) -> Budget:
        """Return a full budget for the current thread; its time begins now."""
        return cls(limits, time.thread_time() + limits.seconds)

    def probe(self) -> Budget:
        """Return a small budget with the same deadline, for recognising a format."""
        few = min(PROBE_ELEMENTS, self.limits.elements)
        limits = DecodingLimits(min(4096, self.limits.output_bytes), self.limits.layers, self.limits.depth, few)
        return Budget(limits, self.deadline)

    def spend(self) -> None:
        """Count one element; raises Exceeded if there are too many, or time is up."""
        self.elements += 1
        if self.elements > self.limits.elements:
            raise Exceeded(f"only the first {self.limits.elements:,} elements are shown")
        if not self.elements % _CLOCK_EVERY:
            self.check_time()

    def check_time(self) -> None:
        """Raise Exceeded if time is up."""
        if time.thread_time() > self.deadline:
            raise Exceeded(f"decoding was stopped after {self.limits.seconds:g} s")
