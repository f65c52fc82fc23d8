"""The input of decoders, and the reader with which structured formats build a bounded tree."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from rtui.values.tree import Budget, Cut, DecodingStep, Exceeded, Invalid, ValueKind, ValueNode

TEXT_CONTROLS: Final = b"\t\n\r\x1b"
"""Control characters that occur in text: white space, and the escape of coloured logs."""

MAX_CONTROL_SHARE: Final = 0.02
_CONTROLS: Final = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in TEXT_CONTROLS)


NOT_UTF8: Final = "not UTF-8"
"""The type name of bytes that should be text."""


@dataclass
class ValueSource:
    """Bytes to be decoded; `is_whole` is false if they are only the beginning of the value."""

    data: bytes
    is_whole: bool = True
    trees: dict[type[Reader], ValueNode] = field(default_factory=dict)
    """The complete trees that readers built while recognising the bytes, kept to save a second reading."""

    @cached_property
    def is_utf8(self) -> bool:
        """Whether the bytes are UTF-8; in an incomplete value the last character may be cut."""
        try:
            codecs.utf_8_decode(self.data, "strict", self.is_whole)
        except UnicodeDecodeError:
            return False
        return True

    @cached_property
    def is_text(self) -> bool:
        """Whether the bytes are UTF-8 with next to no control characters."""
        if not self.is_utf8:
            return False
        controls = len(self.data) - len(self.data.translate(None, _CONTROLS))
        return controls <= MAX_CONTROL_SHARE * len(self.data)

    @cached_property
    def text(self) -> str:
        """The bytes as text, without a character cut at the end; raises Invalid if they are not UTF-8."""
        try:
            return codecs.utf_8_decode(self.data, "strict", self.is_whole)[0]
        except UnicodeDecodeError as error:
            raise Invalid(f"is UTF-8, which this is not from byte {error.start:,} on") from None


class Reader(ABC):
    """Reads a structured format from left to right into a tree.

    A reader adds each node to the innermost open one before it reads on, so that the tree keeps everything read before
    an exception. It may recurse, since `enter` bounds the depth.
    """

    def __init__(self, source: ValueSource, budget: Budget, at: int = 0) -> None:
        self.data = source.data
        self.at = at
        self.end = len(source.data)
        self.budget = budget
        self.root: ValueNode | None = None
        self.name: ValueNode | None = None
        """The name of the next node that is added."""
        self._open: list[ValueNode] = []

    @abstractmethod
    def read(self) -> None:
        """Read the value at the cursor; raises Cut, Invalid or Exceeded."""

    def take(self, count: int) -> bytes:
        """Return the next bytes; raises Cut if there are fewer."""
        stop = self.at + count
        if stop > self.end:
            raise Cut
        piece = self.data[self.at : stop]
        self.at = stop
        return piece

    def byte(self) -> int:
        """Return the next byte; raises Cut at the end."""
        if self.at >= self.end:
            raise Cut
        self.at += 1
        return self.data[self.at - 1]

    def integer(self, size: int, order: Literal["big", "little"] = "big", *, signed: bool = False) -> int:
        """Return the next integer of `size` bytes; raises Cut if there are fewer."""
        return int.from_bytes(self.take(size), order, signed=signed)

    def add(
        self, kind: ValueKind, value: str | bytes = "", type_name: str = "", *, total: int | None = None
    ) -> ValueNode:
        """Add a node to the innermost open one, or as the root; raises Invalid for a second root."""
        self.budget.spend()
        node = ValueNode(kind, value, type_name, self.name, [], total)
        self.name = None
        if self._open:
            self._open[-1].children.append(node)
        elif self.root is None:
            self.root = node
        else:
            raise Invalid(f"ends before byte {self.at:,}")
        return node

    def add_number(self, value: float | str, type_name: str = "") -> ValueNode:
        return self.add(ValueKind.NUMBER, value if isinstance(value, str) else repr(value), type_name)

    def add_string(self, count: int, *, is_text: bool = True, type_name: str = "") -> ValueNode:
        """Add the next bytes, as text if they are UTF-8 and should be text; raises Cut after adding a cut string."""
        piece = self.data[self.at : self.at + count]
        is_cut = len(piece) < count
        text: str | None = None
        if is_text:
            try:
                text = codecs.utf_8_decode(piece, "strict", not is_cut)[0]
            except UnicodeDecodeError:
                type_name = type_name or NOT_UTF8
        node = (
            self.add(ValueKind.BYTES, piece, type_name) if text is None else self.add(ValueKind.TEXT, text, type_name)
        )
        self.at += len(piece)
        if is_cut:
            node.is_cut = True
            raise Cut
        return node

    def share(self, outer: Reader) -> None:
        """Add to the tree of another reader, below its open nodes."""
        self._open = outer._open

    def enter(self, node: ValueNode) -> None:
        """Open a node: nodes added from now on are its children. Raises Exceeded if it is too deep."""
        if len(self._open) >= self.budget.limits.depth:
            raise Exceeded(f"levels deeper than {self.budget.limits.depth} are not shown")
        self._open.append(node)

    def leave(self) -> None:
        self._open.pop()

    def take_as_name(self) -> None:
        """Turn the last child of the open node into the name of the next one: maps write a name before its value."""
        self.name = self._open[-1].children.pop()

    def mark_cut(self) -> None:
        for node in self._open:
            node.is_cut = True


def recognises(reader: Reader, source: ValueSource) -> bool:
    """Read with a small budget; return whether the bytes are of the reader's format from first to last."""
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


