"""Queries about the largest keys beyond the sample, so that the lists of the longest are exact.

Which unsampled keys are asked for their length after all (`LateLengths`): a string of 3,000 bytes takes at least 3,000
bytes of memory, a hash of 3,000 fields at least 6,000. Each type has its least bytes for a unit of length
(`InspectionPlan.least_element_bytes`). So once the list of the 100 longest hashes ends with one of 3,000 fields, a hash
of less than 6,000 bytes can't enter it, and its length need not be asked. Keys with at least that much memory are asked
in the third stage, and their replies raise the threshold for the next ones. If MEMORY USAGE gives no bound on the
length, as with lists and streams, all keys are asked.

If most keys are about as long as the longest, that would ask nearly all of them. So there is a limit for each type: a
sixteenth of all keys, and some thousand. Beyond it keys are left out, and the findings are told the greatest possible
length of these: then the list may lack keys, and says so.

Last come the largest keys by memory (`LargestKeys`): their lengths, if not asked; then the longest keys of a type are
known for sure if all others have too little memory to be longer. Their encodings and, if asked of a sample only, their
idle times or access counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Final, cast

from msgspec import structs

from rtui.analysis.columns import Asked
from rtui.analysis.report.document import BigReport, KeyRecord
from rtui.keyspace.types import SHORT_LENGTH, UNKNOWN_LENGTH, type_of
from rtui.server import guard, wall_clock
from rtui.server.facts.answers import NUMBER, expected, queries_of
from rtui.server.guard.command import MAX_BULK_KEY_BYTES, Command
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.wire.lane import Lane
from rtui.server.wire.own_reads import OwnReads

if TYPE_CHECKING:  # it is imported with Polars
    from rtui.server.inspection.tables import InspectedBatch, LengthFloors
    from rtui.table.tops import TopKeys

LATE_SHARE: Final = 1 / 16
"""Most keys of a type that are asked late for their length, as a share of the unsampled keys."""

LATE_KEYS: Final = 1_000
"""Keys of each type that are asked in any case, or four times the length of a list."""


class LateLengths:
    """The keys of one pass; see the module's walk-through."""

    def __init__(self, plan: InspectionPlan) -> None:
        self._plan = plan
        self._seen = 0
        self._asked: Counter[bytes | None] = Counter()
        self._pausing: set[bytes | None] = set()
        """Types that have used up their late lengths for a while."""

    def least_memory(self, key_type: bytes | None, big: LengthFloors) -> int | None:
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

    def left(self, key_type: bytes | None, big: LengthFloors) -> int:
        """Return how many keys of this type may still be asked late now."""
        most = max(LATE_KEYS, 4 * big.top) + self._seen * LATE_SHARE
        return max(0, ceil(most - self._asked[key_type]))

    def asked(self, key_type: bytes | None) -> int:
        return self._asked[key_type]

    def count(self, key_type: bytes | None, *, seen: int, asked: int) -> None:
        self._seen += seen
        self._asked[key_type] += asked

    def choose(self, batch: InspectedBatch, big: LengthFloors) -> Sequence[int]:
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

    def leave_out(self, batch: InspectedBatch, big: LengthFloors) -> None:
        """Tell `big` of keys that did not reply with their length."""
        memory = batch.memory_bytes
        big.leave_out(batch.key_type, self.most_length(batch.key_type, None if memory is None else max(memory)))


PORTION: Final = 25
"""Keys of one write: two commands each, 60 µs of the server's time."""


READ_BY_RTUI: Final = "last accessed by rtui itself, which read its length at the end of this run"
"""The note of a key whose idle time the end of an analysis has reset."""

READ_BY_RTUI_NOTE: Final = (
    "The lengths of the largest keys were asked at the end, which this server counts as a use of them: "
    "a later run finds them recently used."
)
"""The note of a report that lists such keys."""


def largest_keys(big: BigReport, plan: InspectionPlan, top: int) -> list[KeyRecord]:
    """Return the listed keys whose facts are completed: only the `top` by memory where a length counts as an access."""
    lists: Iterable[tuple[KeyRecord, ...]] = (big.by_memory[:top],)
    if plan.asks_lengths:
        lists = (*lists, big.by_length, *big.by_type_memory.values(), *big.by_type_length.values())
    records = {record.key: record for records in lists for record in records}
    return [record for record in records.values() if len(record.key) <= MAX_BULK_KEY_BYTES]


