"""The samples of one server over a session, in bounded memory.

The latest samples are all there. When there are too many, every second one of the older half goes: so a session of any
length has its beginning, and its times are the coarser the longer ago they are. Clients are kept of the latest sample
alone, since a thousand of them take more than all the rest.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from rtui.analysis.health.sample import Sample

MOST_SAMPLES: Final = 360
"""Half an hour of a sample every five seconds."""

LEAST_SAMPLES: Final = 24
"""Of each node, however many there are."""


class SampleHistory:
    """Samples of one server, oldest first."""

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        """`most` is how many are kept; it may be changed at any time."""
        self.most = most
        self.left_out = 0
        """Samples that have made room for later ones."""
        self._samples: list[Sample] = []

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All that are kept."""
        return tuple(self._samples)

    def add(self, sample: Sample) -> None:
        """Keep a sample that is later than all others."""
        kept = self._samples
        if kept:
            kept[-1] = replace(kept[-1], clients=())
        kept.append(sample)
        while len(kept) > max(LEAST_SAMPLES, self.most):
            older = len(kept) // 2
            gone = kept[1:older:2]
            del kept[1:older:2]
            self.left_out += len(gone)
