"""JSON as a tree, and a tree as JSON: numbers as written, duplicate members kept; and text that is nearly JSON.

Real libraries and people deviate: fastjson writes `0L`, Python's json `NaN`, its repr 'single quotes' and `None`, .NET
a byte order mark, C programs a NUL at the end, and several JSON values may stand one a line. Values stay as written,
and deviations become a note.
"""

from __future__ import annotations

import base64
import codecs
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from rtui.values.source import CERTAIN, LIKELY, POSSIBLE, Format, Reader, ValueSource, read_tree, recognises
from rtui.values.tree import Budget, Cut, DecodingStep, Invalid, Stopped, ValueKind, ValueNode, outline

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CUT_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?\Z")
CONSTANTS: Final = ("true", "false", "null")
_CUT_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)$")


class JsonReader(Reader):
    """Reads JSON; its cursor counts characters."""

    def __init__(self, source: ValueSource, budget: Budget) -> None:
        super().__init__(source, budget)
        self._text = source.text
        self.end = len(self._text)
        self._is_whole = source.is_whole

    def read(self) -> None:
        self._value()
        self._skip_space()

    def _skip_space(self) -> str:
        """Skip white space; return the next character, empty at the end."""
        match = _SPACE.match(self._text, self.at)
        if match is not None:
            self.at = match.end()
        return self._text[self.at : self.at + 1]

    def _value(self) -> None:
        character = self._skip_space()
        if character == '"':
            self._string()
        elif character in ("{", "["):
            self._container(ValueKind.MAP if character == "{" else ValueKind.LIST)
        elif character == "":
            raise Cut
        else:
            self._plain()

    def _container(self, kind: ValueKind) -> None:
        node = self.add(kind)
        self.enter(node)
        self.at += 1
        closing = "}" if kind is ValueKind.MAP else "]"
        if self._skip_space() == closing:
            self.at += 1
            self.leave()
            return
        while True:
            if kind is ValueKind.MAP:
                self._member_name()
            self._value()
            after = self._skip_space()
            self.at += 1
            if after == closing:
                break
            if after == "":
                raise Cut
            if after != ",":
                raise Invalid(f"has {after!r} where a comma or {closing} should be")
        self.leave()

    def _member_name(self) -> None:
        character = self._skip_space()
        if character == "":
            raise Cut
        if character != '"':
            raise Invalid(f"has {character!r} where the name of a member should be")
        self._string()
        self.take_as_name()
        colon = self._skip_space()
        if colon == "":
            raise Cut
        if colon != ":":
            raise Invalid(f"has {colon!r} where a colon should be")
        self.at += 1

    def _string(self) -> None:
        match = _STRING.match(self._text, self.at)
        if match is None:
            self._cut_string()
        else:
            self._add_text(match[0])
            self.at = match.end()

    def _add_text(self, quoted: str) -> ValueNode:
        if "\\" not in quoted:
            return self.add(ValueKind.TEXT, quoted[1:-1])
        try:
            return self.add(ValueKind.TEXT, str(json.loads(quoted)))
        except ValueError:
            raise Invalid("has an invalid escape") from None

    def _cut_string(self) -> None:
        """Read a string whose end is cut, without a trailing partial escape."""
        rest = self._text[self.at :]
        if self._is_whole or any(character < " " for character in rest):
            raise Invalid("has a string without an end")
        node = self._add_text(_CUT_ESCAPE.sub(lambda found: found[0][: -len(found[1])], rest) + '"')
        node.is_cut = True
        self.at = self.end
        raise Cut

    def _plain(self) -> None:
        number = NUMBER.match(self._text, self.at)
        if number is not None:
            is_cut = not self._is_whole and _CUT_NUMBER.match(self._text, self.at) is not None
            self.add(ValueKind.NUMBER, number[0]).is_cut = is_cut
            self.at = self.end if is_cut else number.end()
            return
        word = next((word for word in CONSTANTS if self._text.startswith(word, self.at)), None)
        if word is None:
            rest = self._text[self.at : self.at + 5]
            if not self._is_whole and self.at + len(rest) == self.end and rest in ("-", *_constant_prefixes()):
                raise Cut
            raise Invalid(f"has {rest[:1]!r} where a value should be")
        self.add(ValueKind.CONSTANT, word)
        self.at += len(word)


def _constant_prefixes() -> tuple[str, ...]:
    return tuple(word[:length] for word in CONSTANTS for length in range(1, len(word)))


def sniff_json(source: ValueSource, budget: Budget) -> float | None:
    """Recognise objects and arrays, and strings in quotes; bare numbers and words are plain text."""
    head = source.data.lstrip(b" \t\r\n")[:1]
    if head not in (b"{", b"[", b'"') or (head == b'"' and not source.is_whole):
        return None
    small = source if len(source.data) <= SNIFFED_BYTES else ValueSource(source.data[:SNIFFED_BYTES], is_whole=False)
    if not source.is_utf8 or not is_json(small, budget.probe()):
        return None
    return LIKELY if head == b'"' else CERTAIN


def is_json(source: ValueSource, budget: Budget) -> bool:
    """Whether the bytes are JSON from first to last, with any characters: DEL needs no escape."""
    return source.is_utf8 and recognises(JsonReader(source, budget), source)


SNIFFED_BYTES: Final = 16 * 1024


def read_json(source: ValueSource, budget: Budget) -> DecodingStep:
    return read_tree(JsonReader(source, budget), source)


_INDENT: Final = "  "
_BRACKETS: Final = {ValueKind.MAP: "{}", ValueKind.LIST: "[]"}


CUT: Final = "…"
"""Marks missing data: as the name of a last member, at the start of a last item, at the end of a text."""


