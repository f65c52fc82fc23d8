"""What Java's ObjectOutputStream writes, as its structure: classes are named, no object is made.

The grammar is that of the Java Object Serialization Specification, chapter 6. Descriptions of classes and objects are
numbered as they appear, and referred to by these numbers; only descriptions are looked up here, an object that is
referred to is named by its number.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from rtui.values.formats import CERTAIN, Format
from rtui.values.java_classes import settle
from rtui.values.limits import Budget, Invalid
from rtui.values.source import Reader, Source, read_tree
from rtui.values.tree import Kind, Node, Step

MAGIC: Final = b"\xac\xed\x00\x05"
_FIRST_HANDLE: Final = 0x7E0000
_WRITES_ITSELF, _SERIALIZABLE, _EXTERNALIZABLE, _IN_BLOCKS = 1, 2, 4, 8
(
    _NULL,
    _REFERENCE,
    _CLASS_DESCRIPTION,
    _OBJECT,
    _STRING,
    _ARRAY,
    _CLASS,
    _BLOCK,
    _END_OF_BLOCKS,
    _RESET,
    _LONG_BLOCK,
) = range(0x70, 0x7B)
_EXCEPTION, _LONG_STRING, _PROXY, _ENUM = range(0x7B, 0x7F)
_NUMBERS: Final = {"B": ">b", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h"}
_PRIMITIVES: Final = frozenset("BCDFIJSZ")


@dataclass(slots=True)
class _Description:
    """A class as the stream describes it."""

    name: str
    flags: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list)
    """The type codes and names of its fields."""
    parent: _Description | None = None


class JavaReader(Reader):
    """Reads the contents of a stream up to the end of the bytes."""

    def __init__(self, source: Source, budget: Budget) -> None:
        super().__init__(source, budget, len(MAGIC))
        self._handles: list[_Description | None] = []
        """What was numbered so far: descriptions of classes, None for anything else."""

    def read(self) -> None:
        """Read all contents; more than one become a list."""
        node = self.add(Kind.LIST, "", "stream")
        self.enter(node)
        while self.at < self.end:
            self._content()
        self.leave()
        if len(node.children) == 1:
            self.root = node.children[0]

    def _content(self) -> None:
        """Read one thing: an object, a text, a block of bytes."""
        code = self.byte()
        match code:
            case 0x70:
                self.add(Kind.CONSTANT, "null")
            case 0x71:
                self._reference()
            case 0x72 | 0x7D:
                self.at -= 1
                found = self._description()
                self.add(Kind.NOTE, found.name if found else "null", "class description")
            case 0x73:
                self._object()
            case 0x74 | 0x7C:
                self._number_it()
                self._text(2 if code == _STRING else 8)
            case 0x75:
                self._array()
            case 0x76:
                found = self._description()
                self._number_it()
                self.add(Kind.NOTE, found.name if found else "null", "class")
            case 0x77 | 0x7A:
                self.add_string(self.integer(1 if code == _BLOCK else 4), is_text=False, type_name="block")
            case 0x79:
                self._handles.clear()
            case 0x7E:
                self._enum()
            case _:
                raise Invalid(f"has no contents that begin with {code:02x}")

    def _number_it(self, description: _Description | None = None) -> None:
        self.budget.spend()
        self._handles.append(description)

    def _reference(self) -> None:
        self.add(Kind.NOTE, f"the same as object {self.integer(4) - _FIRST_HANDLE}")

    def _utf(self) -> str:
        """Read a short text in Java's UTF-8, which may hold surrogates."""
        return self.take(self.integer(2)).decode("utf-8", "surrogateescape")

    def _text(self, size_bytes: int) -> None:
        self.add_string(self.integer(size_bytes))

    def _description(self) -> _Description | None:
        """Read the description of a class, or the number of an earlier one."""
        code = self.byte()
        if code == _NULL:
            return None
        if code == _REFERENCE:
            handle = self.integer(4) - _FIRST_HANDLE
            found = self._handles[handle] if 0 <= handle < len(self._handles) else None
            if found is None:
                raise Invalid("refers to a class that it never described")
            return found
        if code == _PROXY:
            return self._proxy()
        if code != _CLASS_DESCRIPTION:
            raise Invalid(f"has {code:02x} where the description of a class should be")
        found = _Description(self._utf())
        self.take(8)
        self._number_it(found)
        found.flags = self.byte()
        for _ in range(self.integer(2)):
            self.budget.spend()
            kind, name = chr(self.byte()), self._utf()
            if kind in "L[":
                self._skip_type()
            elif kind not in _PRIMITIVES:
                raise Invalid("has a field of no known type")
            found.fields.append((kind, name))
        self._annotation(found.name)
        found.parent = self._parent()
        return found

    def _parent(self) -> _Description | None:
        """Read the description of the class above; nesting counts as depth."""
        self.enter(Node(Kind.LIST))
        found = self._description()
        self._open.pop()
        return found

    def _proxy(self) -> _Description:
        names = []
        found = _Description("proxy", _SERIALIZABLE)
        self._number_it(found)
        for _ in range(self.integer(4)):
            self.budget.spend()
            names.append(self._utf())
        found.name = f"proxy of {', '.join(names)}"
        self._annotation(found.name)
        found.parent = self._parent()
        return found

    def _skip_type(self) -> None:
        """Read the class of a field, which is a text object of its own."""
        code = self.byte()
        if code == _STRING:
            self._number_it()
            self._utf()
        elif code == _REFERENCE:
            self.take(4)
        else:
            raise Invalid("has a field whose class is no text")

    def _annotation(self, name: str) -> None:
        """Read what a class has added to its description or object; shown only where there is something."""
        if self.byte() == _END_OF_BLOCKS:
            return
        self.at -= 1
        self.name = None
        node = self.add(Kind.LIST, "", f"written by {name}")
        self.enter(node)
        while self.byte() != _END_OF_BLOCKS:
            self.at -= 1
            self._content()
        self.leave()

    def _object(self) -> None:
        name, self.name = self.name, None
        holder = Node(Kind.MAP)
        self.enter(holder)
        description = self._description()
        self._open.pop()
        self._number_it()
        self.name = name
        node = self.add(Kind.MAP, "", description.name if description else "")
        self.enter(node)
        line = []
        while description is not None:
            line.append(description)
            description = description.parent
        for one in reversed(line):
            self._fields(one)
        self.leave()
        settle(node)

    def _fields(self, description: _Description) -> None:
        """Read the values of the fields that one class of an object has, and what that class has written itself."""
        if description.flags & _EXTERNALIZABLE and not description.flags & _IN_BLOCKS:
            raise Invalid(f"has an object whose notation only {description.name} knows")
        if description.flags & _SERIALIZABLE:
            for kind, name in description.fields:
                self.name = Node(Kind.TEXT, name)
                self._value(kind)
        if description.flags & (_WRITES_ITSELF | _EXTERNALIZABLE):
            self._annotation(description.name)

    def _value(self, kind: str) -> None:
        layout = _NUMBERS.get(kind)
        if layout is not None:
            self.add_number(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])
        elif kind == "Z":
            self.add(Kind.CONSTANT, "true" if self.byte() else "false")
        elif kind == "C":
            self.add(Kind.TEXT, chr(self.integer(2)), "char")
        else:
            self._content()

    def _array(self) -> None:
        name, self.name = self.name, None
        holder = Node(Kind.LIST)
        self.enter(holder)
        description = self._description()
        self._open.pop()
        self._number_it()
        self.name = name
        count = self.integer(4)
        kind = description.name[1:2] if description else ""
        if kind == "B":
            self.add_string(count, is_text=False)
            return
        node = self.add(Kind.LIST, "", description.name if description else "", total=count)
        self.enter(node)
        for _ in range(count):
            self._value(kind)
        self.leave()

    def _enum(self) -> None:
        name, self.name = self.name, None
        description = self._description()
        self._number_it()
        code = self.byte()
        self.name = name
        type_name = f"enum {description.name}" if description else "enum"
        if code == _REFERENCE:
            self.add(Kind.NOTE, f"the same as object {self.integer(4) - _FIRST_HANDLE}", type_name)
        elif code == _STRING:
            self._number_it()
            self.add_string(self.integer(2), type_name=type_name)
        else:
            raise Invalid("has an enum without a name")


def _sniff(source: Source, _budget: Budget) -> float | None:
    return CERTAIN if source.data.startswith(MAGIC) else None


def _read(source: Source, budget: Budget) -> Step:
    if not source.data.startswith(MAGIC):
        raise Invalid("begins with ac ed 00 05")
    return read_tree(JavaReader(source, budget), source)


FORMATS: Final = (Format("Java serialisation", _sniff, _read),)
"""The decoder of this module."""
