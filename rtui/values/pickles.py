"""Python pickles: the value that one stands for, and as a second choice its disassembly.

A pickle is a program, and loading one runs it. Both decoders run nothing: the value is built of descriptions, in which
a class or a call is a name with its arguments, and a note says what loading would import and call. Objects of some
classes of the standard library follow from their arguments alone, and are shown as values.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Final
from uuid import UUID

from rtui.values.pickle_values import MAX_INTEGER_BITS, Instruction, Machine, PickleItem, instructions
from rtui.values.source import CERTAIN, LIKELY, OFFERED, POSSIBLE, Format, ValueSource
from rtui.values.tree import Budget, Cut, DecodingStep, Exceeded, Invalid, Stopped, ValueForm, ValueKind, ValueNode

_DECIMAL: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?(?:E[+-]?[0-9]+)?|s?NaN[0-9]*|Infinity)")


def known_object(maker: str, arguments: list[ValueNode]) -> ValueNode | None:
    """Return an object as a plain value; None for other classes, and for arguments that do not fit the class."""
    made = _MAKERS.get(maker)
    if made is None:
        return None
    try:
        return made(maker.rpartition(".")[2], arguments)
    except (ValueError, IndexError, OverflowError, TypeError):
        return None


def _number(name: str, arguments: list[ValueNode]) -> ValueNode | None:
    text = arguments[0].value
    return ValueNode(ValueKind.NUMBER, text, name) if isinstance(text, str) and _DECIMAL.fullmatch(text) else None


def _text(name: str, arguments: list[ValueNode]) -> ValueNode | None:
    return ValueNode(ValueKind.TEXT, arguments[0].value, name) if isinstance(arguments[0].value, str) else None


def _fraction(name: str, arguments: list[ValueNode]) -> ValueNode:
    return ValueNode(ValueKind.NUMBER, "/".join(str(argument.value) for argument in arguments[:2]), name)


def _complex(name: str, arguments: list[ValueNode]) -> ValueNode:
    return ValueNode(ValueKind.NUMBER, repr(complex(*(float(str(argument.value)) for argument in arguments))), name)


def _bytes(name: str, arguments: list[ValueNode]) -> ValueNode | None:
    """Return a bytes object, which protocols before 3 write as Latin-1 text."""
    type_name = name if name == "bytearray" else ""
    if not arguments:
        return ValueNode(ValueKind.BYTES, b"", type_name)
    data = arguments[0].value
    return ValueNode(ValueKind.BYTES, data if isinstance(data, bytes) else data.encode("latin-1"), type_name)


def _list(name: str, arguments: list[ValueNode]) -> ValueNode | None:
    """Return a set, deque, tuple or the like, which takes a list at most."""
    if len(arguments) > 2 or (arguments and arguments[0].kind is not ValueKind.LIST):
        return None
    children = arguments[0].children if arguments else []
    is_cut = bool(arguments) and arguments[0].is_cut
    return ValueNode(ValueKind.LIST, "", "" if name == "list" else name, children=children, is_cut=is_cut)


def _map(name: str, arguments: list[ValueNode]) -> ValueNode | None:
    """Return a mapping, which takes nothing, a dict, or a list of pairs."""
    found = ValueNode(ValueKind.MAP, "", "" if name == "dict" else name)
    first = arguments[0] if arguments and name != "defaultdict" else None
    if first is None:
        return found
    found.is_cut = first.is_cut
    if first.kind is ValueKind.MAP:
        found.children = first.children
        return found
    for pair in first.children:
        key, value = pair.children
        value.name = key
        found.children.append(value)
    return found if first.kind is ValueKind.LIST else None


def _date(name: str, arguments: list[ValueNode]) -> ValueNode:
    year, month, day = int.from_bytes(arguments[0].raw[:2], "big"), *arguments[0].raw[2:]
    return ValueNode(ValueKind.TEXT, date(year, month, day).isoformat(), name)


def _time(name: str, arguments: list[ValueNode]) -> ValueNode:
    hour, minute, second, *rest = arguments[0].raw
    made = time(hour & 0x7F, minute, second, int.from_bytes(_microsecond_bytes(rest), "big"))
    return ValueNode(ValueKind.TEXT, made.isoformat() + _zone(arguments), name)


def _datetime(name: str, arguments: list[ValueNode]) -> ValueNode:
    """Return a datetime; the highest bit of the month byte is `fold`, the repeated hour at the end of summer time."""
    high, low, month, day, hour, minute, second, *rest = arguments[0].raw
    microsecond = int.from_bytes(_microsecond_bytes(rest), "big")
    made = datetime(high << 8 | low, month & 0x7F, day, hour, minute, second, microsecond)
    return ValueNode(ValueKind.TEXT, made.isoformat(" ") + _zone(arguments), name)


def _microsecond_bytes(rest: list[int]) -> bytes:
    if len(rest) != 3:
        raise ValueError
    return bytes(rest)


def _zone(arguments: list[ValueNode]) -> str:
    if len(arguments) < 2 or arguments[1].value == "null":
        return ""
    zone = arguments[1]
    return f" {zone.value if zone.kind in (ValueKind.TEXT, ValueKind.CONSTANT) else zone.type_name!s}"


def _timedelta(name: str, arguments: list[ValueNode]) -> ValueNode:
    days, seconds, microseconds = (int(str(argument.value)) for argument in arguments)
    return ValueNode(ValueKind.TEXT, str(timedelta(days, seconds, microseconds)), name)


def _timezone(name: str, arguments: list[ValueNode]) -> ValueNode | None:
    """Return a time zone by its name, or by its offset, as `UTC`, `+01:00`."""
    if len(arguments) > 1:
        return _text(name, arguments[1:])
    offset = str(arguments[0].value)
    sign, offset = ("-", _absolute(offset)) if offset.startswith("-") else ("+", offset)
    hours, minutes = offset.split(":")[:2]
    return ValueNode(ValueKind.TEXT, "UTC" if offset == "0:00:00" else f"{sign}{int(hours):02}:{minutes}", name)


def _absolute(offset: str) -> str:
    """Return the absolute value of a negative timedelta, which Python writes as `-1 day, 23:00:00`."""
    hours, minutes, seconds = (int(float(part)) for part in offset.partition(", ")[2].split(":"))
    return str(timedelta(days=1) - timedelta(hours=hours, minutes=minutes, seconds=seconds))


def _zone_info(_name: str, arguments: list[ValueNode]) -> ValueNode | None:
    return _text("ZoneInfo", arguments)


_MAKERS: Final[dict[str, Callable[[str, list[ValueNode]], ValueNode | None]]] = {
    "_codecs.encode": _bytes,
    "builtins.bytes": _bytes,
    "builtins.bytearray": _bytes,
    "builtins.complex": _complex,
    "builtins.set": _list,
    "builtins.frozenset": _list,
    "builtins.list": _list,
    "builtins.tuple": _list,
    "builtins.dict": _map,
    "collections.deque": _list,
    "collections.Counter": _map,
    "collections.OrderedDict": _map,
    "collections.defaultdict": _map,
    "datetime.date": _date,
    "datetime.datetime": _datetime,
    "datetime.time": _time,
    "datetime.timedelta": _timedelta,
    "datetime.timezone": _timezone,
    "decimal.Decimal": _number,
    "fractions.Fraction": _fraction,
    "zoneinfo.ZoneInfo._unpickle": _zone_info,
}


_TYPES: Final = frozenset(f"builtins.{name}" for name in ("object", "int", "float", "str", "bool", "bytes", "type"))


def is_known(name: str) -> bool:
    """Whether a name that a pickle imports is a class that only holds a value, so that loading it does nothing else."""
    return name in _MAKERS or name in _TYPES or name == "uuid.UUID"


def uuid_text(members: list[ValueNode]) -> str | None:
    """Return the UUID with this pickled state, or None if it is not the state of a UUID."""
    found = next((member.value for member in members if member.name is not None and member.name.value == "int"), "")
    try:
        return str(UUID(int=int(str(found))))
    except ValueError:
        return None


_MARKED: Final = re.compile(rb"\x80[\x02-\x05]")
_UNMARKED: Final = re.compile(
    rb"\((?:[dlt]p?\d|d?[VSIFLN(]|i|[KMJXU])|c[A-Za-z_]|[}\])]q\x00|V[^\n]*\np\d|S['\"][^\n]*\np\d|X..\x00\x00"
    rb"|[IF][-+.\d]{1,40}\n\.$|L-?\d+L?\n\.$",
    re.DOTALL,
)
"""The beginning of values of protocols 0 and 1, which have no mark and count only if they fill the bytes."""

MIN_CUT: Final = 3
"""The instructions needed to recognise a pickle that is cut."""

MIN_DAMAGED: Final = 8
"""The instructions needed before damage, or before the raw arrays that joblib writes between instructions."""

MAX_GLOBALS: Final = 20
MAX_REPEATED: Final = 256
"""The longest text, in characters, that is repeated at each reference from the memo."""

_MAX_PLACE_NAME: Final = 40
_DISASSEMBLED: Final = "a pickle is a program: this is its disassembly, nothing of it was run"
_JOBLIB: Final = b"joblib.numpy_pickle"
_ARRAY: Final = "joblib writes the elements of arrays between the instructions: nothing behind the first array is read"
_NOT_RUN: Final = "nothing of it was run"


class _Tree:
    """Builds nodes from the values of a machine. A value in several places is shown once, then referred to."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.stopped = ""
        """The limit that was reached, as a sentence."""
        self._places: dict[int, str] = {}
        self._scalars: dict[int, ValueNode] = {}
        """Objects that are shown as one short value, by id of their item."""

    def node(self, item: PickleItem, place: str = "", depth: int = 0) -> ValueNode:
        """Return a value with its contents as a node; `place` is its path, as `["name"][0]`."""
        if (scalar := self._scalars.get(id(item))) is not None:
            return ValueNode(scalar.kind, scalar.value, scalar.type_name, is_cut=scalar.is_cut)
        known = self._places.get(id(item))
        if known is not None and (item.members or item.arguments or item.state or len(item.value) > MAX_REPEATED):
            return ValueNode(ValueKind.NOTE, f"the same as {known or 'the whole value'}")
        self._places[id(item)] = place
        if depth > self.budget.limits.depth:
            self.stopped = f"levels deeper than {self.budget.limits.depth} are not shown"
            return ValueNode(item.kind, "", item.type_name, is_cut=True)
        if item.maker:
            made = self._object(item, place, depth)
            if made.kind not in (ValueKind.LIST, ValueKind.MAP) and len(made.value) <= MAX_REPEATED:
                self._scalars[id(item)] = made
            return made
        node = ValueNode(item.kind, item.value, item.type_name, is_cut=item.is_cut)
        self._fill(node, item.members, place, depth)
        return node

    def _fill(
        self, node: ValueNode, members: list[tuple[PickleItem | None, PickleItem]], place: str, depth: int
    ) -> None:
        """Add members to a node until a limit is reached."""
        for at, (key, item) in enumerate(members):
            try:
                self.budget.spend()
            except Exceeded as reached:
                self.stopped = str(reached)
            if self.stopped:
                node.is_cut = True
                return
            name = None if key is None else self._name(key, depth)
            child = self.node(item, place + _subscript(at, name), depth + 1)
            child.name = name
            node.children.append(child)
        node.is_cut = node.is_cut or bool(self.stopped)

    def _name(self, key: PickleItem, depth: int) -> ValueNode:
        """Return the name of a member; a name made of several values becomes one line."""
        made = self.node(key, " a name", depth + 1) if key.maker or key.members else ValueNode(key.kind, key.value)
        if made.kind not in (ValueKind.LIST, ValueKind.MAP):
            return made
        parts = (f'"{one.value!s}"' if one.kind is ValueKind.TEXT else str(one.value) for one in made.children)
        return ValueNode(ValueKind.CONSTANT, f"({', '.join(parts)})", made.type_name)

    def _object(self, item: PickleItem, place: str, depth: int) -> ValueNode:
        """Return an object as a plain value if its class is known, else with its arguments, state and members."""
        holder = ValueNode(ValueKind.LIST)
        self._fill(holder, [(None, argument) for argument in item.arguments], place, depth)
        arguments = holder.children
        known = known_object(item.maker, arguments)
        if known is None and not item.is_called and len(arguments) == 1 and not item.state:
            only = arguments[0]
            known = ValueNode(only.kind, only.value, item.maker, children=only.children, is_cut=only.is_cut)
        if known is not None:
            known.is_cut = known.is_cut or item.is_cut or holder.is_cut
            self._fill(known, item.members, place, depth)
            return known
        node = ValueNode(ValueKind.MAP, "", f"{item.maker}()" if item.is_called else item.maker, is_cut=item.is_cut)
        for state in item.state:
            self._fill(node, _state_members(state), place, depth)
        if item.maker == "uuid.UUID" and (uuid := uuid_text(node.children)) is not None:
            return ValueNode(ValueKind.TEXT, uuid, "UUID")
        self._fill(node, [(key, value) for key, value in item.members if key is not None], place, depth)
        elements = ValueNode(ValueKind.LIST, name=ValueNode(ValueKind.NOTE, "items"))
        self._fill(elements, [(key, value) for key, value in item.members if key is None], place, depth)
        holder.name = ValueNode(ValueKind.NOTE, "arguments")
        parts = [node for node in (holder, elements) if node.children]
        if node.children or len(parts) > 1:
            node.children = [*parts, *node.children]
        elif parts:
            node.kind, node.children = ValueKind.LIST, parts[0].children
        node.is_cut = node.is_cut or holder.is_cut or elements.is_cut
        return node


