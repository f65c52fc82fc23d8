"""What becomes of the keys that a node of a cluster lists: dropped or delivered by their slot, each once.

Of slots that are not covered (`slot_ledger`) it is kept what was delivered: 8 bytes a key, its slot and 50 bits of
Python's hash of the name, which is seeded for each process. Of slots that are visited a second time, by whatever node,
keys with a known fingerprint are dropped. With 1,000 keys a slot, two names of a slot have the same fingerprint once in
10^12 slots.

`rtui.server.engine._slot_filter` has the compiled counterpart, with the same interface and the same fingerprints.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from rtui.keyspace.slots import SLOTS, key_slot

DROP: Final = 0
"""Keys of the slot are dropped."""

ACCEPT: Final = 1
"""They are delivered."""

ACCEPT_NEW: Final = 2
"""They are delivered unless their fingerprint is known."""

HASH_BITS: Final = 50
_HASH_MASK: Final = (1 << HASH_BITS) - 1

MOST_BYTES: Final = 64 << 20
"""Fingerprints of the nodes that are scanned at once have so many bytes at most, shared out evenly among them."""


class KeyFilter(Protocol):
    """Decides which of the keys that one node lists are delivered; fingerprints are arrays of type code `Q`."""

    def accept(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those to deliver, and keep their fingerprints."""
        ...

    def set_slots(self, slots: Iterable[int], what: int) -> None:
        """Have the keys of these slots dropped or delivered: DROP, ACCEPT or ACCEPT_NEW."""

    def know(self, fingerprints: array[int]) -> None:
        """Drop keys with those of these fingerprints whose slot is ACCEPT_NEW."""

    def take(self, slots: Iterable[int]) -> array[int]:
        """Return the fingerprints of these slots, and forget them."""
        ...

    def forget(self, slots: Iterable[int]) -> None:
        """Keep no fingerprints of these slots any more, which are covered."""

    def unknown(self, slots: Iterable[int]) -> int:
        """Return how many keys of these slots were delivered without a fingerprint, since there were too many."""
        ...


def fingerprint(key: bytes) -> int:
    """Return the slot of a key in the upper 14 bits, its hash in the others; never 0."""
    return key_slot(key) << HASH_BITS | hash(key) & _HASH_MASK or 1


class SlotFilter:
    """The filter of one node, in Python; see `KeyFilter`."""

    def __init__(self, most: int) -> None:
        """Keep so many fingerprints at most."""
        self._most = most
        self._kept = 0
        self._slots = bytearray(SLOTS)
        self._delivered: dict[int, array[int]] = {}
        """By slot, in the order of delivery, where the slot is ACCEPT."""
        self._known: dict[int, set[int]] = {}
        """By slot, where it is ACCEPT_NEW."""
        self._unknown: dict[int, int] = {}

    def accept(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those to deliver, and keep their fingerprints."""
        accepted = []
        for key in keys:
            slot = key_slot(key)
            what = self._slots[slot]
            if what == DROP:
                continue
            found = slot << HASH_BITS | hash(key) & _HASH_MASK or 1
            if what == ACCEPT_NEW:
                known = self._known.setdefault(slot, set())
                if found in known:
                    continue
                if self._has_room(slot):
                    known.add(found)
            elif self._has_room(slot):
                self._delivered.setdefault(slot, array("Q")).append(found)
            accepted.append(key)
        return accepted

    def _has_room(self, slot: int) -> bool:
        """Count a fingerprint that is to be kept; where there are too many, count the key as unknown."""
        if self._kept < self._most:
            self._kept += 1
            return True
        self._unknown[slot] = self._unknown.get(slot, 0) + 1
        return False

    def set_slots(self, slots: Iterable[int], what: int) -> None:
        """Have the keys of these slots dropped or delivered."""
        for slot in slots:
            self._slots[slot] = what

    def know(self, fingerprints: array[int]) -> None:
        """Drop keys with those of these fingerprints whose slot is ACCEPT_NEW."""
        for one in fingerprints:
            slot = one >> HASH_BITS
            known = self._known.setdefault(slot, set()) if self._slots[slot] == ACCEPT_NEW else None
            if known is not None and one not in known:
                known.add(one)
                self._kept += 1

    def take(self, slots: Iterable[int]) -> array[int]:
        """Return the fingerprints of these slots, and forget them."""
        taken: array[int] = array("Q")
        for slot in slots:
            taken.extend(self._delivered.pop(slot, ()))
            taken.extend(self._known.pop(slot, ()))
        self._kept -= len(taken)
        return taken

    def forget(self, slots: Iterable[int]) -> None:
        """Keep no fingerprints of these slots any more."""
        for slot in slots:
            self._kept -= len(self._delivered.pop(slot, ())) + len(self._known.pop(slot, ()))
            self._unknown.pop(slot, None)

    def unknown(self, slots: Iterable[int]) -> int:
        """Return how many keys of these slots were delivered without a fingerprint."""
        return sum(self._unknown.get(slot, 0) for slot in slots)
