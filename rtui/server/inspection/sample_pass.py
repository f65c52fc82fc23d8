"""An estimate's pass: keys from random places of the keyspace, each inspected like any other."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import Final

from rtui.analysis.estimates import Estimate, wilson
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.inspection.pipeline import KEY_US, InspectionPipeline
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.requests import KeyQueries
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import CALL_US, Sample, sample
from rtui.server.wire.backoff import backoff_s
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ScanRefusedError, ServerBusyError
from rtui.server.wire.lane import Lane
from rtui.server.wire.replies import Reply
from rtui.server.wire.tasks import failure_of

BATCH_US: Final = 120.0
"""Server time of a write at the gentlest pace, and …"""

DUTY: Final = 0.2
"""… the share of the server's time it takes: 20,000 keys cost less than 0.1 s in all, spread over half a second or so.

The link adds to that where it is slow: see `UNDER_WAY`.
"""

UNDER_WAY: Final = 4
"""Writes whose replies may be outstanding on a fast link, and …"""

MOST_UNDER_WAY: Final = 16
"""… on a slow one, whose round trips they fill: 2 ms of the server's time should they all arrive at once."""

REST_S: Final = 0.05
"""How often a pause is looked at."""


class SamplePass:
    """Draws keys and inspects them; `run` it once, everything else may be called at any time."""

    def __init__(
        self,
        connection: Connection,
        pipeline: InspectionPipeline,
        *,
        keys: int,
        size: int | None,
        only: ScanFilter,
        control: RunControl,
    ) -> None:
        """Draw about so many `keys` of a database of `size` keys."""
        self.control = control
        self.drawn = 0
        """Distinct keys drawn, whatever their names."""
        self.population: int | Estimate | None = size
        """Keys of the keyspace that the inspected ones stand for, as far as names decide it."""
        self._connection = connection
        self._pipeline = pipeline
        self._wanted = keys
        self._size = size
        self._only = only
        self._names = only.names()
        self._kept = 0
        self._commands = self._bytes_in = self._bytes_out = 0
        self._server_us = 0.0
        self._loop = asyncio.get_running_loop()
        self._began: float | None = None
        self._elapsed_s = 0.0
        self._state = ScanState.READY
        self._reason: SafeText | None = None
        self._waits_for: SafeText | None = None
        """What keeps the server from answering just now."""

    @property
    def progress(self) -> Progress:
        """How far it is: of the keys to draw, then of those to inspect."""
        left = self._pipeline.waiting
        fraction = (1 - left / (2 * self._kept)) if self._kept else 0.0
        state = self._state
        if not state.is_over and (self.control.is_held or self._waits_for is not None):
            state = ScanState.PAUSED if self.control.is_held else ScanState.WAITING
        done = self._state is ScanState.DONE
        speed = self._kept / self._elapsed_s if self._elapsed_s else 0.0
        return Progress(
            state, 1.0 if done else max(0.0, fraction), self._kept, speed, reason=self._reason or self._waits_for
        )

    @property
    def cost(self) -> Cost:
        """What it has cost, by what such commands take elsewhere."""
        running_s = 0.0 if self._began is None else self._loop.time() - self._began
        return Cost(
            commands=self._commands,
            keys=self.drawn,
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
            server_us=self._server_us,
            elapsed_s=self._elapsed_s + running_s,
        )

    async def run(self) -> None:
        """Draw and inspect; a failure is in `progress`."""
        self._began = self._loop.time()
        self._state = ScanState.SAMPLING
        try:
            failure = await failure_of(self._draw_and_inspect(), name="rtui sample")
            self._state = ScanState.STOPPED if self.control.is_stopped else ScanState.DONE
            if failure is not None:
                self._state, self._reason = ScanState.FAILED, failure.happened
        finally:
            self._elapsed_s = self._loop.time() - self._began
            self._began = None

    async def _draw_and_inspect(self) -> None:
        """Do both on the bulk lane; raises an RtuiError for what ends it early."""
        lane = await self._connection.bulk()
        await self._pipeline.use_lane(lane)
        before = (lane.traffic.commands, lane.traffic.bytes_in, lane.traffic.bytes_out)
        try:
            await self._draw(lane)
            self._state = ScanState.RUNNING
            await self._inspect(lane)
        finally:
            traffic = lane.traffic
            after = (traffic.commands, traffic.bytes_in, traffic.bytes_out)
            self._commands, self._bytes_in, self._bytes_out = (
                now - then for now, then in zip(after, before, strict=True)
            )

    def _wait(self, reason: SafeText | None) -> None:
        self._waits_for = reason

    async def _draw(self, lane: Lane) -> None:
        """Draw keys; raises what ended it early, such as ScanRefusedError."""
        taken = await sample(lane, self.control, keys=self._wanted, on_keys=self._drawn, on_wait=self._wait)
        self._server_us += taken.calls * CALL_US
        self._estimate_population(taken)
        if taken.failure is not None:
            raise taken.failure
        if self._size and not self.drawn and not self.control.is_stopped:
            raise ScanRefusedError(f"Random places hold no keys, but the server counts {self._size:,} (DBSIZE).")

    def _estimate_population(self, taken: Sample) -> None:
        """Say how many keys the sample stands for: nothing where no key was drawn."""
        total = self._size if self._size is not None else taken.total
        if not self.drawn:
            self.population = None
        elif self._names is not None and total is not None:
            number = total.value if isinstance(total, Estimate) else total
            population = max(self.drawn, round(number))
            self.population = wilson(self._kept, self.drawn, population=population).scaled(number)
        else:
            self.population = total

    def _drawn(self, keys: list[bytes]) -> None:
        self.drawn += len(keys)
        if self._names is not None:
            keys = [*filter(self._names, keys)]
        self._kept += len(keys)
        self._pipeline.add_page(keys)

    async def _inspect(self, lane: Lane) -> None:
        """Send the questions in small writes spread over time as the pace wants it."""
        pipeline = self._pipeline
        idle_s = await self._idle_round_trip(lane)
        most_under_way = _writes_of(idle_s)
        attempt = 0
        control = self.control
        under_way: deque[tuple[KeyQueries, asyncio.Future[list[Reply]]]] = deque()
        free_at = self._loop.time()
        while (pipeline.waiting or under_way) and not (control.is_stopped and not under_way):
            limits = control.pace.limits
            duty = max(DUTY, limits.duty)
            most = max(10, int(max(BATCH_US, limits.call_us) / KEY_US))
            now = self._loop.time()
            may_send = (
                now >= free_at and len(under_way) < most_under_way and not (control.is_held or control.is_stopped)
            )
            write = pipeline.next_write(most) if may_send and pipeline.waiting else None
            if write is not None:
                under_way.append((write, lane.run(*write.commands)))
                spent_us = write.keys * KEY_US
                self._server_us += spent_us
                free_at = max(free_at, now - 2 * BATCH_US / 1e6 / duty) + spent_us / 1e6 / duty
            elif under_way:
                first, replies = under_way.popleft()
                said = await replies
                try:
                    first.answered(said, max(0.0, self._loop.time() - now - idle_s))
                except ServerBusyError as busy:
                    attempt += 1
                    self._wait(busy.happened)
                    await control.wait_for_stop(backoff_s(attempt, Random()))
                else:
                    attempt = 0
                    self._wait(None)
            else:
                await asyncio.sleep(REST_S if control.is_held else max(0.0, free_at - now))

    async def _idle_round_trip(self, lane: Lane) -> float:
        """Seconds that a command takes which costs nothing."""
        began = self._loop.time()
        await lane.run(guard.ping())
        return self._loop.time() - began


def _writes_of(round_trip_s: float) -> int:
    """Return how many writes fill a round trip at the gentlest pace, within bounds."""
    write_s = BATCH_US / 1e6 / DUTY
    return max(UNDER_WAY, min(MOST_UNDER_WAY, round(round_trip_s / write_s)))
