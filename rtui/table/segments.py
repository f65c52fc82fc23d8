"""The segments of a whole column of names at once, by array operations on the joined bytes of thousands of names.

Names are joined, some thousand at a time. The positions of separators in these bytes give where segments begin and end.
A running sum over the bytes gives a hash of each segment as the difference of two places, another one its numbers of
digits, letters and so on; these tell the most frequent forms of segments, exactly (`SegmentKind`).

Hard cases are left to `KeySegments`, name by name: names that may hold an IPv6 address, a UUID or an IPv4 address with
separators in it, names that Java has serialised, and very long ones. Hash tags are not hard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias
from zlib import crc32

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rtui.keyspace.text.identifiers import ANY, ANY_TAG, LONGEST, Identifiers, KeySegments, Wholes
from rtui.keyspace.text.segments import HEADER, Separators
from rtui.table.schema import keys_of

BLOCK: Final = 1 << 18
"""Bytes of names that are looked at together, as long as no name is longer; running sums of them fit into a cache."""

BLOCK_ROWS: Final = 8_192
LONGEST_NAME: Final = 4_096
"""Longer names, in bytes, are looked at one by one."""

Bytes: TypeAlias = NDArray[np.uint8]
Places: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]
Pairs: TypeAlias = Sequence[tuple[bytes, bytes]]


class SegmentKind(IntEnum):
    """The form of a segment as far as its characters tell (`Identifiers.form`)."""

    UNSURE = 0
    """Nothing."""
    ID = 1
    UUID = 2
    HASH = 3
    NAME = 4
    """It is a name, with no number by which it may be folded."""
    LONG = 5
    """It is longer than any known form."""


_STEP: Final = 0x9E3779B97F4A7C15
_POWERS: Final = np.append(np.uint64(1), np.full(BLOCK + LONGEST_NAME, _STEP, np.uint64)).cumprod(dtype=np.uint64)
_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT: Final = np.uint64(31)

_WIDTH: Final = 9
"""Bits of a count of characters; a segment of more is LONG, however its counts run over."""
_FIELDS: Final = (b"0123456789", b"abcdef", b"ABCDEF", b"ghijklmnopqrstuvwxyz", b"GHIJKLMNOPQRSTUVWXYZ", b":{}", b"=@")
_COUNTED: Final = np.zeros(256, np.uint64)
for _at, _of in enumerate(_FIELDS):
    _COUNTED[list(_of)] = 1 << _WIDTH * _at

_LONGEST_IP6: Final = 34
"""Bytes from its start to its last colon at most."""

_DASHES: Final = np.array([8, 13, 18, 23])


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments of some names, grouped by name."""

    first: Places
    """By name: its first segment."""
    counts: Places
    """By name: how many segments it has, of as many as are wanted."""
    joined: bytes
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    """By segment: its start and its end in `joined`."""
    separators: NDArray[np.uint16]
    """By segment: 0 where the name ends, else the separator behind it, from 1 on."""
    hashes: Hashes
    """By segment: the hash of its bytes."""
    kinds: NDArray[np.uint8]
    """By segment: see `SegmentKind`."""
    is_coded: NDArray[np.bool_]
    """By segment: whether it looks like a code rather than a word."""

    def texts(self, segments: Places) -> list[bytes]:
        joined = self.joined
        places = zip(self.starts[segments].tolist(), self.ends[segments].tolist(), strict=True)
        return [joined[start:end] for start, end in places]


