"""How values become members of a JSON object and are read back, checked: the words that a schema is written in.

Each shape puts a value under a name, takes it back, and describes itself as JSON Schema, so that writer, reader and
documentation are one thing. Reading trusts nothing: a wrong type, a number out of bounds or a missing member is a
ReportFormatError that says where.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from math import inf, isfinite
from typing import Any, Final, Generic, TypeVar

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import Figure
from rtui.keyspace.text.display import EscapeSyntaxError, display_text, quoted, unescape

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Json = dict[str, Any]
"""A JSON object, or a piece of JSON Schema."""

LARGEST: Final = 2**64
"""No number of a report is beyond this, on either side of zero."""

TEXT_LIMIT: Final = 4096
"""Characters of a text that are kept."""

_SHOWN_IN_ERRORS: Final = 40


class ReportFormatError(ValueError):
    """A file that is no report this version can read; the message is a safe sentence without a full stop."""


class Shape(ABC, Generic[T]):
    """A kind of value under a name in a JSON object."""

    @abstractmethod
    def put(self, into: Json, name: str, value: T) -> None:
        """Add the members for a value."""

    @abstractmethod
    def take(self, of: Json, name: str, where: str) -> T:
        """Read the value back; `where` is the path of the object in the file. Raises ReportFormatError."""

    @abstractmethod
    def schema(self, name: str) -> Json:
        """Return the members that `put` adds, each as JSON Schema."""

    def is_null(self, of: Json, name: str) -> bool:
        """Tell whether there is no value."""
        return of.get(name) is None


class Whole(Shape[int]):
    """A whole number within bounds."""

    def __init__(self, lowest: int = 0, highest: int = LARGEST) -> None:
        self._bounds = lowest, highest

    def put(self, into: Json, name: str, value: int) -> None:
        """Add the number."""
        into[name] = value

    def take(self, of: Json, name: str, where: str) -> int:
        """Read a whole number; a number with a point is none."""
        value = member(of, name, where)
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong(where, name, "a whole number", value)
        lowest, highest = self._bounds
        if not lowest <= value <= highest:
            raise wrong(where, name, f"between {lowest:,} and {highest:,}", value)
        return value

    def schema(self, name: str) -> Json:
        """Return its bounds."""
        return {name: {"type": "integer", "minimum": self._bounds[0], "maximum": self._bounds[1]}}


class Number(Shape[float]):
    """A number, with or without a point, as it was written."""

    def put(self, into: Json, name: str, value: float) -> None:
        """Add the number."""
        into[name] = value

    def take(self, of: Json, name: str, where: str) -> float:
        """Read a finite number."""
        return number(member(of, name, where), name, where)

    def schema(self, name: str) -> Json:
        """Return its type."""
        return {name: {"type": "number"}}


class Flag(Shape[bool]):
    """True or false."""

    def put(self, into: Json, name: str, value: bool) -> None:
        """Add the truth."""
        into[name] = value

    def take(self, of: Json, name: str, where: str) -> bool:
        """Read the truth."""
        value = member(of, name, where)
        if not isinstance(value, bool):
            raise wrong(where, name, "true or false", value)
        return value

    def schema(self, name: str) -> Json:
        """Return its type."""
        return {name: {"type": "boolean"}}


class Text(Shape[str]):
    """Text for people; it is made safe again on reading."""

    def put(self, into: Json, name: str, value: str) -> None:
        """Add the text."""
        into[name] = display_text(value, limit=TEXT_LIMIT)

    def take(self, of: Json, name: str, where: str) -> str:
        """Read safe text."""
        value = member(of, name, where)
        if not isinstance(value, str):
            raise wrong(where, name, "text", value)
        return display_text(value, limit=TEXT_LIMIT)

    def schema(self, name: str) -> Json:
        """Return its type."""
        return {name: {"type": "string", "maxLength": TEXT_LIMIT}}


class Choice(Shape[E]):
    """One of the values of an enumeration."""

    def __init__(self, of: type[E]) -> None:
        self._enum = of

    def put(self, into: Json, name: str, value: E) -> None:
        """Add the value."""
        into[name] = value.value

    def take(self, of: Json, name: str, where: str) -> E:
        """Read one of the values."""
        value = member(of, name, where)
        if not isinstance(value, str) or value not in [one.value for one in self._enum]:
            raise wrong(where, name, "one of " + ", ".join(one.value for one in self._enum), value)
        return self._enum(value)

    def schema(self, name: str) -> Json:
        """Return the values."""
        return {name: {"enum": [one.value for one in self._enum]}}


class Name(Shape[bytes]):
    """Bytes, twice: as text, null where they are no UTF-8, and all of them as `name_quoted`, as `redis-cli` quotes."""

    def put(self, into: Json, name: str, value: bytes) -> None:
        """Add both."""
        try:
            into[name] = value.decode()
        except UnicodeDecodeError:
            into[name] = None
        into[f"{name}_quoted"] = quoted(value)

    def take(self, of: Json, name: str, where: str) -> bytes:
        """Read the quoted form, which holds every byte."""
        value = member(of, f"{name}_quoted", where)
        if not isinstance(value, str) or not value.isascii() or len(value) < 2 or value[0] != '"' or value[-1] != '"':
            raise wrong(where, f"{name}_quoted", "text in double quotes", value)
        try:
            return unescape(value.encode())
        except EscapeSyntaxError as error:
            raise ReportFormatError(f"{path(where, name)}_quoted: {display_text(str(error), limit=200)}") from error

    def schema(self, name: str) -> Json:
        """Return both."""
        text = {"type": ["string", "null"], "description": "null where the bytes are no UTF-8"}
        return {name: text, f"{name}_quoted": {"type": "string", "pattern": '^".*"$'}}

    def is_null(self, of: Json, name: str) -> bool:
        """Tell by the quoted form, since the text may be null though there is a name."""
        return of.get(f"{name}_quoted") is None


class Amount(Shape[Figure]):
    """A figure: the number, and where it is an estimate `name_interval` with its bounds at 95 %."""

    def put(self, into: Json, name: str, value: Figure) -> None:
        """Add the number and its interval."""
        if isinstance(value, Estimate):
            into[name] = value.value
            into[f"{name}_interval"] = bounds_of(value)
        else:
            into[name] = value

    def take(self, of: Json, name: str, where: str) -> Figure:
        """Read the number and its interval."""
        value = number(member(of, name, where), name, where)
        bounds = of.get(f"{name}_interval")
        return value if bounds is None else interval(bounds, value, f"{name}_interval", where)

    def schema(self, name: str) -> Json:
        """Return both; the interval is there only for estimates."""
        return {name: {"type": "number"}, f"{name}_interval": INTERVAL_SCHEMA}


INTERVAL_SCHEMA: Final[Json] = {
    "type": "array",
    "description": "95 % interval: low, high; null for a bound that is not known",
    "items": {"type": ["number", "null"]},
    "minItems": 2,
    "maxItems": 2,
}


def bounds_of(value: Estimate) -> list[float | None]:
    """Return the two bounds of an estimate; None for a bound that is not known."""
    return [bound if isfinite(bound) else None for bound in (value.low, value.high)]


def interval(bounds: object, value: float, name: str, where: str) -> Estimate:
    """Read the two bounds of an estimate; null is a bound that is not known."""
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise wrong(where, name, "two numbers", bounds)
    low = -inf if bounds[0] is None else number(bounds[0], name, where)
    high = inf if bounds[1] is None else number(bounds[1], name, where)
    return Estimate(low, value, high)


def number(value: object, name: str, where: str) -> int | float:
    """Check that a value is a number of a size that reports have."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST <= value <= LARGEST:
        raise wrong(where, name, "a number", value)
    return value