def node_json(node: ValueNode, *, may_be_cut: bool = False) -> str | None:
    """Return a node and everything below it as JSON, one member a line; None if it is cut or a disassembly.

    Numbers stay as written, duplicate members stay both; bytes become an object with their base64, and values without a
    JSON equivalent their text. Unprintable characters are escaped. With `may_be_cut` cut nodes become well-formed JSON,
    too, with `CUT` wherever something is missing, and before text that is a note and no data.
    """
    if not may_be_cut and (is_cut(node) or any(row.node.kind is ValueKind.NOTE for row in outline(node))):
        return None
    return "".join(_pieces(node, "\n"))


def is_cut(node: ValueNode) -> bool:
    return any(row.node.is_cut or row.node.missing for row in outline(node))


def _pieces(node: ValueNode, line: str) -> Iterator[str]:
    """Yield the JSON of a node in pieces; `line` is a line break with the indentation of the node."""
    children = list(node.children)
    if node.kind in _BRACKETS and (node.is_cut or node.missing):
        rest = f"{node.missing:,} more were not read" if node.missing else "the rest was not read"
        mark = ValueNode(
            ValueKind.TEXT, rest if node.kind is ValueKind.MAP else f"{CUT} {rest}", name=ValueNode(ValueKind.TEXT, CUT)
        )
        children.append(mark)
    if not children:
        yield _plain(node)
        return
    brackets = _BRACKETS[node.kind]
    yield brackets[0]
    for number, child in enumerate(children):
        yield f"{',' if number else ''}{line}{_INDENT}"
        if node.kind is ValueKind.MAP:
            name = "" if child.name is None else child.name.value
            yield f"{_text(name.decode('utf-8', 'backslashreplace') if isinstance(name, bytes) else name)}: "
        yield from _pieces(child, line + _INDENT)
    yield f"{line}{brackets[1]}"


def _plain(node: ValueNode) -> str:
    if node.kind in _BRACKETS:
        return _BRACKETS[node.kind]
    if isinstance(node.value, bytes):
        rest = f', "{CUT}": "the rest was not read"' if node.is_cut else ""
        return f'{{"base64": "{base64.b64encode(node.value).decode()}"{rest}}}'
    if node.kind is ValueKind.NOTE:
        return f'{{"{CUT}": {_text(node.value)}}}'
    if node.is_cut:
        return _text(f"{node.value}{CUT}")
    is_json = node.kind is ValueKind.NUMBER and NUMBER.fullmatch(node.value) is not None
    return node.value if is_json or (node.kind is ValueKind.CONSTANT and node.value in CONSTANTS) else _text(node.value)


def _text(text: str) -> str:
    shown = json.dumps(text, ensure_ascii=False)
    return (
        shown if shown.isprintable() else "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in shown)
    )


MAX_ODDITIES: Final = 5

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

    def __init__(self, source: ValueSource, budget: Budget) -> None:
        data = source.data.removeprefix(codecs.BOM_UTF8)
        whole = data.rstrip(b"\0") if source.is_whole else data
        super().__init__(ValueSource(whole, source.is_whole), budget)
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
        parts = (f"{what} ({count:,} times)" if count > 1 else what for what, count in self.oddities.items())
        return f"not JSON: {', '.join(parts)}"

    def _value(self) -> None:
        if self._skip_space() == "'":
            self._string()
        else:
            super()._value()

    def _container(self, kind: ValueKind) -> None:
        node = self.add(kind)
        self.enter(node)
        self.at += 1
        closing = "}" if kind is ValueKind.MAP else "]"
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
            if kind is ValueKind.MAP:
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
        self.add(ValueKind.TEXT, text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))
        self.at = match.end()

    def _cut_string(self) -> None:
        if self._text[self.at] == "'":
            raise Cut if not self._is_whole else Invalid("has a text without an end")
        super()._cut_string()

    def _plain(self) -> None:
        for pattern, kind in ((_SUFFIXED, ValueKind.NUMBER), (_WORDS, ValueKind.CONSTANT)):
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
        node = self.add(ValueKind.LIST, "", "lines")
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
    make: Callable[[ValueSource, Budget], Reader], accepts: Callable[[Reader], bool], confidence: float
) -> Callable[[ValueSource, Budget], float | None]:
    """Return a `sniff` function for text with an opening bracket that the reader reads and `accepts`."""

    def sniff(source: ValueSource, budget: Budget) -> float | None:
        if not _OPENING.match(source.data):
            return None
        try:
            reader = make(source, budget.probe())
            return (
                confidence
                if recognises(reader, ValueSource(source.data, source.is_whole)) and accepts(reader)
                else None
            )
        except Invalid:
            return None

    return sniff


def _is_odd(reader: Reader) -> bool:
    return isinstance(reader, NearlyJsonReader) and bool(reader.oddities)


def _has_lines(reader: Reader) -> bool:
    return reader.root is not None and len(reader.root.children) > 1


def _read(source: ValueSource, budget: Budget) -> DecodingStep:
    reader = NearlyJsonReader(source, budget)
    step = read_tree(reader, ValueSource(source.data, source.is_whole))
    return replace(step, notes=(reader.note, *step.notes)) if reader.oddities else step


def _read_json(source: ValueSource, budget: Budget) -> DecodingStep:
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


def _read_lines(source: ValueSource, budget: Budget) -> DecodingStep:
    return read_tree(LinesReader(source, budget), source)


FORMATS: Final = (
    Format("JSON", sniff_json, _read_json),
    Format("JSON lines", _sniff_with(LinesReader, _has_lines, LIKELY), _read_lines),
    Format("JSON, nearly", _sniff_with(NearlyJsonReader, _is_odd, POSSIBLE), _read),
)
