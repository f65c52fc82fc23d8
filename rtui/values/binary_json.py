"""Binary relatives of JSON: MessagePack (msgpack.org), CBOR (RFC 8949), BSON (bsonspec.org, version 1.1).

Recognised if a non-empty map or list, or a text, fills the bytes from first to last. Records of msgpackr, whose field
names are stored only with the first of them, become maps.

MessagePack and CBOR have no mark, or an optional one. BSON begins with its length and ends with a zero byte; pymongo's
decoder is not used: it decodes whole documents only, and brings a database driver with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, Literal

from rtui.values.plain import date_text
from rtui.values.source import (
    CERTAIN,
    LIKELY,
    MIN_RECORD_BYTES,
    POSSIBLE,
    Format,
    Reader,
    ValueSource,
    is_record,
    read_tree,
    recognises,
)
from rtui.values.tree import Budget, Cut, DecodingStep, Invalid, ValueKind, ValueNode

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

    def __init__(self, source: ValueSource, budget: Budget) -> None:
        super().__init__(source, budget)
        self._records: dict[int, list[ValueNode]] = {}
        """The field names of each kind of record, by the tag byte of its records."""

    def read(self) -> None:
        tag = self.byte()
        if tag in self._records:
            self._record(self._records[tag])
        elif tag < 0x80 or tag >= 0xE0:
            self.add_number(tag if tag < 0x80 else tag - 256)
        elif tag < 0xA0:
            self._items(ValueKind.MAP if tag < 0x90 else ValueKind.LIST, tag & 0x0F)
        elif tag < 0xC0:
            self.add_string(tag & 0x1F)
        else:
            self._tagged(tag)

    def _tagged(self, tag: int) -> None:
        """Read a value whose length, or content, follows its tag byte."""
        if tag in _CONSTANTS:
            self.add(ValueKind.CONSTANT, _CONSTANTS[tag])
        elif tag in _TEXTS:
            self.add_string(self.integer(_TEXTS[tag]))
        elif tag in _BYTES:
            self.add_string(self.integer(_BYTES[tag]), is_text=False)
        elif tag in _MAPS:
            self._items(ValueKind.MAP, self.integer(_MAPS[tag]))
        elif tag in _LISTS:
            self._items(ValueKind.LIST, self.integer(_LISTS[tag]))
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

    def _items(self, kind: Literal[ValueKind.MAP, ValueKind.LIST], count: int) -> None:
        node = self.add(kind, total=count)
        self.enter(node)
        for _ in range(count):
            if kind is ValueKind.MAP:
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
        self.add(ValueKind.TEXT, date_text(number + nanoseconds / 1e9), "timestamp")

    def _first_record(self, kind: int) -> None:
        """Read the declaration of a record kind, and its first record."""
        if not 0x40 <= kind < 0x80:
            raise Invalid(f"has no record that begins with {kind:02x}")
        name, holder = self.name, self.add(ValueKind.LIST)
        self.enter(holder)
        self.read()
        self.leave()
        names = holder.children[0]
        if names.kind is not ValueKind.LIST or any(member.kind is not ValueKind.TEXT for member in names.children):
            raise Invalid("has a record whose names are no texts")
        self._records[kind] = names.children
        holder.kind, holder.name, holder.children, holder.total = ValueKind.MAP, name, [], len(names.children)
        self._members(holder, names.children)

    def _record(self, names: list[ValueNode]) -> None:
        self._members(self.add(ValueKind.MAP, total=len(names)), names)

    def _members(self, node: ValueNode, names: list[ValueNode]) -> None:
        self.enter(node)
        for member in names:
            self.name = ValueNode(ValueKind.TEXT, member.value)
            self.read()
        self.leave()


def _is_text(source: ValueSource) -> bool:
    """Whether the bytes are one text behind its length.

    A length of 128 to 191 bytes is also UTF-8, of an Arabic letter: a value that is text as a whole is not a msgpack
    text then.
    """
    header = _text_header(source.data)
    if not header or not source.is_whole:
        return False
    content = ValueSource(source.data[header:])
    if not content.is_text or not any(character.isalpha() for character in content.text):
        return False
    return not source.is_text or (content.data[0] < 0x80 and content.data[:1].isalpha())


def _text_header(data: bytes) -> int:
    """Return the size of the header of a text that fills the value, or 0."""
    size = _TEXTS.get(data[0], 0)
    is_short = 0xA0 < data[0] < 0xC0
    count = data[0] & 0x1F if is_short else int.from_bytes(data[1 : 1 + size], "big")
    return 1 + size if (is_short or size) and len(data) == 1 + size + count > MIN_RECORD_BYTES - 1 else 0


def _sniff_msgpack(source: ValueSource, budget: Budget) -> float | None:
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


def _read_msgpack(source: ValueSource, budget: Budget) -> DecodingStep:
    return read_tree(MsgpackReader(source, budget), source)


MSGPACK: Final = Format("msgpack", _sniff_msgpack, _read_msgpack)


SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"
"""Tag 55799, which marks a value as CBOR."""

_CBOR_UNSIGNED, _NEGATIVE, _CBOR_BYTES, _TEXT, _LIST, _MAP, _TAG, _SIMPLE = range(8)
_INDEFINITE: Final = 31
_BREAK: Final = 0xFF
_CBOR_FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
_CBOR_CONSTANTS: Final = {20: "false", 21: "true", 22: "null", 23: "undefined"}
_TAGS: Final = {
    0: "date",
    1: "seconds since 1970",
    2: "integer",
    3: "negative integer",
    4: "decimal fraction",
    5: "big float",
    24: "CBOR",
    32: "URI",
    37: "UUID",
    258: "set",
}


class CborReader(Reader):
    """Reads one CBOR item; tags become the type name of the tagged item."""

    def read(self) -> None:
        type_name = ""
        while True:
            first = self.byte()
            major, info = first >> 5, first & 0x1F
            if major != _TAG:
                break
            self.budget.spend()
            tag = self._argument(info)
            type_name = _TAGS.get(tag, f"tag {tag}")
        if major in (_LIST, _MAP):
            self._items(ValueKind.LIST if major == _LIST else ValueKind.MAP, info, type_name)
        elif major in (_CBOR_BYTES, _TEXT):
            self._string(major, info, type_name)
        elif major == _SIMPLE:
            self._simple(info, type_name)
        else:
            number = self._argument(info)
            self.add_number(number if major == _CBOR_UNSIGNED else -1 - number, type_name)

    def _argument(self, info: int) -> int:
        if info < 24:
            return info
        if info > 27:
            raise Invalid("has a length of no known size")
        return self.integer(1 << (info - 24))

    def _items(self, kind: ValueKind, info: int, type_name: str) -> None:
        """Read a list or a map; an indefinite-length one ends with a break byte."""
        count = None if info == _INDEFINITE else self._argument(info)
        node = self.add(kind, "", type_name, total=count)
        self.enter(node)
        while len(node.children) != count:
            if count is None and self._at_break():
                break
            if kind is ValueKind.MAP:
                self.read()
                self.take_as_name()
            self.read()
        self.leave()

    def _at_break(self) -> bool:
        if self.byte() == _BREAK:
            return True
        self.at -= 1
        return False

    def _string(self, major: int, info: int, type_name: str) -> None:
        """Read bytes or text; a string of indefinite length becomes a list of its chunks."""
        if info != _INDEFINITE:
            self.add_string(self._argument(info), is_text=major == _TEXT, type_name=type_name)
            return
        node = self.add(ValueKind.LIST, "", type_name or "in pieces")
        self.enter(node)
        while not self._at_break():
            first = self.byte()
            if first >> 5 != major or first & 0x1F == _INDEFINITE:
                raise Invalid("has a string whose pieces are not of its kind")
            self.add_string(self._argument(first & 0x1F), is_text=major == _TEXT)
        self.leave()

    def _simple(self, info: int, type_name: str) -> None:
        layout = _CBOR_FLOATS.get(info)
        if layout is not None:
            self.add_number(struct.unpack(layout, self.take(struct.calcsize(layout)))[0], type_name)
        elif info in _CBOR_CONSTANTS:
            self.add(ValueKind.CONSTANT, _CBOR_CONSTANTS[info], type_name)
        elif info <= 24:
            number = self.byte() if info == 24 else info
            self.add(ValueKind.CONSTANT, f"simple({number})", type_name)
        else:
            raise Invalid("has a simple value of no known kind")


def _sniff_cbor(source: ValueSource, budget: Budget) -> float | None:
    """Recognise non-empty maps and lists, and tagged ones or tagged text; maps with text keys are likely."""
    if source.data.startswith(SELF_DESCRIBED):
        return CERTAIN
    major, is_empty = source.data[0] >> 5, not source.data[0] & 0x1F
    if major not in (_LIST, _MAP, _TAG) or (is_empty and major != _TAG):
        return None
    reader = CborReader(source, budget.probe())
    found = is_record(reader, source)
    if (
        major == _TAG
        and reader.root is not None
        and reader.root.kind not in (ValueKind.MAP, ValueKind.LIST, ValueKind.TEXT)
    ):
        return None
    return None if found is None else LIKELY if found else POSSIBLE


def _read_cbor(source: ValueSource, budget: Budget) -> DecodingStep:
    return read_tree(CborReader(source, budget), source)


CBOR: Final = Format("CBOR", _sniff_cbor, _read_cbor)


MAX_NAME_BYTES: Final = 1_024
_BSON_CONSTANTS: Final = {0x06: "undefined", 0x0A: "null", 0x7F: "max key", 0xFF: "min key"}
_SUBTYPES: Final = {1: "function", 3: "UUID", 4: "UUID", 5: "MD5", 6: "encrypted", 7: "column", 8: "sensitive"}


class BsonReader(Reader):
    """Reads one document."""

    def read(self) -> None:
        self._document(ValueKind.MAP)

    def _document(self, kind: ValueKind) -> None:
        start = self.at
        size = self.integer(4, "little", signed=True)
        if size < 5 or (self._open and start + size > self._stop):
            raise Invalid("has a document of an impossible length")
        outer, self._stop = self._stop, start + size
        node = self.add(kind)
        self.enter(node)
        while code := self.byte():
            name = self._name()
            self.name = None if kind is ValueKind.LIST else ValueNode(ValueKind.TEXT, name)
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
        elif code in _BSON_CONSTANTS:
            self.add(ValueKind.CONSTANT, _BSON_CONSTANTS[code])
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
        self.add(ValueKind.TEXT, self.take(12).hex(), "ObjectId")

    def _boolean(self) -> None:
        value = self.byte()
        if value > 1:
            raise Invalid("has a boolean that is neither 0 nor 1")
        self.add(ValueKind.CONSTANT, "true" if value else "false")

    def _date(self) -> None:
        self.add(ValueKind.TEXT, date_text(self.integer(8, "little", signed=True) / 1_000), "date")

    def _pattern(self) -> None:
        pattern, options = self._raw_name(), self._raw_name()
        self.add(ValueKind.TEXT, f"/{pattern}/{options}", "regular expression")

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
        node = self.add(ValueKind.LIST, "", "code with scope")
        self.enter(node)
        self._text("code")
        self._document(ValueKind.MAP)
        self.leave()

    def _timestamp(self) -> None:
        increment, seconds = self.integer(4, "little"), self.integer(4, "little")
        self.add(ValueKind.TEXT, f"{date_text(seconds)}, {increment}", "timestamp")


_ELEMENTS: Final[dict[int, Callable[[BsonReader], object]]] = {
    0x01: BsonReader._double,
    0x02: BsonReader._text,
    0x03: lambda reader: reader._document(ValueKind.MAP),
    0x04: lambda reader: reader._document(ValueKind.LIST),
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


def _sniff_bson(source: ValueSource, budget: Budget) -> float | None:
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


def _read_bson(source: ValueSource, budget: Budget) -> DecodingStep:
    return read_tree(BsonReader(source, budget), source)


BSON: Final = Format("BSON", _sniff_bson, _read_bson)
