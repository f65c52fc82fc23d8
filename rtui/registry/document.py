"""The registry file as types: its keys, each with its purpose, and its JSON schema, which includes their docstrings.

The schema is for editors; `python -m rtui.registry.document` writes it beside this module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from rtui.registry.rules import RULES, Kind, Rule

Text = Annotated[str, Meta(min_length=1)]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A table in which nothing else may stand."""


class PlaceholderTable(_Table, frozen=True):
    """What a placeholder stands for."""

    type: Annotated[
        Literal["any", "int", "hex", "hash", "uuid", "ulid", "date", "ip", "email", "word", "any-depth"] | None,
        Meta(description="Its form; any, where nothing is said, is anything without a separator."),
    ] = None
    values: Annotated[list[Text] | None, Meta(description="All values that it may have.")] = None
    length: Annotated[
        str | None, Meta(description="Its length in bytes, of any, int and hex.", examples=["32", "32|64", "1..10"])
    ] = None


Placeholder = Annotated[
    str | list[Text] | PlaceholderTable,
    Meta(description="A form such as int, uuid, date or ip, a list of values, or a table.", examples=["int"]),
]


class ReferenceTable(_Table, frozen=True, rename={"source": "from"}):
    """Where what a key holds points to."""

    source: Annotated[
        str,
        Meta(
            description="What points: member (of a set, list or zset), value (of a string), field:NAME (the value of "
            "a hash field), fields (the names of all), json:PATH (a field of a JSON value) or key (the name alone).",
            examples=["member", "value", "field:userId", "json:roleId", "json:items[].id"],
        ),
    ]
    to: Annotated[
        Text,
        Meta(
            description="The name of the other key, with the placeholders of the pattern and {member}, {value} or "
            "{field} for what is found; {member} alone: the members are whole names of keys.",
            examples=["order:{member}", "user:{value}"],
        ),
    ]
    twin: Annotated[
        Text | None, Meta(description="A key that has to hold the same.", examples=["order:index:user:{userId}"])
    ] = None


class PatternTable(_Table, frozen=True):
    """Keys of one kind: how they are named, what is expected of them, what they are for."""

    pattern: Annotated[
        Text,
        Meta(
            description="The name with placeholders in braces; {*} is one without a name, {**} of any depth. Braces "
            "of the key itself are doubled.",
            examples=["app:session:{sessionId}", "{{user{id}}}.following"],
        ),
    ]
    type: Annotated[str | list[str] | None, Meta(description="The type, or several.", examples=["hash"])] = None
    ttl: Annotated[
        str | None,
        Meta(
            description="The time to live that keys are given: exactly, a range, at most, at least, none, or required "
            "(any); alternatives with | between them.",
            examples=["30m", "30m..2h", "<=10m", "none", "required", "none|24h"],
        ),
    ] = None
    size: Annotated[str | None, Meta(description="Memory of a key.", examples=["<=10K", "1K..1M"])] = None
    length: Annotated[
        str | None, Meta(description="Elements, or bytes of a string.", examples=["<=1000", "<=10KB"])
    ] = None
    holds: Annotated[
        str | None, Meta(description="What strings of it hold, in a word.", examples=["JSON", "counter", "bitmap"])
    ] = None
    purpose: Annotated[str | None, Meta(description="What the keys are for.")] = None
    owner: Annotated[str | None, Meta(description="The team that answers for them.")] = None
    scene: Annotated[str | None, Meta(description="Where they are used.")] = None
    deprecated: Annotated[str | None, Meta(description="That they are to be retired: what to use instead.")] = None
    examples: Annotated[list[str], Meta(description="Names that have the pattern; checked when it is read.")] = []
    placeholders: Annotated[dict[str, Placeholder], Meta(description="What placeholders stand for.")] = {}
    references: Annotated[list[ReferenceTable], Meta(description="Where what the keys hold points to.")] = []
    lock: Annotated[
        Text | None, Meta(description="The lock that guards making the value again.", examples=["lock:p:{id}"])
    ] = None
    expires_in: Annotated[
        str | None, Meta(description="Where the value itself says when it is out of date.", examples=["json:expire_at"])
    ] = None
    longest: Annotated[
        int | None, Meta(description="Bytes of a name at most, where that is more than in [naming].")
    ] = None
    naming: Annotated[bool, Meta(description="false: the names are given by a library and not checked.")] = True


