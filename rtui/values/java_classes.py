"""Classes of Java's own library as the values that their objects are: boxed numbers, dates, collections."""

from __future__ import annotations

import struct
from typing import Final
from uuid import UUID

from rtui.values.plain import date_text
from rtui.values.tree import Kind, Node

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


def settle(node: Node) -> None:
    """Turn an object that was read to its end into the value that it is, if its class is known."""
    fields = {str(child.name.value): child for child in node.children if child.name is not None}
    written = {child.type_name.removeprefix(_WRITTEN): child for child in node.children if child.name is None}
    try:
        if node.type_name in _BOXED:
            _become(node, fields["value"].kind, fields["value"].value)
        elif node.type_name == "java.util.UUID":
            high, low = (int(str(fields[name].value)) & (1 << 64) - 1 for name in ("mostSigBits", "leastSigBits"))
            _become(node, Kind.TEXT, str(UUID(int=high << 64 | low)))
        elif node.type_name == "java.math.BigInteger":
            _become(node, Kind.NUMBER, str(_big(fields)))
        elif node.type_name == "java.math.BigDecimal":
            _become(node, Kind.NUMBER, _decimal(str(fields["intVal"].value), int(str(fields["scale"].value))))
        elif "java.util.Date" in written:
            (milliseconds,) = struct.unpack(">q", written["java.util.Date"].children[0].raw)
            _become(node, Kind.TEXT, date_text(milliseconds / 1_000))
        elif node.type_name == "java.time.Ser":
            name, text = _time(written["java.time.Ser"].children[0].raw)
            _become(node, Kind.TEXT, text)
            node.type_name = name
        else:
            _settle_collection(node, written)
    except (KeyError, ValueError, IndexError, struct.error):
        return


def _become(node: Node, kind: Kind, value: str | bytes) -> None:
    node.kind, node.value, node.children, node.total = kind, value, [], None


def _settle_collection(node: Node, written: dict[str, Node]) -> None:
    """Show the elements or members that a collection has written behind a block of its own."""
    for name, inside in written.items():
        if name in _LISTS:
            kept = (
                inside.children
                if not inside.children or inside.children[0].type_name != "block"
                else inside.children[1:]
            )
            node.kind, node.children = Kind.LIST, kept
        elif name in _MAPS and len(inside.children) % 2:
            members = []
            for key, value in zip(inside.children[1::2], inside.children[2::2], strict=True):
                value.name = key
                members.append(value)
            node.children = members


def _big(fields: dict[str, Node]) -> int:
    magnitude = fields["magnitude"].raw
    if len(magnitude) > _MAX_MAGNITUDE:
        raise ValueError
    return int(str(fields["signum"].value)) * int.from_bytes(magnitude)


def _decimal(digits: str, scale: int) -> str:
    """Return an integer with its point moved to the left."""
    number = int(digits)
    if not 0 <= scale <= _MAX_MAGNITUDE:
        return f"{number}E{-scale}"
    whole, part = divmod(abs(number), 10**scale)
    return f"{'-' if number < 0 else ''}{whole}" + (f".{part:0{scale}}" if scale else "")


def _time(data: bytes) -> tuple[str, str]:
    """Return the class and the text of what java.time writes: an instant, a date, or a date with its time."""
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
    """Return hours to nanoseconds; the last part that is not zero is inverted, and nothing follows it."""
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