def _subscript(at: int, name: ValueNode | None) -> str:
    """Return the subscript of a member in its holder, as `["name"]` or `[0]`."""
    if name is None:
        return f"[{at}]"
    text = str(name.value)
    text = text if len(text) <= _MAX_PLACE_NAME else f"{text[:_MAX_PLACE_NAME]}…"
    return f'["{text}"]' if name.kind is ValueKind.TEXT else f"[{text}]"


def _state_members(state: PickleItem) -> list[tuple[PickleItem | None, PickleItem]]:
    """Return the attributes in the state of an object: a dict, or a tuple of dicts of which one may be None."""
    parts = [value for _, value in state.members] if state.type_name == "tuple" else [state]
    if all((one.kind is ValueKind.MAP and not one.maker) or one.value == "null" for one in parts):
        return [member for one in parts for member in one.members]
    return [(PickleItem(ValueKind.NOTE, "state"), state)]


class _Disassembly:
    """The disassembly of a pickle as a tree."""

    def __init__(self, source: ValueSource, budget: Budget) -> None:
        self.source = source
        self.budget = budget
        self.root = ValueNode(ValueKind.LIST, type_name="pickle")
        self._path = [self.root]

    def run(self) -> None:
        """Read all instructions; raises Cut, Invalid or Exceeded."""
        for instruction in instructions(self.source.data):
            self.budget.spend()
            self._add(instruction)

    def _add(self, one: Instruction) -> None:
        """Add an instruction; instructions behind a MARK are nested below it until one consumes the mark."""
        takes_mark = pickletools.markobject in one.opcode.stack_before
        if takes_mark and len(self._path) > 1:
            self._path.pop()
        node = _operand(one)
        node.name = ValueNode(ValueKind.NOTE, one.opcode.name)
        self._path[-1].children.append(node)
        if one.opcode.name == "MARK" and len(self._path) < self.budget.limits.depth:
            node.kind = ValueKind.LIST
            self._path.append(node)


