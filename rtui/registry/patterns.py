r"""Patterns of key names as a registry writes them: `app:cache:<entity>:detail:<id>`.

A pattern is literal text with placeholders. The registry defines the values of a placeholder by its name:
`<ip>` an address, `<entity>` one of a list (`FORMS` has all forms). Without a definition, `<int>`, `<hex>`,
`<hash>`, `<uuid>`, `<ulid>`, `<date>`, `<ip>`, `<email>` and `<word>` have the form of their name, and every other
placeholder is one byte or more without a separator.

* `<*>` is a placeholder without a name; `<**>` stands for one byte or more, separators included.
* A placeholder may be a part of a segment: `rank_daily_<n>`, `celery-task-meta-<uuid>`.
* Braces of the key itself, as those of a hash tag, are doubled: `{{campaign42}}:<id>`. Around a placeholder single
  ones will do: `{user<id>}.following` is the pattern of `{user1000}.following`.
* A placeholder may be written in braces, too: `{id}` is `<id>`, as registries before had it.
* Backslashes escape as in `redis-cli`: `\x00` is a byte, `\\` a backslash, and `\x3cid>` a literal `<id>`.

**If a key matches two patterns, the more specific one counts.** They are compared by, in this order:

1. the number of segments that are wholly literal: more is more specific,
2. the number of segments that are literal in part,
3. the number of literal bytes in those,
4. the number of placeholders for one of a list,
5. the number of placeholders of a form, such as `int`,
6. the number of placeholders with limits on their length,
7. the number of placeholders for any depth: fewer is more specific.

So `user:<id>:cart` comes before `user:<id>:<what>`, that before `<entity>:<id>:<what>`, and that before `<**>`.
Patterns that are alike in all of this and have a key in common are *ambiguous*: loading the registry warns of them.
Then the one that is literal earlier in the key counts, and of two that are alike in this as well, the one that is
written first.

The form of a placeholder's values is an expression over bytes that a matcher can embed in a larger one.
`Values.expression` inserts the registry's separators for "anything within a segment". A form whose values may contain a
separator, such as an IPv6 address with the separator `:`, *spans*: one value of it may take several segments of a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from rtui.keyspace.text.display import EscapeSyntaxError, display_text, unescape

_HEX: Final = b"[0-9A-Fa-f]"
_OCTET: Final = rb"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IP_V4: Final = _OCTET + rb"(?:\." + _OCTET + rb"){3}"
_GROUP: Final = _HEX + b"{1,4}"


def _ip_v6() -> bytes:
    """Return the expression for an IPv6 address: RFC 4291, with an IPv4 address for the last two groups as well."""
    last = b"(?:" + _GROUP + b":" + _GROUP + b"|" + _IP_V4 + b")"
    ways = [b"(?:" + _GROUP + b":){6}" + last]
    for before in range(7):
        head = b"(?:" + _GROUP + (b"(?::" + _GROUP + b"){0,%d}" % (before - 1) if before > 1 else b"") + b")?"
        head = head if before else b""
        groups = 7 - before
        tails = [b"(?:" + _GROUP + b":){0,%d}" % (groups - 2) + last] if groups >= 2 else []
        ways += [head + b"::" + tail for tail in (*tails, _GROUP)]
    ways.append(b"(?:" + _GROUP + b":){1,7}:")
    ways.append(b"::")
    return b"(?:" + b"|".join(ways) + b")"


_DATE: Final = (
    rb"(?:[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}(?:[T_ -][0-9]{2}(?:[-.:]?[0-9]{2}){0,2}(?:\.[0-9]+)?Z?)?"
    rb"|[0-9]{4}-(?:[0-9]{2}|W[0-9]{2})|[0-9]{8}(?:[T_-]?[0-9]{4}(?:[0-9]{2})?Z?)?|[0-9]{6})"
)


@dataclass(frozen=True, slots=True)
class PlaceholderForm:
    """The form of the values of a placeholder."""

    name: str
    code: int
    """A number for tables, which never changes."""
    what: str
    unit: bytes | None
    """The expression of one byte of a form that repeats it; None for a form with a shape of its own."""
    expression: bytes
    """The expression of a whole value; for a form with a unit, one or more of them."""
    alphabet: bytes
    """The bytes that occur in values; empty if only separators don't."""
    samples: tuple[bytes, ...]

    def __reduce__(self) -> str:
        """Pickle the name of its constant: forms are compared by identity."""
        return self.name.upper().replace("-", "_")

    @property
    def is_typed(self) -> bool:
        return self.code not in (ANY.code, ANY_DEPTH.code)

    def spans(self, separators: Sequence[bytes]) -> bool:
        return self.code == ANY_DEPTH.code or any(not one.translate(None, self.alphabet) for one in separators)


