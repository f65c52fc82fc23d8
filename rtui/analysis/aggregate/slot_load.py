"""Keys and bytes by hash slot, how uneven they lie, and what a cluster of n nodes would make of them."""

from __future__ import annotations

import re
from array import array
from binascii import crc_hqx
from collections import Counter
from collections.abc import Sequence
from itertools import repeat
from operator import and_
from typing import Final

from rtui.analysis.aggregate.heavy_tags import HeavyTags
from rtui.analysis.report.document import SlotsReport
from rtui.keyspace.slots import SLOTS

_SLOT_MASK: Final = SLOTS - 1
_match_tag: Final = re.compile(rb"[^{]*\{([^}]+)\}").match
"""Matches a key that has a hash tag: what stands between the first { and the first } after it, if anything does."""


class SlotLoad:
    """Counts keys and bytes by hash slot, and follows the hash tags that load them."""

    def __init__(self) -> None:
        self.tags = HeavyTags()
        self._keys: Counter[int] = Counter()
        self._memory = [0] * SLOTS
        self._unmeasured: Counter[int] = Counter()
        """Keys whose memory is not known."""

    def add(self, keys: Sequence[bytes], memory_bytes: Sequence[int] | None) -> None:
        """Count a batch of keys; `memory_bytes` is parallel, or None where it is not known."""
        hashed = keys
        if b"{" in b"".join(keys):
            hashed = self._untag(keys, memory_bytes)
        slots = list(map(and_, map(crc_hqx, hashed, repeat(0)), repeat(_SLOT_MASK)))
        self._keys.update(slots)
        if memory_bytes is None:
            self._unmeasured.update(slots)
            return
        sums = self._memory
        for slot, size in zip(slots, memory_bytes, strict=True):
            sums[slot] += size

    def _untag(self, keys: Sequence[bytes], memory_bytes: Sequence[int] | None) -> Sequence[bytes]:
        """Return what is hashed of each key, and count the tags."""
        found = [None if match is None else match[1] for match in map(_match_tag, keys)]
        tags = [tag for tag in found if tag is not None]
        if memory_bytes is not None and len(tags) < len(keys):
            memory_bytes = [size for tag, size in zip(found, memory_bytes, strict=True) if tag is not None]
        self.tags.add(tags, memory_bytes)
        return [key if tag is None else tag for key, tag in zip(keys, found, strict=True)]

    def merge(self, other: SlotLoad) -> None:
        """Take up another's counts."""
        self._keys.update(other._keys)
        self._memory = list(map(int.__add__, self._memory, other._memory))
        self._unmeasured.update(other._unmeasured)
        self.tags.merge(other.tags)

    def report(self, *, tags: int = 100, owned: tuple[tuple[int, int], ...] | None = None) -> SlotsReport:
        """All slots and the heaviest tags; `owned` are the slots of the node that was asked, in a cluster."""
        left_out = self._unmeasured.total()
        knows_none = left_out > 0 and left_out == self._keys.total()
        return SlotsReport(
            keys=_by_slot(self._keys),
            memory_bytes=None if knows_none else array("Q", self._memory),
            tags=self.tags.heaviest(tags),
            owned=owned,
            unmeasured=_by_slot(self._unmeasured) if left_out and not knows_none else None,
        )


def _by_slot(counts: Counter[int]) -> array[int]:
    """Return the counts of all slots in their order."""
    return array("Q", map(counts.__getitem__, range(SLOTS)))
