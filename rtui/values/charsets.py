"""Text in encodings other than UTF-8: decoded by choice only, since no rule tells them apart.

UTF-16 with its byte order mark is the exception.
"""

from __future__ import annotations

import codecs
from typing import Final

from rtui.values.limits import Budget, Invalid
from rtui.values.source import LIKELY, Format, Source, by_hand, limited_step
from rtui.values.tree import Step

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
        return not source.is_text and all(one.isprintable() or one in "\t\n\r" for one in text)

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
    return LIKELY if all(one.isprintable() or one in "\t\n\r" for one in text) else None


def _read_marked(source: Source, budget: Budget) -> Step:
    charset = _MARKS.get(source.data[:2])
    if charset is None:
        raise Invalid("begins with ff fe or fe ff")
    return _as_utf8("UTF-16", _text(source.data[2:], charset, is_whole=source.is_whole), source, budget)


def _as_utf8(name: str, text: str, source: Source, budget: Budget) -> Step:
    return limited_step(name, text.encode("utf-8", "surrogatepass"), source, budget)


FORMATS: Final = (
    Format("UTF-16", _sniff_marked, _read_marked),
    *(_format(name, charset) for name, charset in CHARSETS.items()),
)
