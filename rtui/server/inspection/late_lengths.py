"""Decides which unsampled keys are asked for their length after all, so that the lists of the longest are exact.

A string of 3,000 bytes takes at least 3,000 bytes of memory, a hash of 3,000 fields at least 6,000: each type has its
least bytes for a unit of length (`InspectionPlan.least_element_bytes`). So once the list of the 100 longest hashes ends
with one of 3,000 fields, a hash of less than 6,000 bytes can't enter it, and its length need not be asked. Keys with at
least that much memory are asked in the third stage, and their replies raise the threshold for the next ones. If MEMORY
USAGE gives no bound on the length, as with lists and streams, all keys are asked.

If most keys are about as long as the longest, that would ask nearly all of them. So there is a limit for each type: a
sixteenth of all keys, and some thousand. Beyond it keys are left out, and the findings are told the greatest possible
length of these: then the list may lack keys, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil
from typing import Final, Protocol

from rtui.keyspace.types import SHORT_LENGTH
from rtui.server.inspection.batches import InspectedBatch
from rtui.server.inspection.plan import InspectionPlan
from rtui.table.top_keys import UNKNOWN_LENGTH

LATE_SHARE: Final = 1 / 16
"""Most keys of a type that are asked late for their length, as a share of the unsampled keys."""

LATE_KEYS: Final = 1_000
"""Keys of each type that are asked in any case, or four times the length of a list."""


class LongestKeys(Protocol):
    """The lists of the longest keys by type, as `TopKeys` has them."""

    @property
    def top(self) -> int:
        """Keys in each list."""

    def length_floor(self, key_type: bytes | None) -> int:
        """Return from which length on a key would be listed, or be above the thresholds, as known by now."""
        ...

    def leave_out(self, key_type: bytes | None, most_length: int) -> None:
        """Count keys whose length is unknown, but at most `most_length`."""


class LateLengths:
    """The keys of one pass; see the module's walk-through."""

    def __init__(self, plan: InspectionPlan) -> None:
        self._plan = plan
        self._seen = 0
        self._asked: Counter[bytes | None] = Counter()
        self._pausing: set[bytes | None] = set()
        """Types that have used up their late lengths for a while."""

    def least_memory(self, key_type: bytes | None, big: LongestKeys) -> int | None:
        """Return from which memory on the length of keys of this type is asked now; None where it is not at all.

        It rises when keys are added to `big`. After None, keys are asked again once a good number may be.
        """
        left = self.left(key_type, big)
        if left >= LATE_KEYS:
            self._pausing.discard(key_type)
        elif not left:
            self._pausing.add(key_type)
        if key_type in self._pausing or self._plan.third_command(key_type) is None:
            return None
        floor = big.length_floor(key_type)
        return floor * self._plan.least_element_bytes(key_type) if floor > SHORT_LENGTH else 0

    def left(self, key_type: bytes | None, big: LongestKeys) -> int:
        """Return how many keys of this type may still be asked late now."""
        most = max(LATE_KEYS, 4 * big.top) + self._seen * LATE_SHARE
        return max(0, ceil(most - self._asked[key_type]))

    def asked(self, key_type: bytes | None) -> int:
        return self._asked[key_type]

    def count(self, key_type: bytes | None, *, seen: int, asked: int) -> None:
        """Count unsampled keys, and how many of them are asked late."""
        self._seen += seen
        self._asked[key_type] += asked

    def choose(self, batch: InspectedBatch, big: LongestKeys) -> Sequence[int]:
        """Return the indexes of the keys to ask for their length, and tell `big` of the keys left out."""
        if batch.is_sampled or batch.lengths is not None or not self._plan.samples_lengths(batch.key_type):
            return ()
        memory, size = batch.memory_bytes, len(batch.keys)
        least = self.least_memory(batch.key_type, big)
        chosen: Sequence[int]
        if least is None or (memory is not None and max(memory) < least):
            chosen = ()
        elif memory is None:
            chosen = () if least else range(size)
        else:
            chosen = [index for index, size_bytes in enumerate(memory) if size_bytes >= least]
        self.count(batch.key_type, seen=size, asked=len(chosen))
        if len(chosen) < size:
            left_out = None if memory is None else max(memory) if not chosen else (least or 0) - 1
            big.leave_out(batch.key_type, self.most_length(batch.key_type, left_out))
        return chosen

    def most_length(self, key_type: bytes | None, memory_bytes: int | None) -> int:
        """Return the greatest possible length of a key of this memory; UNKNOWN_LENGTH if there is no bound."""
        least = self._plan.least_element_bytes(key_type)
        return UNKNOWN_LENGTH if memory_bytes is None or not least else max(SHORT_LENGTH, memory_bytes // least)

    def leave_out(self, batch: InspectedBatch, big: LongestKeys) -> None:
        """Tell `big` of keys that did not reply with their length."""
        memory = batch.memory_bytes
        big.leave_out(batch.key_type, self.most_length(batch.key_type, None if memory is None else max(memory)))