_DIGITS: Final = b"0123456789"
_HEX_DIGITS: Final = _DIGITS + b"abcdefABCDEF"
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _counted(name: str, code: int, what: str, unit: bytes, alphabet: bytes, *samples: bytes) -> PlaceholderForm:
    return PlaceholderForm(name, code, what, unit, unit + b"+", alphabet, samples)


def _shaped(name: str, code: int, what: str, expression: bytes, alphabet: bytes, *samples: bytes) -> PlaceholderForm:
    return PlaceholderForm(name, code, what, None, expression, alphabet, samples)


ANY: Final = PlaceholderForm("any", 1, "anything within a segment", None, b"", b"", (b"x7", b"some-name", b"7"))
INT: Final = _counted("int", 2, "a decimal number", b"[0-9]", _DIGITS, b"42", b"7", b"20261122", b"202611")
HEX: Final = _counted("hex", 3, "hexadecimal digits", _HEX, _HEX_DIGITS, b"9f2c41ab", b"7", b"42", b"ab")
HASH: Final = _shaped(
    "hash",
    4,
    "a hash in hexadecimal digits: MD5, SHA-1, SHA-2",
    b"(?:" + b"|".join(_HEX + b"{%d}" % length for length in (128, 96, 64, 56, 40, 32)) + b")",
    _HEX_DIGITS,
    b"d41d8cd98f00b204e9800998ecf8427e",
    b"12345678901234567890123456789012",
)
UUID: Final = _shaped(
    "uuid",
    5,
    "a UUID",
    _HEX + b"{8}-" + (_HEX + b"{4}-") * 3 + _HEX + b"{12}",
    _HEX_DIGITS + b"-",
    b"7c9e6679-7425-40de-944b-e07fc1f90ae7",
)
ULID: Final = _shaped(
    "ulid",
    6,
    "a ULID",
    rb"[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}",
    _DIGITS + _LETTERS,
    b"01ARZ3NDEKTSV4RRFFQ69G5FAV",
    b"01234567890123456789012345",
)
DATE: Final = _shaped(
    "date",
    7,
    "a day, month or moment, such as 2026-11-22, 20261122 or 2026-11",
    _DATE,
    _DIGITS + b"-/.T_ :ZW",
    b"2026-11-22",
    b"20261122",
    b"202611",
    b"2026-11",
)
IP: Final = _shaped(
    "ip",
    8,
    "an IPv4 or IPv6 address",
    b"(?:" + _IP_V4 + b"|" + _ip_v6() + b")",
    _HEX_DIGITS + b".:",
    b"10.0.0.5",
    b"2001:db8::7",
    b"::1",
)
EMAIL: Final = _shaped(
    "email",
    9,
    "an e-mail address",
    rb"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~\x80-\xff-]+@[A-Za-z0-9.\x80-\xff-]+\.[A-Za-z\x80-\xff]{2,}",
    _DIGITS + _LETTERS + b".!#$%&'*+/=?^_`{|}~-@" + bytes(range(0x80, 0x100)),
    b"ann@example.com",
)
WORD: Final = _shaped(
    "word",
    10,
    "a name: letters, digits, - and _, a letter first",
    rb"[A-Za-z][A-Za-z0-9_-]*",
    _DIGITS + _LETTERS + b"_-",
    b"name",
    b"some-name",
    b"ab",
)
ENUM: Final = PlaceholderForm("enum", 11, "one of a list", None, b"", b"", ())
ANY_DEPTH: Final = PlaceholderForm(
    "any-depth", 12, "anything, of one or more segments", None, b"(?s:.+)", b"", (b"x7", b"a")
)

FORMS: Final[dict[str, PlaceholderForm]] = {
    form.name: form for form in (ANY, INT, HEX, HASH, UUID, ULID, DATE, IP, EMAIL, WORD, ANY_DEPTH)
}