_Count = Annotated[int, Meta(ge=1, le=1 << 20)]

StyleName = Literal["lower", "camel", "pascal", "snake", "kebab", "upper"]


class NamingTable(_Table, frozen=True):
    """The parameters of the rules about names."""

    case: Annotated[
        StyleName | list[StyleName] | None, Meta(description="The style of words, or all that are allowed.")
    ] = None
    case_of: Annotated[
        dict[str, StyleName | list[StyleName]],
        Meta(description="Other styles for keys that begin with something.", examples=[{"PRO:": "upper"}]),
    ] = {}
    characters: Annotated[
        Text | None,
        Meta(
            description="All characters that are allowed, as in brackets of a regular expression. (Printable ASCII "
            "without blanks, quotes and backslash.)",
            examples=["a-z0-9:_-"],
        ),
    ] = None
    other_separators: Annotated[
        str | None, Meta(description="Characters that separate parts where they are not declared (/|;#,.).")
    ] = None
    longest: Annotated[_Count | None, Meta(description="Bytes of a name at most (50).")] = None
    hardest: Annotated[_Count | None, Meta(description="More bytes than this no name has (1,024).")] = None
    shortest: Annotated[_Count | None, Meta(description="Bytes of a name at least (3).")] = None
    deepest: Annotated[_Count | None, Meta(description="Segments at most (8).")] = None


class Document(_Table, frozen=True):
    """What the keys of a keyspace are for, and the rules that their names and values follow."""

    title: Annotated[str | None, Meta(description="What the registry is of.")] = None
    separators: Annotated[
        list[Text] | None, Meta(description="What stands between the parts of a name (:).", examples=[[":"]])
    ] = None
    include: Annotated[
        list[Text],
        Meta(
            description="Registries whose patterns belong to it as well: names of those that ship with rtui, or "
            "files, from the folder of this one.",
            examples=[["celery", "../shared/keys.toml"]],
        ),
    ] = []
    naming: NamingTable = NamingTable()
    glossary: Annotated[
        dict[str, Text] | None,
        Meta(description="The abbreviations that names may have, with the words they stand for."),
    ] = None
    placeholders: Annotated[
        dict[str, Placeholder], Meta(description="What placeholders of a name stand for in all patterns.")
    ] = {}
    rules: Annotated[
        dict[str, Any],
        Meta(description="Rules by their id: off, warn, error, or a table with severity and parameters."),
    ] = {}
    pattern: Annotated[list[PatternTable], Meta(description="Patterns, in any order.")] = []


SCHEMA_PATH: Final = Path(__file__).with_name("rtui.schema.json")

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


def schema_text() -> str:
    """Return the JSON schema of registry files as the text of its file."""
    found = msgspec.json.schema(Document)
    rules = found["$defs"]["Document"]["properties"]["rules"]
    rules |= {"properties": {rule.id: _rule(rule) for rule in RULES.values()}, "additionalProperties": False}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rtui registry", **found}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    parameters = {
        name: {**_KINDS[one.kind], "description": one.help, "default": one.default}
        for name, one in rule.parameters.items()
    }
    table = {"type": "object", "properties": {"severity": _SEVERITY, **parameters}, "additionalProperties": False}
    return {"description": f"{rule.title}. {rule.reason}", "default": rule.severity.value, "anyOf": [_SEVERITY, table]}


if __name__ == "__main__":
    SCHEMA_PATH.write_text(schema_text(), "utf-8")
