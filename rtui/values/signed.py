"""Bytes that are written as text: base64, hexadecimal digits, JWT, and values followed by a signature.

Django writes `payload:time:signature`, itsdangerous `payload.time.signature`, Rails `payload--signature`; the time is
optional. Nothing in them is a mark, and `name:token` looks alike: without a time a payload counts only if it is JSON or
another format that these libraries sign.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

from rtui.values.compressed import read_zlib
from rtui.values.json_text import JsonReader, is_json
from rtui.values.plain import FIRST_DATE, LAST_DATE, date_hints, date_text
from rtui.values.source import CERTAIN, LIKELY, OFFERED, POSSIBLE, Format, ValueSource, by_hand, read_tree, recognises
from rtui.values.tree import Budget, DecodingStep, Invalid, ValueKind, ValueNode

_BASE64: Final = re.compile(rb"[A-Za-z0-9+/\r\n]++(={0,2}+)[\r\n]*+")
_URL_SAFE: Final = re.compile(rb"[A-Za-z0-9_-]++(={0,2}+)")
_BREAKS: Final = b"\r\n"
MIN_PADDED: Final = 8
MIN_UNPADDED: Final = 16
"""The shortest text without padding that is taken for base64; shorter text is often a word."""


def _alphabet(source: ValueSource) -> re.Match[bytes] | None:
    """Match the whole value against the two alphabets; padding may be missing, but has to be right if present."""
    data = source.data
    match = _BASE64.fullmatch(data) or _URL_SAFE.fullmatch(data)
    if match is None:
        return None
    length = len(data.translate(None, _BREAKS)) if b"\n" in data else len(data)
    if match[1]:
        return match if length % 4 == 0 else None
    return match if length % 4 != 1 or not source.is_whole else None


def _sniff_base64(source: ValueSource, _budget: Budget) -> float | None:
    if len(source.data) < MIN_PADDED:
        return None
    match = _alphabet(source)
    if match is None or (len(source.data) < MIN_UNPADDED and not match[1]):
        return None
    return POSSIBLE


def _read_base64(source: ValueSource, budget: Budget) -> DecodingStep:
    if _alphabet(source) is None:
        raise Invalid("consists of letters, digits and + / or - _")
    limit = budget.limits.output_bytes
    text = source.data.translate(bytes.maketrans(b"-_", b"+/"), _BREAKS + b"=")
    is_cut = len(text) // 4 * 3 > limit
    if is_cut:
        text = text[: limit // 3 * 4]
    elif not source.is_whole:
        text = text[: len(text) // 4 * 4]
    notes = (f"only the first {limit:,} bytes that come out of base64 are shown",) if is_cut else ()
    data = base64.b64decode(text + b"=" * (-len(text) % 4))
    return DecodingStep(data, notes, is_cut or not source.is_whole, limited=is_cut)


def _read_digits(source: ValueSource, budget: Budget) -> DecodingStep:
    digits = source.data.strip()[: 2 * budget.limits.output_bytes]
    try:
        data = binascii.unhexlify(digits[: len(digits) // 2 * 2])
    except binascii.Error:
        raise Invalid("consists of hexadecimal digits") from None
    return DecodingStep(data, truncated=not source.is_whole)


_JWT: Final = re.compile(
    rb"(ey[A-Za-z0-9_-]{4,}+)\.([A-Za-z0-9_-]*+)(?:\.([A-Za-z0-9_-]*+))?+(?:\.[A-Za-z0-9_-]*+){0,2}+"
)
_DATES: Final = frozenset({"exp", "iat", "nbf", "auth_time", "updated_at"})
UNVERIFIED: Final = "the signature is not verified: anyone may have written this"


def _decode_part(part: bytes, *, is_whole: bool) -> ValueSource:
    """Return one decoded part of a token; raises Invalid if it is not base64."""
    text = part if is_whole else part[: len(part) // 4 * 4]
    try:
        return ValueSource(base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4)), is_whole)
    except binascii.Error:
        raise Invalid("has three parts of base64") from None


def _sniff_jwt(source: ValueSource, budget: Budget) -> float | None:
    """Recognise a token by its first part: a JSON object with an algorithm."""
    match = _JWT.fullmatch(source.data)
    if match is None:
        return None
    try:
        header = _decode_part(match[1], is_whole=True)
        is_json = header.data.startswith(b"{") and recognises(JsonReader(header, budget.probe()), header)
    except Invalid:
        return None
    return CERTAIN if is_json and b'"alg"' in header.data else None


def _read_jwt(source: ValueSource, budget: Budget) -> DecodingStep:
    """Return the header and claims of a token; an encrypted one (five parts) shows its header only."""
    match = _JWT.fullmatch(source.data)
    if match is None:
        raise Invalid("has three parts of base64")
    root = ValueNode(ValueKind.MAP)
    notes = [UNVERIFIED]
    is_encrypted = source.data.count(b".") == 4
    parts = (("header", match[1]),) if is_encrypted else (("header", match[1]), ("claims", match[2]))
    for title, part in parts:
        is_whole = source.is_whole or match.end(2 if title == "claims" else 1) < len(source.data)
        inner = _decode_part(part, is_whole=is_whole)
        try:
            step = read_tree(JsonReader(inner, budget), inner)
            child = step.content if isinstance(step.content, ValueNode) else ValueNode(ValueKind.NOTE)
        except Invalid:
            child = ValueNode(ValueKind.BYTES, inner.data, "not JSON")
        child.name = ValueNode(ValueKind.TEXT, title)
        root.children.append(child)
    if is_encrypted:
        notes.append("the claims are encrypted")
    elif match[3]:
        signature = _decode_part(match[3], is_whole=source.is_whole)
        root.children.append(
            ValueNode(ValueKind.BYTES, signature.data, "not verified", ValueNode(ValueKind.TEXT, "signature"))
        )
    notes += _date_notes(root)
    return DecodingStep(root, tuple(notes), not source.is_whole)


def _date_notes(root: ValueNode) -> list[str]:
    """Return notes with the dates in the claims."""
    claims = next((node for node in root.children if node.name and node.name.value == "claims"), root)
    return [
        f"{node.name.value!s} {hint}"
        for node in claims.children
        if node.kind is ValueKind.NUMBER and node.name and node.name.value in _DATES
        for hint in date_hints(str(node.value))[:1]
    ]


ENCODED: Final = (
    Format("JWT", _sniff_jwt, _read_jwt),
    Format("base64", _sniff_base64, _read_base64, needs_proof=True),
    Format("hex digits", by_hand, _read_digits),
)


_SIGNATURE: Final = r"[A-Za-z0-9_-]{27}|[A-Za-z0-9_-]{38}|[A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{64}|[A-Za-z0-9_-]{86}"
"""The base64 of a digest of 20, 28, 32, 48 or 64 bytes."""

_DJANGO: Final = re.compile(rf"(?::([0-9A-Za-z]{{6}}))?:({_SIGNATURE})\Z".encode())
_ITSDANGEROUS: Final = re.compile(rf"(?:\.([A-Za-z0-9_-]{{6}}))?\.({_SIGNATURE})\Z".encode())
_RAILS: Final = re.compile(rb"--(?:[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})\Z")
_MAX_BEHIND: Final = 130

_HEX: Final = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_BASE62: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BINARY: Final = re.compile(rb"\x80[\x02-\x05].|\x04\x08[\[{Ioc\"]", re.DOTALL)
"""The first bytes of pickles and of Ruby's Marshal."""


