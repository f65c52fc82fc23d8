"""Protocol Buffers without their schema: numbered fields with the types that their wire types allow (protobuf.dev).

A field with a length may be text, bytes or a message. It is shown as text if it is text without control characters, as
a message if it parses as one from first to last byte, else as bytes. No library shows messages without their schema
within bounds: Google's needs the schema, others recurse without a limit.

Many short byte strings parse as a message by chance: 2 % of random ones of 8 to 20 bytes, 0.2 % of 20 to 40. So a
message is recognised if it has several fields in ascending order, as nearly all writers write them, or in any order if
it is longer; a single field, or the beginning of a message, if it contains text or further messages. Bytes that parse
but are not recognised are still offered.
"""

from __future__ import annotations

import struct
from typing import Final

from rtui.values.source import OFFERED, POSSIBLE, Format, Reader, ValueSource, read_tree, recognises
from rtui.values.tree import Budget, Cut, DecodingStep, Invalid, ValueKind, ValueNode

_VARINT, _FIXED64, _LENGTH, _GROUP, _GROUP_END, _FIXED32 = range(6)
MAX_FIELD: Final = (1 << 29) - 1
MIN_BYTES: Final = 8
MAX_LIKELY_FIELD: Final = 1_000
ANY_ORDER_BYTES: Final = 20
"""From this length on fields may be in any order."""

_MIN_TEXT: Final = 3
_FIRST_FIELD: Final = b"\n"
"""The tag of a text field 1: text that begins with a line feed may be such a message."""


class ProtobufReader(Reader):
    """Reads the fields of one message up to the end of the bytes."""

    def read(self) -> None:
        """Read a message that extends to the end."""
        node = self.add(ValueKind.MAP)
        self.enter(node)
        while self.at < self.end:
            self._field()
        self.leave()

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > 63:
                raise Invalid("has a number of more than ten bytes")

    def _field(self) -> None:
        tag = self._varint()
        number, wire = tag >> 3, tag & 7
        if not 0 < number <= MAX_FIELD:
            raise Invalid(f"has no field {number}")
        self.name = ValueNode(ValueKind.NUMBER, str(number))
        if wire == _VARINT:
            self.add_number(self._varint() & ((1 << 64) - 1), "varint")
        elif wire == _FIXED64:
            raw = self.take(8)
            self.add_number(int.from_bytes(raw, "little"), f"fixed64, as double {_short(struct.unpack('<d', raw)[0])}")
        elif wire == _FIXED32:
            raw = self.take(4)
            self.add_number(int.from_bytes(raw, "little"), f"fixed32, as float {_short(struct.unpack('<f', raw)[0])}")
        elif wire == _LENGTH:
            self._length_delimited(self._varint())
        elif wire == _GROUP:
            self._group(number)
        else:
            raise Invalid(f"has no wire type {wire}" if wire > _FIXED32 else "has the end of a group that never began")

    def _group(self, number: int) -> None:
        node = self.add(ValueKind.MAP, "", "group")
        self.enter(node)
        while True:
            before = self.at
            tag = self._varint()
            if tag & 7 == _GROUP_END:
                if tag >> 3 != number:
                    raise Invalid("has the end of another group")
                break
            self.at = before
            self._field()
        self.leave()

    def _length_delimited(self, size: int) -> None:
        """Read text, a message or bytes; a cut field as far as it goes."""
        stop = self.at + size
        is_cut = stop > self.end
        piece = self.data[self.at : stop]
        if _is_words(piece) or not piece:
            self.add_string(size)
        elif not self._message(min(stop, self.end), is_cut=is_cut):
            self.add_string(size, is_text=False)

    def _message(self, stop: int, *, is_cut: bool) -> bool:
        """Try to read a message that ends at `stop`; undo it and return False if the bytes are not one."""
        start, outer, name, depth = self.at, self.end, self.name, len(self._open)
        self.end = stop
        siblings = self._open[-1].children
        count = len(siblings)
        try:
            self.read()
        except (Cut, Invalid) as error:
            if is_cut and isinstance(error, Cut):
                raise
            del siblings[count:], self._open[depth:]
            self.at, self.name = start, name
            return False
        finally:
            self.end = outer
        if is_cut:
            siblings[-1].is_cut = True
            raise Cut
        return True


def _short(number: float) -> str:
    return f"{number:.6g}"


def _is_words(piece: bytes) -> bool:
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\r\n\t" for character in text)


def _sniff(source: ValueSource, budget: Budget) -> float | None:
    if len(source.data) < MIN_BYTES or (source.is_text and not source.data.startswith(_FIRST_FIELD)):
        return None
    reader = ProtobufReader(source, budget.probe())
    if not recognises(reader, source) or reader.root is None:
        return None
    is_likely = _is_credible(reader.root) or (source.is_whole and _has_likely_fields(reader.root, len(source.data)))
    return POSSIBLE if is_likely and not source.is_text else OFFERED if source.is_whole else None


def _numbers(message: ValueNode) -> list[int]:
    return [int(str(field.name.value)) for field in message.children if field.name is not None]


def _has_likely_fields(message: ValueNode, size_bytes: int) -> bool:
    """Whether a complete message has several fields with usual numbers, in a likely order."""
    numbers = _numbers(message)
    is_likely = len(numbers) > 1 and max(numbers) <= MAX_LIKELY_FIELD
    return is_likely and (size_bytes >= ANY_ORDER_BYTES or numbers == sorted(numbers))


def _is_credible(message: ValueNode) -> bool:
    """Whether a message has ascending fields, at least one of them text or a credible message."""
    numbers = _numbers(message)
    if not numbers or max(numbers) > MAX_LIKELY_FIELD or numbers != sorted(numbers):
        return False
    return any(
        (field.kind is ValueKind.TEXT and len(field.value) >= _MIN_TEXT)
        or (field.kind is ValueKind.MAP and field.type_name != "group" and _is_credible(field))
        for field in message.children
    )


def _read(source: ValueSource, budget: Budget) -> DecodingStep:
    return read_tree(ProtobufReader(source, budget), source)


FORMATS: Final = (Format("protobuf", _sniff, _read),)
