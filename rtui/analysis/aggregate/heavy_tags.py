"""The hash tags that hold most keys, found without a count for each of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from operator import add, itemgetter
from typing import Final

from rtui.analysis.aggregate.top_keys import fitting
from rtui.analysis.report.document import SlotTag
from rtui.keyspace.slots import SLOTS, crc16

CAPACITY: Final = 512
"""How many tags are followed; each that holds more than 1/513 of all tagged keys is among them for certain,
where they have room."""

TAG_BYTES: Final = 1 << 20
"""The followed tags have at most a few times so many bytes together: where tags are very long, fewer are followed."""


class HeavyTags:
    """Counts keys by tag for at most a few times `capacity` tags or `room` bytes of tags: Space-Saving, in batches.

    Whenever there are too many, the tags of lowest upper bound (counted + missed) go, and the highest bound among
    those becomes `floor`: what any tag that is not followed may hold at most. That is Misra and Gries' summary with
    its subtractions written down instead of made, so `floor` is at most (tagged keys) / (capacity + 1), with as many
    tags as find room for `capacity`, and a tag that was followed from its first key on has its exact count (Agarwal
    et al., Mergeable Summaries, PODS 2012).
    """

    def __init__(self, capacity: int = CAPACITY, *, room: int = TAG_BYTES) -> None:
        self.floor = 0
        """The most keys that a tag can have that is not followed."""
        self._capacity = capacity
        self._room = room
        self._tag_bytes = 0
        """Bytes of all followed tags."""
        self._keys: Counter[bytes] = Counter()
        """Keys of each followed tag since it was taken up."""
        self._missed: dict[bytes, int] = {}
        """At most so many keys of it came before."""
        self._memory: defaultdict[bytes, int] = defaultdict(int)

    def add(self, tags: Sequence[bytes], memory_bytes: Sequence[int] | None) -> None:
        """Count keys by their tags (without braces); both parallel, None where memory is not known."""
        self._keys.update(tags)
        fresh = set(tags).difference(self._missed)
        self._missed.update(dict.fromkeys(fresh, self.floor))
        self._tag_bytes += sum(map(len, fresh))
        if memory_bytes is not None:
            sums = self._memory
            for tag, size in zip(tags, memory_bytes, strict=True):
                sums[tag] += size
        if len(self._keys) > 4 * self._capacity or self._tag_bytes > 4 * self._room:
            self._shed()

    def _shed(self) -> None:
        """Follow no more than the heaviest tags."""
        if len(self._keys) <= self._capacity and self._tag_bytes <= self._room:
            return
        bounds = list(map(add, self._keys.values(), map(self._missed.__getitem__, self._keys)))
        ranked = sorted(zip(bounds, self._keys, strict=True), key=itemgetter(0), reverse=True)
        most = min(self._capacity, fitting((tag for _, tag in ranked), self._room))
        if most == len(ranked):
            return
        self.floor = ranked[most][0]
        kept = [tag for tag, bound in zip(self._keys, bounds, strict=True) if bound > self.floor]
        self._keys = Counter({tag: self._keys[tag] for tag in kept})
        self._missed = {tag: self._missed[tag] for tag in kept}
        self._tag_bytes = sum(map(len, kept))
        self._memory = defaultdict(int, {tag: self._memory[tag] for tag in kept if tag in self._memory})

    def merge(self, other: HeavyTags) -> None:
        """Take up another's counts; a tag that only one of both follows may have been missed by the other."""
        missed = self._missed.keys() | other._missed.keys()
        self._missed = {tag: self._missed.get(tag, self.floor) + other._missed.get(tag, other.floor) for tag in missed}
        self._keys.update(other._keys)
        for tag, size in other._memory.items():
            self._memory[tag] += size
        self.floor += other.floor
        self._tag_bytes = sum(map(len, self._keys))
        self._shed()

    def heaviest(self, most: int = 100) -> tuple[SlotTag, ...]:
        """The tags with most keys first, ties by tag; a count that may be too low says so."""
        ranked = sorted(self._keys.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
        return tuple(
            SlotTag(
                slot=crc16(tag) % SLOTS,
                tag=tag,
                keys=count,
                memory_bytes=self._memory.get(tag),
                at_least=self._missed[tag] > 0,
            )
            for tag, count in ranked
        )
