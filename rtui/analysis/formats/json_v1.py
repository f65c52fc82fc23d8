"""Reports of version 1 of the JSON format, converted to the objects of the present one.

Version 1 wrote a name twice, as text and as `…_quoted`; an estimate as its value, with the bounds beside it in
`…_interval`; and dictionaries by a name as lists of `{"type": …, "keys": …}`.
"""

from __future__ import annotations

from typing import Any

from msgspec import ValidationError

from rtui.keyspace.text.display import EscapeSyntaxError, unescape


def from_v1(file: Any) -> Any:
    """Return a parsed file of version 1 as one of version 2, to be validated as such.

    Raises ValidationError, as msgspec does, for names and intervals that are no such thing, and RecursionError.
    """
    found = _converted(file, "")
    if not isinstance(found, dict):
        return found
    found["schema"] = 2
    summary = _member(found, "summary")
    big = _member(summary, "big")
    for name in ("by_type_memory", "by_type_length", "over_threshold"):
        if isinstance(big.get(name), list):
            big[name] = dict(_pairs(big[name], "type", "keys"))
    for one in (*_items(summary, "namespaces"), *_items(summary, "types")):
        stats = _member(one, "stats")
        stats["types"] = _pairs(stats.get("types", []), "type", "keys")
    slots = _member(summary, "slots")
    slots["owned_slots"] = _pairs(slots.get("owned_slots"), "first", "last")
    for one in _items(found, "keysizes"):
        one["bins"] = _pairs(one.get("bins"), "from_length", "keys")
    return found


def _member(of: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object within an object; if missing an empty one, which validation then finds."""
    found = of.get(name)
    return found if isinstance(found, dict) else {}


def _items(of: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = of.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _pairs(found: Any, first: str, second: str) -> Any:
    """Return a list of objects with two members as one of pairs; anything else as it is."""
    if not isinstance(found, list):
        return found
    return [(one.get(first), one.get(second)) if isinstance(one, dict) else one for one in found]


def _converted(value: Any, where: str) -> Any:
    """Return a value with its names and estimates in their present form."""
    if isinstance(value, list):
        return [_converted(one, f"{where}[{at}]") for at, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, one in value.items():
        place = f"{where}.{name}" if where else name
        if name.endswith("_quoted"):
            found[name.removesuffix("_quoted")] = _name(one, place)
        elif value.get(f"{name}_interval") is not None:
            found[name] = _estimate(one, value[f"{name}_interval"], f"{place}_interval")
        elif f"{name}_quoted" not in value and not name.endswith("_interval"):
            found[name] = _converted(one, place)
    return found


def _name(found: Any, where: str) -> Any:
    """Return a quoted name, or a list of them, without its quotes."""
    if found is None:
        return None
    if isinstance(found, list):
        return [_name(one, f"{where}[{at}]") for at, one in enumerate(found)]
    if not isinstance(found, str) or not found.isascii() or len(found) < 2 or found[0] != '"' or found[-1] != '"':
        raise ValidationError(f"Expected text in double quotes - at `$.{where}`")
    try:
        unescape(found.encode())
    except EscapeSyntaxError as error:
        raise ValidationError(f"{error} - at `$.{where}`") from error
    return found[1:-1]


def _estimate(value: Any, bounds: Any, where: str) -> Any:
    """Return a number and its bounds, or a list of both, as estimates."""
    if isinstance(value, list):
        if not isinstance(bounds, list) or len(bounds) != len(value):
            raise ValidationError(f"Expected {len(value):,} items - at `$.{where}`")
        pairs = zip(value, bounds, strict=True)
        return [one if two is None else _estimate(one, two, where) for one, two in pairs]
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise ValidationError(f"Expected two numbers - at `$.{where}`")
    low, high = bounds
    found = {"low": 0 if low is None else low, "value": value, "high": high}
    return {name: one for name, one in found.items() if one is not None}