def read_tree(reader: Reader, source: ValueSource) -> DecodingStep:
    """Read the value; return its tree, as far as it goes. Raises Invalid or Exceeded if nothing was read."""
    known = source.trees.get(type(reader))
    if known is not None:
        return DecodingStep(known)
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
    return DecodingStep(reader.root, notes, truncated)


def limited_step(name: str, data: bytes | bytearray, source: ValueSource, budget: Budget) -> DecodingStep:
    """Return the output of a decoder, up to the budget's limit."""
    limit = budget.limits.output_bytes
    is_limited = len(data) > limit
    notes = (f"only the first {limit:,} bytes that come out of {name} are shown",) if is_limited else ()
    return DecodingStep(bytes(data[:limit]), notes, is_limited or not source.is_whole, limited=is_limited)


def is_record(reader: Reader, source: ValueSource) -> bool | None:
    """Return True if a binary format without a mark recognises a record, False if another value, None if nothing.

    A record is a map whose names are all text, or a list of such maps: random bytes hardly ever are, and of a value
    that is not read to its end nothing else counts. Text is never recognised.
    """
    if source.is_text or len(source.data) < MIN_RECORD_BYTES or not recognises(reader, source) or reader.root is None:
        return None
    root = reader.root
    maps = [root] if root.kind is ValueKind.MAP else [node for node in root.children if node.kind is ValueKind.MAP]
    names = [node.name for node_map in maps for node in node_map.children]
    if names and all(name is not None and name.kind is ValueKind.TEXT and name.value for name in names):
        return True
    is_complete = source.is_whole and reader.at == reader.end
    is_readable = not any(node.type_name == NOT_UTF8 for one in (root, *maps) for node in one.children)
    return False if is_complete and is_readable else None


MIN_RECORD_BYTES: Final = 3
"""Shorter binary values are left undecoded: they mean something in every format."""


CERTAIN: Final = 1.0
"""Confidence for bytes with a mark that no other format has."""

LIKELY: Final = 0.7
"""Confidence for bytes that are well formed from first to last, as few bytes of other formats are."""

POSSIBLE: Final = 0.3
"""Confidence for bytes that are well formed, perhaps by chance."""

OFFERED: Final = 0.01
"""Confidence of a decoder that is offered, never chosen: too many other bytes can be read the same way."""


def by_hand(_source: ValueSource, _budget: Budget) -> None:
    """Recognise nothing: for decoders that are used by choice only."""


@dataclass(frozen=True, slots=True)
class Format:
    """One decoder."""

    name: str
    sniff: Callable[[ValueSource, Budget], float | None]
    """Return the confidence that the bytes are of this format, above 0 and at most 1, or None.

    Raises Invalid only for a failing plugin.
    """
    read: Callable[[ValueSource, Budget], DecodingStep]
    """Decode; raises Invalid, Exceeded or MissingLibrary only if there is nothing to show."""
    needs_proof: bool = False
    """Whether many other bytes look the same, so that the decoder's output has to be recognised as well."""
    can_read: Callable[[ValueSource], bool] = lambda _source: True
    """Whether the decoder is worth offering by name for these bytes."""
