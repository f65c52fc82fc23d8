"""A sample of a node whose cursors go slot by slot: each slot gives as many keys as its size wants.

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
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from rtui.keyspace.slots import SLOTS, each_slot, key_slot
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.chance import new_random
from rtui.server.guard.command import Command
from rtui.server.scan.cursor import POSITION_END, Dialect
from rtui.server.scan.page import is_temporary, scan_page
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import CALL_KEYS, CALL_US, MAX_BATCH, WRITES_UNDER_WAY
from rtui.server.wire.backoff import backoff_s
from rtui.server.wire.errors import ConnectionLost, RtuiError, ScanRefusedError
from rtui.server.wire.lane import Lane
from rtui.server.wire.replies import Reply, ServerError

COUNT_US: Final = 1.0
"""Server time of CLUSTER COUNTKEYSINSLOT."""

COUNTS_AT_ONCE: Final = 100
"""Slots whose size is asked in one write."""

LISTED_WHOLE: Final = 50
"""A slot of up to so many keys is listed whole, and one of which half is wanted."""

MOST_ROUNDS: Final = 16
"""So often random places of a slot are asked for what it lacks: keys that went meanwhile can't be had."""

MOST_SPANS: Final = 16
"""A slot that is listed whole is listed in so many parts side by side at most."""

SLOT_SPAN: Final = POSITION_END // SLOTS
"""Positions of a slot."""


@dataclass(slots=True)
class WantedKeys:
    """So many keys of a slot are wanted; what was found of it so far."""

    slot: int
    size: int
    """Keys that it had when it was counted."""
    most: int
    """How many are wanted."""
    spans: list[tuple[int, int]] = field(init=False)
    """What is still to be listed of a slot that is listed whole, in positions within the slot."""
    rounds: int = 0
    """How often random places were asked."""
    found: dict[bytes, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = min(MOST_SPANS, 1 << (max(1, self.size // LISTED_WHOLE) - 1).bit_length())
        width = SLOT_SPAN // parts
        self.spans = [(width * part, width * (part + 1)) for part in range(parts)] if self.is_whole else []

    @property
    def is_whole(self) -> bool:
        """Whether all of it is listed, to draw from."""
        return self.size <= LISTED_WHOLE or 2 * self.most >= self.size

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to be asked."""
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
        """Take the keys of the page at a cursor that are of this slot; raises ScanRefusedError for what is no page."""
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
        """Return keys drawn from those that were found, as many as are wanted if there are so many."""
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
    """What was drawn of one node."""

    def __init__(self) -> None:
        self.calls = 0
        """SCANs that were answered."""
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
    """Draw about so many `keys` of these slots, all of the node's, in small writes as the pace wants them.

    `on_keys` gets keys that were drawn, each once; `on_wait` why the server does not answer just now, then None. A
    failure ends it with what there is and is in the result.
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
        """What they have cost, by what such commands take elsewhere."""
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
