"""Plain values: text, numbers that may be dates, UUIDs, bytes in hex; type and size of pictures.

Text in encodings other than UTF-8 is decoded by choice only, since no rule tells them apart; UTF-16 with its byte order
mark is the exception.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from rtui.values.source import CERTAIN, LIKELY, POSSIBLE, Format, ValueSource, by_hand, limited_step
from rtui.values.tree import Budget, DecodingStep, Invalid, ValueForm, ValueKind, ValueNode

_NUMBER: Final = re.compile(rb"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
_UUID: Final = re.compile(rb"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

FIRST_DATE: Final = datetime(2000, 1, 1, tzinfo=UTC)
LAST_DATE: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""Numbers are shown as dates between FIRST_DATE and this."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UUID_EPOCH: Final = datetime(1582, 10, 15, tzinfo=UTC)
_UNITS: Final = (("seconds", 1), ("milliseconds", 1_000))


def date_hints(number: str) -> tuple[str, ...]:
    """Return a number read as a date, one sentence for each unit that gives a plausible date."""
    try:
        value = float(number)
    except ValueError:
        return ()
    found = []
    for unit, in_second in _UNITS:
        seconds = value / in_second
        if FIRST_DATE.timestamp() <= seconds < LAST_DATE.timestamp():
            found.append(f"as {unit} since 1970: {date_text(seconds)}")
    return tuple(found)


def date_text(seconds: float) -> str:
    """Return seconds since 1970 as a date in UTC; the number itself if it is beyond the calendar."""
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return f"{seconds} s since 1970"
    whole = moment.isoformat(" ", "milliseconds" if moment.microsecond else "seconds")
    return f"{whole.removesuffix('+00:00')} UTC"


def _sniff_number(source: ValueSource, _budget: Budget) -> float | None:
    return LIKELY if source.is_whole and _NUMBER.fullmatch(source.data) else None


def _read_number(source: ValueSource, _budget: Budget) -> DecodingStep:
    if not _NUMBER.fullmatch(source.data):
        raise Invalid("is decimal digits")
    number = source.data.decode("ascii")
    return DecodingStep(ValueNode(ValueKind.NUMBER, number), date_hints(number), not source.is_whole, ValueForm.TEXT)


def _sniff_uuid(source: ValueSource, _budget: Budget) -> float | None:
    return LIKELY if source.is_whole and _UUID.fullmatch(source.data) else None


def _read_uuid(source: ValueSource, _budget: Budget) -> DecodingStep:
    if _UUID.fullmatch(source.data):
        return _described(UUID(source.data.decode("ascii")))
    if len(source.data) == 16:
        return _described(UUID(bytes=source.data))
    raise Invalid("has 36 characters or 16 bytes")


def _described(uuid: UUID) -> DecodingStep:
    """Return a UUID with its version, and the time in versions 1, 6 and 7."""
    ticks = uuid.int >> 64
    seconds: float | None = None
    match uuid.version:
        case 1:
            seconds = _since_1582(uuid.time)
        case 6:
            seconds = _since_1582((ticks >> 16) << 12 | (ticks & 0x0FFF))
        case 7:
            seconds = (uuid.int >> 80) / 1_000
    kind = "" if uuid.version is None else f"version {uuid.version}"
    time = "" if seconds is None else f"made at {date_text(seconds)}"
    notes = ", ".join(part for part in (kind, time) if part)
    return DecodingStep(ValueNode(ValueKind.TEXT, str(uuid), "UUID"), (notes,) if notes else (), form=ValueForm.TEXT)


def _since_1582(ticks: int) -> float:
    """Convert 100-nanosecond ticks since the start of the Gregorian calendar to seconds since 1970."""
    return ticks / 10_000_000 + (_UUID_EPOCH - _EPOCH).total_seconds()


def _sniff_text(source: ValueSource, _budget: Budget) -> float | None:
    return POSSIBLE if source.is_text else None


def _read_text(source: ValueSource, _budget: Budget) -> DecodingStep:
    """Return UTF-8 text; invalid bytes are kept as surrogate escapes."""
    text = source.text if source.is_text else source.data.decode("utf-8", "surrogateescape")
    return DecodingStep(ValueNode(ValueKind.TEXT, text), truncated=not source.is_whole, form=ValueForm.TEXT)


def _read_hex(source: ValueSource, _budget: Budget) -> DecodingStep:
    return DecodingStep(ValueNode(ValueKind.BYTES, source.data), truncated=not source.is_whole, form=ValueForm.HEX)


UUID_FORMAT: Final = Format("UUID", _sniff_uuid, _read_uuid)
NUMBER: Final = Format("number", _sniff_number, _read_number)

FORMATS: Final = (UUID_FORMAT, NUMBER)

TEXT: Final = Format("text", _sniff_text, _read_text)
HEX: Final = Format("hex", by_hand, _read_hex)
"""The fallbacks if nothing else fits."""


CHARSETS: Final = {
    "UTF-16 LE": "utf-16-le", "UTF-16 BE": "utf-16-be", "GB18030 (GBK)": "gb18030", "Big5": "big5hkscs",
    "Shift_JIS": "cp932", "EUC-JP": "euc_jp", "EUC-KR": "cp949", "Windows-1252 (Latin-1)": "cp1252",
    "Latin-1": "latin-1", "Latin-2": "iso8859-2", "Windows-1250": "cp1250", "Windows-1251": "cp1251",
    "KOI8-R": "koi8-r", "Windows-1253": "cp1253", "Windows-1254": "cp1254", "Windows-1255": "cp1255",
    "Windows-1256": "cp1256", "IBM437": "cp437", "TIS-620": "cp874",
}  # fmt: skip
"""The encodings by the names that are offered, with Python's codec names."""

