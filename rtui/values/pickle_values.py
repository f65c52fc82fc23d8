r"""The instructions of a pickle, and the value that it stands for, built without an import or a call.

A pickle is a program for a machine with a stack and a memo. Here that machine handles descriptions only: an instruction
that would import a class leaves its name, one that would call it leaves the name with the arguments. For some classes
of the standard library the arguments alone give the value: a datetime is ten bytes.

In `}q\0X\1\0\0\0aK\1s.` these are: push an empty dict, keep it in the memo as 0, push "a", push 1, set the member,
stop. If a pickle ends early, the values on the stack are put where they were to go.

`pickletools` knows the names and stack effects of instructions. Operands are read here, since `pickletools.genops`
gives nothing of an operand that is cut, and rejects non-ASCII text of protocol 0, as Python 2 wrote it.
"""

from __future__ import annotations

import codecs
import pickletools
import re
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rtui.values.tree import Budget, Cut, Exceeded, Invalid, ValueKind

_OPCODES: Final = {ord(opcode.code): opcode for opcode in pickletools.opcodes}
_FIXED: Final = {"uint1": "<B", "uint2": "<H", "int4": "<i", "uint4": "<I", "uint8": "<Q", "float8": ">d"}
_COUNTED: Final = {
    "string1": 1, "bytes1": 1, "unicodestring1": 1, "long1": 1,
    "string4": 4, "bytes4": 4, "unicodestring4": 4, "long4": 4,
    "bytes8": 8, "bytearray8": 8, "unicodestring8": 8,
}  # fmt: skip
"""Operands behind their length, and the size of that length in bytes."""

_DIGITS: Final = re.compile(rb"[+-]?[0-9]+L?")
_FLOAT: Final = re.compile(rb"[+-]?(?:[0-9.]+(?:[eE][+-]?[0-9]+)?|inf|nan)")
_QUOTED: Final = re.compile(rb"(['\"])(.*)\1", re.DOTALL)
_MAX_INDEX_DIGITS: Final = 19
_BOOLEANS: Final = {b"00": False, b"01": True}


class Instruction(NamedTuple):
    """An instruction."""

    opcode: pickletools.OpcodeInfo
    operand: bool | int | float | str | bytes | None
    """Numbers of protocol 0 are the text of their digits; a class is `module name`."""
    end: int
    is_cut: bool = False
    """Whether the bytes end within the operand, which is the beginning of its text or bytes then."""


def instructions(data: bytes) -> Iterator[Instruction]:
    """Yield the instructions up to STOP; raises Cut if the bytes end before it, Invalid for an unknown instruction."""
    at = 0
    while at < len(data):
        opcode = _OPCODES.get(data[at])
        if opcode is None:
            raise Invalid(f"has no instruction {data[at]:02x} at byte {at:,}")
        found = _read(opcode, data, at + 1)
        yield found
        if found.is_cut:
            break
        if opcode.name == "STOP":
            return
        at = found.end
    raise Cut


def _read(opcode: pickletools.OpcodeInfo, data: bytes, at: int) -> Instruction:
    if opcode.arg is None:
        return Instruction(opcode, None, at)
    kind = opcode.arg.name
    if kind in _FIXED:
        end = at + struct.calcsize(_FIXED[kind])
        if end > len(data):
            raise Cut
        return Instruction(opcode, struct.unpack_from(_FIXED[kind], data, at)[0], end)
    if kind in _COUNTED:
        return _counted(opcode, kind, data, at)
    lines, end = [], at
    for _ in range(2 if kind.endswith("pair") else 1):
        stop = data.find(b"\n", end)
        if stop < 0:
            raise Cut
        lines.append(data[end:stop])
        end = stop + 1
    return Instruction(opcode, _from_text(opcode.name, kind, b" ".join(lines)), end)


