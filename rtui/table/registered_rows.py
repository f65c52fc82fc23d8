"""Counts rows of the key table by a registry: by entry, by broken expectation, by naming findings.

A registry can't tell names of one shape apart: they have one entry, one namespace and break the same rules. So each
shape is matched and judged once, by one of its names; shapes are remembered. Names without a shape, which are long or
not in ASCII, are matched and judged each by itself. The rest are sums by entry and findings.

The shape of a name is the name with 0 for each digit, and with one letter for the characters of words that are hashes,
ULIDs, random tokens or parts of a UUID; the length of each word, and whether it begins with a digit, stay the same.
Patterns test no more than that of values besides their literal text: lengths, digits, letters, hexadecimal ones.
Literal text in patterns may contain digits, or letters that are hexadecimal, too. A word that is such a literal, or
begins or ends with one next to a placeholder, stays as it is, and is told from others that look like it.

Every expectation is a range of numbers: the time to live of a key that does not expire is -1, so `30m` is the range 0 …
30 minutes, `none` is -1 … -1, and `none|24h` is -1 … 24 hours.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from rtui.analysis.report.figures import Sketch
from rtui.keyspace.text.quantities import Bounds
from rtui.registry.expectations import NO_TTL, Breach, Ttl
from rtui.registry.matching import NO_PATTERN
from rtui.registry.patterns import IP, ULID, Literal, Part, Pattern
from rtui.registry.registry import Registry
from rtui.table.key_count import LONGEST_EXAMPLE, Examples, KeyCount
from rtui.table.partial import RowColumns
from rtui.table.registered import CountedBreach, CountedEntries, Layout, RegistryCounts
from rtui.table.schema import keys_of
from rtui.table.segments import BLOCK, BLOCK_ROWS, Hashes, Places, RunningSums, Segments, text_hashes
from rtui.table.sums import ChunkRows, Flags, Whole, size_buckets, whole
from rtui.table.words import IS_DIGIT, IS_LETTER, NO_DIGITS, UUID_WORDS, Words, each_place
from rtui.table.words import ULID as ULID_LENGTH

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
        for kept in (np.flatnonzero(is_kept), np.flatnonzero((counts.lengths == ULID_LENGTH) & begins_with_digit)):
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


MOST_SHAPES: Final = 65_536
"""Most remembered shapes; beyond, all are forgotten."""

_LETTERS: Final = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

_SHAPED: Final = _LETTERS | {ord("@")}
"""Characters that may not be separators if shapes are to be used."""

_BITS: Final = (8, 4, 2, 1)
"""Of the layout of a row: its TTL, memory and length are known, it stands for others."""
_LAYOUTS: Final = 16

_ANY_TTL: Final = Ttl("", may_be_missing=True)
_LOWEST: Final = -(1 << 63)
_HIGHEST: Final = (1 << 63) - 1


class RegisteredRows:
    """Counts rows, which have a column `asked_ms`, all of them or of a sample."""

    def __init__(self, counts: RegistryCounts) -> None:
        self._counts = counts
        self._registry = counts.registry
        self._shapes = shapes_of(self._registry)
        self._expected = [entry.expectations for entry in self._registry.entries]
        self._sizes = np.array([*(_range(one.size) for one in self._expected), _range(None)], np.int64)
        self._lengths = np.array([*(_range(one.length) for one in self._expected), _range(None)], np.int64)
        """The least and the most by entry, the last for keys without one; so are all others here."""
        ttls = [*(one.ttl or _ANY_TTL for one in self._expected), _ANY_TTL]
        self._has_least_ttl = np.array([ttl.low_ms is not None for ttl in ttls])
        self._may_last = np.array([ttl.may_be_missing for ttl in ttls])
        self._may_expire = np.array([ttl.may_expire for ttl in ttls])
        self._most_ms = np.array([_HIGHEST if ttl.high_ms is None else ttl.high_ms for ttl in ttls], np.int64)
        self._shown = Examples()
        self._broken = Examples()
        self._forget()

    def _forget(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}
        """By shape, the entry and the number of its names' findings."""
        self._names: list[tuple[int, bytes, int]] = [(NO_PATTERN, b"", 0)]
        """By number: entry, namespace and findings; the first stands for none."""
        self._numbers = {self._names[0]: 0}
        self._named = Examples()

    def add(self, table: pl.DataFrame, checksums: Whole) -> None:
        """Count rows; `checksums` are the CRC32 of their keys."""
        have_one = np.zeros(table.height, bool) if self._shapes is None else self._shapes.have_one(table)
        for some, shapes in ((have_one, self._shapes), (~have_one, None)):
            if some.any():
                rows = table if some.all() else table.filter(pl.Series(some))
                self._add(rows, checksums[some], shapes)

    def _add(self, table: pl.DataFrame, checksums: Whole, shapes: NameShapes | None) -> None:
        entries, found = self._judged_each(table) if shapes is None else self._judged(table, shapes.of(table["name"]))
        rows, counts = _Rows(table, checksums, is_sample=self._counts.is_sample), self._counts
        counts.entries.add(self._entries(rows, entries))
        counts.entries.add_broken(self._breaches(rows, entries))
        if counts.naming.is_wanted:
            groups = rows.groups(found, found > 0, self._named, len(self._names))
            counts.naming.add([(*self._names[number], counted) for number, counted in groups])

    def _judged_each(self, table: pl.DataFrame) -> tuple[Whole, Whole]:
        """Return the same as `_judged` of names that have no shape."""
        if len(self._names) > MOST_SHAPES:
            self._forget()
        keys = keys_of(table)
        entries = self._registry.matcher.match_page(keys)
        return np.array(entries, np.int64), np.array([*self._numbered(keys, entries)], np.int64)

    def _judged(self, table: pl.DataFrame, shapes: Hashes) -> tuple[Whole, Whole]:
        """Return the entry of each row, and the number of its name's findings."""
        if len(self._known) > MOST_SHAPES:
            self._forget()
        each, first, inverse = np.unique(shapes, return_index=True, return_inverse=True)
        known = self._known
        of_shapes = [known.get(shape) for shape in each.tolist()]
        new = [at for at, one in enumerate(of_shapes) if one is None]
        if new:
            keys = keys_of(table.select("name", "raw")[first[new]])
            entries = self._registry.matcher.match_page(keys)
            judged = zip(new, entries, self._numbered(keys, entries), strict=True)
            for at, *one in judged:
                of_shapes[at] = known[int(each[at])] = (one[0], one[1])
        columns = np.array(of_shapes, np.int64).reshape(-1, 2)[inverse]
        return columns[:, 0], columns[:, 1]

    def _numbered(self, keys: Sequence[bytes], entries: Sequence[int]) -> Iterator[int]:
        """Yield the number of each name's findings."""
        if not self._counts.naming.is_wanted:
            yield from repeat(0, len(keys))
            return
        for name in self._counts.naming.judged(keys, entries):
            number = self._numbers.setdefault(name, len(self._names)) if name[2] else 0
            if number == len(self._names):
                self._names.append(name)
            yield number

    def _entries(self, rows: _Rows, entries: Whole) -> CountedEntries:
        """Return the sums by entry."""
        places, size = entries + 1, len(self._most_ms)
        layouts = []
        for key_type, of_type in rows.by_type():
            counts = np.bincount(rows.layouts[of_type] * size + places[of_type], minlength=_LAYOUTS * size)
            for layout, one in enumerate(counts.reshape(-1, size)):
                keys = {place - 1: int(one[place]) for place in np.flatnonzero(one).tolist()}
                if keys:
                    layouts.append((Layout(key_type, *[bool(layout & bit) for bit in _BITS]), keys))
        chunk = ChunkRows(places)
        sizes = chunk.halves(rows.memory[rows.has_memory], rows.has_memory).tolist()
        expires = rows.has_ttl & (rows.left_ms >= 0) & self._has_least_ttl[entries]
        lives = ChunkRows(places[expires])
        longest = lives.greatest(rows.left_ms[expires])
        is_shown = np.ones(len(places), bool) if self._counts.is_sample else (entries >= 0) | rows.are_long
        shown = [(place - 1, count) for place, count in rows.groups(places, is_shown, self._shown, size)]
        for entry, count in shown:
            count.keys = count.memory_keys = count.memory_bytes = 0
            if entry == NO_PATTERN:
                count.examples = ()
        return CountedEntries(
            layouts,
            [(place - 1, whole(*one)) for place, one in zip(chunk.used.tolist(), sizes, strict=True)],
            [
                (place - 1, *one)
                for place, *one in zip(lives.used.tolist(), lives.keys.tolist(), longest.tolist(), strict=True)
            ],
            shown,
        )

    def _breaches(self, rows: _Rows, entries: Whole) -> list[CountedBreach]:
        """Return the keys that break expectations."""
        is_wrong = np.zeros(len(entries), bool)
        for key_type, of_type in rows.by_type():
            wrong = [at for at, one in enumerate(self._expected) if one.types and key_type not in one.types]
            if wrong and key_type is not None:
                is_wrong[of_type] = np.isin(entries[of_type], wrong)
        has_ttl, lasts, left_ms = rows.has_ttl, rows.left_ms == NO_TTL, rows.left_ms
        may_expire = self._may_expire[entries]
        broken = {
            Breach.TYPE: is_wrong,
            Breach.TTL_MISSING: has_ttl & lasts & ~self._may_last[entries],
            Breach.TTL_LONG: has_ttl & ~lasts & may_expire & (left_ms > self._most_ms[entries]),
            Breach.TTL_UNEXPECTED: has_ttl & ~lasts & ~may_expire,
            Breach.SIZE: rows.has_memory & _is_outside(rows.memory, self._sizes[entries]),
            Breach.LENGTH: rows.has_length & _is_outside(rows.lengths, self._lengths[entries]),
        }
        found: list[CountedBreach] = []
        for at, (breach, some) in enumerate(broken.items()):
            if not some.any():
                continue
            stand = rows.is_sampled | (breach is not Breach.LENGTH)
            groups = (entries * len(broken) + at) * 2 + stand
            for group, counted in rows.groups(groups, some, self._broken, 2 * len(broken) * len(self._most_ms)):
                found.append((group // 2 // len(broken), breach, bool(group % 2), counted))
        return found


class _Rows(RowColumns):
    """Rows as arrays, with their keys."""

    def __init__(self, table: pl.DataFrame, checksums: Whole, *, is_sample: bool) -> None:
        """`is_sample` if the spread of sizes is needed."""
        super().__init__(table, np.empty(0, np.int64))
        flags = np.stack((self.has_ttl, self.has_memory, self.has_length, self.is_sampled))
        self.layouts: Whole = np.array(_BITS) @ flags
        """By row, the bits of the facts that are known."""
        self._keys = table.select(pl.coalesce("raw", pl.col("name").cast(pl.Binary))).to_series()
        self.are_long: Flags = (self._keys.bin.size() > LONGEST_EXAMPLE).to_numpy()
        """By row, whether its name is too long to be an example."""
        self._checksums, self._is_sample = checksums, is_sample

    def by_type(self) -> Iterator[tuple[bytes | None, Whole]]:
        """Yield each type and its rows."""
        types = self.table["type"]
        for name in types.unique().to_list():
            is_type = types.is_null() if name is None else (types == name).fill_null(value=False)
            yield None if name is None else name.encode(), np.flatnonzero(is_type.to_numpy())

    def groups(self, groups: Whole, some: Flags, shown: Examples, most: int) -> list[tuple[int, KeyCount]]:
        """Return each group of some rows with its keys; the examples are chosen among all keys so far.

        Groups are numbers below `most`; `shown` has the examples so far.
        """
        places = np.flatnonzero(some)
        if not len(places):
            return []
        chunk, has_memory = ChunkRows(groups[places]), self.has_memory[places]
        known, memory = chunk.count(has_memory).tolist(), self.memory[places][has_memory]
        sizes = chunk.halves(memory, has_memory).tolist()
        shown.add(chunk.groups, self._keys.gather(places), self._checksums[places], most)
        examples = shown.by_node()
        found = {
            group: KeyCount(keys, memory_keys, whole(*halves))
            for group, keys, memory_keys, halves in zip(
                chunk.used.tolist(), chunk.keys.tolist(), known, sizes, strict=True
            )
        }
        for group, count in found.items():
            count.examples = examples.get(group, ())
        long = places[self.are_long[places]]
        for group, key in zip(groups[long].tolist(), self._keys.gather(long).to_list(), strict=True):
            found[group].show([key])
        if self._is_sample:
            for group, spread in _sketches(chunk, memory, has_memory):
                found[group].sizes = spread
        return [*found.items()]


def _sketches(chunk: ChunkRows, sizes: Whole, rows: Flags) -> Iterator[tuple[int, Sketch]]:
    """Yield the spread of sizes of each group that has any."""
    buckets: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for group, bucket, count in zip(*(one.tolist() for one in chunk.sparse(size_buckets(sizes), rows)), strict=True):
        buckets[group][bucket] = count
    figures = (chunk.halves(sizes, rows), chunk.greatest(-sizes, rows), chunk.greatest(sizes, rows))
    for group, halves, least, most in zip(chunk.used.tolist(), *(one.tolist() for one in figures), strict=True):
        if group in buckets:
            yield group, Sketch.of(buckets[group], whole(*halves), -least, most)


def _range(bounds: Bounds | None) -> tuple[int, int]:
    if bounds is None:
        return _LOWEST, _HIGHEST
    return _LOWEST if bounds.low is None else bounds.low, _HIGHEST if bounds.high is None else bounds.high


def _is_outside(values: Whole, bounds: Whole) -> Flags:
    found: Flags = (values < bounds[:, 0]) | (values > bounds[:, 1])
    return found


def shapes_of(registry: Registry) -> NameShapes | None:
    """Return the shapes of names for a registry; None if the registry may tell names of one shape apart."""
    config = registry.naming.config
    separators = {*registry.separators, *config.separators}
    patterns = [entry.pattern for entry in registry.entries]
    if not _LETTERS.issubset(config.characters.encode()) or _SHAPED & {*b"".join(separators)}:
        return None
    if _LETTERS & {*config.other_separators.encode()} or any(_glues_bounded(one) for one in patterns):
        return None
    literals = [text for pattern in patterns for text in _literals(pattern)]
    literals += [LiteralText(beginning, is_after=False, is_before=True) for beginning in config.styles_below]
    has_ips = any(one.values.form is IP for pattern in patterns for one in pattern.placeholders)
    has_uuids = not any(b"-" in one for one in separators)
    shapes = NameShapes(literals, config.separators, has_uuids=has_uuids, has_ips=has_ips)
    return shapes if shapes.are_sure else None


def _literals(pattern: Pattern) -> Iterator[LiteralText]:
    """Yield the text of a pattern and the options of its placeholders."""
    for segment in pattern.segments:
        for at, part in enumerate(segment.parts):
            beside = at > 0, at < len(segment.parts) - 1
            for text in (part.text,) if isinstance(part, Literal) else part.values.options:
                yield LiteralText(text, *beside)


def _glues_bounded(pattern: Pattern) -> bool:
    """Whether a ULID or an address, whose digits are bounded, is a part of a word."""
    for segment in pattern.segments:
        for before, part in pairwise((Literal(b""), *segment.parts)):
            if isinstance(part, Literal):
                is_glued = _is_bounded(before) and part.text[0] in _LETTERS
            else:
                is_glued = _is_bounded(part) and isinstance(before, Literal) and bool(_LETTERS & {*before.text[-1:]})
            if is_glued:
                return True
    return False


def _is_bounded(part: Part) -> bool:
    return not isinstance(part, Literal) and part.values.form in (ULID, IP)
