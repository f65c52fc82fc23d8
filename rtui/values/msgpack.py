"""MessagePack (github.com/msgpack/msgpack/blob/master/spec.md).

It is recognised where a map or a list, of which something is in it, takes up the bytes from the first to the last.
"""

from __future__ import annotations

import struct
from typing import Final, Literal

from rtui.values.formats import LIKELY, POSSIBLE, Format
from rtui.values.limits import Budget, Invalid
from rtui.values.plain import date_text
from rtui.values.source import Reader, Source, is_record, read_tree
from rtui.values.tree import Kind, Step

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


class MsgpackReader(Reader):
    """Reads one MessagePack value."""

    def read(self) -> None:
        """Read the value at the cursor."""
        tag = self.byte()
        if tag < 0x80 or tag >= 0xE0:
            self.add_number(tag if tag < 0x80 else tag - 256)
        elif tag < 0xA0:
            self._items(Kind.MAP if tag < 0x90 else Kind.LIST, tag & 0x0F)
        elif tag < 0xC0:
            self.add_string(tag & 0x1F)
        else:
            self._tagged(tag)

    def _tagged(self, tag: int) -> None:
        """Read a value whose length, or which itself, follows its first byte."""
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
        """Read an extension: a timestamp as a date, any other as bytes with its number."""
        code = self.integer(1, signed=True)
        if code != _TIMESTAMP or size not in (4, 8, 12):
            self.add_string(size, is_text=False, type_name=f"extension {code}")
            return
        nanoseconds = self.integer(4) if size == 12 else 0
        number = self.integer(min(size, 8), signed=size == 12)
        if size == 8:
            nanoseconds, number = number >> 34, number & ((1 << 34) - 1)
        self.add(Kind.TEXT, date_text(number + nanoseconds / 1e9), "timestamp")


def _sniff(source: Source, budget: Budget) -> float | None:
    """Recognise maps and lists; a map whose names are all text is likely, anything else only possible."""
    head = source.data[0]
    if not (0x80 < head < 0xA0 and head != 0x90) and head not in (*_LISTS, *_MAPS):
        return None
    reader = MsgpackReader(source, budget.probe())
    found = is_record(reader, source)
    return None if found is None else LIKELY if found else POSSIBLE


def _read(source: Source, budget: Budget) -> Step:
    return read_tree(MsgpackReader(source, budget), source)


FORMATS: Final = (Format("msgpack", _sniff, _read),)
"""The decoder of this module."""
