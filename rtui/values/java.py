"""Java's ObjectOutputStream format as a structure: classes are named, no object is created.

The grammar is that of the Java Object Serialization Specification, chapter 6. Class descriptions and objects get
handles as they appear, and are referred to by handle. Only descriptions are looked up here; a reference to an object is
shown as a note. Objects of some classes of Java's own library become plain values: boxed numbers, dates, collections.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from rtui.values.plain import date_text
from rtui.values.source import CERTAIN, Format, Reader, ValueSource, read_tree
from rtui.values.tree import Budget, DecodingStep, Invalid, ValueKind, ValueNode

MAGIC: Final = b"\xac\xed\x00\x05"
_FIRST_HANDLE: Final = 0x7E0000
_WRITE_METHOD, _SERIALIZABLE, _EXTERNALIZABLE, _BLOCK_DATA = 1, 2, 4, 8
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
    parent: _Description | None = None


class JavaReader(Reader):
    """Reads the contents of a stream up to the end of the bytes."""

    def __init__(self, source: ValueSource, budget: Budget) -> None:
        super().__init__(source, budget, len(MAGIC))
        self._handles: list[_Description | None] = []
        """The handles assigned so far: class descriptions, None for all else."""

    def read(self) -> None:
        """Read all contents; several become a list."""
        node = self.add(ValueKind.LIST, "", "stream")
        self.enter(node)
        while self.at < self.end:
            self._content()
        self.leave()
        if len(node.children) == 1:
            self.root = node.children[0]

    def _content(self) -> None:
        """Read one content element: an object, a string, a block of bytes."""
        code = self.byte()
        match code:
            case 0x70:
                self.add(ValueKind.CONSTANT, "null")
            case 0x71:
                self._reference()
            case 0x72 | 0x7D:
                self.at -= 1
                found = self._description()
                self.add(ValueKind.NOTE, found.name if found else "null", "class description")
            case 0x73:
                self._object()
            case 0x74 | 0x7C:
                self._add_handle()
                self._text(2 if code == _STRING else 8)
            case 0x75:
                self._array()
            case 0x76:
                found = self._description()
                self._add_handle()
                self.add(ValueKind.NOTE, found.name if found else "null", "class")
            case 0x77 | 0x7A:
                self.add_string(self.integer(1 if code == _BLOCK else 4), is_text=False, type_name="block")
            case 0x79:
                self._handles.clear()
            case 0x7E:
                self._enum()
            case _:
                raise Invalid(f"has no contents that begin with {code:02x}")

    def _add_handle(self, description: _Description | None = None) -> None:
        self.budget.spend()
        self._handles.append(description)

    def _reference(self) -> None:
        self.add(ValueKind.NOTE, f"the same as object {self.integer(4) - _FIRST_HANDLE}")

    def _utf(self) -> str:
        """Read a string with a two-byte length in Java's modified UTF-8, which may hold surrogates."""
        return self.take(self.integer(2)).decode("utf-8", "surrogateescape")

    def _text(self, size_bytes: int) -> None:
        self.add_string(self.integer(size_bytes))

    def _description(self) -> _Description | None:
        """Read a class description, or the handle of an earlier one."""
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
        self._add_handle(found)
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
        """Read the description of the superclass; nesting counts as depth."""
        self.enter(ValueNode(ValueKind.LIST))
        found = self._description()
        self._open.pop()
        return found

    def _proxy(self) -> _Description:
        names = []
        found = _Description("proxy", _SERIALIZABLE)
        self._add_handle(found)
        for _ in range(self.integer(4)):
            self.budget.spend()
            names.append(self._utf())
        found.name = f"proxy of {', '.join(names)}"
        self._annotation(found.name)
        found.parent = self._parent()
        return found

    def _skip_type(self) -> None:
        """Read the class of a field, which is a string object with a handle of its own."""
        code = self.byte()
        if code == _STRING:
            self._add_handle()
            self._utf()
        elif code == _REFERENCE:
            self.take(4)
        else:
            raise Invalid("has a field whose class is not a text")

    def _annotation(self, name: str) -> None:
        """Read the data that a class has written itself behind its description or fields; shown unless empty."""
        if self.byte() == _END_OF_BLOCKS:
            return
        self.at -= 1
        self.name = None
        node = self.add(ValueKind.LIST, "", f"written by {name}")
        self.enter(node)
        while self.byte() != _END_OF_BLOCKS:
            self.at -= 1
            self._content()
        self.leave()

    def _object(self) -> None:
        name, self.name = self.name, None
        holder = ValueNode(ValueKind.MAP)
        self.enter(holder)
        description = self._description()
        self._open.pop()
        self._add_handle()
        self.name = name
        node = self.add(ValueKind.MAP, "", description.name if description else "")
        self.enter(node)
        line = []
        while description is not None:
            line.append(description)
            description = description.parent
        for ancestor in reversed(line):
            self._fields(ancestor)
        self.leave()
        _simplify(node)

    def _fields(self, description: _Description) -> None:
        """Read the fields that one class of an object declares, and the data that the class has written itself."""
        if description.flags & _EXTERNALIZABLE and not description.flags & _BLOCK_DATA:
            raise Invalid(f"has an object whose notation only {description.name} knows")
        if description.flags & _SERIALIZABLE:
            for kind, name in description.fields:
                self.name = ValueNode(ValueKind.TEXT, name)
                self._value(kind)
        if description.flags & (_WRITE_METHOD | _EXTERNALIZABLE):
            self._annotation(description.name)

    def _value(self, kind: str) -> None:
        layout = _NUMBERS.get(kind)
        if layout is not None:
            self.add_number(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])
        elif kind == "Z":
            self.add(ValueKind.CONSTANT, "true" if self.byte() else "false")
        elif kind == "C":
            self.add(ValueKind.TEXT, chr(self.integer(2)), "char")
        else:
            self._content()

    def _array(self) -> None:
        name, self.name = self.name, None
        holder = ValueNode(ValueKind.LIST)
        self.enter(holder)
        description = self._description()
        self._open.pop()
        self._add_handle()
        self.name = name
        count = self.integer(4)
        kind = description.name[1:2] if description else ""
        if kind == "B":
            self.add_string(count, is_text=False)
            return
        node = self.add(ValueKind.LIST, "", description.name if description else "", total=count)
        self.enter(node)
        for _ in range(count):
            self._value(kind)
        self.leave()

    def _enum(self) -> None:
        name, self.name = self.name, None
        description = self._description()
        self._add_handle()
        code = self.byte()
        self.name = name
        type_name = f"enum {description.name}" if description else "enum"
        if code == _REFERENCE:
            self.add(ValueKind.NOTE, f"the same as object {self.integer(4) - _FIRST_HANDLE}", type_name)
        elif code == _STRING:
            self._add_handle()
            self.add_string(self.integer(2), type_name=type_name)
        else:
            raise Invalid("has an enum without a name")


