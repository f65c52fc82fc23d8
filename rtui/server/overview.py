"""A first picture of the tree from a sample: its largest namespaces with their shares, until the scan knows them."""

from __future__ import annotations

from typing import Final

from rtui.analysis.estimate import Estimate, NamespaceTally
from rtui.keyspace.store import NamespaceStore
from rtui.server.lane import Lane
from rtui.server.pace import Pace
from rtui.server.progress import Cost
from rtui.server.sampling import CALL_US, SAMPLE_KEYS, Sample, sample

MAX_EXPECTED: Final = 400
"""Namespaces that a sample makes known at most; smaller ones are hardly known by it."""


class Overview:
    """Takes a sample and writes what it says of the first two levels into a store."""

    def __init__(self, store: NamespaceStore) -> None:
        self.sample = Sample()
        """What there is so far."""
        self.cost = Cost()
        self._store = store
        self._tally = NamespaceTally(store.separators)

    async def take(self, lane: Lane, pace: Pace, size: int | None) -> None:
        """Sample and show it, the first part of it early; `size` is DBSIZE if known. A failure ends it early."""
        taken = await sample(
            lane,
            keys=SAMPLE_KEYS,
            pace=pace,
            on_keys=self._tally.add,
            on_more=lambda taken: self._show(taken, size),
        )
        self._show(taken, size)
        self.cost = Cost(
            commands=taken.commands,
            keys=len(taken.keys),
            bytes_in=taken.bytes_in,
            bytes_out=taken.bytes_out,
            server_us=taken.commands * CALL_US,
        )

    def _show(self, taken: Sample, size: int | None) -> None:
        self.sample = taken
        total = size if size is not None else taken.total
        if total is None:
            return
        number = total.value if isinstance(total, Estimate) else float(total)
        population = max(self._tally.drawn, round(number))
        for path, share in self._tally.shares(most=MAX_EXPECTED, population=population).items():
            self._store.expect(path, share.scaled(number))
