"""Bytes that are written as text: base64 in its two alphabets, hexadecimal digits, and JWT."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from rtui.values.json_text import JsonReader
from rtui.values.limits import Budget, Invalid
from rtui.values.plain import date_hints
from rtui.values.source import CERTAIN, POSSIBLE, Format, Source, by_hand, read_tree, recognises
from rtui.values.tree import Kind, Node, Step

_BASE64: Final = re.compile(rb"[A-Za-z0-9+/\r\n]++(={0,2}+)[\r\n]*+")
_URL_SAFE: Final = re.compile(rb"[A-Za-z0-9_-]++(={0,2}+)")
_BREAKS: Final = b"\r\n"
MIN_PADDED: Final = 8
MIN_UNPADDED: Final = 16
"""The shortest text without padding that is taken for base64; shorter text is often a word."""


def _alphabet(source: Source) -> re.Match[bytes] | None:
    """Match the whole value against the two alphabets; padding may be missing, but has to be right if present."""
    data = source.data
    match = _BASE64.fullmatch(data) or _URL_SAFE.fullmatch(data)
    if match is None:
        return None
    length = len(data.translate(None, _BREAKS)) if b"\n" in data else len(data)
    if match[1]:
        return match if length % 4 == 0 else None
    return match if length % 4 != 1 or not source.is_whole else None


def _sniff_base64(source: Source, _budget: Budget) -> float | None:
    if len(source.data) < MIN_PADDED:
        return None
    match = _alphabet(source)
    if match is None or (len(source.data) < MIN_UNPADDED and not match[1]):
        return None
    return POSSIBLE


def _read_base64(source: Source, budget: Budget) -> Step:
    """Decode whole groups of four characters, up to the budget's output."""
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
    return Step(data, notes, is_cut or not source.is_whole, limited=is_cut)


def _read_digits(source: Source, budget: Budget) -> Step:
    """Decode pairs of hexadecimal digits."""
    digits = source.data.strip()[: 2 * budget.limits.output_bytes]
    try:
        data = binascii.unhexlify(digits[: len(digits) // 2 * 2])
    except binascii.Error:
        raise Invalid("consists of hexadecimal digits") from None
    return Step(data, truncated=not source.is_whole)


_JWT: Final = re.compile(
    rb"(ey[A-Za-z0-9_-]{4,}+)\.([A-Za-z0-9_-]*+)(?:\.([A-Za-z0-9_-]*+))?+(?:\.[A-Za-z0-9_-]*+){0,2}+"
)
_DATES: Final = frozenset({"exp", "iat", "nbf", "auth_time", "updated_at"})
UNVERIFIED: Final = "the signature is not verified: anyone may have written this"


def _decode_part(part: bytes, *, is_whole: bool) -> Source:
    """Return one decoded part of a token; raises Invalid if it is not base64."""
    text = part if is_whole else part[: len(part) // 4 * 4]
    try:
        return Source(base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4)), is_whole)
    except binascii.Error:
        raise Invalid("has three parts of base64") from None


def _sniff_jwt(source: Source, budget: Budget) -> float | None:
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


def _read_jwt(source: Source, budget: Budget) -> Step:
    """Return the header and claims of a token; an encrypted one (five parts) shows its header only."""
    match = _JWT.fullmatch(source.data)
    if match is None:
        raise Invalid("has three parts of base64")
    root = Node(Kind.MAP)
    notes = [UNVERIFIED]
    is_encrypted = source.data.count(b".") == 4
    parts = (("header", match[1]),) if is_encrypted else (("header", match[1]), ("claims", match[2]))
    for title, part in parts:
        is_whole = source.is_whole or match.end(2 if title == "claims" else 1) < len(source.data)
        inner = _decode_part(part, is_whole=is_whole)
        try:
            step = read_tree(JsonReader(inner, budget), inner)
            child = step.content if isinstance(step.content, Node) else Node(Kind.NOTE)
        except Invalid:
            child = Node(Kind.BYTES, inner.data, "not JSON")
        child.name = Node(Kind.TEXT, title)
        root.children.append(child)
    if is_encrypted:
        notes.append("the claims are encrypted")
    elif match[3]:
        signature = _decode_part(match[3], is_whole=source.is_whole)
        root.children.append(Node(Kind.BYTES, signature.data, "not verified", Node(Kind.TEXT, "signature")))
    notes += _date_notes(root)
    return Step(root, tuple(notes), not source.is_whole)


def _date_notes(root: Node) -> list[str]:
    """Return notes with the dates in the claims."""
    claims = next((node for node in root.children if node.name and node.name.value == "claims"), root)
    return [
        f"{node.name.value!s} {hint}"
        for node in claims.children
        if node.kind is Kind.NUMBER and node.name and node.name.value in _DATES
        for hint in date_hints(str(node.value))[:1]
    ]


FORMATS: Final = (
    Format("JWT", _sniff_jwt, _read_jwt),
    Format("base64", _sniff_base64, _read_base64, needs_proof=True),
    Format("hex digits", by_hand, _read_digits),
)