def _counted(opcode: pickletools.OpcodeInfo, kind: str, data: bytes, at: int) -> Instruction:
    start = at + _COUNTED[kind]
    if start > len(data):
        raise Cut
    end = start + int.from_bytes(data[at:start], "little")
    piece, is_cut = data[start:end], end > len(data)
    end = min(end, len(data))
    if kind.startswith("long"):
        if is_cut:
            raise Cut
        return Instruction(opcode, int.from_bytes(piece, "little", signed=True), end)
    if not kind.startswith("unicode"):
        return Instruction(opcode, piece, end, is_cut)
    try:
        text = codecs.utf_8_decode(piece, "surrogatepass", not is_cut)[0]
    except UnicodeDecodeError:
        raise Invalid(f"has text that is not UTF-8 at byte {start:,}") from None
    return Instruction(opcode, text, end, is_cut)


def _from_text(name: str, kind: str, line: bytes) -> bool | int | str | bytes:
    """Return the operand of one line, or of two lines joined by a space."""
    try:
        match kind:
            case "decimalnl_short" | "decimalnl_long" | "floatnl":
                return _number(name, line)
            case "unicodestringnl":
                return line.decode("raw-unicode-escape")
            case "stringnl":
                quoted = _QUOTED.fullmatch(line)
                if quoted is None:
                    raise Invalid("has text without its quotes")
                return codecs.escape_decode(quoted[2])[0]
    except ValueError as error:
        raise Invalid(f"has invalid text: {error}") from None
    return line.decode("utf-8", "surrogateescape")


def _number(name: str, line: bytes) -> bool | int | str:
    """Return a number as it is written, or as an integer if it is an index of the memo."""
    if name == "INT" and line in _BOOLEANS:
        return _BOOLEANS[line]
    if not (_FLOAT if name == "FLOAT" else _DIGITS).fullmatch(line):
        raise Invalid(f"has {line[:20]!r} where a number should be")
    if name in ("INT", "LONG", "FLOAT"):
        return line.removesuffix(b"L").decode()
    if len(line) > _MAX_INDEX_DIGITS:
        raise Invalid("has too large an index")
    return int(line)


MAX_INTEGER_BITS: Final = 512
_CLOCK_EVERY: Final = 256
_MAX_CLASS_NAME: Final = 200
_CONSTANTS: Final = {"NONE": "null", "NEWTRUE": "true", "NEWFALSE": "false"}
_EMPTY: Final = {
    "EMPTY_LIST": (ValueKind.LIST, ""), "EMPTY_TUPLE": (ValueKind.LIST, "tuple"), "EMPTY_SET": (ValueKind.LIST, "set"),
    "EMPTY_DICT": (ValueKind.MAP, ""),
}  # fmt: skip
_FROM_MARK: Final = {
    "LIST": (ValueKind.LIST, ""), "TUPLE": (ValueKind.LIST, "tuple"), "FROZENSET": (ValueKind.LIST, "frozenset"),
    "DICT": (ValueKind.MAP, ""),
}  # fmt: skip
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MAPS: Final = frozenset({"collections.OrderedDict", "collections.defaultdict", "collections.Counter"})
_OLD_NAMES: Final = {"__builtin__": "builtins", "copy_reg": "copyreg"}


@dataclass(slots=True, eq=False)
class PickleItem:
    """A value on the stack; one may be in several places, and within itself."""

    kind: ValueKind
    value: str | bytes = ""
    type_name: str = ""
    members: list[tuple[PickleItem | None, PickleItem]] = field(default_factory=list)
    """Names and values of a map; elements of a list have the name None."""
    maker: str = ""
    """The class of an object, or the function that loading would call to make it."""
    is_called: bool = False
    """Whether the object is made by a call, not as an instance of the class `maker`."""
    arguments: list[PickleItem] = field(default_factory=list)
    state: list[PickleItem] = field(default_factory=list)
    is_cut: bool = False


_MARK: Final = PickleItem(ValueKind.NOTE)


