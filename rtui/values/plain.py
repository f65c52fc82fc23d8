"""Plain values: text, numbers that may be dates, UUIDs, and bytes shown in hex.

Text in encodings other than UTF-8 is decoded by choice only, since no rule tells them apart; UTF-16 with its byte order
mark is the exception.
"""

from __future__ import annotations

import codecs
import re
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from rtui.values.limits import Budget, Invalid
from rtui.values.source import LIKELY, POSSIBLE, Format, Source, by_hand, limited_step
from rtui.values.tree import Form, Kind, Node, Step

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


def _sniff_number(source: Source, _budget: Budget) -> float | None:
    return LIKELY if source.is_whole and _NUMBER.fullmatch(source.data) else None


def _read_number(source: Source, _budget: Budget) -> Step:
    if not _NUMBER.fullmatch(source.data):
        raise Invalid("is decimal digits")
    number = source.data.decode("ascii")
    return Step(Node(Kind.NUMBER, number), date_hints(number), not source.is_whole, Form.TEXT)


def _sniff_uuid(source: Source, _budget: Budget) -> float | None:
    return LIKELY if source.is_whole and _UUID.fullmatch(source.data) else None


def _read_uuid(source: Source, _budget: Budget) -> Step:
    """Read the 36 characters or the 16 bytes of a UUID."""
    if _UUID.fullmatch(source.data):
        return _described(UUID(source.data.decode("ascii")))
    if len(source.data) == 16:
        return _described(UUID(bytes=source.data))
    raise Invalid("has 36 characters or 16 bytes")


def _described(uuid: UUID) -> Step:
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
    return Step(Node(Kind.TEXT, str(uuid), "UUID"), (notes,) if notes else (), form=Form.TEXT)


def _since_1582(ticks: int) -> float:
    """Convert 100-nanosecond ticks since the start of the Gregorian calendar to seconds since 1970."""
    return ticks / 10_000_000 + (_UUID_EPOCH - _EPOCH).total_seconds()


def _sniff_text(source: Source, _budget: Budget) -> float | None:
    return POSSIBLE if source.is_text else None


def _read_text(source: Source, _budget: Budget) -> Step:
    """Return UTF-8 text; invalid bytes are kept as surrogate escapes."""
    text = source.text if source.is_text else source.data.decode("utf-8", "surrogateescape")
    return Step(Node(Kind.TEXT, text), truncated=not source.is_whole, form=Form.TEXT)


def _read_hex(source: Source, _budget: Budget) -> Step:
    return Step(Node(Kind.BYTES, source.data), truncated=not source.is_whole, form=Form.HEX)


UUID_FORMAT: Final = Format("UUID", _sniff_uuid, _read_uuid)
NUMBER: Final = Format("number", _sniff_number, _read_number)

FORMATS: Final = (UUID_FORMAT, NUMBER)
"""The formats that are recognised by their shape."""

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
    def can_read(source: Source) -> bool:
        if source.data.isascii() and not charset.startswith("utf-16"):
            return False
        try:
            text = _text(source.data, charset, is_whole=source.is_whole)
        except Invalid:
            return False
        return not source.is_text and all(character.isprintable() or character in "\t\n\r" for character in text)

    def read(source: Source, budget: Budget) -> Step:
        return _as_utf8(name, _text(source.data, charset, is_whole=source.is_whole), source, budget)

    return Format(name, by_hand, read, can_read=can_read)


def _sniff_marked(source: Source, _budget: Budget) -> float | None:
    charset = _MARKS.get(source.data[:2])
    if charset is None or len(source.data) < 4:
        return None
    try:
        text = _text(source.data[2:], charset, is_whole=source.is_whole)
    except Invalid:
        return None
    return LIKELY if all(character.isprintable() or character in "\t\n\r" for character in text) else None


def _read_marked(source: Source, budget: Budget) -> Step:
    charset = _MARKS.get(source.data[:2])
    if charset is None:
        raise Invalid("begins with ff fe or fe ff")
    return _as_utf8("UTF-16", _text(source.data[2:], charset, is_whole=source.is_whole), source, budget)


def _as_utf8(name: str, text: str, source: Source, budget: Budget) -> Step:
    return limited_step(name, text.encode("utf-8", "surrogatepass"), source, budget)


CHARSET_FORMATS: Final = (
    Format("UTF-16", _sniff_marked, _read_marked),
    *(_format(name, charset) for name, charset in CHARSETS.items()),
)
