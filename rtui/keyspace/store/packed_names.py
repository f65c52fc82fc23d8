"""A handful of short names in one bytes object: how many, then each with its length in front.

A namespace with a million namespaces of one key below it costs one such object each, and nothing that the garbage
collector has to walk.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

MOST_NAMES = 8
"""A handful holds at most so many names."""

LONGEST_NAME = 64
"""No name of a handful is longer, in bytes."""

ONE = [bytes((1, length)) for length in range(LONGEST_NAME + 1)]
"""What stands in front of a name that is alone, by its length."""

_BYTE = [bytes((value,)) for value in range(256)]


def handful(names: Sequence[bytes]) -> bytes | None:
    """Pack names, or None where they are too many or too long."""
    if len(names) == 1:
        name = names[0]
        return ONE[len(name)] + name if len(name) <= LONGEST_NAME else None
    if len(names) > MOST_NAMES or max(map(len, names)) > LONGEST_NAME:
        return None
    parts = [_BYTE[len(names)]]
    for name in names:
        parts += (_BYTE[len(name)], name)
    return b"".join(parts)


def with_one(packed: bytes, name: bytes) -> bytes | None:
    """The handful with one name more, or None where it is full or the name too long."""
    if packed[0] >= MOST_NAMES or len(name) > LONGEST_NAME:
        return None
    return _BYTE[packed[0] + 1] + packed[1:] + _BYTE[len(name)] + name


def count_of(packed: bytes) -> int:
    """How many names the handful holds."""
    return packed[0]


def names_of(packed: bytes) -> list[bytes]:
    """All names of the handful, in order."""
    names = []
    at = 1
    while at < len(packed):
        start = at + 1
        at = start + packed[start - 1]
        names.append(packed[start:at])
    return names


CHUNK_BYTES = 0xFFFF
"""A chunk holds at most so many bytes, so that two bytes say where a name ends; only a longer name is a chunk alone."""

CHUNK_NAMES = 2048
"""A chunk holds at most so many names, so that looking through one is a millisecond or two."""

_SHORT = "H"
_LONG = "Q"


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """A run of names: name i is `blob[bounds[i]:bounds[i + 1]]`."""

    blob: bytes
    """The names, one after the other."""

    bounds: array[int]
    """One offset more than there are names, from 0 to the length of the blob."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, index: int) -> bytes:
        return self.blob[self.bounds[index] : self.bounds[index + 1]]

    @property
    def size_bytes(self) -> int:
        """What the names and their offsets take, as `Packed.size_bytes` counts it."""
        return len(self.blob) + self.bounds.itemsize * len(self)

    def names(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """All names, or those at places from `start` to before `stop`, in order."""
        blob = self.blob
        bounds = (
            self.bounds
            if not start and stop is None
            else self.bounds[start : len(self) + 1 if stop is None else stop + 1]
        )
        return [blob[begin:end] for begin, end in pairwise(bounds)]

    def index(self, name: bytes, start: int = 0) -> int:
        """The first place of exactly this name at or after `start`, -1 if there is none."""
        if not name:
            return next((i for i in range(start, len(self)) if self.bounds[i] == self.bounds[i + 1]), -1)
        bounds = self.bounds
        at = self.blob.find(name, bounds[start])
        while at >= 0:
            place = bisect_right(bounds, at) - 1
            if bounds[place] == at and bounds[place + 1] == at + len(name):
                return place
            at = self.blob.find(name, at + 1)
        return -1

    def containing(self, needle: bytes) -> list[int]:
        """The places of all names that hold `needle`, found in the blob and not name by name."""
        if not needle:
            return list(range(len(self)))
        found = []
        blob, bounds, length = self.blob, self.bounds, len(needle)
        at = blob.find(needle)
        while at >= 0:
            place = bisect_right(bounds, at) - 1
            end = bounds[place + 1]
            if at + length <= end:
                found.append(place)
                at = blob.find(needle, end)
            else:
                at = blob.find(needle, at + 1)
        return found

    def starting(self, prefix: bytes) -> list[int]:
        """The places of all names that start with `prefix`."""
        blob, length = self.blob, len(prefix)
        if prefix not in blob:
            return []
        return [
            place
            for place, (start, end) in enumerate(pairwise(self.bounds))
            if end - start >= length and blob.startswith(prefix, start)
        ]

    def lowered(self) -> Chunk:
        """The same names with ASCII letters in lower case."""
        return Chunk(self.blob.lower(), self.bounds)

    def without(self, places: Sequence[int]) -> Chunk:
        """The same names, in order, but for those at `places`."""
        gone = set(places)
        return Chunk.of([name for place, name in enumerate(self.names()) if place not in gone])

    @classmethod
    def of(cls, names: Sequence[bytes]) -> Chunk:
        """Pack names that together fit a chunk, or one name of any length."""
        blob = b"".join(names)
        typecode = _SHORT if len(blob) <= CHUNK_BYTES else _LONG
        return cls(blob, array(typecode, accumulate(map(len, names), initial=0)))


class Packed:
    """A growing sequence of names in arrival order: chunks that are full, and a tail that still grows."""

    __slots__ = ("_bounds", "_chunks", "_closed", "_firsts", "_tail", "size_bytes")

    size_bytes: int
    """What the names and their offsets take; what Python adds for each object is not in it."""

    def __init__(self, names: Sequence[bytes] = ()) -> None:
        self._chunks: list[Chunk] = []
        self._firsts = array("Q")
        self._closed = 0
        self._tail = bytearray()
        self._bounds = array(_SHORT, (0,))
        self.size_bytes = 0
        if names:
            self.extend(names)

    def __len__(self) -> int:
        return self._closed + len(self._bounds) - 1

    def __getitem__(self, ordinal: int) -> bytes:
        if ordinal >= self._closed:
            place = ordinal - self._closed
            return bytes(self._tail[self._bounds[place] : self._bounds[place + 1]])
        if ordinal < 0:
            raise IndexError(ordinal)
        number = bisect_right(self._firsts, ordinal) - 1
        return self._chunks[number][ordinal - self._firsts[number]]

    def __iter__(self) -> Iterator[bytes]:
        for _, chunk in self.chunks():
            yield from chunk.names()

    @property
    def full_chunks(self) -> int:
        """How many chunks have been closed."""
        return len(self._chunks)

    def extend(self, names: Sequence[bytes]) -> None:
        """Add names behind those that are there."""
        joined = b"".join(names)
        base = len(self._tail)
        bounds = self._bounds
        if base + len(joined) > CHUNK_BYTES or len(bounds) + len(names) > CHUNK_NAMES + 1:
            self._overflow(names)
            return
        bounds.pop()
        bounds.fromlist(list(accumulate(map(len, names), initial=base)))
        self._tail += joined
        self.size_bytes += len(joined) + 2 * len(names)

    def adopt(self, chunk: Chunk) -> None:
        """Add a whole chunk; a big one is taken as it is, without looking at its names."""
        if len(chunk) < CHUNK_NAMES // 4 and len(chunk.blob) < CHUNK_BYTES // 4:
            self.extend(chunk.names())
            return
        self._close()
        self._take(chunk)

    def release(self) -> deque[Chunk]:
        """Give all chunks away, in order, and hold nothing any more."""
        self._close()
        chunks = deque(self._chunks)
        self._chunks, self._firsts, self._closed, self.size_bytes = [], array("Q"), 0, 0
        return chunks

    def chunks(self, start: int = 0) -> Iterator[tuple[int, Chunk]]:
        """Yield (ordinal of its first name, chunk) for every chunk, from the one that holds `start` on.

        Names that arrive meanwhile are met too; after `remove` it must be begun again.
        """
        number = len(self._chunks) if start >= self._closed else bisect_right(self._firsts, start) - 1
        while number < len(self._chunks):
            yield self._firsts[number], self._chunks[number]
            number += 1
        if self._tail or len(self._bounds) > 1:
            yield self._closed, Chunk(bytes(self._tail), self._bounds[:])

    def names_at(self, ordinals: Sequence[int]) -> list[bytes]:
        """The names at many ordinals; fastest where neighbours in `ordinals` lie in one chunk."""
        if isinstance(ordinals, range) and ordinals.step == 1:
            return self._between(ordinals.start, ordinals.stop)
        found = []
        first = end = 0
        blob, bounds = b"", self._bounds
        for ordinal in ordinals:
            if ordinal >= end or ordinal < first:
                first, chunk = self._locate(ordinal)
                end = first + len(chunk)
                blob, bounds = chunk.blob, chunk.bounds
            place = ordinal - first
            found.append(blob[bounds[place] : bounds[place + 1]])
        return found

    def _between(self, start: int, stop: int) -> list[bytes]:
        """The names at consecutive ordinals."""
        found: list[bytes] = []
        while start < stop:
            first, chunk = self._locate(start)
            end = min(stop, first + len(chunk))
            found += chunk.names(start - first, end - first)
            start = end
        return found

    def _locate(self, ordinal: int) -> tuple[int, Chunk]:
        """Return (ordinal of its first name, chunk) for the chunk that holds this ordinal."""
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
        """Make the tail a chunk, exactly as large as its names."""
        if len(self._bounds) == 1:
            return
        chunk = Chunk(bytes(self._tail), self._bounds[:])
        self.size_bytes -= chunk.size_bytes
        self._tail = bytearray()
        self._bounds = array(_SHORT, (0,))
        self._take(chunk)

    def _overflow(self, names: Sequence[bytes]) -> None:
        """Add names that do not fit the tail: fill it, close it, go on."""
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