@dataclass(frozen=True, slots=True)
class _Signed:
    payload: bytes
    seconds: int | None
    """The signing time in seconds since 1970."""


def _parse(data: bytes) -> _Signed | None:
    """Return payload and time of a signed value; None without a signature of a known length."""
    start = max(1, len(data) - _MAX_BEHIND)
    if match := _RAILS.search(data, start):
        return _Signed(data[: match.start()], None)
    for pattern in (_DJANGO, _ITSDANGEROUS):
        match = pattern.search(data, start)
        if match is None or _HEX.fullmatch(match[2]) or not _is_canonical(match[2]):
            continue
        seconds = _signing_time(match[1], is_django=pattern is _DJANGO) if match[1] else None
        end = match.start() if seconds is not None else match.start(2) - 1
        return _Signed(data[:end], seconds)
    return None


def _is_canonical(text: bytes) -> bool:
    """Whether base64 is as an encoder writes it, with zero bits at the end."""
    return base64.urlsafe_b64encode(base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))).rstrip(b"=") == text


def _signing_time(text: bytes, *, is_django: bool) -> int | None:
    """Return the signing time, which is base 62 for Django, else base64; None if it is no plausible date."""
    seconds = 0
    if is_django:
        for digit in text:
            seconds = seconds * 62 + _BASE62.index(digit)
    else:
        seconds = int.from_bytes(base64.urlsafe_b64decode(text + b"=="), "big")
    return seconds if FIRST_DATE.timestamp() <= seconds < LAST_DATE.timestamp() else None


