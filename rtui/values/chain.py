"""Chooses decoders by the bytes, one after another, until a tree, text or plain bytes are left.

For `H4sIAA…` that goes as follows. base64 fits its alphabet, but so do words: it counts only because its output is
recognised. That begins as gzip does; the output of gzip is a JSON object, so the chain is base64 › gzip › JSON. At each
layer every decoder is asked for its confidence; one with a mark that no other format has wins at once, else the surest
one, the earlier of two that are equally sure. Decoders that need proof are asked only if no other one is sure, and text
and hex are the fallbacks.

Values behind a short prefix: Rails 7.1 and dogpile.cache have headers with a mark, whose fields are shown in notes. For
all other prefixes, which only their writer understands, decoders with a mark are tried at the first few offsets.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rtui.values import compressed, java, json_text, php, pickles, plain, protobuf, ruby, signed
from rtui.values.binary_json import BSON, CBOR, MSGPACK
from rtui.values.compressed import SNAPPY
from rtui.values.php import IGBINARY
from rtui.values.plain import HEX, NUMBER, PICTURES, TEXT, UUID_FORMAT, date_hints, date_text
from rtui.values.plugins import plugin_formats
from rtui.values.signed import ENCODED
from rtui.values.source import CERTAIN, LIKELY, OFFERED, Format, ValueSource, by_hand
from rtui.values.tree import (
    DEFAULT,
    SEPARATOR,
    Budget,
    Decoded,
    DecodingLimits,
    DecodingStep,
    Exceeded,
    Invalid,
    MissingLibrary,
    Stopped,
    ValueForm,
    ValueKind,
    ValueNode,
)

MAX_PREFIX: Final = 16
"""The longest prefix in bytes."""

MIN_BEHIND: Final = 8
"""The fewest bytes behind a prefix."""

_MARKS: Final = re.compile(
    rb"(?=\x1f\x8b\x08|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|BZh[1-9]|\xfd7zXZ\0|\x78[\x01\x5e\x9c\xda]|\x80[\x02-\x05]"
    rb"|\x04\x08[\[{ocIe\"/:]|\xac\xed\0\x05|\xff\x06\0\0[sS]|\0\0\0[\x01\x02]\x14|Obj\x01)",
    re.DOTALL,
)
"""The first bytes of formats with an unmistakable mark."""

_RAILS: Final = b"\x00\x11"
_RAILS_HEADER: Final = struct.Struct("<2xBdi")
_RAILS_TYPES: Final = {1: "Marshal or another serialiser", 2: "text", 3: "bytes", 4: "ASCII"}
_COMPRESSED: Final = 0x80


def marked_offsets(source: ValueSource) -> list[int]:
    """Return the offsets among the first bytes at which a format with a mark may begin; none in text."""
    if source.is_text:
        return []
    found = (match.start() for match in _MARKS.finditer(source.data[: MAX_PREFIX + 6]))
    return [at for at in found if 0 < at <= MAX_PREFIX and at + MIN_BEHIND <= len(source.data)]


def after(count: int) -> Format:
    """Return the decoder that skips `count` bytes."""

    def read(source: ValueSource, _budget: Budget) -> DecodingStep:
        if len(source.data) <= count:
            raise Invalid(f"has more than {count} bytes")
        prefix = source.data[:count]
        shown = prefix.decode() if prefix.isascii() and prefix.decode().isprintable() else prefix.hex(" ")
        return DecodingStep(source.data[count:], (f"before it: {shown}",), not source.is_whole)

    return Format(f"after {count} byte{'s' if count > 1 else ''}", by_hand, read, can_read=lambda _source: False)


def _rails_header(data: bytes) -> tuple[int, float, int] | None:
    """Return type, expiry time and version length of a Rails cache entry, or None."""
    if not data.startswith(_RAILS) or len(data) < _RAILS_HEADER.size:
        return None
    kind, expires, version = _RAILS_HEADER.unpack_from(data)
    is_known = kind & ~_COMPRESSED in _RAILS_TYPES and version >= -1 and (expires == -1 or 0 < expires < 1 << 40)
    return (kind, expires, version) if is_known else None


def _sniff_rails(source: ValueSource, _budget: Budget) -> float | None:
    return CERTAIN if _rails_header(source.data) else None


def _read_rails(source: ValueSource, _budget: Budget) -> DecodingStep:
    """Return the content of an ActiveSupport::Cache entry, as Rails writes it from 7.1 on."""
    header = _rails_header(source.data)
    if header is None:
        raise Invalid("begins with 00 11 and the header of a cache entry")
    kind, expires, version_bytes = header
    start = _RAILS_HEADER.size + max(0, version_bytes)
    notes = ["never expires" if expires < 0 else f"expires at {date_text(expires)}"]
    if version_bytes > 0:
        notes.append(f"version {source.data[_RAILS_HEADER.size : start].decode('utf-8', 'surrogateescape')}")
    notes.append(f"holds {_RAILS_TYPES[kind & ~_COMPRESSED]}")
    return DecodingStep(source.data[start:], (f"Rails cache entry: {', '.join(notes)}",), not source.is_whole)


_DOGPILE: Final = re.compile(rb'\{"ct": ([0-9]{1,12}(?:\.[0-9]{1,9})?), "v": ([0-9]{1,4})\}\|')


def _sniff_dogpile(source: ValueSource, _budget: Budget) -> float | None:
    return CERTAIN if _DOGPILE.match(source.data) else None


def _read_dogpile(source: ValueSource, _budget: Budget) -> DecodingStep:
    """Return the content behind the creation time and version that dogpile.cache writes as JSON from 1.1 on."""
    header = _DOGPILE.match(source.data)
    if header is None:
        raise Invalid('begins with {"ct": …, "v": …}|')
    note = f"dogpile.cache entry: created at {date_text(float(header[1]))}, version {header[2].decode()}"
    return DecodingStep(source.data[header.end() :], (note,), not source.is_whole)


PREFIXED: Final = (
    Format("Rails cache", _sniff_rails, _read_rails),
    Format("dogpile.cache", _sniff_dogpile, _read_dogpile),
)

PREFIXES: Final = tuple(after(count) for count in range(1, MAX_PREFIX + 1))


BUILT_IN: Final = (
    *json_text.FORMATS,
    *compressed.FORMATS,
    *php.COMPRESSED,
    *PREFIXED,
    *pickles.FORMATS,
    *php.FORMATS,
    IGBINARY,
    *java.FORMATS,
    *ruby.FORMATS,
    BSON,
    *PICTURES,
    MSGPACK,
    CBOR,
    *ENCODED,
    *signed.FORMATS,
    *SNAPPY,
    *plain.FORMATS,
    *protobuf.FORMATS,
    *plain.CHARSET_FORMATS,
)
"""All decoders in the order in which they are asked, without the fallbacks TEXT and HEX."""

INSTALL: Final = "install redis-rtui[decode] to read it"

MIN_PROOF_BYTES: Final = 6
"""The shortest output that proves a decoder without a mark right."""


class UnknownDecoderError(ValueError):
    """No decoder has the chosen name; the message quotes it."""


def formats() -> tuple[Format, ...]:
    """Return the decoders: the user's own before those of rtui, text and hex last."""
    return (*plugin_formats(), *BUILT_IN, TEXT, HEX)


