"""Makes entries from the pattern tables of a registry, and reports mistakes in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from rtui.keyspace.text.display import EscapeSyntaxError, unescape
from rtui.keyspace.text.quantities import Bounds
from rtui.registry.document import PatternTable, Placeholder, PlaceholderTable, ReferenceTable
from rtui.registry.expectations import (
    ExpectationError,
    Expectations,
    read_length,
    read_size,
    read_ttl,
    read_type,
    type_names,
)
from rtui.registry.forms import ANY, ANY_DEPTH, ENUM, FORMS, HEX, INT, Lengths, Values
from rtui.registry.patterns import Pattern, PatternError, read_pattern
from rtui.registry.references import Reference, Source, json_steps
from rtui.registry.registry import Entry, TomlPath, meant

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
        """`wrong` records a mistake at a place; `line` returns the line of a place."""
        self._separators, self._wrong, self._line = separators, wrong, line
        self._values = self._values_of(placeholders, ("placeholders",))

    def entry(self, table: PatternTable, at: int) -> Entry | None:
        """Return the entry of a table; None, with recorded mistakes, if its pattern can't be read."""
        place: TomlPath = ("pattern", at)
        values = {**self._values, **self._values_of(table.placeholders, (*place, "placeholders"))}
        pattern = self._pattern(table.pattern, values, (*place, "pattern"))
        if pattern is None:
            return None
        for name in table.placeholders:
            if name not in (*pattern.names, *_SOURCES):
                what = f"{{{name}}} is not in the pattern{meant(name, pattern.names)}"
                self._wrong((*place, "placeholders", name), what)
        expectations = self._expectations(table, place)
        references = [
            self._reference(one, pattern, values, expectations, (*place, "references", number))
            for number, one in enumerate(table.references)
        ]
        lock = None
        if table.lock is not None:
            lock = self._template(table.lock, pattern, values, (), (*place, "lock"))
        return Entry(
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

    def _source(self, text: str, place: TomlPath) -> tuple[Source, str] | None:
        name, colon, path = text.partition(":")
        source = _SOURCES.get(name)
        has_path = source in (Source.FIELD, Source.JSON)
        if source is None:
            self._wrong(place, f"nothing in a key is called {name}{meant(name, _SOURCES)}")
            return None
        if has_path != bool(colon and path):
            form = f"{name}:NAME" if has_path else name
            self._wrong(place, f"it is written as {form}")
            return None
        if source is Source.JSON:
            try:
                json_steps(path)
            except ValueError:
                self._wrong(place, f"{path!r} is no path in JSON: roleId, items[].id")
                return None
        return source, path

    def _template(
        self, text: str, pattern: Pattern, values: Mapping[str, Values], more: Sequence[str], place: TomlPath
    ) -> Pattern | None:
        """Return a name made of the placeholders of a pattern and of `more`; None, with a recorded mistake, if it is
        wrong."""
        alone = {name: Values(ANY_DEPTH) for name in more if text == f"{{{name}}}"}
        template = self._pattern(text, {**values, **alone}, place)
        if template is None:
            return None
        known = (*pattern.names, *more)
        for name in (placeholder.name for placeholder in template.placeholders):
            if name not in known:
                self._wrong(place, f"{{{name}}} is not in the pattern{meant(name, known)}")
                return None
        return template


_SOURCES: Final = {
    "member": Source.MEMBER,
    "value": Source.VALUE,
    "field": Source.FIELD,
    "fields": Source.FIELDS,
    "json": Source.JSON,
    "key": Source.KEY,
}
"""Sources by the word before the colon."""