def _operand(one: Instruction) -> ValueNode:
    match one.operand:
        case None:
            return ValueNode(ValueKind.NOTE)
        case bytes() as piece:
            return ValueNode(ValueKind.BYTES, piece, is_cut=one.is_cut)
        case str() as text:
            is_number = one.opcode.name in ("INT", "LONG", "FLOAT")
            return ValueNode(ValueKind.NUMBER if is_number else ValueKind.TEXT, text, is_cut=one.is_cut)
        case bool() as constant:
            return ValueNode(ValueKind.CONSTANT, repr(constant))
        case int() as number if number.bit_length() > MAX_INTEGER_BITS:
            return ValueNode(ValueKind.NOTE, f"an integer of {number.bit_length():,} bits")
    return ValueNode(ValueKind.NUMBER, repr(one.operand))


def _sniff(source: ValueSource, budget: Budget) -> float | None:
    """Recognise the protocol mark with instructions behind it; protocols 0 and 1 by usual first instructions."""
    is_marked = _MARKED.match(source.data) is not None
    if not is_marked and not _UNMARKED.match(source.data):
        return None
    machine = Machine(source.data, budget.probe())
    try:
        machine.run()
    except Exceeded:
        pass
    except Cut:
        if machine.count < MIN_CUT or (source.is_whole and not is_marked):
            return None
    except Invalid:
        if not is_marked or machine.count < MIN_DAMAGED:
            return None
        return POSSIBLE
    else:
        if machine.end != len(source.data):
            return None
    return CERTAIN if is_marked else LIKELY


