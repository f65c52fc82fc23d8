r"""Naming rules: the rules that the name of one key breaks, as bits of a number.

Three checks of a key are enough. Forbidden bytes are the rest after deleting all allowed ones (`bytes.translate`); for
most keys nothing is left, and only for the others the broken rules are looked up byte by byte. Length and braces are
counted. Rules about words (style, abbreviations, a second separator) are decided segment by segment, once for each name
and with every digit replaced by 0, since the same names recur in most keys; segments that are identifiers have no
style.

In a key with a registered pattern, the rules about words cover only the literal text of the pattern, which is decided
once for each pattern. The values of its placeholders are data, except those of the form `word`, which are names as
well.

`userProfile`, `user_profile` and `UserProfile` are the words `user` and `profile`. A word is an abbreviation if it has
no vowel (`prd`, `jwt`), or the consonants of a full word of the glossary without being it (`sessn` for `session`). The
glossary lists the allowed abbreviations.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from functools import reduce
from operator import and_
from types import MappingProxyType
from typing import Final, NamedTuple

from rtui.keyspace.text.display import is_hidden
from rtui.keyspace.text.identifiers import NUMBER, Identifiers
from rtui.keyspace.text.segments import DEFAULT_SEPARATORS, texts_of
from rtui.registry.patterns import WORD, Literal, Pattern


class Style(IntFlag):
    """How the words of a name are joined; names of one short word have several styles."""

    LOWER = 1
    CAMEL = 2
    PASCAL = 4
    SNAKE = 8
    KEBAB = 16
    UPPER = 32


STYLES: Final[dict[str, Style]] = {
    "lower": Style.LOWER,
    "camel": Style.CAMEL,
    "pascal": Style.PASCAL,
    "snake": Style.SNAKE,
    "kebab": Style.KEBAB,
    "upper": Style.UPPER,
}

ALL_STYLES: Final = Style(63)

_EXPRESSIONS: Final = (
    (Style.LOWER, re.compile(rb"[^A-Z]*").fullmatch),
    (Style.CAMEL, re.compile(rb"[a-z][A-Za-z0-9]*").fullmatch),
    (Style.PASCAL, re.compile(rb"[A-Z](?:[A-Za-z0-9]*[a-z][A-Za-z0-9]*)?").fullmatch),
    (Style.SNAKE, re.compile(rb"[a-z0-9]+(?:_[a-z0-9]+)*").fullmatch),
    (Style.KEBAB, re.compile(rb"[a-z0-9]+(?:-[a-z0-9]+)*").fullmatch),
    (Style.UPPER, re.compile(rb"[^a-z]*").fullmatch),
)


def styles_of(name: bytes) -> Style:
    """Return the styles in which a name may be written; all of them for one without ASCII letters."""
    if not any(65 <= byte <= 90 or 97 <= byte <= 122 for byte in name):
        return ALL_STYLES
    found = Style(0)
    for style, fits in _EXPRESSIONS:
        if fits(name):
            found |= style
    return found


_WORD: Final = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(name: bytes) -> list[bytes]:
    return [word.lower() for word in _WORD.findall(name)]


_VOWELS: Final = b"aeiouy"
LONGEST_ABBREVIATION: Final = 6
"""A longer word without a vowel is a code."""


class Glossary:
    """The abbreviations that a team allows."""

    def __init__(self, words: Iterable[tuple[bytes, bytes]]) -> None:
        pairs = [(short.lower(), full.lower()) for short, full in words]
        self.allowed = frozenset(short for short, _ in pairs)
        self._full = frozenset(word for _, full in pairs for word in full.split())
        self._skeletons = frozenset(word.translate(None, _VOWELS) for word in self._full if len(word) > 3)

    def is_foreign(self, word: bytes) -> bool:
        if len(word) < 2 or word in self.allowed or word in self._full:
            return False
        skeleton = word.translate(None, _VOWELS)
        if skeleton == word:
            return len(word) <= LONGEST_ABBREVIATION
        is_plural = word.rstrip(b"s") in self._full or (word.endswith(b"ies") and word[:-3] + b"y" in self._full)
        return skeleton in self._skeletons and not is_plural


NAME_RULES: Final = (
    "name-separator", "name-mixed-separators", "name-case", "name-characters", "name-whitespace", "name-quotes",
    "name-control", "name-encoding", "name-empty-segment", "name-long", "name-huge", "name-short", "name-depth",
    "name-abbreviation", "tag-empty", "tag-unbalanced",
)  # fmt: skip
"""The ids of the rules about one name; the place of each is its bit."""

(
    SEPARATOR, MIXED, CASE, CHARACTERS, WHITESPACE, QUOTES, CONTROL, ENCODING, EMPTY, LONG, HUGE, SHORT, DEPTH,
    ABBREVIATION, TAG_EMPTY, TAG_UNBALANCED,
) = (1 << at for at in range(len(NAME_RULES)))  # fmt: skip

ALL_RULES: Final = (1 << len(NAME_RULES)) - 1
DEFAULT_LONGEST: Final = 50
DEFAULT_HARDEST: Final = 1_024
DEFAULT_SHORTEST: Final = 3
DEFAULT_DEEPEST: Final = 8
DEFAULT_OTHERS: Final = "/|;#,."
_WHITESPACE: Final = b" \t\n\r\v\f"
_QUOTES: Final = b"\"'`"
_CONTROL: Final = bytes({*range(0x20), 0x7F, *b"\\"} - set(_WHITESPACE))

DEFAULT_CHARACTERS: Final = bytes(set(range(0x21, 0x7F)) - set(_QUOTES) - set(_CONTROL)).decode()
"""Printable ASCII without blanks, quotes and backslashes."""

MOST_NAMES: Final = 16_384
"""The size of the cache of segments, which is cleared when it is full."""

LONGEST_NAME: Final = 64
"""Longer segments, in bytes, are not names."""

_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
"""Maps all digits to 0: names that differ in digits only break the same rules."""

STYLE_SHIFT: Final = len(NAME_RULES)
STYLE_BITS: Final = int(ALL_STYLES) << STYLE_SHIFT
"""The style bits of `NamingRules.found_in`: a set bit means that a name is not in that style."""

IS_SINGLE: Final = 1 << 24
"""Set if there is a name of one letter."""
IS_LONG: Final = 1 << 25
"""Set if there is a name of more than one letter, or one that is not a word."""


def rule_ids(mask: int) -> tuple[str, ...]:
    return tuple(rule for at, rule in enumerate(NAME_RULES) if mask >> at & 1)


def styles_found(found: int) -> Style:
    """Return the styles that all names in a key have in common, from the result of `NamingRules.found_in`."""
    return ALL_STYLES & ~Style(found >> STYLE_SHIFT & ALL_STYLES)


@dataclass(frozen=True, slots=True)
class NamingConfig:
    """The parameters of the naming rules."""

    separators: tuple[bytes, ...] = DEFAULT_SEPARATORS
    styles: Style | None = None
    styles_below: Mapping[bytes, Style] = field(default_factory=dict)
    """Allowed styles of keys by prefix; the longest prefix wins."""
    characters: str = DEFAULT_CHARACTERS
    """Every allowed character; separators always are."""
    other_separators: str = DEFAULT_OTHERS
    """Characters that count as a second separator if they are not declared as one."""
    longest: int = DEFAULT_LONGEST
    hardest: int = DEFAULT_HARDEST
    shortest: int = DEFAULT_SHORTEST
    """Bytes."""
    deepest: int = DEFAULT_DEEPEST
    glossary: Glossary | None = None
    """The allowed abbreviations; None: abbreviations are not checked."""


class _Values(NamedTuple):
    """Placeholders of a pattern whose values are not judged like the rest of the name."""

    pattern: Pattern
    names: tuple[int, ...]
    """The groups of the pattern's expression that are names."""
    own: tuple[int, ...]
    """The groups whose form has characters that names may not have."""


