"""Keys of which more is asked than of others: one in eight of those that are listed, and for encodings every n-th.

Both samples are taken by the order in which SCAN returns keys, which has nothing to do with their names or values. So
what rests on them is an estimate with a known error. A key is sampled when it comes, and stays so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.server.chance import new_random
from rtui.server.inspection.plan import InspectionPlan


class ListedKeys:
    """Keys that wait for the first stage; which of them are sampled is decided as they are listed."""

    def __init__(self, plan: InspectionPlan, first_sampled: int | None = None) -> None:
        """Sample the listed keys from this index on, a random one of the first eight by default."""
        self._plan = plan
        self._skip = first_sampled
        """How many keys are passed over before the next one that is sampled; None until the first page."""
        self._others: list[bytes] = []
        """Keys of which not everything is asked."""
        self._sampled: list[bytes] = []
        """Keys of which everything is asked."""

    @property
    def keys(self) -> int:
        """How many keys wait."""
        return len(self._others) + len(self._sampled)

    @property
    def skip(self) -> int:
        """How many keys are passed over before the next one that is sampled."""
        if self._skip is None:
            self._skip = new_random("which of eight").randrange(self._plan.sample_every)
        return self._skip

    def divided(self, keys: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """Return those of the next keys that are listed that are sampled, and the others."""
        every = self._plan.sample_every
        if every == 1:
            return keys, []
        others, skip = list(keys), self.skip
        sampled = others[skip::every]
        del others[skip::every]
        self._skip = (skip - len(keys)) % every
        return sampled, others

    def add(self, keys: Sequence[bytes], *, is_sampled: bool) -> None:
        """Let keys wait."""
        waiting = self._sampled if is_sampled else self._others
        waiting += keys

    def take(self, most: int) -> Iterator[InspectedBatch]:
        """Take up to so many keys; of sampled keys and others so many that both run out together."""
        waiting = len(self._sampled) + len(self._others)
        sampled = -(-len(self._sampled) * min(most, waiting) // max(1, waiting))
        others = min(most, waiting) - sampled
        if sampled:
            taken, self._sampled = self._sampled[:sampled], self._sampled[sampled:]
            yield InspectedBatch(None, taken)
        if others:
            taken, self._others = self._others[:others], self._others[others:]
            yield InspectedBatch(None, taken, is_sampled=False)

    def take_all(self) -> list[bytes]:
        """Take all keys, in no order of their coming."""
        keys = [*self._others, *self._sampled]
        self._others, self._sampled = [], []
        return keys


class EveryNth:
    """Chooses every n-th key of each type, in the order in which they come."""

    def __init__(self) -> None:
        self._skip: dict[bytes, int] = {}
        """By type, how many keys are passed over before the next one."""

    def choose(self, key_type: bytes, keys: int, every: int) -> range:
        """Return which of the next keys of a type are chosen."""
        skip = self._skip.get(key_type, 0)
        self._skip[key_type] = (skip - keys) % every
        return range(skip, keys, every)