def _decoded(payload: bytes) -> bytes | None:
    """Return the base64-decoded payload, without the dot that marks zlib; None if it is not base64."""
    text = payload.removeprefix(b".").rstrip(b"=")
    text = text.translate(bytes.maketrans(b"-_", b"+/"))
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return None


def _is_signed_content(data: bytes, budget: Budget, *, is_compressed: bool = False) -> bool:
    """Whether this is content that is usually signed: JSON (also a number), a pickle, a Ruby value, or zlib."""
    if is_compressed:
        try:
            step = read_zlib(ValueSource(data), budget.probe())
        except Invalid:
            return False
        return isinstance(step.content, bytes) and bool(step.content)
    return bool(_BINARY.match(data)) or is_json(ValueSource(data), budget.probe())


def _sniff_signed_base64(source: ValueSource, budget: Budget) -> float | None:
    """Recognise a base64 payload by its content."""
    found = _parse(source.data) if source.is_whole and source.data.isascii() else None
    content = _decoded(found.payload) if found else None
    if found is None or not content:
        return None
    return LIKELY if _is_signed_content(content, budget, is_compressed=found.payload[:1] == b".") else None


def _sniff_plain(source: ValueSource, budget: Budget) -> float | None:
    """Recognise a plain payload by the time behind it, or as a JSON object or array."""
    found = _parse(source.data) if source.is_whole and source.is_utf8 else None
    if found is None or _RAILS.search(source.data):
        return None
    if found.payload[:1] in (b"{", b"[") and _is_signed_content(found.payload, budget):
        return LIKELY
    return (OFFERED if found.seconds is None else LIKELY) if source.is_text else None


def _step(found: _Signed, content: bytes) -> DecodingStep:
    notes = () if found.seconds is None else (f"signed at {date_text(found.seconds)}",)
    return DecodingStep(content, (UNVERIFIED, *notes))


def _read_signed_base64(source: ValueSource, _budget: Budget) -> DecodingStep:
    """Return the decoded base64 payload; zlib in it is left to its own decoder."""
    found = _parse(source.data)
    content = _decoded(found.payload) if found else None
    if found is None or content is None:
        raise Invalid("is base64 with a signature behind it")
    return _step(found, content)


def _read_plain(source: ValueSource, _budget: Budget) -> DecodingStep:
    found = _parse(source.data)
    if found is None:
        raise Invalid("has a signature at its end")
    return _step(found, found.payload)


FORMATS: Final = (
    Format("signed base64", _sniff_signed_base64, _read_signed_base64),
    Format("signed", _sniff_plain, _read_plain),
)