_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def _text(data: bytes, charset: str, *, is_whole: bool) -> str:
    """Return the text; raises Invalid if a byte is undefined in the encoding."""
    decoder = codecs.getincrementaldecoder(charset)()
    try:
        return decoder.decode(data, is_whole)
    except UnicodeError as error:
        at = error.start if isinstance(error, UnicodeDecodeError) else 0
        raise Invalid(f"can't be the encoding of this text: byte {at:,} means nothing in it") from None


def _format(name: str, charset: str) -> Format:
    def can_read(source: ValueSource) -> bool:
        if source.data.isascii() and not charset.startswith("utf-16"):
            return False
        try:
            text = _text(source.data, charset, is_whole=source.is_whole)
        except Invalid:
            return False
        return not source.is_text and all(character.isprintable() or character in "\t\n\r" for character in text)

    def read(source: ValueSource, budget: Budget) -> DecodingStep:
        return _as_utf8(name, _text(source.data, charset, is_whole=source.is_whole), source, budget)

    return Format(name, by_hand, read, can_read=can_read)


def _sniff_marked(source: ValueSource, _budget: Budget) -> float | None:
    charset = _MARKS.get(source.data[:2])
    if charset is None or len(source.data) < 4:
        return None
    try:
        text = _text(source.data[2:], charset, is_whole=source.is_whole)
    except Invalid:
        return None
    return LIKELY if all(character.isprintable() or character in "\t\n\r" for character in text) else None


def _read_marked(source: ValueSource, budget: Budget) -> DecodingStep:
    charset = _MARKS.get(source.data[:2])
    if charset is None:
        raise Invalid("begins with ff fe or fe ff")
    return _as_utf8("UTF-16", _text(source.data[2:], charset, is_whole=source.is_whole), source, budget)


def _as_utf8(name: str, text: str, source: ValueSource, budget: Budget) -> DecodingStep:
    return limited_step(name, text.encode("utf-8", "surrogatepass"), source, budget)


CHARSET_FORMATS: Final = (
    Format("UTF-16", _sniff_marked, _read_marked),
    *(_format(name, charset) for name, charset in CHARSETS.items()),
)