def _sniff(source: ValueSource, _budget: Budget) -> float | None:
    return CERTAIN if source.data.startswith(MAGIC) else None


def _read(source: ValueSource, budget: Budget) -> DecodingStep:
    if not source.data.startswith(MAGIC):
        raise Invalid("begins with ac ed 00 05")
    return read_tree(JavaReader(source, budget), source)


FORMATS: Final = (Format("Java serialisation", _sniff, _read),)


_BOXED: Final = frozenset(
    f"java.lang.{name}" for name in ("Long", "Integer", "Short", "Byte", "Double", "Float", "Boolean", "Character")
)
_WRITTEN: Final = "written by "
_LISTS: Final = frozenset(
    f"java.util.{name}" for name in ("ArrayList", "LinkedList", "HashSet", "ArrayDeque", "Vector", "PriorityQueue")
)
_MAPS: Final = frozenset(f"java.util.{name}" for name in ("HashMap", "TreeMap", "Hashtable", "IdentityHashMap"))
_MAX_MAGNITUDE: Final = 64
_INSTANT, _DATE, _DATE_TIME = 2, 3, 5


def _simplify(node: ValueNode) -> None:
    """Replace a completely read object by the plain value it stands for, if its class is known."""
    fields = {str(child.name.value): child for child in node.children if child.name is not None}
    written = {child.type_name.removeprefix(_WRITTEN): child for child in node.children if child.name is None}
    try:
        if node.type_name in _BOXED:
            _become(node, fields["value"].kind, fields["value"].value)
        elif node.type_name == "java.util.UUID":
            high, low = (int(str(fields[name].value)) & (1 << 64) - 1 for name in ("mostSigBits", "leastSigBits"))
            _become(node, ValueKind.TEXT, str(UUID(int=high << 64 | low)))
        elif node.type_name == "java.math.BigInteger":
            _become(node, ValueKind.NUMBER, str(_big(fields)))
        elif node.type_name == "java.math.BigDecimal":
            _become(node, ValueKind.NUMBER, _decimal(str(fields["intVal"].value), int(str(fields["scale"].value))))
        elif "java.util.Date" in written:
            (milliseconds,) = struct.unpack(">q", written["java.util.Date"].children[0].raw)
            _become(node, ValueKind.TEXT, date_text(milliseconds / 1_000))
        elif node.type_name == "java.time.Ser":
            name, text = _time(written["java.time.Ser"].children[0].raw)
            _become(node, ValueKind.TEXT, text)
            node.type_name = name
        else:
            _simplify_collection(node, written)
    except (KeyError, ValueError, IndexError, struct.error):
        return