def member(of: Json, name: str, where: str) -> Any:
    """Return a member of an object."""
    try:
        return of[name]
    except KeyError:
        raise ReportFormatError(f"{path(where, name)} is missing") from None


def json_object(value: object, where: str) -> Json:
    """Check that a value is an object."""
    if not isinstance(value, dict):
        raise wrong(where, "", "an object", value)
    return value


def json_list(value: object, where: str, name: str) -> list[Any]:
    """Check that a value is a list."""
    if not isinstance(value, list):
        raise wrong(where, name, "a list", value)
    return value


def wrong(where: str, name: str, expected: str, found: object) -> ReportFormatError:
    """Make the error for a value that is something else than expected."""
    kinds = {dict: "an object", list: "a list", type(None): "null"}
    shown = kinds.get(type(found)) or display_text(_beginning(found), limit=_SHOWN_IN_ERRORS)
    return ReportFormatError(f"{path(where, name)} should be {expected}, not {shown}")


def _beginning(found: object) -> str:
    """Return the beginning of a text or number as it may stand in the file."""
    return repr(found[:_SHOWN_IN_ERRORS]) if isinstance(found, str) else f"{found:.6g}" if _is_number(found) else "that"


def _is_number(found: object) -> bool:
    """Tell whether a value can be written in a few figures."""
    return isinstance(found, float) or (isinstance(found, int) and abs(found) <= LARGEST)


def path(where: str, name: str) -> str:
    """Return where a member stands: `head.coverage.keys`."""
    if not name:
        return where or "the document"
    return f"{where}.{name}" if where else name