class Machine:
    """Executes the instructions of a pickle on descriptions of values."""

    def __init__(self, data: bytes, budget: Budget) -> None:
        self.data = data
        self.budget = budget
        self.end = 0
        """The offset behind STOP, once that was read."""
        self.called: dict[str, bool] = {}
        """The names that loading would import, and whether it would call each."""
        self.count = 0
        """The number of instructions executed."""
        self._stack: list[PickleItem] = []
        self._memo: dict[int, PickleItem] = {}
        self._pushes_left = 2 * budget.limits.elements

    def run(self) -> PickleItem:
        """Return the value; after Cut, Invalid or Exceeded `unfinished` returns the part that was built."""
        for instruction in instructions(self.data):
            if self.count % _CLOCK_EVERY == 0:
                self.budget.check_time()
            self.count += 1
            if instruction.opcode.name == "STOP":
                self.end = instruction.end
                break
            self._execute(instruction)
        return self._pop()

    def unfinished(self) -> PickleItem | None:
        """Return the stack as one value: each last value is put into the one before it."""
        while _MARK in self._stack:
            rest = self._pop_to_mark()
            below = self._stack[-1] if self._stack else _MARK
            if below.kind is not ValueKind.MAP or len(rest) % 2:
                rest = _nest_last(rest)
            if _is_open(below):
                _add_unfinished(below, rest)
            elif rest:
                self._stack.append(_sequence(rest, ValueKind.LIST, ""))
                self._stack[-1].is_cut = True
        return _merge_stack(self._stack) if self._stack else None

    def _push(self, item: PickleItem) -> None:
        self._pushes_left -= 1
        if self._pushes_left < 0:
            raise Exceeded(f"only the first {self.budget.limits.elements:,} elements are shown")
        self._stack.append(item)

    def _pop(self) -> PickleItem:
        if not self._stack or self._stack[-1] is _MARK:
            raise Invalid("takes a value from an empty stack")
        return self._stack.pop()

    def _top(self) -> PickleItem:
        item = self._pop()
        self._stack.append(item)
        return item

    def _pop_to_mark(self) -> list[PickleItem]:
        found: list[PickleItem] = []
        while self._stack:
            item = self._stack.pop()
            if item is _MARK:
                return found[::-1]
            found.append(item)
        self._stack = found[::-1]
        raise Invalid("takes the values behind a mark that it never set")

    def _execute(self, one: Instruction) -> None:
        name, operand = one.opcode.name, one.operand
        if name in _CONSTANTS:
            self._push(PickleItem(ValueKind.CONSTANT, _CONSTANTS[name]))
        elif name in _EMPTY:
            self._push(_sequence([], *_EMPTY[name]))
        elif name in _TUPLES:
            parts = [self._pop() for _ in range(_TUPLES[name])]
            self._push(_sequence(parts[::-1], ValueKind.LIST, "tuple"))
        elif name in _FROM_MARK:
            self._push(_sequence(self._pop_to_mark(), *_FROM_MARK[name]))
        elif not self._memorise(name, operand) and not self._add(name) and not self._make(name, operand):
            self._push(_scalar(one))

    def _memorise(self, name: str, operand: object) -> bool:
        """Execute an instruction about the memo or the stack as such; False if it is another one."""
        match name:
            case "PROTO" | "FRAME" | "READONLY_BUFFER":
                pass
            case "MARK":
                self._push(_MARK)
            case "POP":
                if not self._stack:
                    raise Invalid("takes a value from an empty stack")
                self._stack.pop()
            case "POP_MARK":
                self._pop_to_mark()
            case "DUP":
                self._push(self._top())
            case "MEMOIZE":
                self._memo[len(self._memo)] = self._top()
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self._memo[_index(operand)] = self._top()
            case "GET" | "BINGET" | "LONG_BINGET":
                known = self._memo.get(_index(operand))
                if known is None:
                    raise Invalid(f"refers to value {operand} of its memo, which it never kept")
                self._push(known)
            case _:
                return False
        return True

    def _add(self, name: str) -> bool:
        """Execute an instruction that adds values to another one; False if it does something else."""
        match name:
            case "APPEND":
                item = self._pop()
                self._top().members.append((None, item))
            case "APPENDS" | "ADDITEMS":
                items = self._pop_to_mark()
                self._top().members.extend((None, item) for item in items)
            case "SETITEM":
                value, key = self._pop(), self._pop()
                self._top().members.append((key, value))
            case "SETITEMS":
                items = self._pop_to_mark()
                self._top().members.extend(_pairs(items))
            case "BUILD":
                state = self._pop()
                self._top().state.append(state)
            case _:
                return False
        return True

    def _make(self, name: str, operand: object) -> bool:
        """Record an instruction that would import or call, with its arguments; False if it is another one."""
        match name:
            case "GLOBAL":
                self._push(self._imported(str(operand).replace(" ", ".", 1)))
            case "STACK_GLOBAL":
                last, module = self._pop(), self._pop()
                self._push(self._imported(f"{module.value!s}.{last.value!s}"))
            case "EXT1" | "EXT2" | "EXT4":
                self._push(self._imported(f"extension {operand}"))
            case "BINPERSID":
                self._push(PickleItem(ValueKind.LIST, maker="persistent id", is_called=True, arguments=[self._pop()]))
            case "INST":
                arguments = self._pop_to_mark()
                self._push(self._object(self._imported(str(operand).replace(" ", ".", 1)), arguments))
            case "OBJ":
                maker, *arguments = self._pop_to_mark() or [_MARK]
                self._push(self._object(maker, arguments))
            case "NEWOBJ":
                arguments = _elements(self._pop())
                self._push(self._object(self._pop(), arguments))
            case "NEWOBJ_EX":
                named, arguments = self._pop(), _elements(self._pop())
                self._push(self._object(self._pop(), [*arguments, named] if named.members else arguments))
            case "REDUCE":
                arguments = _elements(self._pop())
                self._push(self._call(self._pop(), arguments))
            case _:
                return False
        return True

    def _imported(self, name: str) -> PickleItem:
        module, _, rest = name.partition(".")
        name = f"{_OLD_NAMES.get(module, module)}.{rest}"[:_MAX_CLASS_NAME] if rest else name[:_MAX_CLASS_NAME]
        self.called.setdefault(name, False)
        return PickleItem(ValueKind.CONSTANT, name, "class or function")

    def _object(self, maker: PickleItem, arguments: list[PickleItem]) -> PickleItem:
        name = maker.value if isinstance(maker.value, str) and maker.value else "(unknown)"
        self.called[name] = True
        return PickleItem(ValueKind.MAP, maker=name, arguments=arguments)

    def _call(self, maker: PickleItem, arguments: list[PickleItem]) -> PickleItem:
        """Return the result of a call; a call of `copyreg` makes an object of the class in its arguments."""
        if maker.value in ("copyreg._reconstructor", "copyreg.__newobj__", "copyreg.__newobj_ex__") and arguments:
            self.called.pop(str(maker.value), None)
            if maker.value == "copyreg.__newobj__":
                return self._object(arguments[0], arguments[1:])
            if maker.value == "copyreg.__newobj_ex__":
                return self._object(arguments[0], [part for one in arguments[1:] for part in _elements(one)])
            base = arguments[1].value if len(arguments) > 1 else ""
            if isinstance(base, str):
                self.called.pop(base, None)
            return self._object(arguments[0], [] if base == "builtins.object" else arguments[2:])
        if maker.value == "builtins.getattr" and len(arguments) > 1 and all(one.value for one in arguments[:2]):
            self.called.pop("builtins.getattr", None)
            self.called.pop(str(arguments[0].value), None)
            return self._imported(f"{arguments[0].value!s}.{arguments[1].value!s}")
        made = self._object(maker, arguments)
        made.is_called = True
        return made