def _become(node: ValueNode, kind: ValueKind, value: str | bytes) -> None:
    node.kind, node.value, node.children, node.total = kind, value, [], None


def _simplify_collection(node: ValueNode, written: dict[str, ValueNode]) -> None:
    """Show the elements or members that a collection has written behind its header block."""
    for name, inside in written.items():
        if name in _LISTS:
            kept = (
                inside.children
                if not inside.children or inside.children[0].type_name != "block"
                else inside.children[1:]
            )
            node.kind, node.children = ValueKind.LIST, kept
        elif name in _MAPS and len(inside.children) % 2:
            members = []
            for key, value in zip(inside.children[1::2], inside.children[2::2], strict=True):
                value.name = key
                members.append(value)
            node.children = members


def _big(fields: dict[str, ValueNode]) -> int:
    magnitude = fields["magnitude"].raw
    if len(magnitude) > _MAX_MAGNITUDE:
        raise ValueError
    return int(str(fields["signum"].value)) * int.from_bytes(magnitude)


def _decimal(digits: str, scale: int) -> str:
    """Return an integer with its decimal point moved left by `scale` digits."""
    number = int(digits)
    if not 0 <= scale <= _MAX_MAGNITUDE:
        return f"{number}E{-scale}"
    whole, part = divmod(abs(number), 10**scale)
    return f"{'-' if number < 0 else ''}{whole}" + (f".{part:0{scale}}" if scale else "")


def _time(data: bytes) -> tuple[str, str]:
    """Return class name and text of java.time's compact form of an instant, a date, or a date with time."""
    if data[0] == _INSTANT:
        seconds, nanoseconds = struct.unpack(">qi", data[1:])
        return "java.time.Instant", date_text(seconds + nanoseconds / 1e9)
    if data[0] not in (_DATE, _DATE_TIME):
        raise ValueError
    year, month, day = struct.unpack_from(">ibb", data, 1)
    date = f"{year:04}-{month:02}-{day:02}"
    return (
        ("java.time.LocalDate", date) if data[0] == _DATE else ("java.time.LocalDateTime", f"{date} {_clock(data[7:])}")
    )


def _clock(data: bytes) -> str:
    """Return the time of day; the last part that is not zero is stored inverted, and nothing follows it."""
    parts = []
    for at in range(3):
        (part,) = struct.unpack_from(">b", data, at)
        parts.append(~part if part < 0 else part)
        if part < 0:
            break
    else:
        (nanoseconds,) = struct.unpack_from(">i", data, 3)
        return ":".join(f"{part:02}" for part in parts) + f".{nanoseconds:09}"
    return ":".join(f"{part:02}" for part in (*parts, 0, 0)[:3])
