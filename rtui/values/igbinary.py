"""PHP's igbinary format: the structures of serialize(), each text stored once, behind a mark of four bytes.

Texts and class names are numbered as they appear and referred to by number, as are arrays and objects; a reference to
an array or object is shown as a note. See igbinary.c in the sources of igbinary.
"""

from __future__ import annotations

import struct
from typing import Final

from rtui.values.limits import Budget, Invalid
from rtui.values.php import as_list
from rtui.values.source import CERTAIN, Format, Reader, Source, read_tree, recognises
from rtui.values.tree import Kind, Node, Step

MARKS: Final = (b"\x00\x00\x00\x01", b"\x00\x00\x00\x02")
_CONSTANTS: Final = {0x00: "null", 0x04: "false", 0x05: "true"}
_LONGS: Final = {
    0x06: (1, 1), 0x07: (1, -1), 0x08: (2, 1), 0x09: (2, -1), 0x0A: (4, 1), 0x0B: (4, -1), 0x20: (8, 1), 0x21: (8, -1),
}  # fmt: skip
"""The size of an integer in bytes, and its sign."""

_EMPTY_TEXT, _DOUBLE, _REFERENCE, _ENUM_CASE = 0x0D, 0x0C, 0x25, 0x27
_TEXT_IDS: Final = {0x0E: 1, 0x0F: 2, 0x10: 4}
_TEXTS: Final = {0x11: 1, 0x12: 2, 0x13: 4, 0x26: 8}
_ARRAYS: Final = {0x14: 1, 0x15: 2, 0x16: 4}
_CLASSES: Final = {0x17: 1, 0x18: 2, 0x19: 4}
_CLASS_IDS: Final = {0x1A: 1, 0x1B: 2, 0x1C: 4}
_SERIALIZED: Final = {0x1D: 1, 0x1E: 2, 0x1F: 4}
_SAME: Final = {0x01: 1, 0x02: 2, 0x03: 4, 0x22: 1, 0x23: 2, 0x24: 4}


class IgbinaryReader(Reader):
    """Reads the value behind the mark."""

    def __init__(self, source: Source, budget: Budget) -> None:
        super().__init__(source, budget, len(MARKS[0]))
        self._texts: list[bytes] = []

    def read(self) -> None:
        """Read the value at the cursor."""
        kind = self.byte()
        if kind == _REFERENCE:
            kind = self.byte()
        if kind in _ARRAYS:
            self._members(self.integer(_ARRAYS[kind]), self.add(Kind.MAP))
        elif kind in _CLASSES or kind in _CLASS_IDS:
            self._object(kind)
        elif kind in _SAME:
            self.add(Kind.NOTE, f"the same as value {self.integer(_SAME[kind])}")
        elif kind in _CONSTANTS:
            self.add(Kind.CONSTANT, _CONSTANTS[kind])
        else:
            self._name_or_scalar(kind)

    def _name_or_scalar(self, kind: int) -> None:
        """Read a text or a number."""
        if kind in _LONGS:
            size, sign = _LONGS[kind]
            self.add_number(sign * self.integer(size))
        elif kind == _DOUBLE:
            self.add_number(struct.unpack(">d", self.take(8))[0])
        elif kind in _TEXTS:
            node = self.add_string(self.integer(_TEXTS[kind]))
            self._texts.append(node.raw)
        elif kind in _TEXT_IDS or kind == _EMPTY_TEXT:
            self._known_text(self._known(_TEXT_IDS[kind]) if kind in _TEXT_IDS else b"")
        else:
            raise Invalid(f"has no value that begins with {kind:02x}")

    def _known(self, size: int) -> bytes:
        number = self.integer(size)
        if number >= len(self._texts):
            raise Invalid(f"refers to text {number}, which it never had")
        return self._texts[number]

    def _known_text(self, text: bytes, type_name: str = "") -> None:
        try:
            self.add(Kind.TEXT, text.decode(), type_name)
        except UnicodeDecodeError:
            self.add(Kind.BYTES, text, type_name)

    def _object(self, kind: int) -> None:
        """Read an object: its class, then its members, an enumeration case, or data in the class's own format."""
        if kind in _CLASSES:
            name = self.take(self.integer(_CLASSES[kind]))
            self._texts.append(name)
        else:
            name = self._known(_CLASS_IDS[kind])
        type_name = f"object {name.decode('utf-8', 'surrogateescape')}"
        inner = self.byte()
        if inner in _ARRAYS:
            self._members(self.integer(_ARRAYS[inner]), self.add(Kind.MAP, "", type_name))
        elif inner in _SERIALIZED:
            self.add_string(self.integer(_SERIALIZED[inner]), type_name=type_name)
        elif inner == _ENUM_CASE:
            at = self.byte()
            if at in _TEXTS:
                self._texts.append(self.take(self.integer(_TEXTS[at])))
                self._known_text(self._texts[-1], f"enum {type_name.removeprefix('object ')}")
            elif at in _TEXT_IDS:
                self._known_text(self._known(_TEXT_IDS[at]), f"enum {type_name.removeprefix('object ')}")
            else:
                raise Invalid("has a case of an enumeration without a name")
        else:
            raise Invalid(f"has an object that begins with {inner:02x}")

    def _members(self, count: int, node: Node) -> None:
        node.total = count
        self.enter(node)
        for _ in range(count):
            self._name_or_scalar(self.byte())
            self.take_as_name()
            self.read()
        self.leave()
        as_list(node)


def _sniff(source: Source, budget: Budget) -> float | None:
    """Recognise the mark with one value behind it."""
    if not source.data.startswith(MARKS) or len(source.data) <= len(MARKS[0]):
        return None
    reader = IgbinaryReader(source, budget.probe())
    is_there = recognises(reader, source) and reader.root is not None
    return CERTAIN if is_there else None


def _read(source: Source, budget: Budget) -> Step:
    if not source.data.startswith(MARKS):
        raise Invalid("begins with 00 00 00 and 01 or 02")
    return read_tree(IgbinaryReader(source, budget), source)


FORMATS: Final = (Format("igbinary", _sniff, _read),)
