"""CBOR (RFC 8949), recognised where a map or a list takes up the bytes from the first to the last, or by its mark."""

from __future__ import annotations

import struct
from typing import Final

from rtui.values.limits import Budget, Invalid
from rtui.values.source import CERTAIN, LIKELY, POSSIBLE, Format, Reader, Source, is_record, read_tree
from rtui.values.tree import Kind, Step

SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"
"""Tag 55799, which marks a value as CBOR."""

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _SIMPLE = range(8)
_INDEFINITE: Final = 31
_BREAK: Final = 0xFF
_FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
_CONSTANTS: Final = {20: "false", 21: "true", 22: "null", 23: "undefined"}
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
        """Read the item at the cursor."""
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
            self._items(Kind.LIST if major == _LIST else Kind.MAP, info, type_name)
        elif major in (_BYTES, _TEXT):
            self._string(major, info, type_name)
        elif major == _SIMPLE:
            self._simple(info, type_name)
        else:
            number = self._argument(info)
            self.add_number(number if major == _UNSIGNED else -1 - number, type_name)

    def _argument(self, info: int) -> int:
        if info < 24:
            return info
        if info > 27:
            raise Invalid("has a length of no known size")
        return self.integer(1 << (info - 24))

    def _items(self, kind: Kind, info: int, type_name: str) -> None:
        """Read a list or a map; an indefinite-length one ends with a break byte."""
        count = None if info == _INDEFINITE else self._argument(info)
        node = self.add(kind, "", type_name, total=count)
        self.enter(node)
        while len(node.children) != count:
            if count is None and self._at_break():
                break
            if kind is Kind.MAP:
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
        node = self.add(Kind.LIST, "", type_name or "in pieces")
        self.enter(node)
        while not self._at_break():
            first = self.byte()
            if first >> 5 != major or first & 0x1F == _INDEFINITE:
                raise Invalid("has a string whose pieces are not of its kind")
            self.add_string(self._argument(first & 0x1F), is_text=major == _TEXT)
        self.leave()

    def _simple(self, info: int, type_name: str) -> None:
        layout = _FLOATS.get(info)
        if layout is not None:
            self.add_number(struct.unpack(layout, self.take(struct.calcsize(layout)))[0], type_name)
        elif info in _CONSTANTS:
            self.add(Kind.CONSTANT, _CONSTANTS[info], type_name)
        elif info <= 24:
            number = self.byte() if info == 24 else info
            self.add(Kind.CONSTANT, f"simple({number})", type_name)
        else:
            raise Invalid("has a simple value of no known kind")


def _sniff(source: Source, budget: Budget) -> float | None:
    """Recognise non-empty maps and lists, and tagged ones or tagged text; maps with text keys are likely."""
    if source.data.startswith(SELF_DESCRIBED):
        return CERTAIN
    major, is_empty = source.data[0] >> 5, not source.data[0] & 0x1F
    if major not in (_LIST, _MAP, _TAG) or (is_empty and major != _TAG):
        return None
    reader = CborReader(source, budget.probe())
    found = is_record(reader, source)
    if major == _TAG and reader.root is not None and reader.root.kind not in (Kind.MAP, Kind.LIST, Kind.TEXT):
        return None
    return None if found is None else LIKELY if found else POSSIBLE


def _read(source: Source, budget: Budget) -> Step:
    return read_tree(CborReader(source, budget), source)


FORMATS: Final = (Format("CBOR", _sniff, _read),)