Lengths = tuple[tuple[int, int | None], ...]
"""Inclusive ranges of lengths in bytes; None is no upper bound. Empty: any length."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one placeholder."""

    form: PlaceholderForm = ANY
    options: tuple[bytes, ...] = ()
    lengths: Lengths = ()

    def expression(self, separators: Sequence[bytes]) -> bytes:
        form = self.form
        if form is ENUM:
            return b"(?:" + b"|".join(map(re.escape, sorted(self.options, key=len, reverse=True))) + b")"
        unit = other_than(separators) if form is ANY else form.unit
        if unit is None:
            return form.expression
        if not self.lengths:
            return unit + b"+"
        counts = [b"{%d,%s}" % (low, b"" if high is None else b"%d" % high) for low, high in self.lengths[::-1]]
        return b"(?:" + b"|".join(unit + count for count in counts) + b")"

    def spans(self, separators: Sequence[bytes]) -> bool:
        if self.form is ENUM:
            return any(separator in option for option in self.options for separator in separators)
        return self.form is not ANY and self.form.spans(separators)

    def samples(self) -> tuple[bytes, ...]:
        if self.form is ENUM:
            return self.options
        if not self.lengths or (self.form.unit is None and self.form is not ANY):
            return self.form.samples
        found = (bytes((sample * low)[:low]) for low, _ in self.lengths for sample in self.form.samples if low)
        return (*found, *self.form.samples)


@lru_cache(maxsize=64)
def _other_than(separators: tuple[bytes, ...]) -> bytes:
    if not separators:
        return b"(?s:.)"
    if all(len(separator) == 1 for separator in separators):
        return b"[^" + b"".join(map(re.escape, separators)) + b"]"
    return b"(?s:(?!" + b"|".join(map(re.escape, separators)) + b").)"


def other_than(separators: Sequence[bytes]) -> bytes:
    """Return the expression of one byte at which no separator begins."""
    return _other_than(tuple(separators))


LONGEST_KEY: Final = 4_096
"""The longest key, in bytes, that is matched: the time would grow with the square of its length."""

MOST_PLACEHOLDERS: Final = 3
UNNAMED: Final = ("*", "**")
_NAME: Final = r"(?:[A-Za-z_][A-Za-z0-9_-]*|\*{1,2})"
_TOKEN: Final = re.compile(
    rf"\{{\{{|\}}\}}|<(?P<name>{_NAME})>|\{{(?P<braced>{_NAME})\}}|\{{(?P<tag>[^{{}}]*<{_NAME}>[^{{}}]*)\}}"
    rf"|\{{(?P<wrong>[^{{}}]*)\}}|(?P<brace>[{{}}])|(?:[^{{}}<]|<(?!{_NAME}>))+"
)
_TAG: Final = re.compile(rf"(?<!\{{)\{{\{{([^{{}}]*<{_NAME}>[^{{}}]*)\}}\}}(?!\}})")
_MISREAD: Final = re.compile(rf"<(?={_NAME}>)")


class PatternError(ValueError):
    """A text that is not a pattern; the message gives the reason, in safe text without a full stop."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Bytes that stand for themselves."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A part that differs from key to key."""

    name: str
    """The name; `*` or `**` for an unnamed placeholder."""
    values: Values

    @property
    def is_named(self) -> bool:
        return self.name not in UNNAMED


Part = Literal | Placeholder


class PatternSegment(NamedTuple):
    """A segment of a pattern."""

    parts: tuple[Part, ...]
    """Empty for an empty segment."""
    separator: bytes

    @property
    def literal(self) -> bytes | None:
        if not self.parts:
            return b""
        return self.parts[0].text if len(self.parts) == 1 and isinstance(self.parts[0], Literal) else None

    @property
    def placeholder(self) -> Placeholder | None:
        return self.parts[0] if len(self.parts) == 1 and isinstance(self.parts[0], Placeholder) else None

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        return tuple(part for part in self.parts if isinstance(part, Placeholder))

    def spans(self, separators: Sequence[bytes]) -> bool:
        return any(part.values.spans(separators) for part in self.placeholders)


@lru_cache(maxsize=4096)
def compiled(expression: bytes) -> re.Pattern[bytes]:
    return re.compile(expression)


_LITERAL, _PARTLY, _OPTION, _FORMED, _LIMITED, _FREE, _DEEP = range(7)


