"""The JSON schema of registry files, for editors: `python -m rtui.registry.schema` writes it beside this module.

It follows from the types of `document.py`, the rules and their parameters.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from rtui.registry.document import Document
from rtui.registry.rules import RULES, Kind, Rule

PATH: Final = Path(__file__).with_name("rtui.schema.json")

_KINDS: Final[dict[Kind, dict[str, Any]]] = {
    Kind.COUNT: {"type": "integer", "minimum": 0},
    Kind.SHARE: {"type": "number", "minimum": 0, "maximum": 1},
    Kind.RATIO: {"type": "number", "minimum": 0},
    Kind.DURATION: {"type": "string"},
    Kind.SIZE: {"type": ["string", "integer"]},
    Kind.WORDS: {"type": "array", "items": {"type": "string"}},
    Kind.FLAG: {"type": "boolean"},
}

_SEVERITY: Final = {"enum": ["off", "warn", "error"]}


def schema() -> dict[str, Any]:
    """Return the schema as a dict."""
    found = msgspec.json.schema(Document)
    document = found["$defs"]["Document"]
    rules = document["properties"]["rules"]
    rules |= {"properties": {rule.id: _rule(rule) for rule in RULES.values()}, "additionalProperties": False}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rtui registry", **found}


def _rule(rule: Rule) -> dict[str, Any]:
    parameters = {
        name: {**_KINDS[one.kind], "description": one.help, "default": one.default}
        for name, one in rule.parameters.items()
    }
    table = {
        "type": "object",
        "properties": {"severity": _SEVERITY, **parameters},
        "additionalProperties": False,
    }
    return {
        "description": f"{rule.title}. {rule.reason}",
        "default": rule.severity.value,
        "anyOf": [_SEVERITY, table],
    }


def text() -> str:
    """Return the schema as the text of its file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), "utf-8")
