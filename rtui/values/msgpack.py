"""MessagePack (github.com/msgpack/msgpack/blob/master/spec.md).

Recognised if a non-empty map or list, or a text, fills the bytes from first to last. Records of msgpackr, whose field
names are stored only with the first of them, become maps.
"""

from __future__ import annotations

import struct
from typing import Final, Literal

from rtui.values.limits import Budget, Invalid
from rtui.values.plain import date_text
from rtui.values.source import LIKELY, MIN_RECORD_BYTES, POSSIBLE, Format, Reader, Source, is_record, read_tree
from rtui.values.tree import Kind, Node, Step

_SIGNED: Final = {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_UNSIGNED: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_FLOATS: Final = {0xCA: (4, ">f"), 0xCB: (8, ">d")}
_TEXTS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BYTES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS: Final = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_LISTS: Final = {0xDC: 2, 0xDD: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}
_CONSTANTS: Final = {0xC0: "null", 0xC2: "false", 0xC3: "true"}
_TIMESTAMP: Final = -1
_RECORD: Final = 0x72
"""The extension type with which msgpackr declares the field names of a record."""

_RECORD_HEAD: Final = bytes((0xD4, _RECORD))


class MsgpackReader(Reader):
    """Reads one MessagePack value."""

    def __init__(self, source: Source, budget: Budget) -> None:
        super().__init__(source, budget)
        self._records: dict[int, list[Node]] = {}
        """The field names of each kind of record, by the tag byte of its records."""

    def read(self) -> None:
        """Read the value at the cursor."""
        tag = self.byte()
        if tag in self._records:
            self._record(self._records[tag])
        elif tag < 0x80 or tag >= 0xE0:
            self.add_number(tag if tag < 0x80 else tag - 256)
        elif tag < 0xA0:
            self._items(Kind.MAP if tag < 0x90 else Kind.LIST, tag & 0x0F)
        elif tag < 0xC0:
            self.add_string(tag & 0x1F)
        else:
            self._tagged(tag)

    def _tagged(self, tag: int) -> None:
        """Read a value whose length, or content, follows its tag byte."""
        if tag in _CONSTANTS:
            self.add(Kind.CONSTANT, _CONSTANTS[tag])
        elif tag in _TEXTS:
            self.add_string(self.integer(_TEXTS[tag]))
        elif tag in _BYTES:
            self.add_string(self.integer(_BYTES[tag]), is_text=False)
        elif tag in _MAPS:
            self._items(Kind.MAP, self.integer(_MAPS[tag]))
        elif tag in _LISTS:
            self._items(Kind.LIST, self.integer(_LISTS[tag]))
        elif tag in _UNSIGNED:
            self.add_number(self.integer(_UNSIGNED[tag]))
        elif tag in _SIGNED:
            self.add_number(self.integer(_SIGNED[tag], signed=True))
        elif tag in _FLOATS:
            size, layout = _FLOATS[tag]
            self.add_number(struct.unpack(layout, self.take(size))[0])
        elif tag in _EXTENSIONS:
            self._extension(self.integer(_EXTENSIONS[tag]))
        elif tag in _FIXED_EXTENSIONS:
            self._extension(_FIXED_EXTENSIONS[tag])
        else:
            raise Invalid(f"has no value that begins with {tag:02x}")

    def _items(self, kind: Literal[Kind.MAP, Kind.LIST], count: int) -> None:
        node = self.add(kind, total=count)
        self.enter(node)
        for _ in range(count):
            if kind is Kind.MAP:
                self.read()
                self.take_as_name()
            self.read()
        self.leave()

    def _extension(self, size: int) -> None:
        """Read an extension: a timestamp as a date, any other as bytes with its type number."""
        code = self.integer(1, signed=True)
        if code == _RECORD and size == 1:
            self._first_record(self.byte())
            return
        if code != _TIMESTAMP or size not in (4, 8, 12):
            self.add_string(size, is_text=False, type_name=f"extension {code}")
            return
        nanoseconds = self.integer(4) if size == 12 else 0
        number = self.integer(min(size, 8), signed=size == 12)
        if size == 8:
            nanoseconds, number = number >> 34, number & ((1 << 34) - 1)
        self.add(Kind.TEXT, date_text(number + nanoseconds / 1e9), "timestamp")

    def _first_record(self, kind: int) -> None:
        """Read the declaration of a record kind, and its first record."""
        if not 0x40 <= kind < 0x80:
            raise Invalid(f"has no record that begins with {kind:02x}")
        name, holder = self.name, self.add(Kind.LIST)
        self.enter(holder)
        self.read()
        self.leave()
        names = holder.children[0]
        if names.kind is not Kind.LIST or any(member.kind is not Kind.TEXT for member in names.children):
            raise Invalid("has a record whose names are no texts")
        self._records[kind] = names.children
        holder.kind, holder.name, holder.children, holder.total = Kind.MAP, name, [], len(names.children)
        self._members(holder, names.children)

    def _record(self, names: list[Node]) -> None:
        self._members(self.add(Kind.MAP, total=len(names)), names)

    def _members(self, node: Node, names: list[Node]) -> None:
        self.enter(node)
        for member in names:
            self.name = Node(Kind.TEXT, member.value)
            self.read()
        self.leave()


def _is_text(source: Source) -> bool:
    """Whether the bytes are one text behind its length.

    A length of 128 to 191 bytes is also UTF-8, of an Arabic letter: a value that is text as a whole is not a msgpack
    text then.
    """
    header = _text_header(source.data)
    if not header or not source.is_whole:
        return False
    content = Source(source.data[header:])
    if not content.is_text or not any(character.isalpha() for character in content.text):
        return False
    return not source.is_text or (content.data[0] < 0x80 and content.data[:1].isalpha())


def _text_header(data: bytes) -> int:
    """Return the size of the header of a text that fills the value, or 0."""
    size = _TEXTS.get(data[0], 0)
    is_short = 0xA0 < data[0] < 0xC0
    count = data[0] & 0x1F if is_short else int.from_bytes(data[1 : 1 + size], "big")
    return 1 + size if (is_short or size) and len(data) == 1 + size + count > MIN_RECORD_BYTES - 1 else 0


def _sniff(source: Source, budget: Budget) -> float | None:
    """Recognise maps, lists and text; a map with only text keys is likely, anything else only possible."""
    head = source.data[0]
    if _is_text(source):
        return LIKELY if source.is_text else POSSIBLE
    if source.data[:2] == _RECORD_HEAD:
        return LIKELY if is_record(MsgpackReader(source, budget.probe()), source) else None
    if not (0x80 < head < 0xA0 and head != 0x90) and head not in (*_LISTS, *_MAPS):
        return None
    reader = MsgpackReader(source, budget.probe())
    found = is_record(reader, source)
    return None if found is None else LIKELY if found else POSSIBLE


def _read(source: Source, budget: Budget) -> Step:
    return read_tree(MsgpackReader(source, budget), source)


FORMATS: Final = (Format("msgpack", _sniff, _read),)