@dataclass(frozen=True)
class Pattern:
    """A pattern that has been read."""

    text: str
    separators: tuple[bytes, ...]
    """Longest first, as in `keyspace.text.segments.Separators`."""
    segments: tuple[PatternSegment, ...]

    @cached_property
    def placeholders(self) -> tuple[Placeholder, ...]:
        return tuple(part for segment in self.segments for part in segment.placeholders)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(placeholder.name for placeholder in self.placeholders if placeholder.is_named)

    @cached_property
    def specificity(self) -> tuple[int, ...]:
        """The sort key of patterns: smaller is more specific. See the top of this module."""
        kinds = [_kind_of(segment) for segment in self.segments]
        partly = [one for one, kind in zip(self.segments, kinds, strict=True) if kind == _PARTLY]
        text = sum(len(part.text) for segment in partly for part in segment.parts if isinstance(part, Literal))
        values = [placeholder.values for placeholder in self.placeholders]
        return (
            -kinds.count(_LITERAL),
            -len(partly),
            -text,
            -sum(value.form is ENUM for value in values),
            -sum(value.form.is_typed and value.form is not ENUM for value in values),
            -sum(bool(value.lengths) for value in values),
            sum(value.form is ANY_DEPTH for value in values),
        )

    @cached_property
    def earliest(self) -> tuple[int, ...]:
        return tuple(_kind_of(segment) for segment in self.segments)

    @cached_property
    def expression(self) -> re.Pattern[bytes]:
        """The expression whose full matches are its keys; group n + 1 is the value of placeholder n."""
        return compiled(self.source())

    def source(self, *, has_groups: bool = True) -> bytes:
        return b"".join(
            segment_expression(segment.parts, self.separators, has_groups=has_groups) + re.escape(segment.separator)
            for segment in self.segments
        )

    def matches(self, key: bytes) -> bool:
        return len(key) <= LONGEST_KEY and self.expression.fullmatch(key) is not None

    def fields(self, key: bytes) -> dict[str, bytes] | None:
        found = self.expression.fullmatch(key) if len(key) <= LONGEST_KEY else None
        if found is None:
            return None
        pairs = zip(self.placeholders, found.groups(), strict=True)
        return {one.name: value for one, value in pairs if one.is_named}

    def filled(self, fields: Mapping[str, bytes]) -> bytes | None:
        found = b""
        for segment in self.segments:
            for part in segment.parts:
                if isinstance(part, Literal):
                    found += part.text
                elif part.name in fields:
                    found += fields[part.name]
                else:
                    return None
            found += segment.separator
        return found

    def sample(self) -> bytes:
        texts = [
            [part.text if isinstance(part, Literal) else part.values.samples()[0] for part in segment.parts]
            for segment in self.segments
        ]
        return b"".join(b"".join(text) + segment.separator for text, segment in zip(texts, self.segments, strict=True))


def _kind_of(segment: PatternSegment) -> int:
    if segment.literal is not None:
        return _LITERAL
    only = segment.placeholder
    if only is None:
        return _PARTLY
    values = only.values
    if values.form in (ENUM, ANY_DEPTH):
        return _OPTION if values.form is ENUM else _DEEP
    if values.form.is_typed:
        return _FORMED
    return _LIMITED if values.lengths else _FREE


def segment_expression(parts: Sequence[Part], separators: Sequence[bytes], *, has_groups: bool = True) -> bytes:
    """Return the expression of a segment, optionally with a group for each placeholder.

    Several placeholders for anything with text between them could be divided in many ways. The first place where the
    text behind one occurs is always right, as in globs, so it is searched for once without backtracking (`(?>…)`): the
    time stays linear in the key.
    """
    found = b""
    last = len(parts) - 1
    at = 0
    begin = b"(" if has_groups else b"(?:"
    while at <= last:
        part = parts[at]
        if isinstance(part, Literal):
            found += re.escape(part.text)
            at += 1
            continue
        value = part.values.expression(separators)
        if _is_free(part) and at + 2 <= last and _is_free(parts[at + 2]):
            behind = parts[at + 1]
            text = re.escape(behind.text) if isinstance(behind, Literal) else b""
            found += b"(?>" + begin + other_than(separators) + b"+?)" + text + b")"
            at += 2
            continue
        found += begin + value + b")"
        at += 1
    return found


def _is_free(part: Part) -> bool:
    return isinstance(part, Placeholder) and part.values.form is ANY and not part.values.lengths


