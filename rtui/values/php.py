"""PHP's serialize() format as a structure: classes are named, no object is created.

The grammar is that of php_var_unserializer.re in PHP's source: `a:1:{s:4:"name";i:7;}`.
"""

from __future__ import annotations

import re
from typing import Final

from rtui.values.limits import Budget, Cut, Invalid
from rtui.values.source import CERTAIN, LIKELY, Format, Reader, Source, read_tree, recognises
from rtui.values.tree import Kind, Node, Step

_START: Final = re.compile(rb'a:\d+:\{|[OC]:\d+:"|s:\d+:"|E:\d+:"|i:-?\d+;$|b:[01];$|d:[-+.\dEINAF]+;$|N;$')
_VALUE: Final = rb"(?:[abdiOCsSE]:[-+\d]|b:[01];|N;)"
_SESSION: Final = re.compile(rb"(?:![^|!\x00-\x1f\x7f]{1,128}+\|)*+[^|!\x00-\x1f\x7f]{1,128}+\|" + _VALUE)
_BINARY_SESSION: Final = re.compile(rb"[\x01-\x1f]([A-Za-z_][\w.-]*)" + _VALUE)
_MAX_NUMBER: Final = 64
_MAX_NAME: Final = 256


class PhpReader(Reader):
    """Reads one serialized value."""

    def read(self) -> None:
        """Read the value at the cursor."""
        self._value()

    def _value(self) -> None:
        kind = self.take(1)
        match kind:
            case b"N":
                self._expect(b";")
                self.add(Kind.CONSTANT, "null")
            case b"b":
                self._expect(b":")
                self.add(Kind.CONSTANT, "true" if self._until(b";") == b"1" else "false")
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
        """Read a length and the colon behind it."""
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
            self.add(Kind.NOTE, f"the same as value {text}")
        else:
            self.add_number(text)

    def _string(self) -> None:
        self._expect(b":")
        size = self._count()
        self._expect(b'"')
        self.add_string(size)
        self._expect(b'";')

    def _class(self) -> str:
        """Read a class name with its length."""
        self._expect(b":")
        size = self._count()
        self._expect(b'"')
        name = self.take(size).decode("utf-8", "surrogateescape")
        self._expect(b'"')
        return name

    def _array(self) -> None:
        self._expect(b":")
        count = self._count()
        self._members(self.add(Kind.MAP, total=count), count)

    def _object(self) -> None:
        name = self._class()
        self._expect(b":")
        count = self._count()
        self._members(self.add(Kind.MAP, "", f"object {name}", total=count), count)

    def _members(self, node: Node, count: int) -> None:
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
        """Read an object in the class's own format."""
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
        self.add(Kind.TEXT, name, "enum")


def as_list(node: Node) -> None:
    """Turn a PHP array with the indexes 0, 1, 2 … into a list."""
    names = [child.name.value for child in node.children if child.name and child.name.kind is Kind.NUMBER]
    if names and not node.type_name and names == [str(at) for at in range(len(node.children))]:
        node.kind = Kind.LIST
        for child in node.children:
            child.name = None


class SessionReader(PhpReader):
    """Reads session variables as `name|value`: the format of session.serialize_handler = php."""

    def read(self) -> None:
        """Read all variables; an unset one has an exclamation mark before its name, and no value."""
        node = self.add(Kind.MAP)
        self.enter(node)
        while self.at < self.end:
            name, is_set = self._variable()
            self.name = Node(Kind.TEXT, name.decode("utf-8", "surrogateescape"))
            if is_set:
                self._value()
            else:
                self.add(Kind.CONSTANT, "null", "not set")
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


def _sniff_session(source: Source, budget: Budget) -> float | None:
    """Recognise a session by its first name and value."""
    for reader, start in ((SessionReader, _SESSION), (BinarySessionReader, _BINARY_SESSION)):
        match = start.match(source.data)
        if match and (reader is SessionReader or source.data[0] == len(match[1])):
            return LIKELY if recognises(reader(source, budget.probe()), source) else None
    return None


def _read_session(source: Source, budget: Budget) -> Step:
    reader = BinarySessionReader if source.data[:1] < b" " else SessionReader
    return read_tree(reader(source, budget), source)


def _sniff(source: Source, budget: Budget) -> float | None:
    start = _START.match(source.data)
    if start is None or not recognises(PhpReader(source, budget.probe()), source):
        return None
    return CERTAIN if start[0][:1] in b"aOCE" else LIKELY


def _read(source: Source, budget: Budget) -> Step:
    return read_tree(PhpReader(source, budget), source)


FORMATS: Final = (Format("PHP serialize", _sniff, _read), Format("PHP session", _sniff_session, _read_session))
