"""The bytes that decoders look at, and the cursor with which readers of structured formats build a bounded tree."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from rtui.values.limits import Budget, Cut, Exceeded, Invalid
from rtui.values.tree import Kind, Node, Step

TEXT_CONTROLS: Final = b"\t\n\r\x1b"
"""Control characters that occur in text: white space, and the escape of coloured logs."""

MAX_CONTROL_SHARE: Final = 0.02
_CONTROLS: Final = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in TEXT_CONTROLS)


NOT_UTF8: Final = "not UTF-8"
"""The type of what should be text and is not."""


@dataclass
class Source:
    """Bytes to be decoded; `is_whole` says whether they are all of the value, or its beginning only."""

    data: bytes
    is_whole: bool = True
    trees: dict[type[Reader], Node] = field(default_factory=dict)
    """What readers have made of all of it when they recognised it, so that they need not read it again."""

    @cached_property
    def is_utf8(self) -> bool:
        """Whether it is UTF-8; the end may cut a character where it is not whole."""
        try:
            codecs.utf_8_decode(self.data, "strict", self.is_whole)
        except UnicodeDecodeError:
            return False
        return True

    @cached_property
    def is_text(self) -> bool:
        """Whether it is UTF-8 with next to no control characters."""
        if not self.is_utf8:
            return False
        controls = len(self.data) - len(self.data.translate(None, _CONTROLS))
        return controls <= MAX_CONTROL_SHARE * len(self.data)

    @cached_property
    def text(self) -> str:
        """The bytes as text, without a character that the end has cut; raises Invalid where they are not UTF-8."""
        try:
            return codecs.utf_8_decode(self.data, "strict", self.is_whole)[0]
        except UnicodeDecodeError as error:
            raise Invalid(f"is UTF-8, which this is not from byte {error.start:,} on") from None


class Reader(ABC):
    """Reads a structured format from left to right into a tree.

    A reader adds each node to the innermost open one before it reads on, so that whatever stops it leaves what was
    read. It may recurse, since `enter` bounds the depth.
    """

    def __init__(self, source: Source, budget: Budget, at: int = 0) -> None:
        self.data = source.data
        self.at = at
        self.end = len(source.data)
        self.budget = budget
        self.root: Node | None = None
        self.name: Node | None = None
        """The name of the next node that is added."""
        self._open: list[Node] = []

    @abstractmethod
    def read(self) -> None:
        """Read the value at the cursor; raises Cut, Invalid or Exceeded."""

    def take(self, count: int) -> bytes:
        """Return the next bytes; raises Cut where there are fewer."""
        stop = self.at + count
        if stop > self.end:
            raise Cut
        piece = self.data[self.at : stop]
        self.at = stop
        return piece

    def byte(self) -> int:
        """Return the next byte."""
        if self.at >= self.end:
            raise Cut
        self.at += 1
        return self.data[self.at - 1]

    def integer(self, size: int, order: Literal["big", "little"] = "big", *, signed: bool = False) -> int:
        """Return the next integer of `size` bytes."""
        return int.from_bytes(self.take(size), order, signed=signed)

    def add(self, kind: Kind, value: str | bytes = "", type_name: str = "", *, total: int | None = None) -> Node:
        """Add a node to the innermost open one, or as the root."""
        self.budget.spend()
        node = Node(kind, value, type_name, self.name, [], total)
        self.name = None
        if self._open:
            self._open[-1].children.append(node)
        elif self.root is None:
            self.root = node
        else:
            raise Invalid(f"ends before byte {self.at:,}")
        return node

    def add_number(self, value: float | str, type_name: str = "") -> Node:
        """Add a number."""
        return self.add(Kind.NUMBER, value if isinstance(value, str) else repr(value), type_name)

    def add_string(self, count: int, *, is_text: bool = True, type_name: str = "") -> Node:
        """Add the next bytes, as text where they should be and are UTF-8; raises Cut with what there is of them."""
        piece = self.data[self.at : self.at + count]
        is_cut = len(piece) < count
        text: str | None = None
        if is_text:
            try:
                text = codecs.utf_8_decode(piece, "strict", not is_cut)[0]
            except UnicodeDecodeError:
                type_name = type_name or NOT_UTF8
        node = self.add(Kind.BYTES, piece, type_name) if text is None else self.add(Kind.TEXT, text, type_name)
        self.at += len(piece)
        if is_cut:
            node.is_cut = True
            raise Cut
        return node

    def share(self, outer: Reader) -> None:
        """Add to the tree of another reader, below what is open there."""
        self._open = outer._open

    def enter(self, node: Node) -> None:
        """Open a node: what is added from now on belongs to it."""
        if len(self._open) >= self.budget.limits.depth:
            raise Exceeded(f"what is nested deeper than {self.budget.limits.depth} levels is not shown")
        self._open.append(node)

    def leave(self) -> None:
        """Close the innermost open node."""
        self._open.pop()

    def take_as_name(self) -> None:
        """Turn the last child of the open node into the name of the next one: maps write a name before its value."""
        self.name = self._open[-1].children.pop()

    def mark_cut(self) -> None:
        """Note that what is open was not read to its end."""
        for node in self._open:
            node.is_cut = True


def recognises(reader: Reader, source: Source) -> bool:
    """Read with a small budget; tell whether the bytes are of the reader's format from the first to the last."""
    try:
        reader.read()
    except Cut:
        return not source.is_whole
    except Exceeded:
        return True
    except Invalid:
        return False
    if reader.at != reader.end:
        return False
    if source.is_whole and reader.root is not None:
        source.trees[type(reader)] = reader.root
    return True


