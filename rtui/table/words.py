"""The words of thousands of segments: their shapes, and the most frequent forms of whole segments.

A word is a run of ASCII letters and digits. Two segments have the same *shape* if they differ only in parts that do not
matter for their forms (`Identifiers.form`): digits, each against another one, and UUIDs, and words that are hashes,
ULIDs or random tokens. So the form has to be found only once for each shape.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rtui.table.segments import Bytes, Hashes, Places, Segments, hashes, inside_of_ip6, mixed

Flags = NDArray[np.bool_]

_DIGITS: Final = b"0123456789"
_LOWER: Final = b"abcdefghijklmnopqrstuvwxyz"


def _set(letters: bytes) -> Flags:
    return np.isin(np.arange(256), list(letters))


_IS_DIGIT, _IS_LOWER, _IS_UPPER = _set(_DIGITS), _set(_LOWER), _set(_LOWER.upper())
_IS_WORD: Final = _IS_DIGIT | _IS_LOWER | _IS_UPPER
_IS_HEX_OR_DASH: Final = _set(_DIGITS + b"abcdefABCDEF-")
_IS_VOWEL: Final = _set(b"AEIOUYaeiouy")
_CROCKFORD: Final = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_IS_ULID, _IS_LOW_ULID = _set(_CROCKFORD), _set(_CROCKFORD.lower())

_WIDTH: Final = 9
"""Bits of a count of characters; no segment has more than 256."""
_FIELDS: Final = (_DIGITS, b"abcdef", b"ABCDEF", b"ghijklmnopqrstuvwxyz", b"GHIJKLMNOPQRSTUVWXYZ", b"-_", b":={}")
_COUNTED: Final = np.zeros(256, np.uint64)
for _at, _of in enumerate(_FIELDS):
    _COUNTED[list(_of)] = 1 << _WIDTH * _at

_DASHES: Final = np.array([8, 13, 18, 23])
_UUID: Final = 36
_UUID_WORDS: Final = np.append(0, _DASHES + 1)
_ULID: Final = 26
_HASH: Final = 8
_IS_TOKEN_LENGTH: Final = np.isin(np.arange(512), [21, 22, 32, 43])
_LONG_NUMBER: Final = 6
_DIGEST: Final = 33
_FEWEST_COLONS: Final = 2
"""Of an IPv6 address."""
_ZERO: Final = ord("0")
_NO_DIGITS: Final = np.where(_IS_DIGIT, _ZERO, np.arange(256)).astype(np.uint8)

LABELS: Final = (None, b"<email>", b"<id>", b"<ip>")
"""Labels of whole segments; None if undecided."""
_EMAIL, _ID, _IP6 = range(1, 4)


class _Counts:
    """How many letters of each kind are in texts."""

    def __init__(self, packed: Hashes, lengths: Places) -> None:
        self._packed, self.lengths = packed, lengths

    @classmethod
    def between(cls, sums: Hashes, starts: Places, ends: Places) -> _Counts:
        """Return the counts of the texts between each start and end, by running sums."""
        return cls(sums[ends] - sums[starts], ends - starts)

    def of(self, some: Places | Flags) -> _Counts:
        return _Counts(self._packed[some], self.lengths[some])

    def _field(self, at: int) -> Places:
        return (self._packed >> np.uint64(_WIDTH * at) & np.uint64(511)).astype(np.int64)

    digits = cached_property(lambda self: self._field(0))
    low_hex = cached_property(lambda self: self._field(1))
    high_hex = cached_property(lambda self: self._field(2))
    low = cached_property(lambda self: self.low_hex + self._field(3))
    high = cached_property(lambda self: self.high_hex + self._field(4))
    letters = cached_property(lambda self: self.low + self.high)
    dashes = cached_property(lambda self: self._field(5))
    marks = cached_property(lambda self: self._field(6))


class Words:
    """The words of some segments, none of them LONG."""

    def __init__(self, segments: Segments, places: Places) -> None:
        starts = segments.starts[places].astype(np.int64)
        sizes = segments.ends[places] - starts
        self.ends = np.cumsum(sizes + 1) - 1
        self.starts = self.ends - sizes
        joined = np.frombuffer(segments.joined or b"\0", np.uint8).take(each_place(starts, sizes + 1), mode="clip")
        joined[self.ends] = 0
        self._bytes: Bytes = joined
        edges = np.flatnonzero(np.diff(_IS_WORD.take(joined), prepend=False))
        self._word_starts, self._word_ends = edges[::2], edges[1::2]
        self._last_words = np.searchsorted(self._word_starts, self.ends)
        sizes = np.diff(self._last_words, prepend=0)
        self._segment_of = np.repeat(np.arange(len(sizes)), sizes)
        self._sums = np.zeros(len(joined) + 1, np.uint64)
        np.cumsum(_COUNTED.take(joined), out=self._sums[1:])
        self._counts = _Counts.between(self._sums, self.starts, self.ends)
        of_words = self._of_words = _Counts.between(self._sums, self._word_starts, self._word_ends)
        self._is_number = of_words.digits == of_words.lengths
        has_both = (of_words.digits > 0) & ~self._is_number & (of_words.lengths >= _HASH)
        has_both &= ~self._has(joined == ord("="))[self._segment_of]
        self._is_low_hash, self._is_high_hash, self._is_ulid, self._is_token = np.zeros((4, len(has_both)), bool)
        both = np.flatnonzero(has_both)
        counts = of_words.of(both)
        self._is_low_hash[both] = counts.letters == counts.low_hex
        self._is_high_hash[both] = counts.letters == counts.high_hex
        both = both[(counts.letters != counts.low_hex) & (counts.letters != counts.high_hex)]
        lengths = of_words.lengths[both]
        ulids = both[lengths == _ULID]
        begins = self._word_starts[ulids]
        texts = _windows(joined, begins, _ULID)
        is_ulid = _IS_ULID[texts].all(axis=1) | _IS_LOW_ULID[texts].all(axis=1)
        self._is_ulid[ulids] = is_ulid & (joined[begins] <= ord("7"))
        tokens = both[((lengths >= 21) & (lengths <= 22)) | ((lengths >= 27) & (lengths <= 64))]
        self._is_token[tokens] = self._are_random(of_words.of(tokens), self._word_starts[tokens])

    @property
    def is_plain(self) -> Flags:
        """By segment: whether its shape is sure to decide, but for digits."""
        found: Flags = self._counts.marks == 0
        return found

    def shapes(self, *, keeps_digits: bool = False, is_loose: bool = False) -> Hashes:
        """Return the shape of each segment.

        With `keeps_digits`, digits in words with letters stay, and all digits in a segment with braces, where a number
        is not replaced in each part. Numbers of any length are the same in a loose shape.
        """
        starts, lengths = self._word_starts, self._of_words.lengths
        if keeps_digits:
            joined, some = self._bytes.copy(), self._is_number & self.is_plain[self._segment_of]
            joined[each_place(starts[some], lengths[some])] = _ZERO
        else:
            joined = _NO_DIGITS.take(self._bytes)
        is_left, letters = np.ones(len(joined), bool), np.zeros(len(starts), np.uint64)
        fills = [(b"a", self._is_low_hash), (b"A", self._is_high_hash), (b"U", self._is_ulid), (b"z", self._is_token)]
        for fill, which in fills + [(b"0", self._is_number)] * is_loose:
            letters[which] = fill[0]
        of_uuids = np.searchsorted(starts, self._uuids)
        letters[of_uuids[:, None] + np.arange(len(_UUID_WORDS))] = 0
        filled = np.flatnonzero(letters)
        is_left[each_place(starts[filled] + 1, lengths[filled] - 1)] = False
        left_out = lengths - 1
        letters[of_uuids], left_out[of_uuids] = ord("u"), _UUID - 1
        if len(of_uuids):
            sliding_window_view(is_left, _UUID - 1, writeable=True)[self._uuids + 1] = False
            filled = np.flatnonzero(letters)
        joined[starts[filled]] = letters[filled].astype(np.uint8)
        sizes = self.ends - self.starts
        sizes -= np.bincount(self._segment_of[filled], left_out[filled], len(sizes)).astype(np.int64)
        ends = np.cumsum(sizes + 1) - 1
        found: Hashes = hashes(joined[is_left], ends - sizes, ends) + self.salts(letters)
        return found | np.uint64(1)

    def frames(self) -> Hashes:
        """Return a hash of the characters around the words of each segment; 0 if the shape is sure to decide."""
        is_left = ~_IS_WORD.take(self._bytes)
        kept = np.append(0, np.cumsum(is_left))
        found = hashes(self._bytes[is_left], kept[self.starts], kept[self.ends]) | np.uint64(1)
        found[self.is_plain] = 0
        return found

    def salts(self, letters: Hashes) -> Hashes:
        """Return by segment which of its words were filled in, and with which letter: others may look like these."""
        filled = np.flatnonzero(letters)
        offsets = filled - np.append(0, self._last_words)[self._segment_of[filled]]
        salts = np.zeros(len(self.ends), np.uint64)
        np.add.at(salts, self._segment_of[filled], mixed(offsets.astype(np.uint64) << np.uint64(8) | letters[filled]))
        return salts

    def labels(self) -> NDArray[np.uint8]:
        """Return which of `LABELS` each segment is."""
        found = np.zeros(len(self.ends), np.uint8)
        found[self._emails()] = _EMAIL
        found[self._tokens()] = _ID
        found[self._ip6()] = _IP6
        return found

    def _has(self, is_counted: Flags) -> Flags:
        found = np.zeros(len(self.ends), bool)
        found[np.searchsorted(self.ends, np.flatnonzero(is_counted))] = True
        return found

    def _are_random(self, counts: _Counts, starts: Places) -> Flags:
        """Return which of some texts have digits, letters of both cases, and less than three of five letters in words.

        In words are lower letters, with a capital in front, three or more in a row, one of them a vowel.
        """
        found: Flags = (counts.low > 0) & (counts.high > 0) & (counts.digits > 0)
        lengths = counts.lengths[found]
        ends = np.cumsum(lengths + 1) - 1
        texts = self._bytes.take(each_place(starts[found], lengths + 1), mode="clip")
        texts[ends] = 0
        edges = np.flatnonzero(np.diff(_IS_LOWER.take(texts), prepend=False))
        run_starts, run_ends = edges[::2], edges[1::2]
        has_capital = (run_starts > 0) & _IS_UPPER[texts[run_starts - 1]]
        sizes = run_ends - run_starts + has_capital
        vowels = np.append(0, np.cumsum(_IS_VOWEL.take(texts)))
        is_word = (sizes >= 3) & (vowels[run_ends] > vowels[run_starts - has_capital])
        in_words = np.bincount(np.searchsorted(ends, run_starts), np.where(is_word, sizes, 0), len(lengths))
        found[found] = 5 * in_words < 3 * counts.letters[found]
        return found

    @cached_property
    def _uuids(self) -> Places:
        """Where UUIDs begin that are words of their own."""
        joined = self._bytes
        starts = np.flatnonzero(joined == ord("-")) - _DASHES[0]
        starts = starts[(starts >= 0) & (starts + _UUID < len(joined))]
        starts = starts[(joined[starts + _DASHES[1]] == ord("-")) & (joined[starts + _DASHES[2]] == ord("-"))]
        starts = starts[joined[starts + _DASHES[3]] == ord("-")]
        starts = starts[_IS_HEX_OR_DASH[_windows(joined, starts, _UUID)].all(axis=1)]
        found: Places = starts[~_IS_WORD[joined[starts + _UUID]] & ~((starts > 0) & _IS_WORD[joined[starts - 1]])]
        return found

    def _emails(self) -> Flags:
        joined = self._bytes
        marks = np.flatnonzero(joined == ord("@"))
        if not len(marks):
            return np.zeros(len(self.ends), bool)
        found: Flags = np.bincount(np.searchsorted(self.ends, marks), minlength=len(self.ends)) == 1
        found &= ~self._has((joined == ord("{")) | (joined == ord("}")) | (joined == ord(" ")))
        found &= ~self._has((joined >= ord("\t")) & (joined <= ord("\r")))
        starts, ends = self.starts[found], self.ends[found]
        at = marks[np.searchsorted(marks, starts)]
        dots = np.append(-1, np.flatnonzero(joined == ord(".")))
        dot = dots[np.searchsorted(dots, ends) - 1]
        tail = np.minimum(dot + 1, ends)
        letters = _Counts.between(self._sums, tail, ends).letters
        found[found] = (at > starts) & (dot > at + 1) & (letters >= 2) & (letters == ends - tail)
        return found

    def _tokens(self) -> Flags:
        """Return which segments of letters, digits and dashes are random, and have no other identifier in them."""
        of_words, found = self._of_words, np.zeros(len(self.ends), bool)
        some = np.flatnonzero(_IS_TOKEN_LENGTH[self._counts.lengths])
        counts = self._counts.of(some)
        some = some[(counts.dashes > 0) & (counts.digits + counts.letters + counts.dashes == counts.lengths)]
        found[some] = self._are_random(self._counts.of(some), self.starts[some])
        if found.any():
            may_be_more = self._is_low_hash | self._is_high_hash | self._is_ulid | self._is_token
            may_be_more |= self._is_number | (of_words.digits >= _LONG_NUMBER) | (of_words.lengths >= _DIGEST)
            found[self._segment_of[may_be_more]] = False
            found[np.searchsorted(self.ends, self._uuids)] = False
        return found

    def _ip6(self) -> Flags:
        colons = np.flatnonzero(self._bytes == ord(":"))
        if not len(colons):
            return np.zeros(len(self.ends), bool)
        of_colons = np.searchsorted(self.ends, colons)
        counts = np.bincount(of_colons, minlength=len(self.ends))
        inside = inside_of_ip6(self._bytes, (self.starts, self.ends), colons, of_colons, counts >= _FEWEST_COLONS)
        found: Flags = (counts > 0) & (np.bincount(of_colons[inside], minlength=len(counts)) == counts)
        return found


def _windows(joined: Bytes, starts: Places, size: int) -> Bytes:
    found: Bytes = sliding_window_view(joined, size)[starts] if len(starts) else np.empty((0, size), np.uint8)
    return found


def each_place(starts: Places, lengths: Places) -> Places:
    return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