def _sniff_instructions(source: ValueSource, budget: Budget) -> float | None:
    return None if _sniff(source, budget) is None else OFFERED


def _load_notes(machine: Machine, *, without_known: bool) -> tuple[str, ...]:
    """Return a note about what loading the pickle would import and call; empty if nothing."""
    names = [name for name in machine.called if not (without_known and is_known(name))]
    if not names:
        return ()
    more = f" and {len(names) - MAX_GLOBALS:,} more" if len(names) > MAX_GLOBALS else ""
    verb = "import and call" if any(machine.called[name] for name in names) else "import"
    return (f"loading it would {verb} {', '.join(names[:MAX_GLOBALS])}{more}",)


def _read(source: ValueSource, budget: Budget) -> DecodingStep:
    """Build the value; a cut or damaged pickle as far as it goes."""
    machine = Machine(source.data, budget)
    notes: tuple[str, ...] = ()
    truncated = not source.is_whole
    try:
        value = machine.run()
        if machine.end < len(source.data):
            notes = (f"{len(source.data) - machine.end:,} bytes follow the pickle",)
    except Stopped as stopped:
        unfinished, truncated = machine.unfinished(), True
        if isinstance(stopped, Invalid):
            is_joblib = _JOBLIB in source.data
            notes = (_ARRAY if is_joblib else f"damaged behind {machine.count:,} instructions: it {stopped}",)
        elif isinstance(stopped, Exceeded):
            notes = (str(stopped),)
        elif source.is_whole:
            notes = ("the pickle ends early",)
        if unfinished is None:
            raise
        value = unfinished
    tree = _Tree(budget)
    root = tree.node(value)
    notes = (tree.stopped, *notes) if tree.stopped and tree.stopped not in notes else notes
    would = _load_notes(machine, without_known=True)
    return DecodingStep(root, (*((_NOT_RUN, *would) if would else ()), *notes), truncated or bool(tree.stopped))


def _read_instructions(source: ValueSource, budget: Budget) -> DecodingStep:
    found = _Disassembly(source, budget)
    notes: tuple[str, ...] = ()
    truncated = not source.is_whole
    try:
        found.run()
    except Stopped as stopped:
        if not found.root.children:
            raise
        truncated = True
        if isinstance(stopped, Invalid):
            notes = (f"it {stopped}",)
        elif isinstance(stopped, Exceeded):
            notes = (str(stopped),)
    found.root.is_cut = truncated
    machine = Machine(source.data, budget)
    with suppress(Stopped):
        machine.run()
    return DecodingStep(
        found.root, (_DISASSEMBLED, *_load_notes(machine, without_known=False), *notes), truncated, ValueForm.LISTING
    )


FORMATS: Final = (
    Format("pickle instructions", _sniff_instructions, _read_instructions),
    Format("pickle", _sniff, _read),
)
