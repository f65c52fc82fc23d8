"""A sample of a keyspace by SCAN from random cursors: a few thousand keys tell the shares of all namespaces.

A hash table holds its keys in no order, so the ten or so keys that `SCAN <random cursor> COUNT 10` returns are as
good as ten random ones. 20 such calls go into one write. Each call visits the buckets from its random position up to
that of the cursor that it returns. So the sample also tells how many keys there are: 200 keys found in 2^64 / 5,000
of the positions mean a million keys in all. The spread of that density among the calls gives the interval.

A sample of a node whose cursors go slot by slot: each slot gives as many keys as its size wants.

A random cursor reaches every slot with the same chance, be it empty or half of the keyspace, and keys with one hash tag
share a slot: so cursors alone tell nothing that holds for all keys. But a node knows how many keys each of its slots
has, and tells it for a microsecond of its time. Write the keys in a row, slot after slot, and take every 50th from a
random one of the first 50 on: each key is taken with the same chance, and a slot with 5,000 keys gives 100 of them.

*Which* keys of a slot are taken is left to its hash table, which holds them in no order: of a small slot all are listed
and as many drawn as it has to give, in a large one they come from random places. That makes the sample one that is
stratified by slot in proportion to size, so intervals for simple random samples hold for it, and are rather too wide.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Final

from rtui.analysis.estimates import Z_95, Estimate
from rtui.keyspace.slices import Slices
from rtui.keyspace.slots import SLOTS, each_slot, key_slot
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.scan.cursor import POSITION_END, Dialect
from rtui.server.scan.page import UNKNOWN_FACTOR, is_temporary, key_count, scan_page
from rtui.server.scan.run_control import YIELD_S, RunControl
from rtui.server.wall_clock import new_random
from rtui.server.wire.errors import ConnectionLost, Reply, RtuiError, ScanRefusedError, ServerBusyError, ServerError
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import backoff_s

CALL_KEYS: Final = 10
"""COUNT of one call: neighbours in a hash table have nothing in common, so ten at a time are as good as one."""

MAX_BATCH: Final = 20
"""Calls in one write at most."""

CALL_US: Final = 8.0
"""Server time of one call on a table that is not in the processor's cache; Redis 7 and 8, Valkey half of it."""

WRITE_BYTES: Final = 4 << 20
"""Bytes of names to aim for in the replies to one write."""

SAMPLE_BYTES: Final = 64 << 20
"""A sample ends when its names have more bytes together: it is smaller then."""

WRITES_UNDER_WAY: Final = 8
"""Writes whose replies may be outstanding, so that a slow link costs few round trips."""

SAMPLE_KEYS: Final = 20_000
"""Keys of a full sample: every share within half a percentage point or so."""


