"""Keys, bytes and times to live by hash slot, and the hash tags that hold most keys.

There may be more hash tags than fit into memory, so only some are counted, in a way that finds the heavy ones (the
Space-Saving algorithm, in batches). Take a capacity of 2 and the tags a a a b c c. When there are too many, those with
fewest keys are dropped, here b with 1, and the largest number dropped becomes the *floor*: no dropped tag has had more
keys than that. Should b come again, it is counted from 0, but notes that up to 1 key was missed: its count is then "at
least". A tag that was counted from its first key on has an exact count. The floor grows slowly: it is at most (tagged
keys) / (capacity + 1), so any tag with more keys than that is among those counted.
"""

from __future__ import annotations

import re
from array import array
from binascii import crc_hqx
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import repeat
from operator import add, and_, itemgetter
from typing import Final

from rtui.analysis.aggregate.top_keys import fitting
from rtui.analysis.report.document import SlotsReport, SlotTag
from rtui.keyspace.slots import SLOTS, crc16

CAPACITY: Final = 512
"""How many tags are counted; each that holds more than 1/513 of all tagged keys is among them for certain,
unless they take too much memory."""

TAG_BYTES: Final = 1 << 20
"""The counted tags have at most a few times so many bytes together: where tags are very long, fewer are counted."""

REPORTED_TAGS: Final = 100
"""How many tags a report lists."""

MAX_SUM: Final = (1 << 64) - 1
"""The largest sum of bytes that a report holds."""

_SLOT_MASK: Final = SLOTS - 1
_match_tag: Final = re.compile(rb"[^{]*\{([^}]+)\}").match
"""Matches a key that has a hash tag: what stands between the first { and the first } after it, if anything does."""


class SlotCounts:
    """Counts keys, bytes and times to live by hash slot, and the hash tags among them."""

    def __init__(self) -> None:
        self._tags = HeavyTags()
        self._keys: Counter[int] = Counter()
        self._memory = [0] * SLOTS
        self._unmeasured: Counter[int] = Counter()
        """Keys whose memory is not known."""
        self._ttl_unknown: Counter[int] = Counter()
        self._no_ttl: Counter[int] = Counter()

    def add(
        self, keys: Sequence[bytes], memory_bytes: Sequence[int] | None, ttl_ms: Sequence[int] | None = None
    ) -> None:
        """Count a batch of keys; the other columns are parallel, or None where they are not known."""
        hashed = keys
        braced = [index for index, key in enumerate(keys) if b"{" in key]
        if braced:
            matches = [(index, match[1]) for index in braced if (match := _match_tag(keys[index])) is not None]
            hashed = list(keys)
            for index, tag in matches:
                hashed[index] = tag
            sizes = None if memory_bytes is None else [memory_bytes[index] for index, _ in matches]
            self._tags.add([tag for _, tag in matches], sizes)
        slots = list(map(and_, map(crc_hqx, hashed, repeat(0)), repeat(_SLOT_MASK)))
        self._keys.update(slots)
        if ttl_ms is None:
            self._ttl_unknown.update(slots)
        else:
            self._no_ttl.update(slot for slot, ttl in zip(slots, ttl_ms, strict=True) if ttl < 0)
        if memory_bytes is None:
            self._unmeasured.update(slots)
            return
        sums = self._memory
        for slot, size in zip(slots, memory_bytes, strict=True):
            sums[slot] += size

    def report(self) -> SlotsReport:
        """Return the counts of all slots and the heaviest tags."""
        unmeasured = self._unmeasured.total()
        knows_none = unmeasured > 0 and unmeasured == self._keys.total()
        return SlotsReport(
            keys=_by_slot(self._keys),
            memory_bytes=None if knows_none else sums_by_slot(self._memory),
            tags=self._tags.heaviest(REPORTED_TAGS),
            unmeasured=_by_slot(self._unmeasured) if unmeasured and not knows_none else None,
        )

    def ttl_counts(self) -> tuple[Sequence[int], Sequence[int]]:
        """Return by slot the keys whose time to live is known, and those of them without one."""
        return _by_slot(self._keys - self._ttl_unknown), _by_slot(self._no_ttl)


def _by_slot(counts: Counter[int]) -> array[int]:
    return array("Q", map(counts.__getitem__, range(SLOTS)))


def sums_by_slot(sums: Sequence[int]) -> array[int]:
    """Return sums of bytes; one that no memory can hold, which a server at fault may send, is the largest number."""
    return array("Q", sums if max(sums) <= MAX_SUM else [min(one, MAX_SUM) for one in sums])


class HeavyTags:
    """Counts keys by tag for at most a few times `capacity` tags or `max_bytes` bytes of tags.

    This is Misra and Gries' summary with its subtractions noted instead of made (Agarwal et al., Mergeable Summaries,
    PODS 2012). Where tags are so long that fewer than `capacity` fit, the bound on the floor is that of as many as fit.
    """

    def __init__(self, capacity: int = CAPACITY, *, max_bytes: int = TAG_BYTES) -> None:
        self.floor = 0
        """The most keys that a tag can have that is not counted."""
        self._capacity = capacity
        self._max_bytes = max_bytes
        self._tag_bytes = 0
        """Bytes of all counted tags."""
        self._keys: Counter[bytes] = Counter()
        """Keys of each tag since it has been counted."""
        self._missed: dict[bytes, int] = {}
        """At most so many keys of it came before."""
        self._memory: defaultdict[bytes, int] = defaultdict(int)

    def add(self, tags: Sequence[bytes], memory_bytes: Sequence[int] | None) -> None:
        """Count keys by their tags (without braces); both parallel, None where memory is not known."""
        self._keys.update(tags)
        new = set(tags).difference(self._missed)
        self._missed.update(dict.fromkeys(new, self.floor))
        self._tag_bytes += sum(map(len, new))
        if memory_bytes is not None:
            sums = self._memory
            for tag, size in zip(tags, memory_bytes, strict=True):
                sums[tag] += size
        if len(self._keys) <= 4 * self._capacity and self._tag_bytes <= 4 * self._max_bytes:
            return
        # The tags with the highest upper bounds (counted + missed keys) are kept.
        bounds = list(map(add, self._keys.values(), map(self._missed.__getitem__, self._keys)))
        ranked = sorted(zip(bounds, self._keys, strict=True), key=itemgetter(0), reverse=True)
        most = min(self._capacity, fitting((tag for _, tag in ranked), self._max_bytes))
        if most == len(ranked):
            return
        self.floor = ranked[most][0]
        kept = [tag for tag, bound in zip(self._keys, bounds, strict=True) if bound > self.floor]
        self._keys = Counter({tag: self._keys[tag] for tag in kept})
        self._missed = {tag: self._missed[tag] for tag in kept}
        self._tag_bytes = sum(map(len, kept))
        self._memory = defaultdict(int, {tag: self._memory[tag] for tag in kept if tag in self._memory})

    def heaviest(self, most: int) -> tuple[SlotTag, ...]:
        """Return the tags with most keys first, ties by tag; a count that may be too low is marked so."""
        missed = self._missed  # another thread may add: of a tag that came just now it is not known what was missed
        ranked = sorted(self._keys.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
        return tuple(
            SlotTag(
                slot=crc16(tag) % SLOTS,
                tag=tag,
                keys=count,
                memory_bytes=self._memory.get(tag),
                at_least=missed.get(tag, 1) > 0,
            )
            for tag, count in ranked
        )