def read_tree(reader: Reader, source: Source) -> Step:
    """Read all, and return what there is of the tree; raises Invalid when there is nothing."""
    known = source.trees.get(type(reader))
    if known is not None:
        return Step(known)
    notes: tuple[str, ...] = ()
    truncated = not source.is_whole
    try:
        reader.read()
        if reader.at < reader.end:
            notes = (f"{reader.end - reader.at:,} bytes follow the value",)
    except Cut:
        reader.mark_cut()
        truncated = True
        notes = () if not source.is_whole else ("the value ends early",)
    except Exceeded as limit:
        reader.mark_cut()
        truncated = True
        notes = (str(limit),)
    except Invalid as error:
        reader.mark_cut()
        if reader.root is None:
            raise
        truncated = True
        notes = (f"damaged at byte {reader.at:,}: it {error}",)
    if reader.root is None:
        raise Exceeded(notes[0]) if truncated and notes else Invalid("has more bytes than there are")
    return Step(reader.root, notes, truncated)


def limited_step(name: str, data: bytes | bytearray, source: Source, budget: Budget) -> Step:
    """Return what came out of a decoder, up to the budget's output."""
    limit = budget.limits.output_bytes
    is_limited = len(data) > limit
    notes = (f"only the first {limit:,} bytes that come out of {name} are shown",) if is_limited else ()
    return Step(bytes(data[:limit]), notes, is_limited or not source.is_whole, limited=is_limited)


def is_record(reader: Reader, source: Source) -> bool | None:
    """Tell whether a binary format without a mark recognises the bytes, and if so, whether like a record.

    None where it does not; True where the root is a map whose names are all text, or a list of such maps: random bytes
    hardly ever are, and of a value that is not read to its end nothing else counts. What is text is none of these.
    """
    if source.is_text or len(source.data) < MIN_RECORD_BYTES or not recognises(reader, source) or reader.root is None:
        return None
    root = reader.root
    maps = [root] if root.kind is Kind.MAP else [node for node in root.children if node.kind is Kind.MAP]
    names = [node.name for one in maps for node in one.children]
    if names and all(name is not None and name.kind is Kind.TEXT and name.value for name in names):
        return True
    is_complete = source.is_whole and reader.at == reader.end
    is_readable = not any(node.type_name == NOT_UTF8 for one in (root, *maps) for node in one.children)
    return False if is_complete and is_readable else None


MIN_RECORD_BYTES: Final = 3
"""Shorter binary values are left as they are: they mean something in every format."""