def decoder_names() -> tuple[str, ...]:
    """Return the names that `choose` accepts."""
    return tuple(dict.fromkeys(decoder.name for decoder in (*formats(), *PREFIXES)))


def decode(
    data: bytes, *, limits: DecodingLimits = DEFAULT, choose: str | None = None, is_whole: bool = True
) -> Decoded:
    """Decode a value with the decoders that fit it or that were chosen.

    `choose` names the first decoder, or several separated by ` › `; their output is recognised again. `is_whole` says
    that `data` is the complete value, not only its beginning. Never raises for any bytes; raises UnknownDecoderError
    for an unknown decoder name.
    """
    wanted = [_find_format(name) for name in choose.split(SEPARATOR)] if choose else []
    return _Chain(ValueSource(data, is_whole), Budget.starting(limits)).follow(wanted)


class Choices(NamedTuple):
    """The decoder names to choose from for one value."""

    fitting: tuple[str, ...]
    """The chain that was found, its prefixes, other decoders that recognise the bytes, text and hex; the best first."""
    others: tuple[str, ...]
    """All other decoders by name; most of them fail, see `Decoded.has_failed`."""


def choices(
    data: bytes, *, limits: DecodingLimits = DEFAULT, is_whole: bool = True, found: Decoded | None = None
) -> Choices:
    """Return all decoders for these bytes, fitting ones first.

    `found`: the result of `decode` without a choice, if it is at hand; saves decoding the bytes again.
    """
    fitting = alternatives(data, limits=limits, is_whole=is_whole, found=found)
    source = ValueSource(data, is_whole)
    first = {name.split(SEPARATOR)[0] for name in fitting}
    left = sorted({decoder.name for decoder in formats() if decoder.can_read(source)} - first, key=str.casefold)
    return Choices(fitting, tuple(left))


