"""A registry that has been read, the mistakes in its file, and the places of registries.

registry = read_registry(path)                  # load.py
index = registry.matcher.match(key)             # the most specific pattern, or None
entry = registry.entries[index]
entry.expectations.checks(Found(type, ttl_ms, memory_bytes, length))
registry.naming.broken(key, index)              # bits of rules: naming.rule_ids
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.matching import nearest_word
from rtui.registry.expectations import Expectations, Incoming, Reference, ReferenceSource, incoming
from rtui.registry.matching import Matcher
from rtui.registry.naming import NamingRules
from rtui.registry.patterns import Pattern
from rtui.registry.rules import RuleLevels


@dataclass(frozen=True, slots=True)
class RegistryProblem:
    """One mistake or warning."""

    file: SafeText
    line: int
    """The line, from 1; 0 for a problem of the whole file."""
    where: SafeText
    """The key, such as `pattern[2].ttl`; may be empty."""
    what: SafeText

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.where}{': ' if self.where else ''}{self.what}"


class RegistryError(ValueError):
    """A registry that can't be used, with all its mistakes."""

    def __init__(self, problems: Sequence[RegistryProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))


def path_text(path: Iterable[str | int]) -> SafeText:
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return display_text(text)


def meant(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: the nearest known word, else all."""
    words = list(known)
    near = nearest_word(word, words, least=0.5)
    if near is not None:
        return f"; did you mean {near}?"
    return f"; there are {', '.join(words)}" if words else ""


TomlPath = tuple[str | int, ...]
"""The path of a value: names of tables and keys, and indices in arrays of tables."""

_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""+|\'\'\'.*?\'\'\'+|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|\n|[\[\]{}=.]|[^\s\[\]{}=."\'#]+|[^\S\n]+',
    re.DOTALL,
)


class LineIndex:
    """The lines of the tables and keys of one text."""

    def __init__(self, text: str) -> None:
        self._lines: dict[TomlPath, int] = {(): 1}
        self._counts: dict[TomlPath, int] = {}
        table: TomlPath = ()
        names: list[str] = []
        depth = 0
        line = 1
        state = "start"
        for piece in _TOKEN.findall(text):
            if piece == "\n":
                if state == "header":
                    table = self._open(names, line, is_array=depth < -1)
                if not (state == "value" and depth):
                    state, names, depth = "start", [], 0
            elif state == "start" and piece == "[":
                state, depth = "header", -1
            elif state == "header":
                depth -= piece == "[" and not names
                if piece not in ("[", "]", ".") and not piece.startswith("#") and piece.strip():
                    names.append(_bare(piece))
            elif state in ("start", "key"):
                if piece == "=":
                    self._lines.setdefault((*table, *names), line)
                    state, depth = "value", 0
                elif piece != "." and piece.strip() and not piece.startswith("#"):
                    state = "key"
                    names.append(_bare(piece))
            elif state == "value":
                depth += (piece in "[{") - (piece in "]}")
            line += piece.count("\n")
        if state == "header":
            self._open(names, line, is_array=depth < -1)

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of a path, or of its nearest parent with a known line; lines count from 1."""
        whole = tuple(path)
        return next(self._lines[whole[:end]] for end in range(len(whole), -1, -1) if whole[:end] in self._lines)

    def _open(self, names: Sequence[str], line: int, *, is_array: bool) -> TomlPath:
        path: TomlPath = ()
        for at, name in enumerate(names):
            path = (*path, name)
            is_last = at == len(names) - 1
            if is_last and is_array:
                self._lines.setdefault(path, line)
                count = self._counts.get(path, 0)
                self._counts[path] = count + 1
                path = (*path, count)
            elif not is_last and path in self._counts:
                path = (*path, self._counts[path] - 1)
        self._lines.setdefault(path, line)
        return path


def _bare(piece: str) -> str:
    return piece[1:-1] if piece[0] in "\"'" else piece


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """One pattern with everything written about its keys. All texts are as written: not safe to show."""

    pattern: Pattern
    expectations: Expectations = field(default_factory=Expectations)
    purpose: str = ""
    owner: str = ""
    scene: str = ""
    deprecated: str = ""
    holds: str = ""
    examples: tuple[bytes, ...] = ()
    references: tuple[Reference, ...] = ()
    lock: Pattern | None = None
    expires_in: tuple[ReferenceSource, str] | None = None
    """The place in the value that tells when it is out of date."""
    longest: int | None = None
    """A larger maximum length of names, in bytes."""
    is_named_here: bool = True
    """Whether naming rules apply; False for names given by a library."""
    origin: str = ""
    """The included registry that contains it; empty for the file itself."""
    line: int = 0
    """The line in its file, from 1."""
    file: Path | None = None
    """The included file that contains it; None for the file itself."""


@dataclass(frozen=True)
class Registry:
    """A complete registry."""

    path: Path | None
    """Its file; None if it was read from a text."""
    title: str
    separators: tuple[bytes, ...]
    entries: tuple[RegistryEntry, ...]
    matcher: Matcher
    naming: NamingRules
    rules: RuleLevels
    source: str = field(default="", repr=False)
    """The complete text; empty if it includes others."""
    warnings: tuple[RegistryProblem, ...] = field(default=(), compare=False)

    def entry_of(self, key: bytes) -> RegistryEntry | None:
        index = self.matcher.match(key)
        return None if index is None else self.entries[index]

    @cached_property
    def _references(self) -> Sequence[tuple[int, Reference]]:
        return [(at, reference) for at, entry in enumerate(self.entries) for reference in entry.references]

    def incoming(self, key: bytes) -> list[Incoming]:
        return list(incoming([entry.pattern for entry in self.entries], self._references, key))


FILE_NAME: Final = "rtui.toml"
SHIPPED: Final = Path(__file__).parent / "registries"


def shipped_names() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def find_registry(start: Path) -> Path | None:
    """Return the registry of a folder: `rtui.toml` in it or in the nearest folder above; else None."""
    for folder in (start, *start.parents):
        path = folder / FILE_NAME
        if path.is_file():
            return path
    return None


def named_registry(name: str, folder: Path) -> Path:
    """Return the file of a name: a registry that ships with rtui, else a path relative to `folder`."""
    return SHIPPED / f"{name}.toml" if name in shipped_names() else folder / Path(name).expanduser()