_BMP_HEADERS: Final = frozenset({12, 40, 52, 56, 64, 108, 124})
_PNG_COLOURS: Final = {0: "grey", 2: "RGB", 3: "palette", 4: "grey with alpha", 6: "RGB with alpha"}
_JPEG_WITHOUT_SIZE: Final = frozenset({0xC4, 0xC8, 0xCC})
MAX_JPEG_SEGMENTS: Final = 1_000
MAX_HEADER_BYTES: Final = 256 * 1024
"""The first bytes of a picture that are searched for its size, which JPEG has behind previews and colour profiles."""

_Facts = dict[str, int | str]


def _little(data: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _big(data: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _png(data: bytes) -> _Facts | None:
    if len(data) < 26 or data[12:16] != b"IHDR":
        return None
    colour = _PNG_COLOURS.get(data[25], "unknown")
    return {"width": _big(data, 16, 4), "height": _big(data, 20, 4), "bits": data[24], "colours": colour}


def _gif(data: bytes) -> _Facts | None:
    return {"width": _little(data, 6), "height": _little(data, 8)} if len(data) >= 10 else None


def _bmp(data: bytes) -> _Facts | None:
    if len(data) < 30:
        return None
    header = _little(data, 14, 4)
    if header == 12:
        return {"width": _little(data, 18), "height": _little(data, 20), "bits": _little(data, 24)}
    height = int.from_bytes(data[22:26], "little", signed=True)
    return {"width": _little(data, 18, 4), "height": abs(height), "bits": _little(data, 28)}


def _webp(data: bytes) -> _Facts | None:
    kind = data[12:16]
    if kind == b"VP8 " and len(data) >= 30:
        return {"width": _little(data, 26) & 0x3FFF, "height": _little(data, 28) & 0x3FFF, "kind": "lossy"}
    if kind == b"VP8L" and len(data) >= 25:
        bits = _little(data, 21, 4)
        return {"width": (bits & 0x3FFF) + 1, "height": (bits >> 14 & 0x3FFF) + 1, "kind": "lossless"}
    if kind == b"VP8X" and len(data) >= 30:
        return {"width": _little(data, 24, 3) + 1, "height": _little(data, 27, 3) + 1, "kind": "extended"}
    return None


def _jpeg(data: bytes) -> _Facts | None:
    """Walk the segments up to the frame header, which has the size."""
    at = 2
    for _ in range(MAX_JPEG_SEGMENTS):
        while data[at : at + 2] == b"\xff\xff":
            at += 1
        if at + 9 > len(data) or data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in _JPEG_WITHOUT_SIZE:
            return {"width": _big(data, at + 7), "height": _big(data, at + 5), "bits": data[at + 4]}
        at += 2 + max(2, _big(data, at + 2))
    return None


def _is_bmp(data: bytes) -> bool:
    return data.startswith(b"BM") and data[6:10] == bytes(4) and _little(data, 14, 4) in _BMP_HEADERS


def _picture(name: str, is_own: Callable[[bytes], bool], facts: Callable[[bytes], _Facts | None]) -> Format:
    """Return the decoder of one picture format."""

    def read(source: ValueSource, _budget: Budget) -> DecodingStep:
        if not is_own(source.data):
            raise Invalid("begins in another way")
        found = facts(source.data[:MAX_HEADER_BYTES])
        root = ValueNode(ValueKind.MAP, type_name=f"{name} picture")
        for title, value in (found or {}).items():
            kind = ValueKind.NUMBER if isinstance(value, int) else ValueKind.TEXT
            root.children.append(ValueNode(kind, str(value), name=ValueNode(ValueKind.TEXT, title)))
        notes = () if found else ("its size is not in these bytes",)
        return DecodingStep(root, notes, not source.is_whole)

    return Format(name, lambda source, _: CERTAIN if is_own(source.data) and not source.is_text else None, read)


PICTURES: Final = (
    _picture("PNG", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"), _png),
    _picture("JPEG", lambda data: data.startswith(b"\xff\xd8\xff"), _jpeg),
    _picture("GIF", lambda data: data.startswith((b"GIF87a", b"GIF89a")), _gif),
    _picture("WebP", lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP", _webp),
    _picture("BMP", _is_bmp, _bmp),
)
