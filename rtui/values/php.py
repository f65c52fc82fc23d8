"""PHP's serialize() format as a structure, in which classes are only named, and the compression of PHP programs.

The grammar is that of php_var_unserializer.re in PHP's source: `a:1:{s:4:"name";i:7;}`.

LZF and LZ4 blocks have no mark. Both are sequences of literal bytes and of copies of earlier ones, so many bytes can be
read as either: they count only if the output is recognised, or Magento's mark names them. Its cache writes two letters,
a colon and 1f 8b before the compressed bytes (Cm_Cache_Backend_Redis), its sessions two letters between colons
(Cm_RedisSession). Before an LZ4 block stands its length in four bytes; phpredis puts a checksum before that.

igbinary has the structures of serialize(), each text stored once, behind a mark of four bytes. Texts and class names
are numbered as they appear and referred to by number, as are arrays and objects; a reference to an array or object is
shown as a note. See igbinary.c in the sources of igbinary.
"""

from __future__ import annotations

import re
import struct
from importlib.util import find_spec
from typing import Final

from rtui.values.source import (
    CERTAIN,
    LIKELY,
    POSSIBLE,
    Format,
    Reader,
    ValueSource,
    limited_step,
    read_tree,
    recognises,
)
from rtui.values.tree import Budget, Cut, DecodingStep, Invalid, MissingLibrary, ValueKind, ValueNode

_START: Final = re.compile(rb'a:\d+:\{|[OC]:\d+:"|s:\d+:"|E:\d+:"|i:-?\d+;$|b:[01];$|d:[-+.\dEINAF]+;$|N;$')
_VALUE: Final = rb"(?:[abdiOCsSE]:[-+\d]|b:[01];|N;)"
_SESSION: Final = re.compile(rb"(?:![^|!\x00-\x1f\x7f]{1,128}+\|)*+[^|!\x00-\x1f\x7f]{1,128}+\|" + _VALUE)
_BINARY_SESSION: Final = re.compile(rb"[\x01-\x1f]([A-Za-z_][\w.-]*)" + _VALUE)
_MAX_NUMBER: Final = 64
_MAX_NAME: Final = 256


class PhpReader(Reader):
    """Reads one serialized value."""

    def read(self) -> None:
        self._value()

    def _value(self) -> None:
        kind = self.take(1)
        match kind:
            case b"N":
                self._expect(b";")
                self.add(ValueKind.CONSTANT, "null")
            case b"b":
                self._expect(b":")
                self.add(ValueKind.CONSTANT, "true" if self._until(b";") == b"1" else "false")
            case b"i" | b"d" | b"r" | b"R":
                self._number(kind)
            case b"s" | b"S":
                self._string()
            case b"a":
                self._array()
            case b"O":
                self._object()
            case b"C":
                self._custom()
            case b"E":
                self._case()
            case _:
                raise Invalid(f"has no value that begins with {kind!r}")

    def _expect(self, text: bytes) -> None:
        found = self.data[self.at : self.at + len(text)]
        if found != text:
            if self.at + len(found) == self.end and text.startswith(found):
                raise Cut
            raise Invalid(f"has {found!r} where {text.decode()} should be")
        self.at += len(text)

    def _until(self, end: bytes) -> bytes:
        """Return the bytes before the delimiter `end`, and move the cursor behind it."""
        stop = self.data.find(end, self.at, self.at + _MAX_NUMBER)
        if stop < 0:
            if self.end - self.at < _MAX_NUMBER:
                raise Cut
            raise Invalid(f"has no {end.decode()} where one should be")
        found = self.data[self.at : stop]
        self.at = stop + 1
        return found

    def _count(self) -> int:
        digits = self._until(b":")
        if not digits.isdigit() or len(digits) > 12:
            raise Invalid(f"has {digits!r} where a length should be")
        return int(digits)

    def _number(self, kind: bytes) -> None:
        self._expect(b":")
        text = self._until(b";").decode("ascii", "replace")
        try:
            float(text)
        except ValueError:
            raise Invalid(f"has {text!r} where a number should be") from None
        if kind in (b"r", b"R"):
            self.add(ValueKind.NOTE, f"the same as value {text}")
        else:
            self.add_number(text)

    def _string(self) -> None:
        self._expect(b":")
        size = self._count()
        self._expect(b'"')
        self.add_string(size)
        self._expect(b'";')

    def _class(self) -> str:
        self._expect(b":")
        size = self._count()
        self._expect(b'"')
        name = self.take(size).decode("utf-8", "surrogateescape")
        self._expect(b'"')
        return name

    def _array(self) -> None:
        self._expect(b":")
        count = self._count()
        self._members(self.add(ValueKind.MAP, total=count), count)

    def _object(self) -> None:
        name = self._class()
        self._expect(b":")
        count = self._count()
        self._members(self.add(ValueKind.MAP, "", f"object {name}", total=count), count)

    def _members(self, node: ValueNode, count: int) -> None:
        """Read names and values; a PHP array with the indexes 0, 1, 2 … becomes a list."""
        self.enter(node)
        self._expect(b"{")
        for _ in range(count):
            if self.data[self.at : self.at + 1] not in (b"i", b"s", b"S", b""):
                raise Invalid("has a name that is neither a number nor text")
            self._value()
            self.take_as_name()
            self._value()
        self._expect(b"}")
        self.leave()
        as_list(node)

    def _custom(self) -> None:
        name = self._class()
        self._expect(b":")
        size = self._count()
        self._expect(b"{")
        self.add_string(size, type_name=f"object {name}")
        self._expect(b"}")

    def _case(self) -> None:
        """Read an enumeration case, `Class:Case`."""
        name = self._class()
        self._expect(b";")
        self.add(ValueKind.TEXT, name, "enum")


