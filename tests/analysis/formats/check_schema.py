"""As much of JSON Schema as the schema of reports uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

import rtui.analysis.formats
from rtui.analysis.formats.json import REPORT_FORMAT, TEXT_LIMIT, FileContents, json_value
from rtui.analysis.report.members import SlotCounts, Text
from rtui.keyspace.slots import SLOTS

SCHEMA: dict[str, Any] = json.loads(
    (Path(rtui.analysis.formats.__file__).parent / "report.schema.json").read_text("utf-8")
)
"""What is published beside the form."""


def generated() -> dict[str, Any]:
    """Return what the published schema has to be, made of the Structs of the file."""
    described = msgspec.json.schema(FileContents, schema_hook=_described)
    del described["$defs"]["Estimate"]["properties"]["high"]["default"]  # infinity, which JSON does not have
    found: dict[str, Any] = json_value(described)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": REPORT_FORMAT, **found}


def _described(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of names, texts and slot counts."""
    if kind is SlotCounts:
        item = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
        return {"type": "array", "items": item, "minItems": SLOTS, "maxItems": SLOTS}
    if kind is Text:
        return {"type": "string", "maxLength": TEXT_LIMIT}
    return {"type": "string", "description": r"bytes: readable UTF-8 as it is, then \\, \", \n, \r, \t and \xNN"}


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "number": (int, float), "integer": (int,),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_KNOWN = frozenset(
    {"type", "properties", "required", "items", "enum", "anyOf", "minimum", "maximum", "minItems", "maxItems"}
    | {
        "maxLength", "additionalProperties", "prefixItems", "description", "default", "$schema", "$ref", "$defs",
        "title",
    }
)  # fmt: skip


def violations(value: Any, schema: dict[str, Any], where: str = "") -> list[str]:
    """Return where a document is not what the schema says; a word of the schema that is not known here fails."""
    assert set(schema) <= _KNOWN, set(schema) - _KNOWN
    if "$ref" in schema:
        return violations(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], where)
    if "anyOf" in schema:
        return [] if any(not violations(value, one, where) for one in schema["anyOf"]) else [f"{where}: none of anyOf"]
    if not _is_of_type(value, schema.get("type")):
        return [f"{where}: {value!r:.40} is no {schema['type']}"]
    found = [] if _is_in_bounds(value, schema) else [f"{where}: {value!r:.40} is out of bounds"]
    if isinstance(value, dict):
        found += [f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value]
        for name, one in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            found += (
                [f"{where}.{name} is not in the schema"] if inner is None else violations(one, inner, f"{where}.{name}")
            )
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        checked: set[tuple[type, Any]] = set()
        for at, one in enumerate(value):
            if at >= len(first) and isinstance(one, int | float | str):
                if (type(one), one) in checked:  # 16,384 slots have few different figures
                    continue
                checked.add((type(one), one))
            found += violations(one, first[at] if at < len(first) else schema.get("items") or {}, f"{where}[{at}]")
    return found


def _is_of_type(value: Any, wanted: str | list[str] | None) -> bool:
    if wanted is None:
        return True
    names = [wanted] if isinstance(wanted, str) else wanted
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES[name]) for name in names)


def _is_in_bounds(value: Any, schema: dict[str, Any]) -> bool:
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, str):
        return len(value) <= int(schema.get("maxLength", len(value)))
    if isinstance(value, list):
        return bool(schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)))
    if isinstance(value, int | float):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True