def alternatives(
    data: bytes, *, limits: DecodingLimits = DEFAULT, is_whole: bool = True, found: Decoded | None = None
) -> tuple[str, ...]:
    """Return the fitting decoders, as in `Choices.fitting`."""
    found = found or decode(data, limits=limits, is_whole=is_whole)
    names = [found.title]
    for length in range(len(found.chain) - 1, 0, -1):
        outer = found.chain[:length]
        names += [SEPARATOR.join((*outer, last)) for last in (TEXT.name, HEX.name)]
    source, budget = ValueSource(data, is_whole), Budget.starting(limits)
    names += [one.name for _, one in _candidates(source, budget) if one.name != found.chain[0]]
    if source.is_text:
        names.append(TEXT.name)
    return tuple(dict.fromkeys((*names, HEX.name)))


def _find_format(name: str) -> Format:
    found = next((decoder for decoder in (*formats(), *PREFIXES) if decoder.name.casefold() == name.casefold()), None)
    if found is None:
        raise UnknownDecoderError(f"there is no decoder {name!r}")
    return found


@dataclass(slots=True)
class _Chain:
    """The decoders applied to a value so far, and the bytes that the last one gave."""

    source: ValueSource
    budget: Budget
    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)

    def follow(self, wanted: list[Format]) -> Decoded:
        """Apply the wanted decoders, then fitting ones, until a tree is reached or nothing is left to decode."""
        while True:
            chosen = wanted.pop(0) if wanted else None
            if chosen is None and len(self.names) >= self.budget.limits.layers:
                self.notes.append(f"only {self.budget.limits.layers} layers are decoded")
                chosen = TEXT if self.source.is_text else HEX
            fitting = chosen or recognise(self.source, self.budget, self.failed, self.notes)
            try:
                step = fitting.read(self.source, self.budget)
            except Stopped as stopped:
                self.notes.append(_failure(fitting, stopped))
                self.failed.add(fitting.name)
                if chosen is not None or isinstance(stopped, MissingLibrary):
                    self.names.append(fitting.name)
                    return self._decoded(
                        DecodingStep(ValueNode(ValueKind.BYTES, self.source.data), form=ValueForm.HEX), has_failed=True
                    )
                continue
            self.names.append(fitting.name)
            self.notes += step.notes
            if isinstance(step.content, ValueNode):
                return self._decoded(step)
            self.source = ValueSource(step.content, self.source.is_whole and not step.truncated)
            self.failed.clear()

    def _decoded(self, step: DecodingStep, *, has_failed: bool = False) -> Decoded:
        root = step.content if isinstance(step.content, ValueNode) else ValueNode(ValueKind.BYTES, step.content)
        truncated = step.truncated or not self.source.is_whole
        names, notes = tuple(self.names), tuple(self.notes)
        is_whole = self.source.is_whole
        return Decoded(names, step.form, root, self.source.data, notes, truncated, has_failed, is_whole)


def _failure(fitting: Format, stopped: Stopped) -> str:
    """Return the note about a decoder that failed."""
    match stopped:
        case MissingLibrary():
            return f"{fitting.name}: {INSTALL}"
        case Exceeded():
            return f"{fitting.name}: {stopped}"
    return f"{fitting.name} {stopped}"


def recognise(source: ValueSource, budget: Budget, without: set[str], notes: list[str]) -> Format:
    """Return the best fitting decoder; text or hex if none fits.

    Decoders named in `without` are skipped; messages of failing plugins are appended to `notes`.
    """
    fitting = (one for sure, one in _candidates(source, budget, notes) if sure > OFFERED and one.name not in without)
    best = next(fitting, None) or _skip_prefix(source, budget, without)
    if best is not None:
        return best
    for candidate in formats():
        if candidate.needs_proof and candidate.name not in without and _is_proved(candidate, source, budget):
            return candidate
    return TEXT if source.is_text and TEXT.name not in without else HEX


def _skip_prefix(source: ValueSource, budget: Budget, without: set[str]) -> Format | None:
    """Return the decoder that skips a short prefix before a format with a mark, or None."""
    for at in marked_offsets(source):
        skip, behind = after(at), ValueSource(source.data[at:], source.is_whole)
        sure, fitting = next(iter(_candidates(behind, budget)), (0.0, HEX))
        if skip.name in without or sure < LIKELY:
            continue
        try:
            step = fitting.read(behind, budget.probe())
        except MissingLibrary:
            return skip
        except Stopped:
            continue
        if not (step.truncated and source.is_whole) or step.limited or isinstance(step.content, ValueNode):
            return skip
    return None


