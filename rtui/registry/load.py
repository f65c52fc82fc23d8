"""Reads registries: finds the file, checks everything in it, and makes a `Registry` of it.

All mistakes of a file are reported at once, each with its line and key. Warnings are about entries that can be used but
are likely mistakes: ambiguous patterns, literal text that breaks the file's own naming rules.
"""

from __future__ import annotations

import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from rtui.keyspace.text.display import display, display_text
from rtui.keyspace.text.segments import Separators
from rtui.registry.document import Document, EntryReader, NamingTable, PatternTable, ReferenceTable
from rtui.registry.matching import Matcher, ambiguities
from rtui.registry.naming import NAME_RULES, STYLES, Glossary, NamingConfig, NamingRules, Style, rule_ids
from rtui.registry.registry import (
    FILE_NAME,
    LineIndex,
    Registry,
    RegistryEntry,
    RegistryError,
    RegistryProblem,
    TomlPath,
    meant,
    named_registry,
    path_text,
    shipped_names,
)
from rtui.registry.rules import RULES, ParameterValue, RuleLevels, Severity

MOST_BYTES: Final = 4 << 20
MOST_WARNINGS: Final = 50


def load_registry(path: Path) -> Registry:
    """Read a registry file and its includes; raises RegistryError."""
    return _Reading(path, _text(path)).registry()


def read_registry(text: str, path: Path | None = None, *, may_include: bool = True) -> Registry:
    """Read a registry from its text; `path` is named in messages and is the base of included files.

    For a text from somebody else no other files should be read: `may_include` is False then. Raises RegistryError.
    """
    return _Reading(path, text, may_include=may_include).registry()


def _text(path: Path) -> str:
    name = display_text(str(path))
    try:
        with path.open("rb") as file:
            read = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise RegistryError([_file_problem(name, f"it can't be read: {error.strerror}")]) from None
    if len(read) > MOST_BYTES:
        raise RegistryError([_file_problem(name, f"it is over {MOST_BYTES:,} bytes")])
    try:
        return read.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = read[: error.start].count(b"\n") + 1
        raise RegistryError([RegistryProblem(name, line, display_text(""), display_text("it is not UTF-8"))]) from None


def _file_problem(file: str, what: str) -> RegistryProblem:
    return RegistryProblem(display_text(file), 0, display_text(""), display_text(what))


