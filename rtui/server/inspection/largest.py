"""The last queries of an inspection: the missing facts of the largest keys.

The lengths of the largest keys by memory, if they were not asked; then the longest keys of a type are known for sure if
all others have too little memory to be longer. Their encodings and, if asked of a sample only, their idle times or
access counters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from msgspec import structs

from rtui.analysis.columns import Asked
from rtui.analysis.report.document import BigReport, KeyRecord
from rtui.keyspace.types import type_of
from rtui.server import guard
from rtui.server.facts.answers import NUMBER, expected
from rtui.server.facts.types import queries_of
from rtui.server.guard.command import MAX_BULK_KEY_BYTES, Command
from rtui.server.inspection.late_lengths import LateLengths
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.wire.lane import Lane
from rtui.server.wire.own_reads import OwnReads
from rtui.table.top_keys import TopKeys

PORTION: Final = 25
"""Keys of one write: two commands each, 60 µs of the server's time."""


READ_BY_RTUI: Final = "used by rtui itself, which asked its length at the end of this run"
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
                now_s = time.time()
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
    now_s = time.time()
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