async def complete_largest(
    lane: Lane, plan: InspectionPlan, largest: Sequence[KeyRecord], learn: Callable[..., None], own_reads: OwnReads
) -> int:
    """Ask for the facts that such keys lack; return the number of commands. Raises ConnectionLost.

    `learn` is called with a key and `length`, `encoding`, `idle_s`, `frequency` or `note`. Where asking a length counts
    as an access the keys are marked, and go into `own_reads`; their idle time is known by then.
    """
    asked = 0
    for start in range(0, len(largest), PORTION):
        portion, commands = await _with_last_use(lane, plan, largest[start : start + PORTION], learn, own_reads)
        asked += commands
        questions = [one for record in portion for one in _questions(record, plan)]
        if questions:
            if not plan.asks_lengths:
                now_s = wall_clock.now_s()
                for record in [record for record, fact, _ in questions if fact == "length"]:
                    used_s = None if record.idle_s is None else record.asked_at_s - record.idle_s
                    own_reads.add(record.key, now_s, used_s=used_s, counter=record.frequency)
                    learn(record.key, note=READ_BY_RTUI)
            replies = await lane.run(*(command for _, _, command in questions))
            asked += len(questions)
            for (record, fact, _), reply in zip(questions, replies, strict=True):
                if fact == "length" and NUMBER.fits(reply):
                    if reply or not type_of(record.key_type).removed_when_empty:
                        learn(record.key, length=cast("int", reply))
                elif fact == "encoding" and expected(guard.object_encoding.spec.name).fits(reply):
                    learn(record.key, encoding=cast("bytes", reply))
    return asked


async def _with_last_use(
    lane: Lane, plan: InspectionPlan, records: Sequence[KeyRecord], learn: Callable[..., None], own_reads: OwnReads
) -> tuple[list[KeyRecord], int]:
    """Ask for the idle time or access counter of keys outside the sample; return the completed records and how many
    were asked.

    An idle time is converted to the time when the other facts were asked, 0 if the key was used since.
    """
    command = plan.recency if plan.columns.idle is Asked.SAMPLED else None
    lacking = [one for one in records if one.idle_s is None and one.frequency is None]
    if command is None or not lacking:
        return [*records], 0
    completed = {record.key: record for record in records}
    replies = await lane.run(*(command(record.key) for record in lacking))
    now_s = wall_clock.now_s()
    for record, reply in zip(lacking, replies, strict=True):
        if not expected(command.spec.name).fits(reply):
            continue
        value = cast("int", reply)
        if command is guard.object_freq:
            completed[record.key] = structs.replace(record, frequency=value)
            learn(record.key, frequency=value)
            continue
        if plan.resets_idle_times:
            value = own_reads.correct_idle_times([record.key], [value], now_s)[0][0]
        idle_s = max(0, round(value - (now_s - record.asked_at_s)))
        completed[record.key] = structs.replace(record, idle_s=idle_s)
        learn(record.key, idle_s=idle_s)
    return [*completed.values()], len(lacking)


def _questions(record: KeyRecord, plan: InspectionPlan) -> list[tuple[KeyRecord, str, Command]]:
    found = []
    if record.encoding is None and plan.asks_encodings:
        found.append((record, "encoding", guard.object_encoding(record.key)))
    length = queries_of(record.key_type).length
    is_wanted = record.length is None and plan.columns.length is not Asked.NONE
    if is_wanted and length is not None and plan.capabilities.allows(length.spec.name):
        found.append((record, "length", length(record.key)))
    return found


def prove_longest(late_lengths: Sequence[LateLengths], big: TopKeys) -> None:
    """Tell `big` the greatest possible length of unknown keys, once all listed by memory have been asked.

    Such a key has no more memory than the last one in the list by memory. `late_lengths` are those of all nodes.
    """
    for key_type, records in big.report().by_type_memory.items():
        if len(records) >= big.top and all(record.length is not None for record in records):
            least_bytes = records[-1].memory_bytes
            big.bound_left_out(key_type, max(one.most_length(key_type, least_bytes) for one in late_lengths))
