"""Classes of Python's standard library whose objects follow from their pickled arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Final
from uuid import UUID

from rtui.values.tree import Kind, Node

_DECIMAL: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?(?:E[+-]?[0-9]+)?|s?NaN[0-9]*|Infinity)")


def known_object(maker: str, arguments: list[Node]) -> Node | None:
    """Return an object as a plain value; None for other classes, and for arguments that do not fit the class."""
    made = _MAKERS.get(maker)
    if made is None:
        return None
    try:
        return made(maker.rpartition(".")[2], arguments)
    except (ValueError, IndexError, OverflowError, TypeError):
        return None


def _number(name: str, arguments: list[Node]) -> Node | None:
    text = arguments[0].value
    return Node(Kind.NUMBER, text, name) if isinstance(text, str) and _DECIMAL.fullmatch(text) else None


def _text(name: str, arguments: list[Node]) -> Node | None:
    return Node(Kind.TEXT, arguments[0].value, name) if isinstance(arguments[0].value, str) else None


def _fraction(name: str, arguments: list[Node]) -> Node:
    return Node(Kind.NUMBER, "/".join(str(one.value) for one in arguments[:2]), name)


def _complex(name: str, arguments: list[Node]) -> Node:
    return Node(Kind.NUMBER, repr(complex(*(float(str(one.value)) for one in arguments))), name)


def _bytes(name: str, arguments: list[Node]) -> Node | None:
    """Return a bytes object, which protocols before 3 write as Latin-1 text."""
    type_name = name if name == "bytearray" else ""
    if not arguments:
        return Node(Kind.BYTES, b"", type_name)
    data = arguments[0].value
    return Node(Kind.BYTES, data if isinstance(data, bytes) else data.encode("latin-1"), type_name)


def _list(name: str, arguments: list[Node]) -> Node | None:
    """Return a set, deque, tuple or the like, which takes a list at most."""
    if len(arguments) > 2 or (arguments and arguments[0].kind is not Kind.LIST):
        return None
    children = arguments[0].children if arguments else []
    is_cut = bool(arguments) and arguments[0].is_cut
    return Node(Kind.LIST, "", "" if name == "list" else name, children=children, is_cut=is_cut)


def _map(name: str, arguments: list[Node]) -> Node | None:
    """Return a mapping, which takes nothing, a dict, or a list of pairs."""
    found = Node(Kind.MAP, "", "" if name == "dict" else name)
    first = arguments[0] if arguments and name != "defaultdict" else None
    if first is None:
        return found
    found.is_cut = first.is_cut
    if first.kind is Kind.MAP:
        found.children = first.children
        return found
    for pair in first.children:
        key, value = pair.children
        value.name = key
        found.children.append(value)
    return found if first.kind is Kind.LIST else None


def _date(name: str, arguments: list[Node]) -> Node:
    year, month, day = int.from_bytes(arguments[0].raw[:2], "big"), *arguments[0].raw[2:]
    return Node(Kind.TEXT, date(year, month, day).isoformat(), name)


def _time(name: str, arguments: list[Node]) -> Node:
    hour, minute, second, *rest = arguments[0].raw
    made = time(hour & 0x7F, minute, second, int.from_bytes(_microsecond_bytes(rest), "big"))
    return Node(Kind.TEXT, made.isoformat() + _zone(arguments), name)


def _datetime(name: str, arguments: list[Node]) -> Node:
    """Return a datetime; the highest bit of the month byte is `fold`, the repeated hour at the end of summer time."""
    high, low, month, day, hour, minute, second, *rest = arguments[0].raw
    microsecond = int.from_bytes(_microsecond_bytes(rest), "big")
    made = datetime(high << 8 | low, month & 0x7F, day, hour, minute, second, microsecond)
    return Node(Kind.TEXT, made.isoformat(" ") + _zone(arguments), name)


def _microsecond_bytes(rest: list[int]) -> bytes:
    if len(rest) != 3:
        raise ValueError
    return bytes(rest)


def _zone(arguments: list[Node]) -> str:
    if len(arguments) < 2 or arguments[1].value == "null":
        return ""
    zone = arguments[1]
    return f" {zone.value if zone.kind in (Kind.TEXT, Kind.CONSTANT) else zone.type_name!s}"


def _timedelta(name: str, arguments: list[Node]) -> Node:
    days, seconds, microseconds = (int(str(one.value)) for one in arguments)
    return Node(Kind.TEXT, str(timedelta(days, seconds, microseconds)), name)


def _timezone(name: str, arguments: list[Node]) -> Node | None:
    """Return a time zone by its name, or by its offset, as `UTC`, `+01:00`."""
    if len(arguments) > 1:
        return _text(name, arguments[1:])
    offset = str(arguments[0].value)
    sign, offset = ("-", _absolute(offset)) if offset.startswith("-") else ("+", offset)
    hours, minutes = offset.split(":")[:2]
    return Node(Kind.TEXT, "UTC" if offset == "0:00:00" else f"{sign}{int(hours):02}:{minutes}", name)


def _absolute(offset: str) -> str:
    """Return the absolute value of a negative timedelta, which Python writes as `-1 day, 23:00:00`."""
    hours, minutes, seconds = (int(float(part)) for part in offset.partition(", ")[2].split(":"))
    return str(timedelta(days=1) - timedelta(hours=hours, minutes=minutes, seconds=seconds))


def _zone_info(_name: str, arguments: list[Node]) -> Node | None:
    return _text("ZoneInfo", arguments)


_MAKERS: Final[dict[str, Callable[[str, list[Node]], Node | None]]] = {
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


def uuid_text(members: list[Node]) -> str | None:
    """Return the UUID with this pickled state, or None if it is not the state of a UUID."""
    found = next((one.value for one in members if one.name is not None and one.name.value == "int"), "")
    try:
        return str(UUID(int=int(str(found))))
    except ValueError:
        return None
