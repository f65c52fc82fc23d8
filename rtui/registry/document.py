"""The registry file as types, with its JSON schema, which includes their docstrings; and entries made of its tables.

The schema is for editors; `python -m rtui.registry.document` writes it beside this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from rtui.keyspace.text.display import EscapeSyntaxError, unescape
from rtui.keyspace.text.quantities import Bounds
from rtui.registry.expectations import (
    ExpectationError,
    Expectations,
    Reference,
    ReferenceSource,
    json_steps,
    read_length,
    read_size,
    read_ttl,
    read_type,
    type_names,
)
from rtui.registry.patterns import (
    ANY,
    ANY_DEPTH,
    ENUM,
    FORMS,
    HEX,
    INT,
    Lengths,
    Pattern,
    PatternError,
    Values,
    in_angles,
    read_pattern,
)
from rtui.registry.registry import RegistryEntry, TomlPath, meant
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
            description="The name of the other key, with the placeholders of the pattern and <member>, <value> or "
            "<field> for what is found; <member> alone: the members are whole names of keys.",
            examples=["order:<member>", "user:<value>"],
        ),
    ]
    twin: Annotated[
        Text | None, Meta(description="A key that has to hold the same.", examples=["order:index:user:<userId>"])
    ] = None


class PatternTable(_Table, frozen=True):
    """Keys of one kind: how they are named, what is expected of them, what they are for."""

    pattern: Annotated[
        Text,
        Meta(
            description="The name with placeholders; <*> is one without a name, <**> of any depth. Braces of the key "
            "itself are doubled unless a placeholder is between them; {id} is read as <id>.",
            examples=["app:session:<sessionId>", "{user<id>}.following", "{{campaign42}}:<id>"],
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
        Text | None, Meta(description="The lock that guards making the value again.", examples=["lock:p:<id>"])
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
    hardest: Annotated[_Count | None, Meta(description="No name has more bytes than this (1,024).")] = None
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


T = TypeVar("T")
_LENGTH: Final = re.compile(r"\s*(?:(\d{1,4})|(\d{1,4})\s*\.\.\s*(\d{1,4})?|<=\s*(\d{1,4})|>=\s*(\d{1,4}))\s*")


class EntryReader:
    """Reads the entries of one file."""

    def __init__(
        self,
        placeholders: Mapping[str, Placeholder],
        separators: Sequence[bytes],
        wrong: Callable[[TomlPath, str], None],
        line: Callable[[TomlPath], int],
    ) -> None:
        self._separators, self._wrong, self._line = separators, wrong, line
        self._values = self._values_of(placeholders, ("placeholders",))

    def entry(self, table: PatternTable, at: int) -> RegistryEntry | None:
        """Return the entry of a table; None, with recorded mistakes, if its pattern can't be read."""
        place: TomlPath = ("pattern", at)
        values = {**self._values, **self._values_of(table.placeholders, (*place, "placeholders"))}
        pattern = self._pattern(table.pattern, values, (*place, "pattern"))
        if pattern is None:
            return None
        for name in table.placeholders:
            if name not in (*pattern.names, *_SOURCES):
                what = f"<{name}> is not in the pattern{meant(name, pattern.names)}"
                self._wrong((*place, "placeholders", name), what)
        expectations = self._expectations(table, place)
        references = [
            self._reference(one, pattern, values, expectations, (*place, "references", number))
            for number, one in enumerate(table.references)
        ]
        lock = None
        if table.lock is not None:
            lock = self._template(table.lock, pattern, values, (), (*place, "lock"))
        return RegistryEntry(
            pattern,
            expectations,
            purpose=table.purpose or "",
            owner=table.owner or "",
            scene=table.scene or "",
            deprecated=table.deprecated or "",
            holds=table.holds or "",
            examples=tuple(
                self._example(one, (*place, "examples", number)) for number, one in enumerate(table.examples)
            ),
            references=tuple(reference for reference in references if reference is not None),
            lock=lock,
            expires_in=None if table.expires_in is None else self._source(table.expires_in, (*place, "expires_in")),
            longest=table.longest,
            is_named_here=table.naming,
            line=self._line((*place, "pattern")),
        )

    def _example(self, text: str, place: TomlPath) -> bytes:
        try:
            return unescape(text.encode())
        except EscapeSyntaxError as error:
            self._wrong(place, str(error))
            return text.encode()

    def _values_of(self, given: Mapping[str, Placeholder], place: TomlPath) -> dict[str, Values]:
        found: dict[str, Values] = {}
        for name, one in given.items():
            values = self._values_in(one, (*place, name))
            if values is not None:
                found[name] = values
        return found

    def _values_in(self, given: Placeholder, place: TomlPath) -> Values | None:
        if isinstance(given, str):
            form = FORMS.get(given)
            if form is None:
                self._wrong(place, f"{given!r} is no form{meant(given, FORMS)}")
            return None if form is None else Values(form)
        if isinstance(given, PlaceholderTable):
            if given.values is not None and (given.type is not None or given.length is not None):
                self._wrong(place, "it has either values, or a type and a length")
                return None
            if given.values is None:
                form = FORMS[given.type or "any"]
                lengths = () if given.length is None else self._lengths(given.length, (*place, "length"))
                if lengths and form not in (ANY, INT, HEX):
                    self._wrong(place, "a length is of any, int and hex")
                return Values(form, lengths=lengths)
            given = given.values
        if not given:
            self._wrong(place, "a list has one value at least")
            return None
        return Values(ENUM, options=tuple(dict.fromkeys(option.encode() for option in given)))

    def _lengths(self, text: str, place: TomlPath) -> Lengths:
        found: list[tuple[int, int | None]] = []
        for choice in text.split("|"):
            match = _LENGTH.fullmatch(choice)
            if match is None:
                self._wrong(place, f"{choice!r} is no length: 32, 32|64, 1..10 or <=10")
                continue
            exact, low, high, most, least = (None if text is None else int(text) for text in match.groups())
            if exact is not None:
                found.append((exact, exact))
            else:
                found.append((max(low or least or 1, 1), high if high is not None else most))
        return tuple(sorted(found, key=lambda one: one[0]))

    def _pattern(self, text: str, values: Mapping[str, Values], place: TomlPath) -> Pattern | None:
        try:
            return read_pattern(text, values, self._separators)
        except PatternError as error:
            self._wrong(place, str(error))
            return None

    def _expectations(self, table: PatternTable, place: TomlPath) -> Expectations:
        types: list[bytes] = []
        for name in [table.type] if isinstance(table.type, str) else table.type or ():
            try:
                types.append(read_type(name))
            except ExpectationError as error:
                self._wrong((*place, "type"), f"{error}{meant(name, type_names())}")

        def read(text: str | None, name: str, of: Callable[[str], T]) -> T | None:
            try:
                return None if text is None else of(text)
            except ExpectationError as error:
                self._wrong((*place, name), str(error))
                return None

        size: Bounds | None = read(table.size, "size", read_size)
        length: Bounds | None = read(table.length, "length", read_length)
        ttl = read(table.ttl, "ttl", read_ttl)
        return Expectations(tuple(types), ttl, size, table.size or "", length, table.length or "")

    def _reference(
        self,
        table: ReferenceTable,
        pattern: Pattern,
        values: Mapping[str, Values],
        expectations: Expectations,
        place: TomlPath,
    ) -> Reference | None:
        found = self._source(table.source, (*place, "from"))
        if found is None:
            return None
        source, path = found
        types = expectations.types
        if types and source.types and not set(types) & set(source.types):
            is_of = " or ".join(type_name.decode() for type_name in source.types)
            self._wrong((*place, "from"), f"{table.source} is of {is_of}, and the pattern of none of them")
        more = () if source.placeholder is None else (source.placeholder,)
        target = self._template(table.to, pattern, values, more, (*place, "to"))
        twin = None if table.twin is None else self._template(table.twin, pattern, values, (), (*place, "twin"))
        return None if target is None else Reference(source, path, target, twin)

    def _source(self, text: str, place: TomlPath) -> tuple[ReferenceSource, str] | None:
        name, colon, path = text.partition(":")
        source = _SOURCES.get(name)
        has_path = source in (ReferenceSource.FIELD, ReferenceSource.JSON)
        if source is None:
            self._wrong(place, f"nothing in a key is called {name}{meant(name, _SOURCES)}")
            return None
        if has_path != bool(colon and path):
            form = f"{name}:NAME" if has_path else name
            self._wrong(place, f"it is written as {form}")
            return None
        if source is ReferenceSource.JSON:
            try:
                json_steps(path)
            except ValueError:
                self._wrong(place, f"{path!r} is no path in JSON: roleId, items[].id")
                return None
        return source, path

    def _template(
        self, text: str, pattern: Pattern, values: Mapping[str, Values], more: Sequence[str], place: TomlPath
    ) -> Pattern | None:
        """Return a name of the placeholders of a pattern and of `more`; None, with a mistake recorded, if wrong."""
        alone = {name: Values(ANY_DEPTH) for name in more if in_angles(text) == f"<{name}>"}
        template = self._pattern(text, {**values, **alone}, place)
        if template is None:
            return None
        known = (*pattern.names, *more)
        for name in (placeholder.name for placeholder in template.placeholders):
            if name not in known:
                self._wrong(place, f"<{name}> is not in the pattern{meant(name, known)}")
                return None
        return template


_SOURCES: Final = {
    "member": ReferenceSource.MEMBER,
    "value": ReferenceSource.VALUE,
    "field": ReferenceSource.FIELD,
    "fields": ReferenceSource.FIELDS,
    "json": ReferenceSource.JSON,
    "key": ReferenceSource.KEY,
}


if __name__ == "__main__":
    SCHEMA_PATH.write_text(schema_text(), "utf-8")