class NamingRules:
    """Finds the rules that a name breaks."""

    def __init__(
        self,
        config: NamingConfig,
        patterns: Sequence[Pattern] = (),
        *,
        enabled: int = ALL_RULES,
        exempt: frozenset[int] = frozenset(),
        longest_of: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """`enabled`: the bits of the rules that are not off.

        Names of `exempt` patterns are given by a library; `longest_of` maps patterns to a maximum length of their own.
        """
        self.config = config
        self.enabled = enabled
        self._made_of = config, tuple(patterns), enabled, exempt, dict(longest_of)
        separators = config.separators
        self._ok = bytes({*config.characters.encode()} & set(range(0x80)) | {*b"".join(separators)})
        self._ok = self._ok.translate(None, _WHITESPACE + _QUOTES + _CONTROL)
        self._without_separators = bytes(set(self._ok) - {*b"".join(separators)})
        self._wide = frozenset(character for character in config.characters if not character.isascii())
        self._single = separators[0] if len(separators) == 1 else None
        self._split = re.compile(b"|".join(map(re.escape, separators))).split if separators else _unsplit
        self._form = Identifiers(separators).form
        self._longest_of = dict(longest_of)
        others = "".join(separator for separator in config.other_separators if separator.encode() not in separators)
        self._others = re.compile(b"[" + re.escape(others.encode()) + b"]").search if others else None
        self._names: defaultdict[Style | None, dict[bytes, int]] = defaultdict(dict)
        """Results for segments, by the allowed styles."""
        self._alone: defaultdict[Style | None, dict[bytes, int]] = defaultdict(dict)
        """Results for keys of one segment, by the allowed styles."""
        self._below = sorted(config.styles_below.items(), key=lambda item: -len(item[0]))
        self._of_patterns = tuple(
            None if at in exempt else self._of_pattern(pattern) for at, pattern in enumerate(patterns)
        )
        values = {at: self._values_of(pattern) for at, pattern in enumerate(patterns)}
        self._with_values = {at: found for at, found in values.items() if found.names or found.own}

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _made, self._made_of

    def broken(self, key: bytes, pattern: int = -1) -> int:
        """Return the bits of the enabled rules that a name breaks; `pattern` is the index of its pattern, or -1."""
        return self.of_page((key,), (pattern,))[0]

    def of_page(self, keys: Sequence[bytes], patterns: Sequence[int]) -> list[int]:
        enabled = self.enabled
        return [found & enabled for found in self.found_in(keys, patterns)]

    def found_in(self, keys: Sequence[bytes], patterns: Sequence[int]) -> list[int]:
        """Return the result for each name: the bits of rules, disabled ones included, and of its styles.

        See `styles_found`. A Java-serialised name is judged by its text; keys of exempt patterns have 0.
        """
        config = self.config
        ok, single, split = self._ok, self._single, self._split
        longest, shortest, deepest, of_patterns = config.longest, config.shortest, config.deepest, self._of_patterns
        with_values = self._with_values
        found = []
        for name, pattern in zip(texts_of(keys), patterns, strict=True):
            key, words = name, of_patterns[pattern] if pattern >= 0 else 0
            if words is None:
                found.append(0)
                continue
            mask = 0
            size = len(key)
            if size > longest:
                mask = self._too_long(size, pattern)
            elif size < shortest:
                mask = SHORT
            if pattern in with_values:
                key, of_values = self._without_values(key, with_values[pattern])
                words |= of_values
            if rest := key.translate(None, ok):
                mask |= self._characters(key, rest)
            if b"{" in key or b"}" in key:
                mask |= _tags(key)
            parts = key.split(single, deepest + 1) if single is not None else split(key, deepest + 1)
            if pattern < 0:
                words = self._of_parts(key, parts)
            if len(parts) > deepest:
                mask |= DEPTH
            if b"" in parts:
                mask |= EMPTY
            if words & IS_SINGLE and not words & IS_LONG:
                mask |= SHORT
            found.append(mask | words)
        return found

    def _of_parts(self, key: bytes, parts: Sequence[bytes]) -> int:
        allowed = self._allowed(key) if self._below else self.config.styles
        if len(parts) == 1:
            return self._of_name(key, allowed, is_alone=True)
        names, words = self._names[allowed], 0
        for part in parts:
            if not part.isdigit():
                one = names.get(part.translate(_ZEROS))
                words |= self._of_name(part, allowed) if one is None else one
        return words

    def styles(self, key: bytes, pattern: int = -1) -> Style:
        """Return the styles that all names in a key have in common: none if it mixes them."""
        return styles_found(self._words(key, pattern))

    def _words(self, key: bytes, pattern: int) -> int:
        if pattern < 0:
            return self._of_parts(key, key.split(self._single) if self._single is not None else self._split(key))
        known = self._of_patterns[pattern] or 0
        if pattern in self._with_values:
            known |= self._without_values(key, self._with_values[pattern])[1]
        return known

    def _allowed(self, key: bytes) -> Style | None:
        for beginning, styles in self._below:
            if key.startswith(beginning):
                return styles
        return self.config.styles

    def _too_long(self, size: int, pattern: int) -> int:
        longest = max(self._longest_of.get(pattern, self.config.longest), self.config.longest)
        return (LONG if size > longest else 0) | (HUGE if size > self.config.hardest else 0)

    def _values_of(self, pattern: Pattern) -> _Values:
        names, own = [], []
        for group, one in enumerate(pattern.placeholders, 1):
            form = one.values.form
            if form is WORD:
                names.append(group)
            elif form.is_typed and form.alphabet.translate(None, self._without_separators):
                own.append(group)
        return _Values(pattern, tuple(names), tuple(own))

    def _without_values(self, key: bytes, values: _Values) -> tuple[bytes, int]:
        """Return a key without values that have characters of their own, and the result for values that are names.

        An address has dots or colons, whatever is allowed elsewhere.
        """
        found = values.pattern.expression.fullmatch(key)
        if found is None:
            return key, 0
        words = 0
        for group in values.names:
            words |= self._of_name(found[group], self._allowed(key))
        for group in reversed(values.own):
            key = key[: found.start(group)] + b"0" + key[found.end(group) :]
        return key, words

    def _of_name(self, part: bytes, allowed: Style | None, *, is_alone: bool = False) -> int:
        shape = part.translate(_ZEROS)
        names = self._alone[allowed] if is_alone else self._names[allowed]
        found = names.get(shape)
        if found is None:
            found = self._found_of(shape, allowed) | (self._found_of_whole(shape) if is_alone else 0)
            if len(shape) <= LONGEST_NAME:
                if len(names) >= MOST_NAMES:
                    names.clear()
                names[shape] = found
        return found

    def _found_of(self, part: bytes, allowed: Style | None) -> int:
        if part.isdigit() or self._is_identifier(part):
            return 0 if part.isdigit() else IS_LONG
        found = 0
        if self._others is not None and self._others(part) and not _FILE_OR_HOST(part):
            found = MIXED
        if len(part) > LONGEST_NAME or not _NAME(part):
            return found | IS_LONG
        common = reduce(and_, (styles_of(piece.strip(b"_-")) for piece in _PIECES(part)))
        found |= int(ALL_STYLES & ~common) << STYLE_SHIFT
        if allowed is not None and not common & allowed:
            found |= CASE
        found |= IS_SINGLE if len(part) == 1 else IS_LONG
        glossary = self.config.glossary
        if glossary is not None and any(map(glossary.is_foreign, words_of(part))):
            found |= ABBREVIATION
        return found

    def _is_identifier(self, part: bytes) -> bool:
        """Whether a segment is an identifier; a number between slashes leaves names beside it."""
        pattern = self._form(part).pattern
        return pattern is not None and not (b"/" in pattern and NUMBER in pattern)

    def _found_of_whole(self, key: bytes) -> int:
        """Return the result for a key without declared separators; a dot behind a hash tag does not count as one."""
        key = key.replace(b"}.", b"}", 1)
        if not self.config.separators or self._is_identifier(key):
            return 0
        found = SHORT if _GLUED(key) else 0
        is_cut = key.count(b"_") + key.count(b"-") > 1 or (self._others is not None and self._others(key) is not None)
        return found | (SEPARATOR if is_cut and not _FILE_OR_HOST(key) else 0)

    def _of_pattern(self, pattern: Pattern) -> int:
        words, allowed = 0, self._allowed(pattern.sample())
        for segment in pattern.segments:
            for part in segment.parts:
                text = part.text.strip(b"_-.") if isinstance(part, Literal) else b""
                if text and not text.isdigit():
                    words |= self._of_name(text, allowed)
            if any(not isinstance(part, Literal) for part in segment.parts):
                words |= IS_LONG * (len(segment.parts) > 1)
        if len(pattern.segments) == 1 and any(isinstance(part, Literal) for part in pattern.segments[0].parts):
            words |= self._found_of_whole(pattern.sample())
        return words

    def _characters(self, key: bytes, rest: bytes) -> int:
        mask = 0
        if rest.translate(None, _WHITESPACE) != rest:
            mask |= WHITESPACE
        if rest.translate(None, _QUOTES) != rest:
            mask |= QUOTES
        if rest.translate(None, _CONTROL) != rest:
            mask |= CONTROL
        if not rest.isascii():
            try:
                wide = {character for character in key.decode() if not character.isascii()}
            except UnicodeDecodeError:
                return mask | ENCODING
            for character in wide - self._wide:
                mask |= WHITESPACE if character.isspace() else CONTROL if is_hidden(character) else CHARACTERS
            rest = bytes(byte for byte in rest if byte < 0x80)
        return mask | (CHARACTERS if rest.translate(None, _WHITESPACE + _QUOTES + _CONTROL) else 0)


_NAME: Final = re.compile(
    rb"""
    [{]? [A-Za-z]+[0-9]* (?:[_.{}-]+ (?:[A-Za-z]+[0-9]* | [0-9]+))* [_}-]*
    | _+ [A-Za-z] [A-Za-z0-9_]*
    """,
    re.VERBOSE,
).fullmatch
"""A segment made of words, which may end in digits; other mixtures of letters and digits are identifiers."""

_PIECES: Final = re.compile(rb"[.{}]+").split
"""Splits a segment into names of one style each: a hash tag may be in another one."""

_GLUED: Final = re.compile(rb"[A-Za-z]{1,4}[0-9]+[A-Za-z]{1,4}").fullmatch
"""A number between letters, such as u1000flw."""

_FILE_OR_HOST: Final = re.compile(
    rb"""
    [\w-]+ \. [A-Za-z0-9]{1,4}
    | (?:[A-Za-z0-9-]+\.)+ (?:com|org|net|io|dev|app|local|[a-z]{2})
    | v? [0-9]+ (?:\.[0-9]+)+
    """,
    re.VERBOSE,
).fullmatch
"""Names in which a dot does not separate: of files, of hosts, of versions."""


def _made(
    config: NamingConfig,
    patterns: Sequence[Pattern],
    enabled: int,
    exempt: frozenset[int],
    longest_of: Mapping[int, int],
) -> NamingRules:
    return NamingRules(config, patterns, enabled=enabled, exempt=exempt, longest_of=longest_of)


def _unsplit(key: bytes, maxsplit: int = 0) -> list[bytes]:
    return [key]


def _tags(key: bytes) -> int:
    opening = key.find(b"{")
    closing = key.find(b"}", opening + 1) if opening >= 0 else -1
    if opening < 0 or closing < 0:
        return TAG_UNBALANCED
    if closing == opening + 1:
        return TAG_EMPTY
    is_nested = key.find(b"{", opening + 1, closing) >= 0
    return TAG_UNBALANCED if is_nested or key.count(b"{") != key.count(b"}") else 0
