"""Going to a place in a value: typed text is read by the type of the value, and gives the page that begins there.

Lists, arrays and strings take an index or an offset, hashes and sets a name. Sorted sets take a score, a range of
scores `10..20`, a rank `#12000`, a member, or, if all scores are equal, a range of members `[a..[b`: ZCOUNT, ZRANK and
ZLEXCOUNT give the rank, and the page is read by rank like any other. Streams take an id, a time, or a range of either;
they are read backwards, so a time with minutes means the end of that minute.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from rtui.analysis.facts import Reason, Unknown
from rtui.keyspace import types
from rtui.keyspace.text.display import EscapeSyntaxError, SafeText, display_text, unescape
from rtui.server import guard
from rtui.server.facts.preview.page import Find, Page, PageRange
from rtui.server.facts.preview.value_reader import (
    NO_ANSWER,
    PAGE_ITEMS,
    Refused,
    ValueReader,
    expect_count,
    expect_items,
    pairs,
    score,
)
from rtui.server.guard.closed_list import MAX_ARRAY_INDEX
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import LEX_LOOK_UPS
from rtui.server.guard.spec import MAX_FIELD_BYTES, MAX_INDEX

RANGE: Final = ".."
"""Separates the two ends of a range, each of which may be left out."""

_ID: Final = re.compile(r"[0-9]{1,20}(?:-[0-9]{1,20})?")
_AGE: Final = re.compile(r"-?([0-9]{1,9}) ?([smhdw])(?: ago)?")
_CLOCK: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class PlaceSyntax(NamedTuple):
    """The input that one type takes."""

    title: str
    """The name of the input: `index`."""
    hint: str
    """Examples, for the input line."""


_INDEX: Final = PlaceSyntax("index", "an index such as 12000, or -1 for the last one")
PLACES: Final[dict[bytes, PlaceSyntax]] = {
    types.STRING.name: PlaceSyntax("offset", "a byte such as 65536 or 0x10000, or -100 from the end"),
    types.LIST.name: _INDEX,
    types.ARRAY.name: PlaceSyntax("index", "an index such as 12000"),
    types.HASH.name: PlaceSyntax("field", "the whole name of a field"),
    types.SET.name: PlaceSyntax("member", "a whole member"),
    types.ZSET.name: PlaceSyntax("score, rank or member", "10.5, 10..20, #12000 for a rank, a whole member, [a..[b"),
    types.STREAM.name: PlaceSyntax("id or time", "an id, 16:00, 2026-11-22 16:00 (UTC), 1h ago, 16:00..16:30"),
}
"""The inputs by type; other types have no places."""


async def find_place(reader: ValueReader, text: str, now_s: float) -> Page | Unknown:
    """Return the page at the typed place, or why there is none. Raises ConnectionLost.

    `now_s`, in seconds since the epoch, is the base of `1h ago`.
    """
    try:
        return await _place(reader, text, now_s)
    except Refused as refused:
        return refused.why


async def _place(reader: ValueReader, text: str, now_s: float) -> Page:
    key_type = reader.facts.type
    text = text.strip()
    match key_type:
        case types.HASH.name | types.SET.name:
            return Page(find=Find(_name(text), is_exact=True))
        case types.LIST.name | types.ARRAY.name:
            return _indexed(reader, text, PAGE_ITEMS, is_dense=key_type == types.LIST.name)
        case types.STRING.name:
            return _indexed(reader, text, reader.window_bytes, is_dense=True)
        case types.ZSET.name:
            return await _in_zset(reader, text)
        case types.STREAM.name:
            low, between, high = text.partition(RANGE)
            if not between:
                return Page(stream_id(text, now_s, is_end=True), number=2, seen=None)
            lowest = stream_id(low, now_s, is_end=False) if low.strip() else b"-"
            highest = stream_id(high, now_s, is_end=True) if high.strip() else b"+"
            return Page(highest, seen=0, span=PageRange(SafeText(display_text(text.strip(), limit=64)), lowest))
    raise _no("a value of this type has no index to go to")


def _no(why: str) -> Refused:
    return Refused(Unknown(Reason.UNSUPPORTED, display_text(why)))


def _name(text: str) -> bytes:
    """Return the bytes of a typed name, with escapes; raises Refused."""
    try:
        name = unescape(text.encode("utf-8", "surrogateescape"))
    except EscapeSyntaxError as error:
        raise _no(str(error)) from None
    if len(name) > MAX_FIELD_BYTES:
        raise _no("names over 64 KiB are not sent")
    return name


def _number(text: str) -> int | None:
    """Return a typed whole number, also with commas or in hexadecimal digits; None for other text."""
    digits = text.replace(",", "").replace("_", "").removeprefix("#")
    try:
        return int(digits, 16 if digits.lower().startswith(("0x", "-0x")) else 10)
    except ValueError:
        return None


def _indexed(reader: ValueReader, text: str, step: int, *, is_dense: bool) -> Page:
    """Return the page at an index; a negative one counts from the end if there are no gaps. Raises Refused."""
    index, length = _number(text), reader.facts.length
    if index is None:
        raise _no(f"{text!r} is not a whole number")
    if index < 0 and is_dense and isinstance(length, int):
        index = max(0, length + index)
    if not 0 <= index <= (MAX_INDEX if is_dense else MAX_ARRAY_INDEX):
        raise _no(f"there is no index {index:,}")
    if is_dense and isinstance(length, int) and index >= length:
        raise _no(f"the last one is {length - 1:,}" if length else "the value is empty")
    return Page.at(index, step) if is_dense else Page(index, number=2, seen=None)


def parse_score(text: str) -> float | None:
    """Return a typed score, or None; `inf` and `-inf` are scores."""
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) or "_" in text else number


async def _ask(reader: ValueReader, *commands: Command) -> list[int | None]:
    """Return the counts that commands reply, None for nil; raises Refused for an error reply."""
    return [None if reply is None else expect_count(reply) for reply in await reader.begin(*commands)]


async def _in_zset(reader: ValueReader, text: str) -> Page:
    """Return the page at a rank, a score or a member, or the span of a range."""
    if not reader.evidence.look_ups:
        raise Refused(Unknown(Reason.TOO_LARGE, reader.would("ZCOUNT", "walk over all members")))
    if text.startswith("#"):
        return _indexed(reader, text, PAGE_ITEMS, is_dense=True)
    if text.startswith(("[", "(")):
        return await _by_name(reader, text)
    low, between, high = text.partition(RANGE)
    scores = [None if not end.strip() else parse_score(end) for end in (low, high)]
    if between and all(found is not None or not end.strip() for found, end in zip(scores, (low, high), strict=True)):
        first = -math.inf if scores[0] is None else scores[0]
        last = math.inf if scores[1] is None else scores[1]
        found = await _ask(
            reader,
            guard.zcount_below(reader.key, first, evidence=reader.evidence),
            guard.zcount_below(reader.key, last, including=True, evidence=reader.evidence),
        )
        return _spanned(found, SafeText(f"score {first:g} to {last:g}"))
    wanted = parse_score(text)
    if wanted is not None and not between:
        (rank,) = await _ask(reader, guard.zcount_below(reader.key, wanted, evidence=reader.evidence))
        if rank is None or rank == reader.facts.length:
            raise _no(f"no member has a score of {wanted:g} or more")
        return Page.at(rank, PAGE_ITEMS)
    (rank,) = await _ask(reader, guard.zrank(reader.key, _name(text), evidence=reader.evidence))
    if rank is None:
        raise _no("there is no such member")
    return Page.at(rank, PAGE_ITEMS)


def _spanned(ranks: list[int | None], title: SafeText) -> Page:
    """Return the first page of the members from the first of two ranks to the one before the second."""
    start, end = ranks
    if start is None or end is None:
        raise Refused(NO_ANSWER)
    if start >= end:
        raise _no(f"there is no member of {title}")
    return Page(start, span=PageRange(title, end - 1, end - start))


async def _by_name(reader: ValueReader, text: str) -> Page:
    """Return the page at a member, or the span of a range of members; raises Refused unless all scores are equal."""
    if reader.evidence.look_ups < LEX_LOOK_UPS:
        raise Refused(Unknown(Reason.TOO_LARGE, reader.would("ZLEXCOUNT", "walk over all members")))
    low, between, high = text.partition(RANGE)
    total = reader.facts.length
    last_rank = max(0, total - 1) if isinstance(total, int) else 0
    first_reply, last_reply = await reader.begin(
        guard.zrange(reader.key, 0, 0), guard.zrange(reader.key, last_rank, last_rank)
    )
    ends = [score(points) for reply in (first_reply, last_reply) for _, points in pairs(expect_items(reply))]
    if len(set(ends)) != 1:
        raise _no("members are in lexicographical order only if all scores are equal")
    names = [_name(end.strip()[1:]) if end.strip() else None for end in (low, high)]
    start, end = 0, total if isinstance(total, int) else 0
    if names[0] is not None:
        exclusive = low.strip().startswith("(")
        found = await _ask(
            reader, guard.zlexcount_below(reader.key, names[0], including=exclusive, evidence=reader.evidence)
        )
        start = found[0] or 0
    if not between:
        if start == total:
            raise _no("no member is as high as that")
        return Page.at(start, PAGE_ITEMS)
    if names[1] is not None:
        inclusive = not high.strip().startswith("(")
        found = await _ask(
            reader, guard.zlexcount_below(reader.key, names[1], including=inclusive, evidence=reader.evidence)
        )
        end = found[0] or 0
    return _spanned([start, end], SafeText(f"member {display_text(text, limit=48)}"))


def stream_id(text: str, now_s: float, *, is_end: bool) -> bytes:
    """Return the entry id for a typed id or time; for a minute or a day its first id, or with `is_end` its last.

    Raises Refused for other text.
    """
    text = text.strip()
    if _ID.fullmatch(text):
        return text.encode()
    age = _AGE.fullmatch(text)
    if age is not None:
        at_s = now_s - timedelta(**{_UNITS[age[2]]: int(age[1])}).total_seconds()
        return b"%d" % max(0, int(at_s * 1000))
    moment, lasts = _moment(text, now_s)
    return b"%d" % max(0, int((moment + (lasts if is_end else timedelta())).timestamp() * 1000) - is_end)


def _moment(text: str, now_s: float) -> tuple[datetime, timedelta]:
    """Return a typed moment in UTC, and the duration of the typed unit: a day, a minute, a second."""
    clock = _CLOCK.fullmatch(text)
    try:
        if clock is not None:
            hour, minute, second = (int(part or 0) for part in clock.groups())
            moment = datetime.fromtimestamp(now_s, UTC).replace(hour=hour, minute=minute, second=second, microsecond=0)
            return moment, timedelta(seconds=1) if clock[3] else timedelta(minutes=1)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise _no(f"{text!r} is neither an entry id nor a time") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if ":" not in text:
        return moment, timedelta(days=1)
    has_seconds = text.split("+", maxsplit=1)[0].count(":") > 1
    return moment, timedelta(seconds=1) if has_seconds else timedelta(minutes=1)
