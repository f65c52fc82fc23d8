"""JSON, and text that is nearly JSON, as real libraries write it and people type it; deviations become a note.

fastjson writes `0L`, Python's json `NaN`, its repr 'single quotes' and `None`, .NET a byte order mark, C programs a NUL
at the end. Values stay as written. Also several JSON values, one a line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from rtui.values.json_text import NUMBER, JsonReader, read_json, sniff_json
from rtui.values.limits import Budget, Cut, Invalid, Stopped
from rtui.values.source import LIKELY, POSSIBLE, Format, Reader, Source, read_tree, recognises
from rtui.values.tree import Kind, Step

MAX_ODDITIES: Final = 5
"""The most deviations from JSON whose position is given."""

_OPENING: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*[{\[]")
_SUFFIXED: Final = re.compile(NUMBER.pattern + r"[LlDdFf](?![\w.])")
_WORDS: Final = re.compile(r"(?:-?Infinity|NaN|None|True|False|undefined)(?!\w)")
_STRINGS: Final = {
    '"': re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL),
    "'": re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL),
}
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_OTHER_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*(\\[^\"\\/bfnrtu])", re.DOTALL)
_ESCAPES: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|(.))", re.DOTALL
)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}


class NearlyJsonReader(JsonReader):
    """Reads JSON and common deviations from it; its cursor counts characters."""

    def __init__(self, source: Source, budget: Budget) -> None:
        data = source.data.removeprefix(codecs.BOM_UTF8)
        whole = data.rstrip(b"\0") if source.is_whole else data
        super().__init__(Source(whole, source.is_whole), budget)
        self.oddities: dict[str, int] = {}
        """The deviations from JSON, each with its first position, and how often each occurs."""
        self._before = len(source.data) - len(data)
        if self._before:
            self.oddities["a byte order mark at byte 0"] = 1
        if len(whole) < len(data):
            self.oddities["NUL at the end"] = len(data) - len(whole)
        self._known: dict[str, str] = {}

    def _note(self, what: str, at: int) -> None:
        if what not in self._known:
            is_named = len(self._known) < MAX_ODDITIES
            place = f" at byte {self._before + len(self._text[:at].encode()):,}" if is_named else ""
            self._known[what] = f"{what}{place}" if is_named else "other things"
        name = self._known[what]
        self.oddities[name] = self.oddities.get(name, 0) + 1

    @property
    def note(self) -> str:
        """The deviations from JSON as a sentence."""
        parts = (f"{what} ({count:,} times)" if count > 1 else what for what, count in self.oddities.items())
        return f"not JSON: {', '.join(parts)}"

    def _value(self) -> None:
        if self._skip_space() == "'":
            self._string()
        else:
            super()._value()

    def _container(self, kind: Kind) -> None:
        """Read an object or array from its opening to its closing bracket; a trailing comma is allowed."""
        node = self.add(kind)
        self.enter(node)
        self.at += 1
        closing = "}" if kind is Kind.MAP else "]"
        while (character := self._skip_space()) != closing:
            if not character:
                raise Cut
            if node.children:
                if character != ",":
                    raise Invalid(f"has {character!r} where a comma or {closing} should be")
                comma = self.at
                self.at += 1
                if self._skip_space() == closing:
                    self._note("a comma before the end", comma)
                    continue
            if kind is Kind.MAP:
                self._member_name()
            self._value()
        self.at += 1
        self.leave()

    def _member_name(self) -> None:
        if self._skip_space() != "'":
            super()._member_name()
            return
        self._string()
        self.take_as_name()
        colon = self._skip_space()
        if colon != ":":
            raise Invalid(f"has {colon!r} where a colon should be") if colon else Cut
        self.at += 1

    def _string(self) -> None:
        """Read a string in quotes of either kind; control characters in it need no escape."""
        quote = self._text[self.at]
        match = _STRINGS[quote].match(self._text, self.at)
        control = match and _CONTROL.search(match[0])
        escape = match and quote == '"' and _OTHER_ESCAPE.search(match[0])
        if match is None or (quote == '"' and not control and not escape):
            super()._string()
            return
        if quote == "'":
            self._note("a text in single quotes", self.at)
        if control:
            self._note("a control character", self.at + control.start())
        if escape:
            self._note("an escape that JSON lacks", self.at + escape.start(1))
        text = _ESCAPES.sub(_unescaped, match[0][1:-1])
        self.add(Kind.TEXT, text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))
        self.at = match.end()

    def _cut_string(self) -> None:
        if self._text[self.at] == "'":
            raise Cut if not self._is_whole else Invalid("has a text without an end")
        super()._cut_string()

    def _plain(self) -> None:
        for pattern, kind in ((_SUFFIXED, Kind.NUMBER), (_WORDS, Kind.CONSTANT)):
            match = pattern.match(self._text, self.at)
            if match is not None:
                self._note(match[0] if len(match[0]) < 40 else "a number with a letter", self.at)
                self.add(kind, match[0])
                self.at = match.end()
                return
        super()._plain()


def _unescaped(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2] or escape[3]
    return chr(int(digits, 16)) if digits else _LETTERS.get(escape[4], escape[4])


class LinesReader(JsonReader):
    """Reads JSON values, one a line."""

    def read(self) -> None:
        """Read all values into a list."""
        node = self.add(Kind.LIST, "", "lines")
        self.enter(node)
        while True:
            before = self.at
            if not self._skip_space():
                break
            if node.children and "\n" not in self._text[before : self.at]:
                raise Invalid("has two values on one line")
            self._value()
        self.leave()


def _sniff_with(
    make: Callable[[Source, Budget], Reader], accepts: Callable[[Reader], bool], confidence: float
) -> Callable[[Source, Budget], float | None]:
    """Return a `sniff` function for text with an opening bracket that the reader reads and `accepts`."""

    def sniff(source: Source, budget: Budget) -> float | None:
        if not _OPENING.match(source.data):
            return None
        try:
            reader = make(source, budget.probe())
            return confidence if recognises(reader, Source(source.data, source.is_whole)) and accepts(reader) else None
        except Invalid:
            return None

    return sniff


def _is_odd(reader: Reader) -> bool:
    return isinstance(reader, NearlyJsonReader) and bool(reader.oddities)


def _has_lines(reader: Reader) -> bool:
    return reader.root is not None and len(reader.root.children) > 1


def _read(source: Source, budget: Budget) -> Step:
    reader = NearlyJsonReader(source, budget)
    step = read_tree(reader, Source(source.data, source.is_whole))
    return replace(step, notes=(reader.note, *step.notes)) if reader.oddities else step


def _read_json(source: Source, budget: Budget) -> Step:
    """Read JSON; if damage turns up behind the sniffed bytes, read it as nearly JSON."""
    before = budget.elements
    step = read_json(source, budget)
    if not any(note.startswith("damaged") for note in step.notes):
        return step
    budget.elements = before
    with suppress(Stopped):
        nearly = _read(source, budget)
        if not nearly.truncated or nearly.limited:
            return nearly
    return step


def _read_lines(source: Source, budget: Budget) -> Step:
    return read_tree(LinesReader(source, budget), source)


FORMATS: Final = (
    Format("JSON", sniff_json, _read_json),
    Format("JSON lines", _sniff_with(LinesReader, _has_lines, LIKELY), _read_lines),
    Format("JSON, nearly", _sniff_with(NearlyJsonReader, _is_odd, POSSIBLE), _read),
)
