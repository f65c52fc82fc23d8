"""How records and lists of them become JSON: shapes made of other shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from typing import Any, Generic, TypeVar

from rtui.analysis.estimates import Estimate
from rtui.analysis.formats.json_shapes import (
    INTERVAL_SCHEMA,
    TEXT_LIMIT,
    Json,
    Name,
    ReportFormatError,
    Shape,
    Whole,
    bounds_of,
    interval,
    json_list,
    json_object,
    member,
    number,
    path,
    wrong,
)
from rtui.analysis.report.document import Figure
from rtui.keyspace.text.display import display_text

T = TypeVar("T")


class Maybe(Shape[T | None]):
    """A value or null: nobody knows, and the columns of the head say why."""

    def __init__(self, shape: Shape[T]) -> None:
        self._shape = shape

    def put(self, into: Json, name: str, value: T | None) -> None:
        """Add the value, or null under its name."""
        if value is None:
            into[name] = None
        else:
            self._shape.put(into, name, value)

    def take(self, of: Json, name: str, where: str) -> T | None:
        """Read the value or None."""
        return None if self._shape.is_null(of, name) else self._shape.take(of, name, where)

    def schema(self, name: str) -> Json:
        """Return the members, which may be null; those beside the first may be missing."""
        members = self._shape.schema(name)
        members[name] = {"anyOf": [members[name], {"type": "null"}]}
        return members


class Record(Shape[T]):
    """An object for a dataclass: attribute by attribute, some under a name that says more."""

    def __init__(self, cls: Callable[..., T], shapes: dict[str, Shape[Any]], **names: str) -> None:
        """Take the shape of each attribute, and by attribute the names that differ in JSON."""
        self.cls = cls
        self._members = tuple(
            (attribute, names.get(attribute, attribute), shape) for attribute, shape in shapes.items()
        )
        self._optional = {
            one.name
            for one in fields(cls)  # type: ignore[arg-type]
            if one.default is not MISSING or one.default_factory is not MISSING
        }

    def write(self, value: T) -> Json:
        """Return the object."""
        found: Json = {}
        for attribute, name, shape in self._members:
            shape.put(found, name, getattr(value, attribute))
        return found

    def read(self, found: object, where: str, **more: object) -> T:
        """Make the dataclass of an object; what is missing has its default, what is not known here is passed over."""
        of = json_object(found, where)
        values = {
            attribute: shape.take(of, name, where)
            for attribute, name, shape in self._members
            if name in of or attribute not in self._optional
        }
        return self.cls(**values, **more)

    def described(self) -> Json:
        """Return the object as JSON Schema."""
        properties: Json = {}
        required = []
        for attribute, name, shape in self._members:
            properties.update(shape.schema(name))
            if attribute not in self._optional:
                required.append(name)
        return {"type": "object", "properties": properties, "required": required}

    def put(self, into: Json, name: str, value: T) -> None:
        """Add the object."""
        into[name] = self.write(value)

    def take(self, of: Json, name: str, where: str) -> T:
        """Read the object."""
        return self.read(member(of, name, where), path(where, name))

    def schema(self, name: str) -> Json:
        """Return the object as JSON Schema."""
        return {name: self.described()}


class Many(Shape[tuple[T, ...]]):
    """A list of records."""

    def __init__(self, record: Record[T]) -> None:
        self._record = record

    def put(self, into: Json, name: str, value: Iterable[T]) -> None:
        """Add the list."""
        into[name] = [self._record.write(one) for one in value]

    def take(self, of: Json, name: str, where: str) -> tuple[T, ...]:
        """Read the list."""
        items = json_list(member(of, name, where), where, name)
        here = path(where, name)
        return tuple(self._record.read(one, f"{here}[{index}]") for index, one in enumerate(items))

    def schema(self, name: str) -> Json:
        """Return the list."""
        return {name: {"type": "array", "items": self._record.described()}}


class Figures(Shape[tuple[Figure, ...]]):
    """A histogram: a list of figures, and if any is an estimate, beside it their intervals or null: `name_interval`."""

    def __init__(self, length: int) -> None:
        self._length = length

    def put(self, into: Json, name: str, value: tuple[Figure, ...]) -> None:
        """Add the numbers and their intervals."""
        into[name] = [one.value if isinstance(one, Estimate) else one for one in value]
        if any(isinstance(one, Estimate) for one in value):
            into[f"{name}_interval"] = [bounds_of(one) if isinstance(one, Estimate) else None for one in value]

    def take(self, of: Json, name: str, where: str) -> tuple[Figure, ...]:
        """Read the numbers and their intervals."""
        found = self._list(of, name, where)
        values = [number(one, name, where) for one in found]
        if of.get(f"{name}_interval") is None:
            return tuple(values)
        bounds = self._list(of, f"{name}_interval", where)
        pairs = zip(values, bounds, strict=True)
        return tuple(value if one is None else interval(one, value, f"{name}_interval", where) for value, one in pairs)

    def _list(self, of: Json, name: str, where: str) -> list[Any]:
        """Return a list as long as the histogram."""
        found = json_list(member(of, name, where), where, name)
        if len(found) != self._length:
            raise ReportFormatError(f"{path(where, name)} should have {self._length} items, not {len(found):,}")
        return found

    def schema(self, name: str) -> Json:
        """Return both."""
        size = {"minItems": self._length, "maxItems": self._length}
        each = {"anyOf": [INTERVAL_SCHEMA, {"type": "null"}]}
        return {
            name: {"type": "array", "items": {"type": "number"}, **size},
            f"{name}_interval": {"type": "array", "items": each, **size},
        }


class Names(Shape[tuple[bytes, ...]]):
    """A list of names, twice as for one: `names` and `names_quoted`."""

    def put(self, into: Json, name: str, value: tuple[bytes, ...]) -> None:
        """Add both lists."""
        both = [_written(Name(), one) for one in value]
        into[name] = [one["name"] for one in both]
        into[f"{name}_quoted"] = [one["name_quoted"] for one in both]

    def take(self, of: Json, name: str, where: str) -> tuple[bytes, ...]:
        """Read the quoted list."""
        found = json_list(member(of, f"{name}_quoted", where), where, f"{name}_quoted")
        here = path(where, name)
        return tuple(Name().take({"name_quoted": one}, "name", f"{here}[{at}]") for at, one in enumerate(found))

    def schema(self, name: str) -> Json:
        """Return both lists."""
        members = Name().schema("name")
        return {
            name: {"type": "array", "items": members["name"]},
            f"{name}_quoted": {"type": "array", "items": members["name_quoted"]},
        }


class Texts(Shape[tuple[str, ...]]):
    """A list of texts, each safe."""

    def __init__(self, shape: Shape[str]) -> None:
        self._shape = shape

    def put(self, into: Json, name: str, value: tuple[str, ...]) -> None:
        """Add the list."""
        into[name] = [_written(self._shape, one)["name"] for one in value]

    def take(self, of: Json, name: str, where: str) -> tuple[str, ...]:
        """Read the list."""
        found = json_list(member(of, name, where), where, name)
        here = path(where, name)
        return tuple(self._shape.take({"text": one}, "text", f"{here}[{at}]") for at, one in enumerate(found))

    def schema(self, name: str) -> Json:
        """Return the list."""
        return {name: {"type": "array", "items": self._shape.schema("text")["text"]}}


class Pairs(Shape[tuple[tuple[Any, ...], ...]]):
    """A list of objects with the same few members, for tuples of as many values."""

    def __init__(self, *members: tuple[str, Shape[Any]]) -> None:
        self._members = members

    def put(self, into: Json, name: str, value: Iterable[tuple[Any, ...]]) -> None:
        """Add the list."""
        into[name] = items = []
        for values in value:
            one: Json = {}
            for (own, shape), part in zip(self._members, values, strict=True):
                shape.put(one, own, part)
            items.append(one)

    def take(self, of: Json, name: str, where: str) -> tuple[tuple[Any, ...], ...]:
        """Read the list."""
        found = json_list(member(of, name, where), where, name)
        rows = []
        for at, one in enumerate(found):
            here = f"{path(where, name)}[{at}]"
            each = json_object(one, here)
            rows.append(tuple(shape.take(each, own, here) for own, shape in self._members))
        return tuple(rows)

    def schema(self, name: str) -> Json:
        """Return the list."""
        properties: Json = {}
        for own, shape in self._members:
            properties.update(shape.schema(own))
        required = [own for own, _ in self._members]
        item = {"type": "object", "properties": properties, "required": required}
        return {name: {"type": "array", "items": item}}


class ByName(Shape[dict[bytes, T]], Generic[T]):
    """A dictionary by a name of bytes: a list of objects, each with the name and the value."""

    def __init__(self, key: str, value: str, shape: Shape[T]) -> None:
        self._pairs = Pairs((key, Name()), (value, shape))

    def put(self, into: Json, name: str, value: dict[bytes, T]) -> None:
        """Add the list."""
        self._pairs.put(into, name, value.items())

    def take(self, of: Json, name: str, where: str) -> dict[bytes, T]:
        """Read the dictionary."""
        return dict(self._pairs.take(of, name, where))

    def schema(self, name: str) -> Json:
        """Return the list."""
        return self._pairs.schema(name)


class ByText(Shape[dict[str, T]], Generic[T]):
    """A dictionary by text: an object; the names in it are made safe on reading."""

    def __init__(self, shape: Shape[T]) -> None:
        self._shape = shape

    def put(self, into: Json, name: str, value: dict[str, T]) -> None:
        """Add the object."""
        into[name] = {}
        for key, one in value.items():
            self._shape.put(into[name], key, one)

    def take(self, of: Json, name: str, where: str) -> dict[str, T]:
        """Read the dictionary."""
        found = json_object(member(of, name, where), path(where, name))
        shown = {display_text(key, limit=TEXT_LIMIT): key for key in found}
        here = path(where, name)
        return {safe: self._shape.take({safe: found[key]}, safe, here) for safe, key in shown.items()}

    def schema(self, name: str) -> Json:
        """Return an object of any names."""
        return {name: {"type": "object", "additionalProperties": self._shape.schema("any")["any"]}}


class Counts(Shape[Any]):
    """An array of whole numbers of a fixed length."""

    def __init__(self, make: Callable[[list[int]], Any], length: int) -> None:
        self._make = make
        self._length = length
        self._whole = Whole(0, 2**64 - 1)

    def put(self, into: Json, name: str, value: Iterable[int]) -> None:
        """Add the list."""
        into[name] = list(value)

    def take(self, of: Json, name: str, where: str) -> Any:
        """Read the array."""
        found = json_list(member(of, name, where), where, name)
        if len(found) != self._length:
            raise wrong(where, name, f"a list of {self._length:,} numbers", found)
        here = path(where, name)
        return self._make([self._whole.take({"count": one}, "count", here) for one in found])

    def schema(self, name: str) -> Json:
        """Return the list."""
        items = self._whole.schema("count")["count"]
        return {name: {"type": "array", "items": items, "minItems": self._length, "maxItems": self._length}}


def _written(shape: Shape[T], value: T) -> Json:
    """Return what a shape writes under `name`."""
    found: Json = {}
    shape.put(found, "name", value)
    return found