def as_list(node: ValueNode) -> None:
    """Turn a PHP array with the indexes 0, 1, 2 … into a list."""
    names = [child.name.value for child in node.children if child.name and child.name.kind is ValueKind.NUMBER]
    if names and not node.type_name and names == [str(at) for at in range(len(node.children))]:
        node.kind = ValueKind.LIST
        for child in node.children:
            child.name = None


class SessionReader(PhpReader):
    """Reads session variables as `name|value`: the format of session.serialize_handler = php."""

    def read(self) -> None:
        """Read all variables; an unset one has an exclamation mark before its name, and no value."""
        node = self.add(ValueKind.MAP)
        self.enter(node)
        while self.at < self.end:
            name, is_set = self._variable()
            self.name = ValueNode(ValueKind.TEXT, name.decode("utf-8", "surrogateescape"))
            if is_set:
                self._value()
            else:
                self.add(ValueKind.CONSTANT, "null", "not set")
        self.leave()

    def _variable(self) -> tuple[bytes, bool]:
        """Read a variable's name; return it, and whether a value follows."""
        stop = self.data.find(b"|", self.at, self.at + _MAX_NAME)
        if stop < 0:
            if self.end - self.at < _MAX_NAME:
                raise Cut
            raise Invalid("has no | behind a name")
        name = self.data[self.at : stop]
        self.at = stop + 1
        return name.removeprefix(b"!"), not name.startswith(b"!")


class BinarySessionReader(SessionReader):
    """Reads session variables whose name follows its length in a byte: the php_binary handler."""

    def _variable(self) -> tuple[bytes, bool]:
        size = self.byte()
        return self.take(size & 0x7F), size < 0x80


def _sniff_session(source: ValueSource, budget: Budget) -> float | None:
    """Recognise a session by its first name and value."""
    for reader, start in ((SessionReader, _SESSION), (BinarySessionReader, _BINARY_SESSION)):
        match = start.match(source.data)
        if match and (reader is SessionReader or source.data[0] == len(match[1])):
            return LIKELY if recognises(reader(source, budget.probe()), source) else None
    return None


def _read_session(source: ValueSource, budget: Budget) -> DecodingStep:
    reader = BinarySessionReader if source.data[:1] < b" " else SessionReader
    return read_tree(reader(source, budget), source)


def _sniff(source: ValueSource, budget: Budget) -> float | None:
    start = _START.match(source.data)
    if start is None or not recognises(PhpReader(source, budget.probe()), source):
        return None
    return CERTAIN if start[0][:1] in b"aOCE" else LIKELY


def _read(source: ValueSource, budget: Budget) -> DecodingStep:
    return read_tree(PhpReader(source, budget), source)


FORMATS: Final = (Format("PHP serialize", _sniff, _read), Format("PHP session", _sniff_session, _read_session))


_MAGENTO: Final = re.compile(rb"(?::(?:gz|sn|lz|l4|zs):|(?:gz|zc|sn|lz|l4|zs):(?=\x1f\x8b))(?:\x1f\x8b(?!\x08))?")
_MIN_BYTES: Final = 8
_SHORT, _LONG = 32, 7
_MAX_RATIO: Final = 255
"""The largest ratio of output to input of an LZ4 block."""


def _sniff_magento(source: ValueSource, _budget: Budget) -> float | None:
    return CERTAIN if not source.is_text and _MAGENTO.match(source.data) else None


def _read_magento(source: ValueSource, _budget: Budget) -> DecodingStep:
    mark = _MAGENTO.match(source.data)
    if mark is None:
        raise Invalid("begins with two letters and colons, as gz:")
    return DecodingStep(source.data[mark.end() :], truncated=not source.is_whole)


