"""Names as packed bytes: a few of them in one bytes object, many of them in chunks of a blob with an array of offsets.

A Python bytes object costs 33 bytes besides its content, and a place in a list 8 more: for a hundred million keys that
is 4 GB. So names are kept in one of two packed forms:

* *Inline*, up to 8 short names: one bytes object with the number of names, then each name after its length. The names
  `42` and `7` are `02 02 "42" 01 "7"`. A namespace with a million namespaces of one key each costs one such object for
  each of them, and nothing that the garbage collector has to visit.
* `PackedNames`, any number: chunks of up to 2,048 names. A chunk is a blob of all names one after the other and an
  array of their offsets, two bytes each: `user:1`, `user:2` and `x` are `user:1user:2x` and 0, 6, 12, 13. The last
  chunk grows in a bytearray and is copied to a blob of its exact size when it is full. A name is found by its ordinal
  with one bisection, and a substring is searched in whole blobs.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from rtui.keyspace.text.segments import HEADER

MAX_INLINE_NAMES = 8
MAX_INLINE_BYTES = 64
"""More names than this, and a longer name than this, are not packed inline."""

INLINE_START = [bytes((1, length)) for length in range(MAX_INLINE_BYTES + 1)]
"""The bytes before a single inline name, by its length."""

_BYTE = [bytes((value,)) for value in range(256)]


def pack_inline(names: Sequence[bytes], kept: bytes | None = None) -> bytes | None:
    """Pack at least one name inline, behind the names in `kept`; None if they are too many or one is too long."""
    count = len(names)
    if count == 1:
        name = names[0]
        if len(name) > MAX_INLINE_BYTES:
            return None
        if kept is None:
            return INLINE_START[len(name)] + name
        if kept[0] >= MAX_INLINE_NAMES:
            return None
        return _BYTE[kept[0] + 1] + kept[1:] + _BYTE[len(name)] + name
    if kept is None:
        kept = _BYTE[0]
    if count + kept[0] > MAX_INLINE_NAMES or max(map(len, names)) > MAX_INLINE_BYTES:
        return None
    parts = [_BYTE[count + kept[0]], kept[1:]]
    for name in names:
        parts += (_BYTE[len(name)], name)
    return b"".join(parts)


def join_inline(inline: bytes, more: bytes) -> bytes | None:
    """Return the names of both, packed inline; None if they are too many."""
    count = inline[0] + more[0]
    return None if count > MAX_INLINE_NAMES else _BYTE[count] + inline[1:] + more[1:]


def count_inline(inline: bytes) -> int:
    return inline[0]


def unpack_inline(inline: bytes) -> list[bytes]:
    """Return inline names in their order."""
    names = []
    at = 1
    while at < len(inline):
        start = at + 1
        at = start + inline[start - 1]
        names.append(inline[start:at])
    return names


CHUNK_BYTES = 0xFFFF
"""The most bytes in a chunk, so that an offset takes two bytes; a longer name is a chunk of its own."""

CHUNK_NAMES = 2048
"""The most names in a chunk, so that handling one takes a millisecond or two."""

_TWO_BYTES = "H"
_EIGHT_BYTES = "Q"

_MOST_OFFSETS = CHUNK_NAMES + 1
_ONES = int.from_bytes(array(_TWO_BYTES, [1]) * _MOST_OFFSETS, sys.byteorder)
"""A number of two-byte digits that are all one, as many as a chunk can have offsets."""


def _shifted(bounds: array[int], by: int) -> array[int]:
    """Return offsets with a number added to each; all results must fit into two bytes.

    The offsets are the digits of one large number, of two bytes each, and a number with `by` as every digit is added to
    it at once: with 100, the digits 0, 6 and 12 become 100, 106 and 112. No digit carries over to its neighbour.
    """
    if not by:
        return bounds
    count = len(bounds)
    digits = int.from_bytes(bounds, sys.byteorder) + by * (_ONES >> 16 * (_MOST_OFFSETS - count))
    moved = array(_TWO_BYTES)
    moved.frombytes(digits.to_bytes(2 * count, sys.byteorder))
    return moved


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """A run of names: name i is `blob[bounds[i]:bounds[i + 1]]`."""

    blob: bytes
    bounds: array[int]
    """The offset of each name and of the end of the last one, from 0 to the length of the blob."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, index: int) -> bytes:
        return self.blob[self.bounds[index] : self.bounds[index + 1]]

    @property
    def size_bytes(self) -> int:
        """The size of the names and their offsets, as in `PackedNames.size_bytes`."""
        return len(self.blob) + self.bounds.itemsize * len(self)

    def names(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """Return all names, or the ones at the indices from `start` to before `stop`, in order."""
        blob, bounds = self.blob, self.bounds
        if start or stop is not None:
            bounds = bounds[start : None if stop is None else stop + 1]
        return [blob[begin:end] for begin, end in pairwise(bounds)]

    def index(self, name: bytes) -> int:
        """Return the first index of exactly this name, or -1."""
        return next((index for index in self.starting(name) if self[index] == name), -1)

    def containing(self, needle: bytes, most: int = CHUNK_BYTES) -> list[int]:
        """Return the indices of the first `most` names that contain `needle`, found in the blob, not name by name."""
        if not needle:
            return list(range(len(self)))[:most]
        found: list[int] = []
        blob, bounds, length = self.blob, self.bounds, len(needle)
        at = blob.find(needle)
        while at >= 0 and len(found) < most:
            index = bisect_right(bounds, at) - 1
            end = bounds[index + 1]
            if at + length <= end:
                found.append(index)
                at = blob.find(needle, end)
            else:
                at = blob.find(needle, at + 1)
        return found

    def starting(self, prefix: bytes) -> list[int]:
        """Return the indices of all names that start with `prefix`."""
        blob, length = self.blob, len(prefix)
        if prefix not in blob:
            return []
        return [
            index
            for index, (start, end) in enumerate(pairwise(self.bounds))
            if end - start >= length and blob.startswith(prefix, start)
        ]

    def lowered(self) -> Chunk:
        return Chunk(self.blob.lower(), self.bounds)

    def without(self, indices: Sequence[int]) -> Chunk:
        gone = set(indices)
        return Chunk.of([name for index, name in enumerate(self.names()) if index not in gone])

    @classmethod
    def of(cls, names: Sequence[bytes]) -> Chunk:
        """Pack names that together fit into a chunk, or one name of any length."""
        blob = b"".join(names)
        typecode = _TWO_BYTES if len(blob) <= CHUNK_BYTES else _EIGHT_BYTES
        return cls(blob, array(typecode, accumulate(map(len, names), initial=0)))


class PackedNames:
    """A growing sequence of names, addressed by their ordinals: full chunks, and a tail that still grows."""

    __slots__ = ("_bounds", "_chunks", "_closed", "_firsts", "_tail", "size_bytes")
    size_bytes: int
    """The size of the names and their offsets, without the overhead of Python objects."""

    def __init__(self, names: Sequence[bytes] = ()) -> None:
        self._chunks: list[Chunk] = []
        self._firsts = array("Q")
        self._closed = 0
        self._tail = bytearray()
        self._bounds = array(_TWO_BYTES, (0,))
        self.size_bytes = 0
        if names:
            self.extend(names)

    def __len__(self) -> int:
        return self._closed + len(self._bounds) - 1

    def __getitem__(self, ordinal: int) -> bytes:
        if ordinal >= self._closed:
            index = ordinal - self._closed
            return bytes(self._tail[self._bounds[index] : self._bounds[index + 1]])
        if ordinal < 0:
            raise IndexError(ordinal)
        number = bisect_right(self._firsts, ordinal) - 1
        return self._chunks[number][ordinal - self._firsts[number]]

    def __iter__(self) -> Iterator[bytes]:
        for _, chunk in self.chunks():
            yield from chunk.names()

    @property
    def full_chunks(self) -> int:
        return len(self._chunks)

    def extend(self, names: Sequence[bytes]) -> None:
        """Append names."""
        bounds, base = self._bounds, len(self._tail)
        if len(names) == 1:  # where namespaces are many
            name = names[0]
            if base + len(name) <= CHUNK_BYTES and len(bounds) <= CHUNK_NAMES:
                bounds.append(base + len(name))
                self._tail += name
                self.size_bytes += len(name) + 2
                return
        joined = b"".join(names)
        if base + len(joined) > CHUNK_BYTES or len(bounds) + len(names) > CHUNK_NAMES + 1:
            self._overflow(names)
            return
        bounds.pop()
        bounds.fromlist(list(accumulate(map(len, names), initial=base)))
        self._tail += joined
        self.size_bytes += len(joined) + 2 * len(names)

    def append(self, chunk: Chunk) -> None:
        """Append the names of a chunk, copied as a whole; the result is the same as with `extend`."""
        bounds = chunk.bounds
        if bounds.typecode != _TWO_BYTES:
            self._close()
            self._take(chunk)
            return
        start = 0
        while start < len(chunk):
            base, begin = len(self._tail), bounds[start]
            last = min(len(chunk), start + CHUNK_NAMES + 1 - len(self._bounds))
            stop = bisect_right(bounds, begin + CHUNK_BYTES - base, start, last + 1) - 1
            if stop > start:
                self._tail += chunk.blob[begin : bounds[stop]]
                self._bounds.pop()
                self._bounds += _shifted(bounds[start : stop + 1], base - begin)
                self.size_bytes += bounds[stop] - begin + 2 * (stop - start)
                start = stop
            else:
                self._close()

    def adopt(self, chunk: Chunk) -> None:
        """Append a complete chunk; a big one is shared, without a look at its names."""
        if len(chunk) < CHUNK_NAMES // 4 and len(chunk.blob) < CHUNK_BYTES // 4:
            self.append(chunk)
            return
        self._close()
        self._take(chunk)

    def release(self) -> deque[Chunk]:
        """Return all chunks, in order, and become empty."""
        self._close()
        chunks = deque(self._chunks)
        self._chunks, self._firsts, self._closed, self.size_bytes = [], array("Q"), 0, 0
        return chunks

    def chunks(self, start: int = 0) -> Iterator[tuple[int, Chunk]]:
        """Yield (first ordinal, chunk) for every chunk, starting with the chunk that contains the ordinal `start`.

        Names that arrive meanwhile are included.
        """
        number = len(self._chunks) if start >= self._closed else bisect_right(self._firsts, start) - 1
        while number < len(self._chunks):
            yield self._firsts[number], self._chunks[number]
            number += 1
        if self._tail or len(self._bounds) > 1:
            yield self._closed, Chunk(bytes(self._tail), self._bounds[:])

    def names_at(self, ordinals: Sequence[int]) -> list[bytes]:
        """Return the names at many ordinals; fastest if neighbours in `ordinals` are in one chunk."""
        found: list[bytes] = []
        if isinstance(ordinals, range) and ordinals.step == 1:
            for first, chunk in self.chunks(ordinals.start):
                if first >= ordinals.stop:
                    break
                found += chunk.names(max(0, ordinals.start - first), ordinals.stop - first)
            return found
        first = end = 0
        blob, bounds = b"", self._bounds
        for ordinal in ordinals:
            if ordinal >= end or ordinal < first:
                first, chunk = self._locate(ordinal)
                end = first + len(chunk)
                blob, bounds = chunk.blob, chunk.bounds
            index = ordinal - first
            found.append(blob[bounds[index] : bounds[index + 1]])
        return found

    def _locate(self, ordinal: int) -> tuple[int, Chunk]:
        """Return (first ordinal, chunk) of the chunk that contains this ordinal."""
        if ordinal >= self._closed:
            return self._closed, Chunk(bytes(self._tail), self._bounds)
        number = bisect_right(self._firsts, ordinal) - 1
        return self._firsts[number], self._chunks[number]

    def _take(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)
        self._firsts.append(self._closed)
        self._closed += len(chunk)
        self.size_bytes += chunk.size_bytes

    def _close(self) -> None:
        """Turn the tail into a chunk, exactly as large as its names."""
        if len(self._bounds) == 1:
            return
        chunk = Chunk(bytes(self._tail), self._bounds[:])
        self.size_bytes -= chunk.size_bytes
        self._tail = bytearray()
        self._bounds = array(_TWO_BYTES, (0,))
        self._take(chunk)

    def _overflow(self, names: Sequence[bytes]) -> None:
        """Append names that do not fit into the tail: fill it, close it, repeat."""
        ends = list(accumulate(map(len, names)))
        start = base = 0
        while start < len(names):
            room = CHUNK_BYTES - len(self._tail)
            last = start + CHUNK_NAMES + 1 - len(self._bounds)
            stop = bisect_right(ends, base + room, start, min(last, len(names)))
            if stop > start:
                self.extend(names[start:stop])
            elif len(self._bounds) > 1:
                self._close()
                continue
            else:
                stop = start + 1
                self._take(Chunk.of(names[start:stop]))
            start, base = stop, ends[stop - 1]


@dataclass(slots=True)
class SplitNames:
    """A batch of keys for a store whose separators have one byte each.

    With the separator `:`, the keys `lock`, `user:1` and `cart:7` are the name `lock` in `flat`, and below the labels
    `user:` and `cart:` the suffixes `1` and `7`. A label may occur several times.
    """

    count: int
    flat: list[Chunk]
    """The keys without a separator."""
    labels: list[bytes]
    """First segments, with their separators, that have few, short suffixes."""
    inlines: list[bytes]
    """The suffixes of `labels`, packed inline; parallel to `labels`."""
    chunks: list[tuple[bytes, Chunk]]
    """First segments with many or long suffixes, and these."""

    def without_headers(self) -> tuple[SplitNames, list[bytes]]:
        """Return the batch without names that begin like Java-serialised ones, and these names."""
        labels = (*self.labels, *(label for label, _ in self.chunks))
        if not any(label.startswith(HEADER) for label in labels) and not any(HEADER in one.blob for one in self.flat):
            return self, []
        left, java = SplitNames(self.count, [], [], [], []), list[bytes]()
        for chunk in self.flat:
            java += [chunk[index] for index in chunk.starting(HEADER)]
            left.flat.append(chunk.without(chunk.starting(HEADER)) if HEADER in chunk.blob else chunk)
        for label, inline in zip(self.labels, self.inlines, strict=True):
            if label.startswith(HEADER):
                java += [label + name for name in unpack_inline(inline)]
            else:
                left.labels.append(label)
                left.inlines.append(inline)
        for label, chunk in self.chunks:
            if label.startswith(HEADER):
                java += [label + name for name in chunk.names()]
            else:
                left.chunks.append((label, chunk))
        left.count -= len(java)
        return left, java

    def batches(self) -> Iterator[tuple[bytes, list[bytes]]]:
        """Yield (prefix, suffixes) of all keys."""
        for chunk in self.flat:
            yield b"", chunk.names()
        for label, inline in zip(self.labels, self.inlines, strict=True):
            yield label, unpack_inline(inline)
        for label, chunk in self.chunks:
            yield label, chunk.names()
