"""The inspection of a sample: keys are drawn by SCAN from random cursors, then each goes through the pipeline.

Its 20,000 keys cost the server 0.1 s in all, so it is not paced by measuring: small writes of a known cost are spread
over half a second, and several are under way at once where the round trip is long.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

from rtui.analysis.estimates import Estimate, wilson
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.inspection.plan import KEY_US
from rtui.server.scan.node import KeyQueries
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import CALL_US, KeySample, SlotSample, contradiction, sample, sample_slots
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ScanRefusedError, ServerBusyError
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import backoff_s
from rtui.server.wire.supervised_tasks import failure_of, for_each

if TYPE_CHECKING:
    from rtui.server.inspection.pipeline import InspectionPipeline

WRITE_US: Final = 120.0
"""Server time of one write at the gentlest pace."""

DUTY: Final = 0.2
"""Share of the server's time that the writes take at the gentlest pace."""

UNDER_WAY: Final = 4
"""Writes whose replies may be outstanding on a fast link."""

MAX_UNDER_WAY: Final = 16
"""The same on a slow one, whose round trips they fill: 2 ms of the server's time should they all arrive at once."""

HELD_POLL_S: Final = 0.05
"""How often a paused run checks whether it goes on."""


class SamplePass:
    """Draws keys and inspects them; `run` it once, the rest may be read at any time."""

    def __init__(
        self,
        connection: Connection,
        pipeline: InspectionPipeline,
        *,
        keys: int,
        size: int | None,
        only: ScanFilter,
        control: RunControl,
        slots: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Draw about `keys` keys of a database of `size` keys; if cursors go slot by slot, from these `slots`."""
        self._slots = slots
        self.control = control
        self.drawn = 0
        self.population: int | Estimate | None = size
        """Keys of the keyspace that the inspected ones stand for: those whose names match."""
        self._connection = connection
        self._pipeline = pipeline
        self._wanted = keys
        self._size = size
        self._matches = only.names()
        self.kept = 0
        """Drawn keys whose names match."""
        self._traffic = Cost()
        """Traffic of the lane, counted when the pass is over."""
        self._server_us = 0.0
        self._loop = asyncio.get_running_loop()
        self._began: float | None = None
        self._elapsed_s = 0.0
        self._state = ScanState.READY
        self._reason: SafeText | None = None
        self._waits_for: SafeText | None = None
        """Why the server does not answer just now."""

    @property
    def progress(self) -> Progress:
        """The progress: of drawing, then of inspecting."""
        state, kept = self._state, self.kept
        fraction = max(0.0, 1 - self._pipeline.waiting / (2 * kept)) if kept else 0.0
        if state is ScanState.DONE:
            fraction = 1.0
        elif not state.is_over and (self.control.is_held or self._waits_for is not None):
            state = ScanState.PAUSED if self.control.is_held else ScanState.WAITING
        speed = kept / self._elapsed_s if self._elapsed_s else 0.0
        return Progress(state, fraction, kept, speed, reason=self._reason or self._waits_for)

    @property
    def cost(self) -> Cost:
        """The cost so far, with the server time estimated from the usual time of such commands."""
        running_s = 0.0 if self._began is None else self._loop.time() - self._began
        elapsed_s = self._elapsed_s + running_s
        return replace(self._traffic, keys=self.drawn, server_us=self._server_us, elapsed_s=elapsed_s)

    @for_purpose(Purpose.SAMPLE)
    async def run(self) -> None:
        """Draw and inspect; a failure is in `progress`."""
        self._began = self._loop.time()
        self._state = ScanState.SAMPLING
        try:
            async with self.control.turn(self._connection):
                failure = await failure_of(self._draw_and_inspect(), name="rtui sample")
            self._state = ScanState.STOPPED if self.control.is_stopped else ScanState.DONE
            if failure is not None:
                self._state, self._reason = ScanState.FAILED, failure.happened
        finally:
            self._elapsed_s = self._loop.time() - self._began
            self._began = None

    async def _draw_and_inspect(self) -> None:
        """Draw and inspect on the bulk lane; raises the RtuiError that ends it early."""

        def set_waiting(reason: SafeText | None) -> None:
            self._waits_for = reason

        def add_drawn(keys: list[bytes]) -> None:
            self.drawn += len(keys)
            if self._matches is not None:
                keys = [*filter(self._matches, keys)]
            self.kept += len(keys)
            self._pipeline.add_page(keys)

        lane = await self._connection.bulk()
        await self._pipeline.use_lane(lane)
        traffic = lane.traffic
        commands, bytes_in, bytes_out = traffic.commands, traffic.bytes_in, traffic.bytes_out
        try:
            drawn: KeySample | SlotSample
            if self._slots is None:
                drawn = await sample(lane, self.control, keys=self._wanted, on_keys=add_drawn, on_wait=set_waiting)
                self._server_us += drawn.calls * CALL_US
            else:
                drawn = await sample_slots(
                    lane, self._slots, self.control, keys=self._wanted, on_keys=add_drawn, on_wait=set_waiting
                )
                self._server_us += drawn.server_us
            total = self._size if self._size is not None else drawn.total
            self.population = total if self.drawn else None
            if self.drawn and self._matches is not None and total is not None:
                number = total.value if isinstance(total, Estimate) else total
                population = max(self.drawn, round(number))
                self.population = wilson(self.kept, self.drawn, population=population).scaled(number)
            if drawn.failure is not None:
                raise drawn.failure
            if isinstance(drawn, KeySample) and not self.control.is_stopped:
                why = await contradiction(drawn, lane, self._size)
                if why is not None:
                    raise ScanRefusedError(why)
            if self._size and not self.drawn and not self.control.is_stopped:
                raise ScanRefusedError(f"Random places hold no keys, but the server counts {self._size:,} (DBSIZE).")
            self._state = ScanState.RUNNING
            await self._inspect(lane)
        finally:
            self._traffic = Cost(
                traffic.commands - commands,
                bytes_in=traffic.bytes_in - bytes_in,
                bytes_out=traffic.bytes_out - bytes_out,
            )

    async def _inspect(self, lane: Lane) -> None:
        """Send the queries in small writes spread over time as the pace allows."""
        pipeline, control, clock = self._pipeline, self.control, self._loop.time
        began = clock()
        await lane.run(guard.ping())
        idle_s = clock() - began
        max_under_way = max(UNDER_WAY, min(MAX_UNDER_WAY, round(idle_s / (WRITE_US / 1e6 / DUTY))))
        under_way: deque[tuple[KeyQueries, asyncio.Future[list[Reply]]]] = deque()
        attempt, free_at = 0, clock()
        while (pipeline.waiting or under_way) and not (control.is_stopped and not under_way):
            limits, now = control.pace.limits, clock()
            duty = max(DUTY, limits.duty)
            may_send = now >= free_at and len(under_way) < max_under_way
            queries = None
            if not under_way and not pipeline.unsent:
                pipeline.settle()
            if may_send and pipeline.waiting and not (control.is_held or control.is_stopped):
                queries = pipeline.next_write(max(10, int(max(WRITE_US, limits.call_us) / KEY_US)))
            if queries is not None:
                under_way.append((queries, lane.run(*queries.commands)))
                spent_us = queries.keys * KEY_US
                self._server_us += spent_us
                free_at = max(free_at, now - 2 * WRITE_US / 1e6 / duty) + spent_us / 1e6 / duty
            elif under_way:
                first, future = under_way.popleft()
                replies = await future
                try:
                    first.answered(replies, max(0.0, clock() - now - idle_s))
                except ServerBusyError as busy:
                    attempt += 1
                    self._waits_for = busy.happened
                    await control.wait_for_stop(backoff_s(attempt, Random()))
                else:
                    attempt, self._waits_for = 0, None
            else:
                await asyncio.sleep(HELD_POLL_S if control.is_held else max(0.0, free_at - now))


class ClusterSamplePass:
    """A sample of all nodes of a cluster, of each in proportion to its size; see `SamplePass`.

    So each key of the cluster has the same chance, and the sample is one that is stratified by node: the intervals for
    simple random samples hold for it, and are rather too wide.
    """

    def __init__(self, parts: Sequence[SamplePass], size: int, control: RunControl, *, is_filtered: bool) -> None:
        """`parts` draw from the nodes, which have `size` keys in all."""
        self.control = control
        self._parts = parts
        self._size = size
        self._is_filtered = is_filtered

    @property
    def drawn(self) -> int:
        """Distinct keys drawn, whatever their names."""
        return sum(part.drawn for part in self._parts)

    @property
    def population(self) -> int | Estimate | None:
        """Keys of the cluster that the inspected ones stand for: those whose names match."""
        if not self.drawn:
            return None
        if not self._is_filtered:
            return self._size
        kept = sum(part.kept for part in self._parts)
        return wilson(kept, self.drawn, population=max(self.drawn, self._size)).scaled(self._size)

    @property
    def progress(self) -> Progress:
        """That of all nodes: it has failed once one has, since its keys are missing then."""
        found = [part.progress for part in self._parts]
        first = next((state for state in _STATES if any(one.state is state for one in found)), found[0].state)
        fractions = [one.fraction or 0.0 for one in found]
        reason = next((one.reason for one in found if one.reason is not None), None)
        keys, keys_per_s = sum(one.keys for one in found), sum(one.keys_per_s for one in found)
        return Progress(first, sum(fractions) / len(fractions), keys, keys_per_s, reason=reason)

    @property
    def cost(self) -> Cost:
        costs = [part.cost for part in self._parts]
        return replace(sum(costs, Cost()), elapsed_s=max(cost.elapsed_s for cost in costs))

    async def run(self) -> None:
        """Draw and inspect at all nodes side by side; a failure is in `progress`."""
        await for_each(self._parts, SamplePass.run)


_STATES: Final = (
    *(ScanState.SAMPLING, ScanState.RUNNING, ScanState.WAITING, ScanState.PAUSED, ScanState.READY),
    *(ScanState.FAILED, ScanState.STOPPED, ScanState.DONE),
)
"""The first of these that a node is in is the state of all."""