def _index(operand: object) -> int:
    return operand if isinstance(operand, int) else 0


def _elements(item: PickleItem) -> list[PickleItem]:
    return [value for _, value in item.members]


def _pairs(items: list[PickleItem]) -> list[tuple[PickleItem | None, PickleItem]]:
    """Pair alternating names and values; a last name without a value is dropped."""
    return list(zip(items[::2], items[1::2], strict=False))


def _sequence(items: list[PickleItem], kind: ValueKind, type_name: str) -> PickleItem:
    return PickleItem(kind, "", type_name, _pairs(items) if kind is ValueKind.MAP else [(None, item) for item in items])


def _is_open(item: PickleItem) -> bool:
    """Whether later values are added to this one: to a list, set or dict, not to a tuple or most objects."""
    is_fixed = item.type_name in ("tuple", "frozenset") or (item.maker and item.maker not in _MAPS)
    return item.kind in (ValueKind.LIST, ValueKind.MAP) and not is_fixed


def _add_unfinished(holder: PickleItem, items: list[PickleItem]) -> None:
    """Add values to an unfinished container; a name without its value is dropped."""
    holder.members += _pairs(items) if holder.kind is ValueKind.MAP else [(None, item) for item in items]
    holder.is_cut = True


def _merge_stack(stack: list[PickleItem]) -> PickleItem:
    """Merge values that each wait for an instruction into the first of them."""
    waiting: deque[PickleItem] = deque()
    for item in reversed(stack):
        if not waiting or not (item.maker or _is_open(item)):
            waiting.appendleft(item)
            continue
        if not _is_open(item):
            item.state.append(waiting[0] if len(waiting) == 1 else _sequence([*waiting], ValueKind.LIST, ""))
            item.is_cut = True
        else:
            _add_unfinished(item, [*waiting])
        waiting = deque([item])
    first = waiting[0] if len(waiting) == 1 else _sequence([*waiting], ValueKind.LIST, "")
    first.is_cut = first.is_cut or first.kind in (ValueKind.LIST, ValueKind.MAP)
    return first