def _candidates(source: ValueSource, budget: Budget, notes: list[str] | None = None) -> list[tuple[float, Format]]:
    """Return the decoders that recognise the bytes without a proof, with their confidence, the surest first."""
    if not source.data:
        return []
    found: list[tuple[float, Format]] = []
    for candidate in formats():
        if candidate.needs_proof or candidate is TEXT:
            continue
        try:
            confidence = candidate.sniff(source, budget)
        except Stopped as stopped:
            note = _failure(candidate, stopped)
            if notes is not None and note not in notes:
                notes.append(note)
            continue
        if confidence is not None and confidence > 0:
            found.append((confidence, candidate))
            if confidence >= CERTAIN:
                break
    return sorted(found, key=lambda one: -one[0])


def _is_proved(fitting: Format, source: ValueSource, budget: Budget) -> bool:
    """Whether the decoder's output is itself recognised, as text or by another decoder."""
    if fitting.sniff(source, budget) is None:
        return False
    probe = budget.probe()
    try:
        step = fitting.read(source, probe)
    except Stopped:
        return False
    if not isinstance(step.content, bytes) or len(step.content) < MIN_PROOF_BYTES:
        return False
    if step.truncated and source.is_whole and not step.limited:
        return False
    inner = ValueSource(step.content, not step.truncated)
    return inner.is_text or any(confidence >= LIKELY for confidence, _ in _candidates(inner, probe))


ROW: Final = DecodingLimits(output_bytes=1 << 16, layers=4, depth=32, elements=500, seconds=0.01)
"""The limits for summing up one row, so that a page of a hundred takes a second at most."""

MAX_CHARACTERS: Final = 400
"""The longest text in a summary."""

_PLAIN: Final = frozenset({TEXT.name, HEX.name, NUMBER.name, UUID_FORMAT.name})
_READABLE_AS_STORED: Final = frozenset(decoder.name for decoder in (*json_text.FORMATS, *php.FORMATS))
"""Formats that people can read as stored."""

_JSON: Final = frozenset(decoder.name for decoder in json_text.FORMATS)


@dataclass(frozen=True, slots=True)
class ValueSummary:
    """A value in a few words; all fields are raw, for `display_text`."""

    decoders: str
    """The chain without text, number and hex at its end: `gzip › JSON`; empty for a number that may be a date."""
    value: str
    """A number as it is, a text in double quotes, `{12}` for a map of 12 members, `[3]` for a list, with `≥` if cut."""
    type_name: str = ""
    """The type or class that the format names: `java.lang.Long`."""
    date: str = ""

    @property
    def text(self) -> str:
        """The summary in one line: `gzip › JSON {12}`, `1536236969740 › 2018-09-06 12:29:29.740 UTC`."""
        words = " ".join(part for part in (self.decoders, self.type_name, self.value) if part)
        return f"{words}{SEPARATOR}{self.date}" if self.date else words


def summarise(data: bytes, *, choose: str | None = None) -> ValueSummary | None:
    """Return the value in one line, within the limits of a row; None if its bytes say as much themselves.

    `choose` is as in `decode`, and raises UnknownDecoderError as there.
    """
    return summary(decode(data, limits=ROW, choose=choose))


def summary(found: Decoded) -> ValueSummary | None:
    """Return a decoded value in one line; None if its bytes say as much themselves, or could not be decoded."""
    root, last = found.root, found.chain[-1]
    decoders = found.chain[:-1] if last in _PLAIN else found.chain
    date = _date(root)
    is_stored = len(found.chain) == 1 and last in _READABLE_AS_STORED and (root.children or last in _JSON)
    if found.has_failed or is_stored or not (decoders or date):
        return None
    return ValueSummary(SEPARATOR.join(decoders), _value(root), root.type_name, date)


def _date(root: ValueNode) -> str:
    if root.kind is not ValueKind.NUMBER:
        return ""
    return next((hint.partition(": ")[2] for hint in date_hints(str(root.value))), "")


def _value(root: ValueNode) -> str:
    """Return a short text for the root: a count of children, a number of bytes, or the beginning of a text."""
    if root.kind in (ValueKind.MAP, ValueKind.LIST):
        count = f"{root.total if root.total is not None else len(root.children):,}"
        count = f"≥ {count}" if root.is_cut and root.total is None else count
        return f"{{{count}}}" if root.kind is ValueKind.MAP else f"[{count}]"
    if isinstance(root.value, bytes):
        return f"{len(root.value):,} bytes"
    cut = root.value[:MAX_CHARACTERS]
    shown = f"{cut}…" if root.is_cut or len(cut) < len(root.value) else cut
    return f'"{shown}"' if root.kind is ValueKind.TEXT else shown