def read_pattern(text: str, values: Mapping[str, Values], separators: Sequence[bytes]) -> Pattern:
    """`values` are those of placeholders by name, `separators` come longest first; raises PatternError."""
    parts = _joined(tuple(_parts(text, values)))
    pattern = Pattern(in_angles(text), tuple(separators), tuple(_segments(parts, separators)))
    _check(pattern)
    return pattern


def _parts(text: str, values: Mapping[str, Values]) -> Iterator[Part]:
    for token in _TOKEN.finditer(text):
        name = token["name"] or token["braced"]
        if name:
            yield Placeholder(name, _values_of(name, values))
        elif token["tag"] is not None:
            yield Literal(b"{")
            yield from _parts(token["tag"], values)
            yield Literal(b"}")
        elif token["wrong"] is not None:
            raise PatternError(
                f"{{{display_text(token['wrong'])}}} is no placeholder: a name has letters, digits, - and _"
            )
        elif token["brace"]:
            raise PatternError(
                f"{display_text(text)}: a brace of the key itself is written twice, as {token['brace'] * 2}"
            )
        else:
            yield Literal(token[0][:1].encode() if token[0] in ("{{", "}}") else _unescaped(token[0]))


def in_angles(text: str) -> str:
    """Return a pattern with `<id>` for `{id}` and `{user:<id>}` for `{{user:{id}}}`."""
    text = _TOKEN.sub(lambda token: f"<{token['braced']}>" if token["braced"] else token[0], text)
    return _TAG.sub(r"{\1}", text)


def literal_text(text: str) -> str:
    """Return text of a key as a pattern has it; backslashes in it are escapes already."""
    return _MISREAD.sub(r"\\x3c", text.replace("{", "{{").replace("}", "}}"))


def _unescaped(text: str) -> bytes:
    try:
        return unescape(b"\\" + text.encode() if text.startswith('"') else text.encode())
    except (EscapeSyntaxError, UnicodeEncodeError) as error:
        raise PatternError(str(error)) from None


def _values_of(name: str, values: Mapping[str, Values]) -> Values:
    if name == "**":
        return Values(ANY_DEPTH)
    return values.get(name) or Values(FORMS.get(name, ANY))


def _joined(parts: Sequence[Part]) -> list[Part]:
    found: list[Part] = []
    for part in parts:
        if found and isinstance(part, Literal) and isinstance(found[-1], Literal):
            found[-1] = Literal(found[-1].text + part.text)
        else:
            found.append(part)
    return found


def _segments(parts: Sequence[Part], separators: Sequence[bytes]) -> list[PatternSegment]:
    cut = re.compile(b"(" + b"|".join(map(re.escape, separators)) + b")") if separators else None
    found: list[PatternSegment] = []
    current: list[Part] = []
    for part in parts:
        if isinstance(part, Placeholder) or cut is None:
            current.append(part)
            continue
        pieces = cut.split(part.text)
        for text, separator in zip(pieces[::2], [*pieces[1::2], b""], strict=True):
            if text:
                current.append(Literal(text))
            if separator:
                found.append(PatternSegment(tuple(current), separator))
                current = []
    return [*found, PatternSegment(tuple(current), b"")]


def _check(pattern: Pattern) -> None:
    """Raise PatternError for a pattern that could be read in several ways or would take long."""
    if not pattern.text:
        raise PatternError("a pattern is not empty")
    names = pattern.names
    for name in names:
        if names.count(name) > 1:
            raise PatternError(f"<{name}> stands in it twice: each placeholder has a name of its own")
    if sum(placeholder.values.form is ANY_DEPTH for placeholder in pattern.placeholders) > 1:
        raise PatternError("only one placeholder can be of any depth")
    for segment in pattern.segments:
        if len(segment.placeholders) > MOST_PLACEHOLDERS:
            raise PatternError(f"a segment has {MOST_PLACEHOLDERS} placeholders at most")
        for first, second in zip(segment.parts, segment.parts[1:], strict=False):
            if isinstance(first, Placeholder) and isinstance(second, Placeholder):
                raise PatternError(f"nothing says where <{first.name}> ends and <{second.name}> begins")
            if isinstance(first, Literal) and any(_begins(first.text, separator) for separator in pattern.separators):
                name = second.name if isinstance(second, Placeholder) else ""
                raise PatternError(f"the text before <{name}> ends with a part of a separator")


def _begins(text: bytes, separator: bytes) -> bool:
    return any(text.endswith(separator[:count]) for count in range(1, len(separator)))