class SegmentSplitter:
    """Splits names at separators, into as many segments as are wanted."""

    def __init__(self, separators: Separators, depth: int) -> None:
        self._values = separators.values
        self._depth = depth
        self._by_segment = KeySegments(separators)
        self._identifiers = Identifiers(separators.values)
        self._wholes = Wholes(separators.values)
        self._code = {value: code for code, value in enumerate(separators.values, 1)} | {b"": 0}
        self._single = np.zeros(256, np.uint16)
        for value in separators.values:
            if len(value) == 1:
                self._single[value[0]] = self._code[value]
        self._splits_braces = any(brace in value for value in separators.values for brace in (b"{", b"}"))
        self._has_single = all(len(value) == 1 for value in separators.values)
        self._words = np.empty((2, 0), np.uint64)

    def split(self, table: pl.DataFrame) -> Segments:
        """Return the segments of the names of a table with the columns `name` and `raw`."""
        parts = [self._split(block) for block in _blocks(table)]
        offsets = np.cumsum([0, *(len(part.joined) for part in parts)])
        segments = np.cumsum([0, *(len(part.starts) for part in parts)])
        return Segments(
            np.concatenate([part.first + at for part, at in zip(parts, segments, strict=False)]),
            np.concatenate([part.counts for part in parts]),
            b"".join([part.joined for part in parts]),
            np.concatenate([part.starts + np.int32(at) for part, at in zip(parts, offsets, strict=False)]),
            np.concatenate([part.ends + np.int32(at) for part, at in zip(parts, offsets, strict=False)]),
            np.concatenate([part.separators for part in parts]),
            np.concatenate([part.hashes for part in parts]),
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.is_coded for part in parts]),
        )

    def _split(self, table: pl.DataFrame) -> Segments:
        sizes, text, pairs = self._joined(table)
        joined = np.frombuffer(text, np.uint8)
        ends = np.cumsum(sizes)
        first_bytes = ends - sizes
        places, codes, lengths = self._separators(joined, ends)
        rows = np.searchsorted(ends, places, side="right")
        is_kept = self._outside_of_tags(joined, first_bytes, ends, places, rows)
        for row in self._with_wholes(joined, ends):
            if row not in pairs:
                key = text[first_bytes[row] : ends[row]]
                if self._splits_braces or self._wholes.may_hold(key):
                    pairs[row] = self._by_segment.of(key, self._depth)
        if b":" in self._values:
            is_near = self._near_ip6(joined, ends)
            is_near[list(pairs)] = False
            is_hard = is_near.copy()
            if self._has_single:
                has_brace = np.zeros(len(ends), bool)
                has_brace[np.searchsorted(ends, np.flatnonzero(joined == ord("{")), side="right")] = True
                is_hard &= has_brace
                is_kept[inside_of_ip6(joined, (first_bytes, ends), places, rows, is_near & ~has_brace)] = False
            for row in np.flatnonzero(is_hard).tolist():
                pairs[row] = self._by_segment.of(text[first_bytes[row] : ends[row]], self._depth)
        if pairs:
            is_kept &= ~np.isin(rows, list(pairs))
        if not is_kept.all():
            places, codes, lengths, rows = places[is_kept], codes[is_kept], lengths[is_kept], rows[is_kept]
        if pairs:
            more = [(int(first_bytes[row]), row, some) for row, some in pairs.items()]
            added = np.array([cut for one in more for cut in self._cuts(*one)], np.int64).reshape(-1, 4)
            places = np.concatenate((places, added[:, 0]))
            codes = np.concatenate((codes, added[:, 1].astype(np.uint16)))
            lengths, rows = np.concatenate((lengths, added[:, 2])), np.concatenate((rows, added[:, 3]))
            order = np.argsort(places, kind="stable")
            places, codes, lengths, rows = places[order], codes[order], lengths[order], rows[order]
        found = np.bincount(rows, minlength=len(sizes))
        first = np.cumsum(found + 1) - found - 1
        behind = np.arange(len(places)) + rows
        count = len(places) + len(sizes)
        starts, stops, separators = np.empty(count, np.int64), np.empty(count, np.int64), np.zeros(count, np.uint16)
        starts[first], starts[behind + 1] = first_bytes, places + lengths
        stops[first + found], stops[behind] = ends, places
        separators[behind] = codes
        counts = np.minimum(found + 1, self._depth)
        of_segments, kinds, is_coded = self._features(joined, starts, stops)
        return Segments(
            first,
            counts,
            text,
            starts.astype(np.int32),
            stops.astype(np.int32),
            separators,
            of_segments,
            kinds,
            is_coded,
        )

    def _joined(self, table: pl.DataFrame) -> tuple[Places, bytes, dict[int, Pairs]]:
        """Return the sizes of all names, the joined bytes, and the segments of names that were replaced."""
        names, pairs = table["name"], dict[int, Pairs]()
        sizes = names.str.len_bytes().to_numpy().astype(np.int64)
        if table["raw"].null_count() == table.height and (not len(sizes) or sizes.max() <= LONGEST_NAME):
            return sizes, names.str.join("")[0].encode(), pairs
        keys = keys_of(table)
        for row, key in enumerate(keys):
            if len(key) > LONGEST_NAME or key.startswith(HEADER):
                some = self._by_segment.of(key, self._depth)
                if len(key) > LONGEST_NAME:
                    some = [(self._short(name), separator) for name, separator in some]
                pairs[row], keys[row] = some, b"".join([part for pair in some for part in pair])
        return np.array([len(key) for key in keys], np.int64), b"".join(keys), pairs

    def _short(self, name: bytes) -> bytes:
        """Return a segment of bounded length in the place of a long one that has no form."""
        if len(name) <= LONGEST:
            return name
        hashed = b"%08x" % crc32(name)
        whole, separator = self._identifiers.any_name(name), min(self._values, key=len, default=b"")
        tag = b"" if whole == ANY else b"{" + hashed + separator + b"}"
        return tag.ljust(LONGEST + 1, b"}") if whole == ANY_TAG else (tag + hashed).ljust(LONGEST + 1, b".")

    def _cuts(self, start: int, row: int, pairs: Pairs) -> Iterator[tuple[int, int, int, int]]:
        for name, separator in pairs:
            start += len(name)
            if separator:
                yield start, self._code[separator], len(separator), row
            start += len(separator)

    def _separators(self, joined: Bytes, ends: Places) -> tuple[Places, NDArray[np.uint16], Places]:
        """Return where separators begin, which they are, and their lengths; where several match, the longest."""
        is_one = np.zeros(len(joined), bool)
        for value in self._values:
            if len(value) == 1:
                is_one |= joined == value[0]
        places = np.flatnonzero(is_one)
        codes, lengths = self._single[joined[places]], np.ones(len(places), np.int64)
        longer = [value for value in self._values if len(value) > 1]
        if not longer:
            return places, codes, lengths
        for value in reversed(longer):  # the longest first at each place
            at = np.arange(0)
            if len(joined) >= len(value):
                window = np.lib.stride_tricks.sliding_window_view(joined, len(value))
                at = np.flatnonzero((window == np.frombuffer(value, np.uint8)).all(axis=1))
            at = at[at + len(value) <= ends[np.searchsorted(ends, at, side="right")]]
            places = np.concatenate((at, places))
            codes = np.concatenate((np.full(len(at), self._code[value], np.uint16), codes))
            lengths = np.concatenate((np.full(len(at), len(value)), lengths))
        order = np.lexsort((-lengths, places))
        places, codes, lengths = places[order], codes[order], lengths[order]
        while len(places):  # of those that overlap, the first one
            reach = np.maximum.accumulate(places + lengths)
            is_sure = np.append(True, places[1:] >= reach[:-1])
            if is_sure.all():
                break
            last_sure = np.maximum.accumulate(np.where(is_sure, np.arange(len(places)), 0))
            is_left = is_sure | (places >= (places + lengths)[last_sure])
            places, codes, lengths = places[is_left], codes[is_left], lengths[is_left]
        return places, codes, lengths

    def _outside_of_tags(
        self, joined: Bytes, starts: Places, ends: Places, places: Places, rows: Places
    ) -> NDArray[np.bool_]:
        """Return which separators do not lie in a hash tag."""
        opening = np.flatnonzero(joined == ord("{"))
        if not len(opening) or self._splits_braces:
            return np.ones(len(places), bool)
        closing = np.append(np.flatnonzero(joined == ord("}")), len(joined))
        tagged, which = np.unique(np.searchsorted(ends, opening, side="right"), return_index=True)
        begins = opening[which]
        closes = closing[np.searchsorted(closing, begins)]
        is_tag = (closes > begins + 1) & (closes < ends[tagged])
        tag_start, tag_end = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
        tag_start[tagged[is_tag]], tag_end[tagged[is_tag]] = begins[is_tag], closes[is_tag]
        return (places < tag_start[rows]) | (places >= tag_end[rows])

    def _near_ip6(self, joined: Bytes, ends: Places) -> NDArray[np.bool_]:
        """Return which names have colons as in an IPv6 address."""
        found = np.zeros(len(ends), bool)
        colons = np.flatnonzero(joined == ord(":"))
        if len(colons) > 1:
            doubles = colons[:-1][np.diff(colons) == 1]
            doubles = doubles[(doubles > 0) & (doubles + 2 < len(joined))]
            found[
                np.searchsorted(ends, doubles[_IS_HEX[joined[doubles - 1]] & _IS_HEX[joined[doubles + 2]]], "right")
            ] = True
            near = colons[6:] - colons[: len(colons[6:])] <= _LONGEST_IP6
            found[np.searchsorted(ends, colons[6:][near], "right")] = True
        return found

    def _with_wholes(self, joined: Bytes, ends: Places) -> list[int]:
        """Return the names that may have a segment with separators that are no colons, or a separator with a brace."""
        found: list[Places] = []
        if self._splits_braces:
            found.append(np.flatnonzero((joined == ord("{")) | (joined == ord("}"))))
        if b"-" in self._values:
            dashes = np.flatnonzero(joined == ord("-"))
            dashes = dashes[dashes + 15 < len(joined)]
            found.append(dashes[(joined[dashes[:, None] + np.array([5, 10, 15])] == ord("-")).all(axis=1)])
        if b"." in self._values:
            dots = np.flatnonzero(joined == ord("."))
            third = dots[2:]
            found.append(third[third - dots[: len(third)] <= 8])
        rows = [np.searchsorted(ends, some, side="right") for some in found if len(some)]
        return np.unique(np.concatenate(rows)).tolist() if rows else []

    def _features(
        self, joined: Bytes, starts: Places, ends: Places
    ) -> tuple[Hashes, NDArray[np.uint8], NDArray[np.bool_]]:
        """Return the hash of each segment, its `SegmentKind`, and whether it looks like a code."""
        size = len(joined)
        if self._words.shape[1] <= size:
            self._words = np.zeros((2, size + BLOCK), np.uint64)
        words, sums = self._words[0, :size], self._words[1, : size + 1]
        _add_up(joined, words, sums)
        of_segments = _differences(sums, starts, ends)
        np.take(_COUNTED, joined, out=words, mode="clip")
        np.cumsum(words, out=sums[1:])
        lengths = ends - starts
        packed = sums[ends] - sums[starts]
        digits, low_hex, high_hex, low, high, braces, marks = (
            (packed >> np.uint64(_WIDTH * at) & np.uint64(511)).astype(np.int64) for at in range(len(_FIELDS))
        )
        letters = low_hex + high_hex + low + high
        is_word = digits + letters == lengths
        trailing = (sums[ends] - sums[ends - digits]) & np.uint64(511)
        is_trailing = trailing.astype(np.int64) == digits
        has_digit = digits > 0
        kinds = np.zeros(len(starts), np.uint8)
        is_name = ~has_digit & (braces + marks == 0) & ((lengths < 36) | (low_hex + high_hex < 32))
        is_name |= is_word & has_digit & ~is_trailing & ((lengths <= 20) | ((lengths >= 23) & (lengths <= 25)))
        kinds[is_name] = SegmentKind.NAME
        kinds[is_word & (letters > 0) & (letters <= 4) & (digits >= 6) & is_trailing] = SegmentKind.ID
        is_hash = (digits + low_hex == lengths) | (digits + high_hex == lengths)
        kinds[is_hash & has_digit & (letters > 0) & (lengths >= 8)] = SegmentKind.HASH
        may_be_uuid = np.flatnonzero((lengths == 36) & (digits + low_hex + high_hex == 32))
        has_dashes = (joined[starts[may_be_uuid, None] + _DASHES] == ord("-")).all(axis=1)
        kinds[may_be_uuid[has_dashes]] = SegmentKind.UUID
        kinds[has_digit & (digits == lengths)] = SegmentKind.ID
        kinds[lengths > LONGEST] = SegmentKind.LONG
        return of_segments, kinds, has_digit | (marks > 0)