class KeySample:
    """Distinct keys from random places, each key of the keyspace as likely as any other, and where they were found."""

    def __init__(self) -> None:
        self.keys: dict[bytes, None] = {}
        self.size_bytes = 0
        """Bytes of all names."""
        self.failure: RtuiError | None = None
        """Why it ended early: the connection was lost, or the server's reply was no page of keys."""
        self._visits: list[tuple[int, int, int]] = []
        """For each call: its first position, the position it reached, and the number of keys it found."""
        self._bits = 0

    @property
    def calls(self) -> int:
        return len(self._visits)

    @property
    def calls_at_once(self) -> int:
        """How many calls one write may have, by how long the names are: one as long as that is not known."""
        if not self.keys:
            return MAX_BATCH if self.calls else 1
        return max(1, WRITE_BYTES * len(self.keys) // (CALL_KEYS * max(1, self.size_bytes)))

    def add(self, starts: Sequence[int], replies: Sequence[Reply]) -> None:
        """Add the replies of one write; raises ServerBusyError or ScanRefusedError at the first that is no page."""
        for start, reply in zip(starts, replies, strict=True):
            cursor, keys = scan_page(reply)
            reached = Dialect.STANDALONE.reached(cursor)
            if reached <= start:
                raise ScanRefusedError("This server's cursors go backwards: random sampling is not possible.")
            self._bits = max(self._bits, cursor.bit_length())
            self._visits.append((start, reached, len(keys)))
            self.size_bytes += sum(len(key) for key in keys if key not in self.keys)
            self.keys.update(dict.fromkeys(keys))

    def contradiction(self, *sizes: int | None) -> SafeText | None:
        """Return why DBSIZE before and after contradicts the estimate of the sample; None if they agree.

        Cursors that reach only one of several shards show up here. Expired keys that the server still counts are
        allowed for.
        """
        total, known = self.total, [size for size in sizes if size]
        if total is None or not known or self.failure is not None:
            return None
        width = total.high - total.low
        fewest, most = (total.low - width) / UNKNOWN_FACTOR, (total.high + width) * UNKNOWN_FACTOR
        if fewest <= max(known) and min(known) <= most:
            return None
        found, counted = round(total.value), known[-1]
        return SafeText(f"Random cursors tell of {found:,} keys, but the server counts {counted:,} (DBSIZE).")

    @property
    def total(self) -> Estimate | None:
        """Estimated number of keys in the database, from keys found by position; None before any was found.

        A call begins with the whole bucket that its cursor points into. The uncertainty of the density comes from the
        variation between calls; few calls measure that badly, and draws are not independent if a bucket holds several
        keys, as in Valkey.
        """
        bucket = POSITION_END >> self._bits
        visits = [(reached - start // bucket * bucket, keys) for start, reached, keys in self._visits]
        found = sum(keys for _, keys in visits)
        if not found:
            return None
        density, calls = found / sum(passed for passed, _ in visits), len(visits)
        spread = 1.0
        if calls > 1:
            squares = sum((keys - density * passed) ** 2 for passed, keys in visits)
            quantile = Z_95 + (Z_95**3 + Z_95) / (4 * (calls - 1))  # Student's, to the first order
            spread = quantile * math.sqrt(squares * calls / (calls - 1)) / found
        value, error = density * POSITION_END, max(Z_95 / math.sqrt(found), spread)
        return Estimate(max(float(len(self.keys)), value * (1 - error)), value, value * (1 + error))


async def contradiction(taken: KeySample, lane: Lane, size: int | None) -> SafeText | None:
    """Return why a sample can't be one of a database that had `size` keys before; asks DBSIZE again where in doubt.

    Raises ConnectionLost.
    """
    if taken.contradiction(size) is None:
        return None
    (reply,) = await lane.run(guard.dbsize())
    return taken.contradiction(size, key_count(reply))


def can_sample(dialect: Dialect) -> bool:
    """Whether a random cursor reaches each key with the same chance: not where slots of any size have equal shares."""
    return dialect is Dialect.STANDALONE


async def sample(
    lane: Lane,
    control: RunControl,
    *,
    keys: int = 2000,
    rng: Random | None = None,
    on_keys: Callable[[list[bytes]], None] | None = None,
    on_more: Callable[[KeySample], Slices[None]] | None = None,
    on_wait: Callable[[SafeText | None], None] | None = None,
) -> KeySample:
    """Sample about `keys` keys in small writes spread over time by the pace; only if `can_sample`.

    A failure ends it early and is in the result. A busy server is asked again after growing pauses: `on_wait` gets the
    reason when a pause begins and None when it is over. `on_keys` gets the new keys of each write; `on_more` the sample
    so far, a few times on the way, for work in slices. It ends early once it is stopped, and keeps the pace that it
    began with.
    """
    taken = KeySample()
    limits = control.pace.limits
    batch = max(1, min(MAX_BATCH, int(limits.call_us / CALL_US)))
    gap_s = batch * CALL_US / 1e6 / limits.duty
    rng = rng if rng is not None else new_random("sample")
    writes: deque[tuple[list[int], asyncio.Future[list[Reply]]]] = deque()
    left = max(1, keys // CALL_KEYS)
    report_at = keys // 10
    attempt = 0
    while (left or writes) and taken.failure is None and not control.is_stopped:
        if taken.size_bytes > SAMPLE_BYTES:
            left = 0
        most = WRITES_UNDER_WAY if taken.calls_at_once > 1 else 1
        if left and len(writes) < most:
            starts = [rng.randrange(POSITION_END) for _ in range(min(batch, left, taken.calls_at_once))]
            left -= len(starts)
            writes.append(
                (starts, lane.run(*(guard.scan(Dialect.STANDALONE.cursor(start), count=CALL_KEYS) for start in starts)))
            )
            await asyncio.sleep(gap_s)
        if writes and (not left or len(writes) >= most or writes[0][1].done()):
            starts, replies = writes.popleft()
            answered, known = taken.calls, len(taken.keys)
            try:
                taken.add(starts, await replies)
            except ServerBusyError as busy:
                attempt += 1
                if on_wait is not None:
                    on_wait(busy.happened)
                await control.wait_for_stop(backoff_s(attempt, Random()))
                left += len(starts) - (taken.calls - answered)
            except (ConnectionLost, ScanRefusedError) as error:
                taken.failure = error
            else:
                if attempt and on_wait is not None:
                    on_wait(None)
                attempt = 0
            if on_keys is not None and len(taken.keys) > known:
                on_keys(list(islice(taken.keys, known, None)))
        if on_more is not None and left and len(taken.keys) >= report_at:
            report_at *= 3
            for _ in on_more(taken):
                await control.sleep(YIELD_S)
    return taken


COUNT_US: Final = 1.0

COUNTS_AT_ONCE: Final = 100

LISTED_WHOLE: Final = 50
"""Slots with up to this many keys are listed whole, as are slots of which half is wanted."""

MOST_ROUNDS: Final = 16
"""Rounds of random places asked of a slot for missing keys: keys that are gone meanwhile can't be had."""

MOST_SPANS: Final = 16
"""Most parts, listed side by side, of a slot that is listed whole."""

SLOT_SPAN: Final = POSITION_END // SLOTS


@dataclass(slots=True)
class WantedKeys:
    """The keys wanted of one slot, and the keys found so far."""

    slot: int
    size: int
    """Keys that it had when it was counted."""
    most: int
    spans: list[tuple[int, int]] = field(init=False)
    """Positions within the slot that are still to be listed, if it is listed whole."""
    rounds: int = 0
    found: dict[bytes, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = min(MOST_SPANS, 1 << (max(1, self.size // LISTED_WHOLE) - 1).bit_length())
        width = SLOT_SPAN // parts
        self.spans = [(width * part, width * (part + 1)) for part in range(parts)] if self.is_whole else []

    @property
    def is_whole(self) -> bool:
        return self.size <= LISTED_WHOLE or 2 * self.most >= self.size

    @property
    def is_done(self) -> bool:
        if self.is_whole:
            return not self.spans
        return len(self.found) >= self.most or self.rounds >= MOST_ROUNDS

    def next_calls(self, random: Random) -> list[tuple[int, int]]:
        """Return the cursor and COUNT of the next SCANs: to list the slot further, or random places as needed."""
        first = self.slot * SLOT_SPAN
        if self.is_whole:
            return [(Dialect.SLOTTED.cursor(first + at), min(LISTED_WHOLE, self.size)) for at, _ in self.spans]
        self.rounds += 1
        left = self.most - len(self.found)
        counts = [*([CALL_KEYS] * (left // CALL_KEYS)), *([left % CALL_KEYS] if left % CALL_KEYS else [])]
        return [(Dialect.SLOTTED.cursor(first + random.randrange(SLOT_SPAN)), count) for count in counts]

    def add(self, asked: int, reply: Reply) -> None:
        """Add the keys of a page that belong to this slot; raises ScanRefusedError if the reply is no page."""
        cursor, keys = scan_page(reply)
        self.found.update(dict.fromkeys(key for key in keys if key_slot(key) == self.slot))
        first = self.slot * SLOT_SPAN
        at, reached = Dialect.SLOTTED.position(asked) - first, Dialect.SLOTTED.reached(cursor) - first
        self.spans = [
            (max(begin, reached) if begin == at else begin, end)
            for begin, end in self.spans
            if begin != at or begin < reached < end  # one that does not get on has nothing more to give
        ]

    def drawn(self, random: Random) -> list[bytes]:
        """Return a random choice of the keys found: as many as wanted, or all if there are fewer."""
        return random.sample([*self.found], min(self.most, len(self.found)))


def wanted_keys(sizes: Iterable[tuple[int, int]], keys: int, random: Random) -> list[WantedKeys]:
    """Return which slots give how many of `keys`, by (slot, size) of all: each key has the same chance."""
    ordered = [(slot, size) for slot, size in sizes if size]
    step = max(1.0, sum(size for _, size in ordered) / max(1, keys))
    wanted, at, passed = [], random.random() * step, 0
    for slot, size in ordered:
        passed += size
        most = 0
        while at < passed:
            most, at = most + 1, at + step
        if most:
            wanted.append(WantedKeys(slot, size, most))
    return wanted


class SlotSample:
    """The result of sampling the slots of one node."""

    def __init__(self) -> None:
        self.calls = 0
        self.total: int | None = None
        """Keys of all slots, None where they were not counted."""
        self.failure: RtuiError | None = None
        """Why it ended early."""
        self.server_us = 0.0


async def sample_slots(
    lane: Lane,
    slots: Sequence[tuple[int, int]],
    control: RunControl,
    *,
    keys: int,
    on_keys: Callable[[list[bytes]], None],
    on_wait: Callable[[SafeText | None], None],
    rng: Random | None = None,
) -> SlotSample:
    """Draw about `keys` keys from these slots, all of the node's, in small writes spread over time by the pace.

    `on_keys` gets drawn keys, each once; `on_wait` the reason why the server does not answer just now, then None. A
    failure ends it early and is in the result.
    """
    random = new_random("slots") if rng is None else rng
    taken = SlotSample()
    asking = _Asking(lane, control, on_wait)
    try:
        numbers = list(each_slot(slots))
        sizes: list[Reply] = []
        for some in (numbers[:1], numbers[1:]):  # one that is denied is enough: the server notes each
            sizes += await asking.ask([guard.count_keys_in_slot(slot) for slot in some], COUNTS_AT_ONCE, COUNT_US)
            refused = next((size for size in sizes if isinstance(size, ServerError)), None)
            if refused is not None:
                raise ScanRefusedError(f"The sizes of its slots can't be had (CLUSTER COUNTKEYSINSLOT): {refused}.")
        counted = [(slot, size) for slot, size in zip(numbers, sizes, strict=False) if isinstance(size, int)]
        taken.total = sum(size for _, size in counted)
        waiting = wanted_keys(counted, keys, random)
        while waiting and not control.is_stopped:
            calls = [(one, call) for one in waiting for call in one.next_calls(random)]
            scans = [guard.scan(cursor, count=count) for _, (cursor, count) in calls]
            pages = await asking.ask(scans, MAX_BATCH, CALL_US)
            taken.calls += len(pages)
            for (one, (cursor, _)), page in zip(calls, pages, strict=False):
                one.add(cursor, page)
            on_keys([key for one in waiting if one.is_done for key in one.drawn(random)])
            waiting = [one for one in waiting if not one.is_done]
        on_keys([key for one in waiting for key in one.drawn(random)])
    except (ConnectionLost, ScanRefusedError) as failure:
        taken.failure = failure
    taken.server_us = asking.server_us
    return taken


class _Asking:
    """Asks many small questions, several writes under way, at the pace of a run."""

    def __init__(self, lane: Lane, control: RunControl, on_wait: Callable[[SafeText | None], None]) -> None:
        self.server_us = 0.0
        """Estimated server time of its commands, from the usual time of such commands."""
        self._lane, self._control, self._on_wait = lane, control, on_wait

    async def ask(self, commands: Sequence[Command], at_once: int, command_us: float) -> list[Reply]:
        """Return the replies, in order, fewer once the run is stopped; raises ConnectionLost."""
        limits = self._control.pace.limits
        batch = max(1, min(at_once, int(limits.call_us / command_us)))
        replies: list[Reply] = []
        writes: deque[tuple[Sequence[Command], asyncio.Future[list[Reply]]]] = deque()
        at, attempt = 0, 0
        while (at < len(commands) or writes) and not (self._control.is_stopped and not writes):
            if at < len(commands) and len(writes) < WRITES_UNDER_WAY and not self._control.is_stopped:
                part = commands[at : at + batch]
                at += len(part)
                writes.append((part, self._lane.run(*part)))
                self.server_us += len(part) * command_us
                await asyncio.sleep(len(part) * command_us / 1e6 / limits.duty)
                continue
            part, answers = writes.popleft()
            found = await answers
            while (
                any(is_temporary(one) for one in found if isinstance(one, ServerError)) and not self._control.is_stopped
            ):
                attempt += 1
                self._on_wait(next(SafeText(one.text) for one in found if isinstance(one, ServerError)))
                await self._control.wait_for_stop(backoff_s(attempt, Random()))
                found = await self._lane.run(*part)
            self._on_wait(None)
            replies += found
        return replies