def _nest_last(items: list[PickleItem]) -> list[PickleItem]:
    """Return the values behind a mark, the last ones nested in an empty container before them.

    Whether that container was to get them by a later instruction, or was complete and empty, cannot be known; for
    alternating names and values it is taken as complete.
    """
    at = len(items) - 1
    while (at := at - 1) >= 0 and len(items) - at <= 3:
        item, rest = items[at], items[at + 1 :]
        if item.maker and not item.state and len(rest) == 1 and rest[0].kind is ValueKind.MAP and not rest[0].maker:
            item.state, item.is_cut = rest, True
        elif _is_open(item) and not item.members and len(rest) <= (2 if item.kind is ValueKind.MAP else 1):
            _add_unfinished(item, rest)
        else:
            continue
        del items[at + 1 :]
    return items


def _scalar(one: Instruction) -> PickleItem:
    """Return the number, text or bytes that an instruction pushes."""
    name, operand = one.opcode.name, one.operand
    found = PickleItem(ValueKind.CONSTANT, "", "buffer outside of the pickle")
    match operand:
        case bool():
            found = PickleItem(ValueKind.CONSTANT, "true" if operand else "false")
        case int() if operand.bit_length() > MAX_INTEGER_BITS:
            found = PickleItem(ValueKind.NOTE, f"an integer of {operand.bit_length():,} bits")
        case int() | float():
            found = PickleItem(ValueKind.NUMBER, repr(operand))
        case str() if name == "PERSID":
            found = PickleItem(ValueKind.CONSTANT, operand, "persistent id")
        case str():
            found = PickleItem(ValueKind.NUMBER if name in ("INT", "LONG", "FLOAT") else ValueKind.TEXT, operand)
        case bytes() if name.endswith("STRING"):
            found = _text_of_python_2(operand)
        case bytes():
            found = PickleItem(ValueKind.BYTES, operand, "bytearray" if name == "BYTEARRAY8" else "")
    found.is_cut = one.is_cut
    return found


def _text_of_python_2(piece: bytes) -> PickleItem:
    """Return a Python 2 `str`, which may be text or bytes."""
    try:
        return PickleItem(ValueKind.TEXT, piece.decode())
    except UnicodeDecodeError:
        return PickleItem(ValueKind.BYTES, piece)
