"""The way of every key through an inspection: looked at, measured, handed on; it rides with the scan's own requests.

A key's questions go out in two writes, each together with the SCAN of a later page. The first asks what touches
nothing: type, time to live, idle time or frequency. The second asks what depends on the type: memory and length.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from rtui.analysis.aggregate.buffers import Inspected
from rtui.server import guard
from rtui.server.guard import MAX_BULK_KEY_BYTES, Manner, PerKey
from rtui.server.inspection.batches import CostWatch, Station
from rtui.server.inspection.columns import Sorted
from rtui.server.inspection.plan import NAMES, Plan
from rtui.server.inspection.stages import Encodings, Journey, Leg, Look, Measure, Watched
from rtui.server.scan.requests import Ride
from rtui.server.wire.capability import concerns_command
from rtui.server.wire.errors import ServerError
from rtui.server.wire.lane import Lane
from rtui.server.wire.own_reads import OwnReads

KEY_US: Final = 3.0
"""Server time of five commands a key on a million keys, reading and answering included: Redis 7.0 3.2, Valkey 9 2.7."""

DEAR_NOTE: Final = "skipped, because MEMORY USAGE of others of this type took the server too long"


class Findings(Protocol):
    """Where what was learnt goes."""

    def add(self, batch: Inspected, asked_at_s: float) -> None:
        """Take up keys of one type; `asked_at_s` is seconds since the epoch."""

    def add_encodings(self, kind: bytes, encodings: Sequence[bytes]) -> None:
        """Take up the encodings of some keys that were chosen without regard to them."""

    def vanish(self, count: int) -> None:
        """Take up that so many keys went before they were looked at."""

    def unread(self, keys: Sequence[bytes]) -> None:
        """Take up keys with names too long to be sent in bulk."""


class Conveyor:
    """A rider that inspects every key it is given and hands what it learns to findings."""

    command_names = NAMES
    key_us = KEY_US

    def __init__(
        self,
        plan: Plan,
        findings: Findings,
        *,
        encoding_every: int = 16,
        clock: Callable[[], float] = time.time,
        on_server: Callable[[Lane], Awaitable[None]] | None = None,
        own_reads: OwnReads | None = None,
    ) -> None:
        """Ask the encoding of every n-th key of a type, 1 for all; `clock` gives seconds since the epoch.

        `on_server` is called when it was found out anew what the server allows, such as after a reconnect.
        `own_reads` is what rtui has read, which counts as a use where NO-TOUCH is not on.
        """
        self.plan = plan
        self.findings = findings
        self.clock = clock
        self.encoding_every = encoding_every
        self.watch = CostWatch()
        self.unread: Counter[str] = Counter()
        """By command, answers that can't be what was asked for; their facts are unknown."""
        self.own_read_keys = 0
        """Keys that rtui itself has used last: their idle time is that before."""
        self.own_reads = OwnReads() if own_reads is None else own_reads
        self._on_server = on_server
        self._listed: list[bytes] = []
        self._looked = Station()
        self._watched = Station()
        self._is_watching = False
        self._encoding_turn: dict[bytes, int] = {}
        self._chosen: dict[bytes, list[bytes]] = {}
        """By type, keys whose encoding is to be asked."""

    @property
    def waiting(self) -> int:
        """Keys for which something is still to be sent."""
        return len(self._listed) + self._looked.keys + self._watched.keys + sum(map(len, self._chosen.values()))

    async def arrive(self, lane: Lane) -> None:
        """Ask on this lane from now on, and only what its server allows; raises ConnectionLost."""
        was_like = self.plan.server.is_like(lane.server)
        if await self.plan.follow(lane):
            if not was_like:
                self.watch = CostWatch()
            if self._on_server is not None:
                await self._on_server(lane)

    def put(self, keys: list[bytes]) -> None:
        """Take up a page of keys."""
        if keys and max(map(len, keys)) > MAX_BULK_KEY_BYTES:
            self.findings.unread([key for key in keys if len(key) > MAX_BULK_KEY_BYTES])
            keys = [key for key in keys if len(key) <= MAX_BULK_KEY_BYTES]
        if self.plan.look:
            self._listed += keys
        elif keys:
            self.look_done(Inspected(None, keys))

    def board(self, most: int) -> Ride | None:
        """Questions about as many keys as `most`; what has to be watched goes alone."""
        watched = self._board_watched()
        if watched is not None:
            return watched
        legs: list[Leg] = []
        if self._listed:
            keys, self._listed = self._listed[:most], self._listed[most:]
            if self.plan.look:
                legs.append(Look(self, keys, self.plan.look))
            else:  # all of it has been refused since
                self.look_done(Inspected(None, keys))
        for batch in self._looked.take(most):
            legs += self._measure(batch)
        if self.plan.asks_encodings:
            legs += [Encodings(self, kind, keys) for kind, keys in self._chosen.items()]
        self._chosen = {}
        return Journey(legs) if legs else None

    def reset(self) -> None:
        """Forget all that waits: the scan begins again."""
        self._listed = []
        self._looked.clear()
        self._watched.clear()
        self._chosen = {}
        self._is_watching = False
        self.own_read_keys = 0

    def look_again(self, keys: Sequence[bytes]) -> None:
        """Put keys back whose first questions were not answered."""
        self._listed += keys

    def look_done(self, batch: Inspected) -> None:
        """Let keys whose type is known wait for what depends on it; hand on those of which no more is asked."""
        self._choose(batch)
        if batch.idle_s is not None and self.plan.resets_idle_times:
            idle_s, count = self.own_reads.without_own(batch.keys, batch.idle_s, self.clock())
            batch = replace(batch, idle_s=idle_s)
            self.own_read_keys += count
        is_asked = self.plan.memory(batch.kind).manner is Manner.FREELY or self.plan.length(batch.kind) is not None
        if is_asked:
            self._looked.put(batch)
        else:
            self.measured(batch)

    def measure_again(self, batch: Inspected) -> None:
        """Put keys back whose second questions were not answered."""
        self._looked.put(batch)

    def measured(self, batch: Inspected) -> None:
        """Hand on keys of which all is known that is asked freely."""
        cost = self.plan.memory(batch.kind)
        if batch.memory_bytes is not None or cost.manner is Manner.FREELY:
            self.findings.add(batch, self.clock())
        elif cost.manner is Manner.WATCHED and not self.watch.is_over:
            self._watched.put(batch)
        else:
            self.findings.add(replace(batch, note=self._skipped(batch.kind)), self.clock())

    def watch_done(self, batch: Inspected, seconds: float | None) -> None:
        """Hand on keys whose memory was asked with an eye on the clock."""
        self._is_watching = False
        self.watch.took(len(batch.keys), seconds)
        self.findings.add(batch, self.clock())
        if self.watch.is_over:
            for rest in self._watched.take(self._watched.keys):
                self.findings.add(replace(rest, note=DEAR_NOTE), self.clock())

    def watch_again(self, batch: Inspected) -> None:
        """Put keys back whose memory was not told."""
        self._is_watching = False
        self._watched.put(batch)

    def learn(self, asks: Sequence[PerKey], found: Sorted) -> None:
        """Take up what replies say beside the facts: refusals, and answers that can't be what was asked for."""
        for place, error in found.errors.items():
            self.refused(asks[place], error)
        for place, count in found.unread.items():
            self.unread[asks[place].spec.name] += count

    def refused(self, ask: PerKey, error: ServerError) -> None:
        """Remember that a command is refused for every key."""
        if concerns_command(error) or "maxmemory" in error.text.lower():
            self.plan.capabilities.note(ask.spec.name, error)

    def _skipped(self, kind: bytes | None) -> str:
        cost = self.plan.memory(kind)
        return DEAR_NOTE if cost.manner is Manner.WATCHED else f"memory skipped, because {cost.why}"

    def _board_watched(self) -> Ride | None:
        while self._watched.keys and not self._is_watching:
            batch = next(self._watched.take(self.watch.most))
            if self.plan.memory(batch.kind).manner is Manner.WATCHED:
                self._is_watching = True
                return Journey([Watched(self, batch)], goes_alone=True)
            self._looked.put(batch)  # it has been refused since, or another server answers
        return None

    def _measure(self, batch: Inspected) -> list[Leg]:
        asks = []
        if batch.memory_bytes is None and self.plan.memory(batch.kind).manner is Manner.FREELY:
            asks.append(guard.memory_usage)
        length = self.plan.length(batch.kind)
        if length is not None:
            asks.append(length)
        if not asks:  # it has been refused since
            self.measured(batch)
            return []
        return [Measure(self, batch, tuple(asks))]

    def _choose(self, batch: Inspected) -> None:
        """Have the encoding of every n-th key of the type asked, counted over all batches."""
        if batch.kind is None or not self.plan.asks_encodings:
            return
        turn = self._encoding_turn.get(batch.kind, 0)
        self._encoding_turn[batch.kind] = (turn - len(batch.keys)) % self.encoding_every
        chosen = batch.keys[turn :: self.encoding_every]
        if chosen:
            self._chosen.setdefault(batch.kind, []).extend(chosen)