_POSITION: Final = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)
S = TypeVar("S", bound=msgspec.Struct)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$(.*)`)?", re.DOTALL)
_INVALID: Final = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


class _Reading:
    """One file being read."""

    def __init__(self, path: Path | None, text: str, *, above: tuple[Path, ...] = (), may_include: bool = True) -> None:
        self.path = path
        self.file = display_text(FILE_NAME if path is None else str(path))
        self.problems: list[RegistryProblem] = []
        self._above = above
        self._may_include = may_include
        self._source = text
        self._lines = LineIndex(text)
        try:
            self._raw: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = _POSITION.fullmatch(str(error))
            line = int(found[2]) if found and found[2] else text.count("\n") + 1
            what = display_text(f"it is not TOML: {found[1] if found else error}")
            raise RegistryError([RegistryProblem(self.file, line, display_text(""), what)]) from None

    def registry(self) -> Registry:
        document = self._document()
        separators = self._separators(document)
        levels = self._levels()
        config = self._config(document, separators)
        entries = self._entries(document, separators)
        if self.problems:
            raise RegistryError(sorted(self.problems, key=lambda one: (one.file != self.file, one.file, one.line)))
        patterns = [entry.pattern for entry in entries]
        enabled = sum(1 << at for at, rule in enumerate(NAME_RULES) if levels.severity(rule) is not Severity.OFF)
        exempt = frozenset(at for at, entry in enumerate(entries) if not entry.is_named_here)
        longest_of = {at: entry.longest for at, entry in enumerate(entries) if entry.longest is not None}
        naming = NamingRules(config, patterns, enabled=enabled, exempt=exempt, longest_of=longest_of)
        matcher = Matcher(patterns, separators)
        self._check_examples(entries, matcher)
        if self.problems:
            raise RegistryError(self.problems)
        warnings = tuple(self._warnings(entries, naming))
        title = document.title or ""
        source = "" if document.include else self._source
        return Registry(self.path, title, separators, tuple(entries), matcher, naming, levels, source, warnings)

    def wrong(self, place: TomlPath, what: str, *, line: int | None = None) -> None:
        number = self._lines.line(place) if line is None else line
        self.problems.append(RegistryProblem(self.file, number, path_text(place), display_text(what)))

    def line(self, place: TomlPath) -> int:
        return self._lines.line(place)

    def _document(self) -> Document:
        """Return the file as types; wrong parts are recorded as mistakes and left out."""
        raw = dict(self._raw)
        naming, patterns = raw.pop("naming", {}), raw.pop("pattern", [])
        if not isinstance(patterns, list):
            self.wrong(("pattern",), "each pattern begins with [[pattern]]")
            patterns = []
        self._unknown(raw, Document, ())
        whole: dict[str, Any] = {}
        for name, value in raw.items():
            one = self._converted({name: value}, Document, ())
            if one is not None:
                whole[name] = getattr(one, name)
        whole["naming"] = self._struct(naming, NamingTable, ("naming",)) or NamingTable()
        read = [self._struct(one, PatternTable, ("pattern", at)) for at, one in enumerate(patterns)]
        whole["pattern"] = read
        return Document(**whole)

    def _struct(self, raw: Any, kind: type[S], place: TomlPath) -> S | None:
        """Return a table as a type, without its wrong keys; None if nothing is left of it."""
        if not isinstance(raw, dict):
            self.wrong(place, "it is a table")
            return None
        table = dict(raw)
        self._unknown(table, kind, place)
        if kind is PatternTable:
            for at, reference in enumerate(table.get("references") or ()):
                if isinstance(reference, dict):
                    self._unknown(dict(reference), ReferenceTable, (*place, "references", at))
        return self._converted(table, kind, place)

    def _unknown(self, table: dict[str, Any], kind: type[msgspec.Struct], place: TomlPath) -> None:
        known = list(kind.__struct_encode_fields__)
        for name in [name for name in table if name not in known]:
            self.wrong((*place, name), f"there is no key {name}{meant(name, known)}")
            del table[name]

    def _converted(self, table: dict[str, Any], kind: type[S], place: TomlPath) -> S | None:
        before = len(self.problems)
        while True:
            try:
                return msgspec.convert(table, kind)
            except msgspec.ValidationError as error:
                name = self._explain(str(error), place)
                if name not in table or len(self.problems) - before > len(table):
                    return None
                del table[name]
                if name == "pattern":
                    return None

    def _explain(self, error: str, place: TomlPath) -> str:
        """Record an error of msgspec; return the key of the table that contains it."""
        unknown = _UNKNOWN.fullmatch(error)
        found = unknown or _INVALID.fullmatch(error)
        path = "" if found is None else (found[2] or "")
        steps: TomlPath = tuple(name or int(at) for name, at in _STEP.findall(path) if at != "...")
        what = error.partition(" - at `")[0]
        if unknown:
            # Of the tables within tables only references have fixed keys and are told already.
            what = "" if "references" in steps else f"there is no key {unknown[1]}"
        elif what.startswith("Object missing required field"):
            what = f"the key {what.split('`')[1]} is missing"
        else:
            what = what.replace(" | null", "").replace("`", "").replace("object", "table").replace("array", "list")
            what = what[0].lower() + what[1:]
        if what:
            self.wrong((*place, *steps), what)
        return str(steps[0]) if steps else ""

    def _separators(self, document: Document) -> tuple[bytes, ...]:
        given = [":"] if document.separators is None else document.separators
        return Separators([separator.encode() for separator in given]).values

    def _levels(self) -> RuleLevels:
        raw = self._raw.get("rules", {})
        severities: dict[str, Severity] = {}
        parameters: dict[str, dict[str, ParameterValue]] = {}
        for name, given in raw.items() if isinstance(raw, dict) else ():
            place = ("rules", name)
            if name not in RULES:
                self.wrong(place, f"there is no rule {name}{meant(name, RULES)}")
                continue
            table = given if isinstance(given, dict) else {"severity": given}
            for key, value in table.items():
                if key == "severity":
                    if value in list(Severity):
                        severities[name] = Severity(value)
                    else:
                        self.wrong(place, f"{value!r} is no severity: it is off, warn or error")
                else:
                    self._parameter(name, key, value, parameters.setdefault(name, {}))
            if isinstance(given, dict) and "severity" not in given and RULES[name].severity is Severity.OFF:
                severities[name] = Severity.WARN
        return RuleLevels(severities, parameters)

    def _parameter(self, rule: str, name: str, value: Any, found: dict[str, ParameterValue]) -> None:
        known = RULES[rule].parameters
        place = ("rules", rule, name)
        if name not in known:
            self.wrong(place, f"the rule has no parameter {name}{meant(name, ('severity', *known))}")
            return
        try:
            found[name] = known[name].value(value)
        except ValueError:
            self.wrong(place, f"{value!r} can't be: it is {known[name].kind.value}")

    def _config(self, document: Document, separators: tuple[bytes, ...]) -> NamingConfig:
        table = document.naming
        default = NamingConfig()
        characters = default.characters
        if table.characters is not None:
            try:
                characters = _characters(table.characters)
            except ValueError as error:
                self.wrong(("naming", "characters"), str(error))
        glossary = document.glossary
        words = None if glossary is None else [(one.encode(), full.encode()) for one, full in glossary.items()]

        def given(value: int | None, otherwise: int) -> int:
            return otherwise if value is None else value

        return NamingConfig(
            separators=separators,
            styles=None if table.case is None else _styles(table.case),
            styles_below={begin.encode(): _styles(case) for begin, case in table.case_of.items()},
            characters=characters,
            other_separators=default.other_separators if table.other_separators is None else table.other_separators,
            longest=given(table.longest, default.longest),
            hardest=max(given(table.hardest, default.hardest), given(table.longest, default.longest)),
            shortest=given(table.shortest, default.shortest),
            deepest=given(table.deepest, default.deepest),
            glossary=None if words is None else Glossary(words),
        )

    def _entries(self, document: Document, separators: tuple[bytes, ...]) -> list[RegistryEntry]:
        reader = EntryReader(document.placeholders, separators, self.wrong, self.line)
        read = (reader.entry(table, at) for at, table in enumerate(document.pattern) if table is not None)
        entries = [entry for entry in read if entry is not None]
        for at, name in enumerate(document.include):
            entries += self._included(name, ("include", at), separators)
        return entries

    def _included(self, name: str, place: TomlPath, separators: tuple[bytes, ...]) -> Iterator[RegistryEntry]:
        if not self._may_include:
            self.wrong(place, "others can't be included here")
            return
        path = named_registry(name, Path() if self.path is None else self.path.parent)
        above = (*self._above, *([] if self.path is None else [self.path.resolve()]))
        if path.resolve() in above:
            self.wrong(place, f"{name} includes itself")
            return
        if not path.is_file():
            self.wrong(place, f"there is no file {path}{meant(name, shipped_names())}")
            return
        try:
            inner = _Reading(path, _text(path), above=above)
            document = inner._document()
            entries = inner._entries(document, separators)
        except RegistryError as error:
            self.problems += error.problems
            return
        self.problems += inner.problems
        for entry in entries:
            yield entry if entry.origin else replace(entry, origin=name, file=path)

    def _check_examples(self, entries: Sequence[RegistryEntry], matcher: Matcher) -> None:
        for at, entry in enumerate(entries):
            if entry.origin:
                continue
            for example in entry.examples:
                index = matcher.match(example)
                if index == at or (index is not None and entries[index].pattern.text == entry.pattern.text):
                    continue
                other = "no pattern" if index is None else f"the pattern {entries[index].pattern.text}"
                what = display_text(f"{entry.pattern.text}: the example {display(example)} has {other}")
                self.problems.append(RegistryProblem(self.file, entry.line, display_text("pattern"), what))

    def _warnings(self, entries: Sequence[RegistryEntry], naming: NamingRules) -> Iterator[RegistryProblem]:
        found = ambiguities([entry.pattern for entry in entries])
        for first, second, example in islice(found, MOST_WARNINGS):
            one, two = sorted((entries[first], entries[second]), key=lambda entry: (not entry.origin, entry.line))
            place = f"of {one.origin}" if one.origin else f"of line {one.line}"
            what = (
                f"{two.pattern.text} and {one.pattern.text} {place} are equally specific: {display(example)} has both"
            )
            line = 0 if two.origin else two.line
            yield RegistryProblem(self.file, line, display_text("pattern"), display_text(what))
        for at, entry in enumerate(entries):
            mask = naming.broken(entry.pattern.sample(), at) & _OF_WORDS
            if mask and not entry.origin:
                what = f"{entry.pattern.text} breaks {', '.join(rule_ids(mask))}"
                yield RegistryProblem(self.file, entry.line, display_text("pattern"), display_text(what))


_OF_WORDS: Final = sum(
    1 << at
    for at, rule in enumerate(NAME_RULES)
    if rule not in ("name-long", "name-huge", "name-characters", "name-encoding", "tag-empty")
)
"""The rules that the literal text of a pattern can break by itself."""


def _styles(case: str | Sequence[str]) -> Style:
    found = Style(0)
    for name in [case] if isinstance(case, str) else case:
        found |= STYLES[name]
    return found


def _characters(text: str) -> str:
    """Return all characters of a class such as `a-z0-9:_-`; raises ValueError."""
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            first, last = ord(text[at]), ord(text[at + 2])
            if first > last:
                raise ValueError(f"{text[at : at + 3]} is no range: the first character comes after the last")
            found += map(chr, range(first, last + 1))
            at += 3
        else:
            found.append(text[at])
            at += 1
    return "".join(dict.fromkeys(found))
