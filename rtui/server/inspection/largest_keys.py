"""What is asked about the largest keys alone, when an analysis ends: encoding, and length if it is not known yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, cast

from rtui.analysis.report.document import BigReport, KeyRecord
from rtui.server import guard
from rtui.server.facts.answers import NUMBER, expected
from rtui.server.facts.types import queries_of
from rtui.server.guard.command import MAX_BULK_KEY_BYTES, Command
from rtui.server.inspection.plan import Plan
from rtui.server.wire.lane import Lane
from rtui.server.wire.own_reads import OwnReads

PORTION: Final = 25
"""Keys of one write: two commands each, 60 µs of the server's time."""


READ_BY_RTUI: Final = "used by rtui itself, which asked its length at the end of this run"
"""The note of a key whose idle time the end of an analysis has reset."""

READ_BY_RTUI_NOTE: Final = (
    "The lengths of the largest keys were asked at the end, which this server counts as a use of them: "
    "a later run finds them recently used."
)
"""The note of a report that lists such keys."""


async def complete_largest(
    lane: Lane, plan: Plan, big: BigReport, learn: Callable[..., None], *, top: int, own_reads: OwnReads
) -> int:
    """Ask for the facts that the lists of the largest keys lack; return the number of commands. Raises ConnectionLost.

    `learn` is called with a key and `length`, `encoding` or `note`.
    Where asking a length counts as an access only the `top` keys by memory are asked, whose idle time is known by then;
    they are marked, and go into `own_reads`.
    """
    asked = 0
    lists: Iterable[tuple[KeyRecord, ...]] = (big.by_memory[:top],)
    if plan.asks_lengths:
        lists = (*lists, big.by_length, *big.by_type_memory.values(), *big.by_type_length.values())
    records = {record.key: record for records in lists for record in records}
    lacking = [record for record in records.values() if len(record.key) <= MAX_BULK_KEY_BYTES]
    for start in range(0, len(lacking), PORTION):
        questions = [one for record in lacking[start : start + PORTION] for one in _questions(record, plan)]
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
                    learn(record.key, length=cast("int", reply))
                elif fact == "encoding" and expected(guard.object_encoding.spec.name).fits(reply):
                    learn(record.key, encoding=cast("bytes", reply))
    return asked


def _questions(record: KeyRecord, plan: Plan) -> list[tuple[KeyRecord, str, Command]]:
    found = []
    if record.encoding is None and plan.asks_encodings:
        found.append((record, "encoding", guard.object_encoding(record.key)))
    length = queries_of(record.kind).length
    if record.length is None and length is not None and plan.capabilities.allows(length.spec.name):
        found.append((record, "length", length(record.key)))
    return found