def _lzf(data: bytes, limit: int, budget: Budget, *, is_whole: bool) -> bytearray:
    """Decompress LZF up to about `limit` bytes; raises Invalid for a copy from before the start, or an early end."""
    out = bytearray()
    at = steps = 0
    while at < len(data) and len(out) <= limit:
        steps += 1
        if not steps % 1024:
            budget.check_time()
        control, at = data[at], at + 1
        if control < _SHORT:
            out += data[at : at + control + 1]
            at += control + 1
            continue
        length = (control >> 5) + 2
        if length == _LONG + 2:
            length, at = length + int.from_bytes(data[at : at + 1]), at + 1
        distance = ((control & 0x1F) << 8 | int.from_bytes(data[at : at + 1])) + 1
        at += 1
        if at > len(data):
            break
        if distance > len(out):
            raise Invalid("repeats bytes that never were")
        pattern = bytes(out[-distance:][:length])
        out += (pattern * -(-length // len(pattern)))[:length]
    if at > len(data) and is_whole:
        raise Invalid("ends within an element")
    return out


def _sniff_lzf(source: ValueSource, _budget: Budget) -> float | None:
    """Accept binary bytes that may begin with a run of literals, of which there are 32 at most."""
    return POSSIBLE if len(source.data) >= _MIN_BYTES and source.data[0] < _SHORT and not source.is_text else None


def _read_lzf(source: ValueSource, budget: Budget) -> DecodingStep:
    limit = budget.limits.output_bytes
    return limited_step("LZF", _lzf(source.data, limit, budget, is_whole=source.is_whole), source, budget)


def _declared(data: bytes) -> tuple[int, int] | None:
    """Return the declared length of a block, and the offset of the block; None if no plausible length is found."""
    for at in (0, 1):
        size = int.from_bytes(data[at : at + 4], "little")
        if 0 < size <= _MAX_RATIO * len(data):
            return size, at + 4
    return None


def _sniff_block(source: ValueSource, _budget: Budget) -> float | None:
    may_be = source.is_whole and len(source.data) >= _MIN_BYTES and not source.is_text and find_spec("lz4") is not None
    return POSSIBLE if may_be and _declared(source.data) is not None else None


def _read_block(source: ValueSource, budget: Budget) -> DecodingStep:
    """Decompress a complete block with the library; raises Invalid if it does not give the declared length."""
    declared, limit = _declared(source.data), budget.limits.output_bytes
    if declared is None:
        raise Invalid("begins with the length of its contents")
    size, start = declared
    if size > limit:
        raise Invalid(f"gives at most {limit:,} bytes, as far as rtui reads it, and declares {size:,}")
    try:
        from lz4 import block  # noqa: PLC0415
    except ImportError:
        raise MissingLibrary from None
    try:
        return DecodingStep(block.decompress(source.data[start:], uncompressed_size=size))
    except block.LZ4BlockError as error:
        raise Invalid(f"gives the {size:,} bytes that it declares: {error}") from None


COMPRESSED: Final = (
    Format("Magento", _sniff_magento, _read_magento),
    Format("LZ4 block", _sniff_block, _read_block, needs_proof=True),
    Format("LZF", _sniff_lzf, _read_lzf, needs_proof=True),
)


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

    def __init__(self, source: ValueSource, budget: Budget) -> None:
        super().__init__(source, budget, len(MARKS[0]))
        self._texts: list[bytes] = []

    def read(self) -> None:
        kind = self.byte()
        if kind == _REFERENCE:
            kind = self.byte()
        if kind in _ARRAYS:
            self._members(self.integer(_ARRAYS[kind]), self.add(ValueKind.MAP))
        elif kind in _CLASSES or kind in _CLASS_IDS:
            self._object(kind)
        elif kind in _SAME:
            self.add(ValueKind.NOTE, f"the same as value {self.integer(_SAME[kind])}")
        elif kind in _CONSTANTS:
            self.add(ValueKind.CONSTANT, _CONSTANTS[kind])
        else:
            self._name_or_scalar(kind)

    def _name_or_scalar(self, kind: int) -> None:
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
            self.add(ValueKind.TEXT, text.decode(), type_name)
        except UnicodeDecodeError:
            self.add(ValueKind.BYTES, text, type_name)

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
            self._members(self.integer(_ARRAYS[inner]), self.add(ValueKind.MAP, "", type_name))
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

    def _members(self, count: int, node: ValueNode) -> None:
        node.total = count
        self.enter(node)
        for _ in range(count):
            self._name_or_scalar(self.byte())
            self.take_as_name()
            self.read()
        self.leave()
        as_list(node)


def _sniff_igbinary(source: ValueSource, budget: Budget) -> float | None:
    """Recognise the mark with one value behind it."""
    if not source.data.startswith(MARKS) or len(source.data) <= len(MARKS[0]):
        return None
    reader = IgbinaryReader(source, budget.probe())
    is_there = recognises(reader, source) and reader.root is not None
    return CERTAIN if is_there else None


def _read_igbinary(source: ValueSource, budget: Budget) -> DecodingStep:
    if not source.data.startswith(MARKS):
        raise Invalid("begins with 00 00 00 and 01 or 02")
    return read_tree(IgbinaryReader(source, budget), source)


IGBINARY: Final = Format("igbinary", _sniff_igbinary, _read_igbinary)
