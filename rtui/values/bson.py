"""BSON documents (bsonspec.org, version 1.1), which begin with their length and end with a zero byte.

pymongo's decoder is not used: it decodes whole documents only, and brings a database driver with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from rtui.values.limits import Budget, Cut, Invalid
from rtui.values.plain import date_text
from rtui.values.source import CERTAIN, Format, Reader, Source, read_tree, recognises
from rtui.values.tree import Kind, Node, Step

MAX_NAME_BYTES: Final = 1_024
_CONSTANTS: Final = {0x06: "undefined", 0x0A: "null", 0x7F: "max key", 0xFF: "min key"}
_SUBTYPES: Final = {1: "function", 3: "UUID", 4: "UUID", 5: "MD5", 6: "encrypted", 7: "column", 8: "sensitive"}


class BsonReader(Reader):
    """Reads one document."""

    def read(self) -> None:
        """Read the document at the cursor."""
        self._document(Kind.MAP)

    def _document(self, kind: Kind) -> None:
        start = self.at
        size = self.integer(4, "little", signed=True)
        if size < 5 or (self._open and start + size > self._stop):
            raise Invalid("has a document of an impossible length")
        outer, self._stop = self._stop, start + size
        node = self.add(kind)
        self.enter(node)
        while code := self.byte():
            name = self._name()
            self.name = None if kind is Kind.LIST else Node(Kind.TEXT, name)
            self._element(code)
        self.leave()
        if self.at != self._stop:
            raise Invalid("has a document that ends before its length")
        self._stop = outer

    _stop = 0

    def _name(self) -> str:
        """Read a zero-terminated UTF-8 name of at most MAX_NAME_BYTES; raises Invalid for other bytes."""
        end = self.data.find(b"\0", self.at, self.at + MAX_NAME_BYTES)
        if end < 0:
            if self.end - self.at < MAX_NAME_BYTES:
                raise Cut
            raise Invalid("has a name without an end")
        name = self.data[self.at : end]
        self.at = end + 1
        try:
            return name.decode()
        except UnicodeDecodeError:
            raise Invalid("has a name that is not UTF-8") from None

    def _element(self, code: int) -> None:
        read = _ELEMENTS.get(code)
        if read is not None:
            read(self)
        elif code in _CONSTANTS:
            self.add(Kind.CONSTANT, _CONSTANTS[code])
        else:
            raise Invalid(f"has no type {code:02x}")

    def _double(self) -> None:
        self.add_number(struct.unpack("<d", self.take(8))[0])

    def _text(self, type_name: str = "") -> None:
        size = self.integer(4, "little", signed=True)
        if size < 1:
            raise Invalid("has a text of an impossible length")
        self.add_string(size - 1, type_name=type_name)
        if self.byte():
            raise Invalid("has a text without a zero byte at its end")

    def _binary(self) -> None:
        size = self.integer(4, "little", signed=True)
        if size < 0:
            raise Invalid("has bytes of an impossible length")
        self.add_string(size, is_text=False, type_name=_SUBTYPES.get(self.byte(), ""))

    def _object_id(self) -> None:
        self.add(Kind.TEXT, self.take(12).hex(), "ObjectId")

    def _boolean(self) -> None:
        value = self.byte()
        if value > 1:
            raise Invalid("has a boolean that is neither 0 nor 1")
        self.add(Kind.CONSTANT, "true" if value else "false")

    def _date(self) -> None:
        self.add(Kind.TEXT, date_text(self.integer(8, "little", signed=True) / 1_000), "date")

    def _pattern(self) -> None:
        pattern, options = self._raw_name(), self._raw_name()
        self.add(Kind.TEXT, f"/{pattern}/{options}", "regular expression")

    def _raw_name(self) -> str:
        kept, self.name = self.name, None
        text = self._name()
        self.name = kept
        return text

    def _pointer(self) -> None:
        self._text("database pointer")
        self.name = None
        self._object_id()

    def _scoped_code(self) -> None:
        self.take(4)
        node = self.add(Kind.LIST, "", "code with scope")
        self.enter(node)
        self._text("code")
        self._document(Kind.MAP)
        self.leave()

    def _timestamp(self) -> None:
        increment, seconds = self.integer(4, "little"), self.integer(4, "little")
        self.add(Kind.TEXT, f"{date_text(seconds)}, {increment}", "timestamp")


_ELEMENTS: Final[dict[int, Callable[[BsonReader], object]]] = {
    0x01: BsonReader._double,
    0x02: BsonReader._text,
    0x03: lambda reader: reader._document(Kind.MAP),
    0x04: lambda reader: reader._document(Kind.LIST),
    0x05: BsonReader._binary,
    0x07: BsonReader._object_id,
    0x08: BsonReader._boolean,
    0x09: BsonReader._date,
    0x0B: BsonReader._pattern,
    0x0C: BsonReader._pointer,
    0x0D: lambda reader: reader._text("code"),
    0x0E: lambda reader: reader._text("symbol"),
    0x0F: BsonReader._scoped_code,
    0x10: lambda reader: reader.add_number(reader.integer(4, "little", signed=True)),
    0x11: BsonReader._timestamp,
    0x12: lambda reader: reader.add_number(reader.integer(8, "little", signed=True), "int64"),
    0x13: lambda reader: reader.add_string(16, is_text=False, type_name="decimal128"),
}


def _sniff(source: Source, budget: Budget) -> float | None:
    """Recognise a document by its length field, which is the length of the value, and by its elements."""
    if len(source.data) < 5:
        return None
    size = int.from_bytes(source.data[:4], "little")
    if size != len(source.data) if source.is_whole else not len(source.data) <= size < 1 << 30:
        return None
    if source.is_whole and source.data[-1]:
        return None
    reader = BsonReader(source, budget.probe())
    if not recognises(reader, source) or reader.root is None:
        return None
    names = [str(node.name.value) for node in reader.root.children if node.name is not None]
    return CERTAIN if source.is_whole or (names and all(name and name.isprintable() for name in names)) else None


def _read(source: Source, budget: Budget) -> Step:
    return read_tree(BsonReader(source, budget), source)


FORMATS: Final = (Format("BSON", _sniff, _read),)
