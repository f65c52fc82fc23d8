"""What is asked of the largest keys alone, at the end of a pass: length where it was not asked of all, and encoding."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, cast

from rtui.analysis.report.document import BigReport, KeyRecord
from rtui.server import guard
from rtui.server.facts.answers import NUMBER, expected
from rtui.server.facts.types import queries_of
from rtui.server.guard.batch import MAX_BULK_KEY_BYTES
from rtui.server.guard.command import Command
from rtui.server.inspection.plan import Plan
from rtui.server.wire.lane import Lane
from rtui.server.wire.own_reads import OwnReads

PORTION: Final = 25
"""Keys of one write: two commands each, 60 µs of the server's time."""


class Learner(Protocol):
    """Who wants to know more of its keys."""

    def learn(
        self, key: bytes, *, length: int | None = None, encoding: bytes | None = None, note: str | None = None
    ) -> None:
        """Take up what was learnt of a key."""


TOUCHED: Final = "used by rtui itself, which asked its length at the end of this run"
"""What one has to know of a key whose idle time the end of a pass has reset."""

TOUCHED_NOTE: Final = (
    "The lengths of the largest keys were asked at the end, which this server counts as a use of them: "
    "a later run finds them recently used."
)
"""The same of a report that lists such keys."""


async def complete_top(
    lane: Lane, plan: Plan, big: BigReport, learner: Learner, *, top: int, own_reads: OwnReads
) -> int:
    """Ask for what the lists of biggest keys lack; returns how many commands that took. Raises ConnectionLost.

    Where asking a length counts as an access only the `top` keys by memory are asked, whose idle time is known by then;
    they are marked, and go into `own_reads`.
    """
    asked = 0
    lacking = _lacking(big, plan, top)
    for start in range(0, len(lacking), PORTION):
        questions = [one for record in lacking[start : start + PORTION] for one in _questions(record, plan)]
        if questions:
            if not plan.asks_lengths:
                _mark({record.key: record for record, what, _ in questions if what == "length"}, learner, own_reads)
            replies = await lane.run(*(command for _, _, command in questions))
            asked += len(questions)
            for (record, what, _), reply in zip(questions, replies, strict=True):
                if what == "length" and NUMBER.fits(reply):
                    learner.learn(record.key, length=cast("int", reply))
                elif what == "encoding" and expected(guard.object_encoding.spec.name).fits(reply):
                    learner.learn(record.key, encoding=cast("bytes", reply))
    return asked


def _mark(touched: Mapping[bytes, KeyRecord], learner: Learner, own_reads: OwnReads) -> None:
    """Say of keys that rtui has read them, and remember when they were used before."""
    now_s = time.time()
    for key, record in touched.items():
        used_s = None if record.idle_s is None else record.asked_at_s - record.idle_s
        own_reads.add(key, now_s, used_s=used_s, counter=record.frequency)
        learner.learn(key, note=TOUCHED)


def _lacking(big: BigReport, plan: Plan, top: int) -> Sequence[KeyRecord]:
    """The records to ask about, each key once."""
    lists: Iterable[tuple[KeyRecord, ...]] = (big.by_memory[:top],)
    if plan.asks_lengths:
        lists = (*lists, big.by_length, *big.by_type_memory.values(), *big.by_type_length.values())
    records = {record.key: record for records in lists for record in records}
    return [record for record in records.values() if len(record.key) <= MAX_BULK_KEY_BYTES]


def _questions(record: KeyRecord, plan: Plan) -> list[tuple[KeyRecord, str, Command]]:
    found = []
    if record.encoding is None and plan.asks_encodings:
        found.append((record, "encoding", guard.object_encoding(record.key)))
    length = queries_of(record.kind).length
    if record.length is None and length is not None and plan.capabilities.allows(length.spec.name):
        found.append((record, "length", length(record.key)))
    return found
