"""Shapes of whole names: a registry can't tell names of one shape apart, so it only has to look at one of them.

The shape of a name is the name with 0 for each digit, and with one letter for the characters of words that are hashes,
ULIDs, random tokens or parts of a UUID; the length of each word, and whether it begins with a digit, stay the same.
Patterns test no more than that of values besides their literal text: lengths, digits, letters, hexadecimal ones.

Literal text in patterns may contain digits, or letters that are hexadecimal, too. A word that is such a literal, or
begins or ends with one next to a placeholder, stays as it is, and is told from others that look like it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from rtui.table.segments import BLOCK, BLOCK_ROWS, Hashes, Places, RunningSums, Segments, text_hashes
from rtui.table.sums import Flags
from rtui.table.words import IS_DIGIT, IS_LETTER, NO_DIGITS, ULID, UUID_WORDS, Words, each_place

LONGEST: Final = 256
"""Longer names, in bytes, have no shape."""

_WORD: Final = re.compile(rb"[0-9A-Za-z]+")
_HAS_DIGIT: Final = re.compile(rb"[0-9]").search
_IS_HEX: Final = re.compile(rb"[0-9A-Fa-f]+").fullmatch
_ZERO: Final = ord("0")
_KEPT: Final = ord("k")
_NO_OCTET: Final = ord("o")
_OCTET_DIGITS: Final = 3
_HIGHEST_OCTET: Final = 255
_IS_IN_FORMS: Final = np.isin(np.arange(256), list(b"-_+=/"))
_LETTERS_OF_A_DATE: Final = 2
_AT: Final = ord("@")
LONGEST_WORD: Final = 20
"""Longer words, but random tokens, have a shape of their own."""


class LiteralText(NamedTuple):
    """Text that may have to be found in a name."""

    text: bytes
    is_after: bool
    """Whether letters or digits of something else may be right before it."""
    is_before: bool
    """Or right behind it."""


class _Literals:
    """Words of literal text."""

    def __init__(self, words: Iterable[LiteralText]) -> None:
        texts: defaultdict[tuple[int, bool], list[bytes]] = defaultdict(list)
        self.are_anywhere = False
        """Whether one of them may be in the middle of a word."""
        for word, is_after, is_before in words:
            if is_after and is_before:
                self.are_anywhere = True
            texts[len(word) if is_after or is_before else 0, is_after].append(word)
        self._hashes = {place: text_hashes(some) for place, some in texts.items()}
        """By how many letters a word is to begin with, or to end with; 0 for whole words."""

    def are_in(self, sums: RunningSums, starts: Places, ends: Places, some: Flags) -> Flags:
        """Return which of some words are a literal, or begin or end with one."""
        found = np.zeros(len(starts), bool)
        if not some.any():
            return found
        for (size, is_last), wanted in self._hashes.items():
            words = np.flatnonzero(some & (ends - starts >= size))
            firsts, lasts = starts[words], ends[words]
            if is_last:
                firsts = lasts - size
            elif size:
                lasts = firsts + size
            found[words[np.isin(sums.hashes(firsts, lasts), wanted)]] = True
        return found


class NameShapes:
    """Finds the shapes of names."""

    def __init__(
        self, literals: Iterable[LiteralText], separators: Sequence[bytes], *, has_uuids: bool, has_ips: bool
    ) -> None:
        """Each of the `separators` ends a segment where names are judged.

        `has_uuids` where a UUID is in one segment, `has_ips` where addresses are told from other numbers.
        """
        words = [
            LiteralText(word[0], is_after and not word.start(), is_before and word.end() == len(text))
            for text, is_after, is_before in literals
            for word in _WORD.finditer(text)
        ]
        self._all = _Literals(words)
        self._hex = _Literals([word for word in words if _IS_HEX(word.text)])
        self._numbers = _Literals([word for word in words if _HAS_DIGIT(word.text)])
        self._has_uuids, self._has_ips = has_uuids, has_ips
        self._ends_segments = np.isin(np.arange(256), [0, *(one[0] for one in separators if len(one) == 1)])
        self._has_emails = all(len(one) == 1 for one in separators)

    @property
    def are_sure(self) -> bool:
        return not self._numbers.are_anywhere

    def have_one(self, table: pl.DataFrame) -> Flags:
        """Return which rows have a shape: names that are short and in ASCII."""
        name = pl.col("name")
        is_plain = pl.col("raw").is_null() & (name.str.len_bytes() == name.str.len_chars())
        is_plain &= name.str.len_bytes().is_between(1, LONGEST)
        found: Flags = table.select(is_plain.alias("plain"))["plain"].to_numpy()
        return found

    def of(self, names: pl.Series) -> Hashes:
        """Return the shape of each of these names, which must have one."""
        found = [np.empty(0, np.uint64)]
        rows = min(BLOCK_ROWS, BLOCK // LONGEST * 4)
        for part in names.to_frame().iter_slices(rows):
            some = part.to_series()
            sizes = some.str.len_bytes().to_numpy().astype(np.int64)
            ends = np.cumsum(sizes)
            found.append(_Names(some.str.join("")[0].encode(), ends - sizes, ends).shapes_by(self))
        return np.concatenate(found)


class _Names(Words):
    """The words of whole names."""

    def __init__(self, joined: bytes, starts: Places, ends: Places) -> None:
        none, size = np.empty(0, np.int64), len(starts)
        no = np.zeros(size, np.uint8)
        segments = Segments(
            *(none, none, joined, starts.astype(np.int32), ends.astype(np.int32)),
            *(no.astype(np.uint16), no.astype(np.uint64), no, no.astype(bool)),
        )
        super().__init__(segments, np.arange(size))

    def shapes_by(self, kinds: NameShapes) -> Hashes:
        """Return the shape of each name."""
        whole, starts, ends, counts = self._bytes, self._word_starts, self._word_ends, self._of_words
        sums = RunningSums(whole)
        has_digit, letters = counts.digits > 0, np.zeros(len(starts), np.uint8)
        is_kept = kinds._numbers.are_in(sums, starts, ends, has_digit)
        is_hex = counts.letters == counts.low_hex + counts.high_hex
        fills = []
        if not kinds._hex.are_anywhere:
            is_hash = self._is_low_hash | self._is_high_hash
            of_uuids = np.zeros(len(starts), bool)
            if kinds._has_uuids:
                of_uuids[np.searchsorted(starts, self._uuids[:, None] + UUID_WORDS)] = True
                of_uuids &= counts.letters > 0
            free = (is_hash | of_uuids) & ~is_kept
            free &= ~kinds._hex.are_in(sums, starts, ends, free)
            fills = [("u", free & of_uuids), ("a", free & self._is_low_hash), ("A", free & self._is_high_hash)]
        if not kinds._all.are_anywhere:
            is_code = self._is_ulid | self._is_token
            is_mixed = self._have_letters_behind_digits()
            is_free = (counts.letters > 0) & (counts.lengths <= LONGEST_WORD)
            is_free &= ~(self._is_low_hash | self._is_high_hash)
            is_free &= (is_mixed & self._are_no_names(kinds._ends_segments)) | (
                ~is_mixed & kinds._has_emails & self._are_of_emails(kinds._ends_segments)
            )
            free = (is_code | is_free) & ~is_kept
            free &= ~kinds._all.are_in(sums, starts, ends, free)
            fills += [("e", free & ~is_mixed), ("m", free & is_mixed & ~is_hex), ("x", free & is_mixed & is_hex)]
            free &= is_code
            fills += [("z", free & ~is_hex), ("f", free & is_hex), ("U", free & self._is_ulid)]
        for fill, which in fills:
            letters[which] = ord(fill)
        joined = NO_DIGITS.take(whole)
        begins_with_digit = IS_DIGIT[whole[starts]]
        filled = np.flatnonzero(letters)
        places, lengths = each_place(starts[filled], counts.lengths[filled]), counts.lengths[filled]
        of_words = np.repeat(np.where(letters == ord("u"), ord("a"), letters)[filled], lengths)
        joined[places] = np.where((of_words == ord("e")) & IS_DIGIT[whole[places]], _ZERO, of_words)
        joined[starts[filled[begins_with_digit[filled]]]] = _ZERO
        for kept in (np.flatnonzero(is_kept), np.flatnonzero((counts.lengths == ULID) & begins_with_digit)):
            lengths = np.where(is_kept[kept], counts.lengths[kept], 1)  # the first digit of a ULID is 7 at most
            places = each_place(starts[kept], lengths)
            joined[places] = whole[places]
        if kinds._has_ips:
            letters[self._are_no_octets()] = _NO_OCTET
        letters[is_kept] = _KEPT
        found: Hashes = RunningSums(joined).hashes(self.starts, self.ends) + self.salts(letters.astype(np.uint64))
        return found

    def _are_no_octets(self) -> Flags:
        """Return which numbers of up to three digits can't be octets of an IPv4 address."""
        counts, whole, starts = self._of_words, self._bytes, self._word_starts
        found: Flags = (counts.letters == 0) & (counts.lengths > 1) & (counts.lengths <= _OCTET_DIGITS)
        first, second, third = (whole[np.minimum(starts + at, len(whole) - 1)].astype(np.int64) for at in range(3))
        is_high = 100 * first + 10 * second + third > 111 * _ZERO + _HIGHEST_OCTET
        found &= (first == _ZERO) | (is_high & (counts.lengths == _OCTET_DIGITS))
        return found

    def _have_letters_behind_digits(self) -> Flags:
        whole = self._bytes
        turns = np.append(0, np.cumsum(IS_DIGIT[whole[:-1]] & IS_LETTER[whole[1:]]))
        found: Flags = turns[self._word_ends - 1] > turns[self._word_starts]
        return found

    def _are_no_names(self, ends_segments: Flags) -> Flags:
        """Return which words with letters behind digits are neither names nor of a form, whatever letters they have.

        With certain characters in the same segment they may be of a form, alone in a name they may be judged otherwise.
        """
        whole, counts = self._bytes, self._of_words
        colons = whole == ord(":")
        is_other = _IS_IN_FORMS[whole] | (colons & np.append(colons[1:], False))
        segments = np.cumsum(ends_segments[whole])
        has_other = np.zeros(int(segments[-1]) + 1, bool)
        has_other[segments[is_other]] = True
        is_alone = (self._counts.lengths <= self._longest_words())[self._segment_of]
        is_date = (counts.high > 0) & (counts.letters <= _LETTERS_OF_A_DATE)
        found: Flags = ~(has_other[segments[self._word_starts]] | is_alone | is_date)
        return found

    def _are_of_emails(self, ends_segments: Flags) -> Flags:
        """Return which words are adjacent to an @ in a last segment, or in one that contains a digit."""
        whole, starts = self._bytes, self._word_starts
        found: Flags = (whole[self._word_ends] == _AT) | (whole[starts - 1] == _AT)
        if found.any():
            segments = np.cumsum(ends_segments[whole])
            is_free = np.zeros(int(segments[-1]) + 1, bool)
            is_free[segments[IS_DIGIT[whole]]] = True
            is_free[segments[self.ends - 1]] = True
            found &= is_free[segments[starts]]
        return found

    def _longest_words(self) -> Places:
        found = np.zeros(len(self.ends), np.int64)
        np.maximum.at(found, self._segment_of, self._of_words.lengths)
        return found