_IS_HEX: Final = np.isin(np.arange(256), list(b"0123456789abcdefABCDEF"))
_IS_HEX_LETTER: Final = np.isin(np.arange(256), list(b"abcdefABCDEF"))
_GROUP, _GROUPS = 4, 8
"""Digits of a group of an IPv6 address at most, and groups."""


def _blocks(table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table, some at a time; one that has none as it is."""
    sizes = table["name"].str.len_bytes().to_numpy().astype(np.int64)
    sizes[sizes > LONGEST_NAME] = BLOCK  # in a block of its own
    ends, first = np.cumsum(sizes), 0
    while first < table.height or not first:
        before = ends[first - 1] if first else 0
        end = int(np.searchsorted(ends, before + BLOCK, side="right"))
        end = min(max(end, first + 1), first + BLOCK_ROWS)
        yield table[first:end]
        first = end


def inside_of_ip6(
    joined: Bytes, of_rows: tuple[Places, Places], places: Places, rows: Places, is_near: NDArray[np.bool_]
) -> Places:
    """Return which separators, of one byte each, lie in IPv6 addresses in some rows, as `end_of_ip6` has them.

    An address is a run of groups between colons: of eight with a letter among them, or of fewer, the first of which is
    one in use, with `::` and another run behind it.
    """
    some = np.flatnonzero(is_near[rows])
    if not len(some):
        return some
    row = (np.cumsum(is_near) - 1)[rows[some]]
    found = np.bincount(row, minlength=int(is_near.sum()))
    firsts, before = np.cumsum(found + 1) - found - 1, np.arange(len(some)) + row
    starts, stops = np.empty((2, len(some) + len(found)), np.int64)
    starts[firsts], starts[before + 1] = of_rows[0][is_near], places[some] + 1
    stops[firsts + found], stops[before] = of_rows[1][is_near], places[some]
    has_colon = np.zeros(len(starts) + 1, bool)
    has_colon[before] = joined[places[some]] == ord(":")
    sizes = np.append(stops - starts, -1)  # one more, which is no group
    texts = joined.take(np.append(starts, 0)[:, None] + np.arange(_GROUP), mode="clip")
    is_behind = np.arange(_GROUP) >= sizes[:, None]
    is_group = (sizes > 0) & (sizes <= _GROUP) & (_IS_HEX[texts] | is_behind).all(axis=1)
    goes_on = is_group & has_colon & np.append(is_group[1:], False)
    at = np.arange(len(sizes))
    ends = np.minimum.accumulate(np.where(goes_on, len(sizes), at)[::-1])[::-1]  # the last group of each run
    counts = np.where(is_group, ends - at + 1, 0)
    letters = np.append(0, np.cumsum((_IS_HEX_LETTER[texts] & ~is_behind).any(axis=1)))
    is_whole = counts >= _GROUPS
    last = np.where(is_whole & (letters[np.minimum(at + _GROUPS, len(at))] > letters[at]), at + _GROUPS - 1, -1)
    gap = np.minimum(ends + 1, len(at) - 1)
    behind = np.minimum(ends + 2, len(at) - 1)
    more = np.minimum(counts[behind], _GROUPS - 1 - counts)
    is_short = ~is_whole & (sizes == _GROUP) & has_colon[ends] & (sizes[gap] == 0) & has_colon[gap] & (more > 0)
    is_short &= is_group & _are_used(texts)
    last = np.where(is_short, behind + more - 1, last)
    inside, reached = np.zeros(len(at), bool), -1
    for first, end in zip(np.flatnonzero(last >= 0).tolist(), last[last >= 0].tolist(), strict=True):
        if first > reached:
            inside[first:end] = True
            reached = end
    return some[inside[before]]


def _are_used(texts: Bytes) -> NDArray[np.bool_]:
    """Return which texts begin with a group of addresses in use: global, of a site or a link, and multicast ones."""
    one, two, three = (texts[:, at] | 0x20 for at in range(3))
    of_links = (two == ord("c")) | (two == ord("d")) | ((two == ord("e")) & np.isin(three, list(b"89ab")))
    is_multicast = (two == ord("f")) & (three == ord("0"))
    found: NDArray[np.bool_] = (one == ord("2")) | (one == ord("3")) | ((one == ord("f")) & (of_links | is_multicast))
    return found


def hashes(joined: Bytes, starts: Places, ends: Places) -> Hashes:
    """Return a hash of the bytes between each start and end, in order and none in two, the same in any process."""
    found, first = [np.empty(0, np.uint64)], 0
    while first < len(starts):
        offset = int(starts[first])
        end = max(first + 1, int(np.searchsorted(ends, offset + BLOCK, side="right")))
        part = joined[offset : ends[end - 1]]
        words, sums = np.zeros((2, len(part) + 1), np.uint64)
        _add_up(part, words[:-1], sums)
        found.append(_differences(sums, starts[first:end] - offset, ends[first:end] - offset))
        first = end
    return np.concatenate(found)


def _add_up(joined: Bytes, words: Hashes, sums: Hashes) -> None:
    """Set running sums over the bytes as digits of a polynomial, modulo 2^64; `words` is room for as many numbers."""
    np.copyto(words, joined)
    words += np.uint64(1)
    words *= _POWERS[: len(joined)]
    np.cumsum(words, out=sums[1:])


def _differences(sums: Hashes, starts: Places, ends: Places) -> Hashes:
    """Return the polynomial of the bytes of each segment, its bits mixed.

    The sum over a segment is the difference of two running sums, to be moved to where the first byte is: here to where
    a first byte at BLOCK would be, so that all factors are powers.
    """
    return mixed((sums[ends] - sums[starts]) * _POWERS[BLOCK + LONGEST_NAME - starts])


def mixed(values: Hashes) -> Hashes:
    """Return values whose bits are spread over all others."""
    values = (values ^ values >> _SHIFT) * _MIX
    return values ^ values >> _SHIFT


def text_hashes(texts: Sequence[bytes]) -> Hashes:
    """Return the hash of each of these texts, of their beginnings where they are very long."""
    joined, starts, ends = _in_a_row(texts)
    return hashes(joined, starts, ends)


def name_hashes(names: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return the hashes by which these names are counted as different ones."""
    joined, starts, ends = _in_a_row(names)
    coded = np.append(0, np.cumsum(np.isin(joined, list(b"0123456789=@"))))
    return distinct_hashes(hashes(joined, starts, ends), coded[ends] > coded[starts])


def _in_a_row(texts: Sequence[bytes]) -> tuple[Bytes, Places, Places]:
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    if sizes.max(initial=0) > LONGEST_NAME:
        return _in_a_row([text[:LONGEST_NAME] for text in texts])
    ends = np.cumsum(sizes)
    return np.frombuffer(b"".join(texts), np.uint8), ends - sizes, ends


def distinct_hashes(of_names: Hashes, is_coded: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return hashes of 32 bits; the last bit says that a name looks like a code rather than a word."""
    return (of_names >> np.uint64(32)).astype(np.uint32) & ~np.uint32(1) | is_coded
