"""Rules about single keys: queues that only grow between two reports, and hot keys that are about to expire."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.expiring import LOCK_WITHOUT_TTL, is_lock
from rtui.analysis.findings.finding import Amount, Basis, Draft, Finding
from rtui.analysis.findings.places import key_line
from rtui.analysis.query.rows_behind import behind_key
from rtui.analysis.report.document import HotSource, KeyRecord
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.types import LIST

GROWING: Final = "queue-growing"
HOT: Final = "hot-key-expiring"

_NAME_LIMIT: Final = 120


def growing_queues(basis: Basis) -> Iterator[Draft]:
    """Find the longest lists of an earlier report that are longer by now."""
    if basis.before is None:
        return
    least = basis.number(GROWING, "length")
    earlier = {one.key: one for one in basis.before.summary.big.by_type_length.get(LIST.name, ())}
    for one in basis.report.summary.big.by_type_length.get(LIST.name, ()):
        was, length = earlier.get(one.key), one.length or 0
        if was is not None and was.length is not None and length > was.length and length >= least:
            yield Draft(Amount(1), _memory(one), partial(_growing, basis, one, was))


def _growing(basis: Basis, one: KeyRecord, was: KeyRecord) -> Finding:
    before_s = 0.0 if basis.before is None else basis.before.head.made_at_s
    took = humanize.seconds(round(max(0.0, basis.report.head.made_at_s - before_s)))
    length, earlier = one.length or 0, was.length or 0
    title = f"List {_name(one)} grew from {earlier:,} to {humanize.counted(length, 'element')} in {took}"
    return _of_key(basis, GROWING, one, title, "LLEN")


def expiring_hot_keys(basis: Basis) -> Iterator[Draft]:
    """Find the hot keys, by the server's own report or by access counters, that expire soon."""
    left_ms, counter = basis.number(HOT, "left"), basis.number(HOT, "counter")
    words = basis.words(LOCK_WITHOUT_TTL, "words")
    seen: set[bytes] = set()
    for one in (hot.record for found in basis.report.hot.lists for hot in found.keys):
        is_hot = one.frequency is None or one.frequency >= counter
        is_soon = one.ttl_ms is not None and 0 <= one.ttl_ms < left_ms
        if is_hot and is_soon and one.key not in seen and not is_lock(one.key, words):
            seen.add(one.key)
            yield Draft(Amount(1), _memory(one), partial(_expiring, basis, one))


def knows_hot_keys(basis: Basis) -> bool:
    """Whether a report says which keys are used most, not only which were used last."""
    return basis.report.hot.source in (HotSource.SERVER, HotSource.FREQUENCY)


def _expiring(basis: Basis, one: KeyRecord) -> Finding:
    title = f"Hot key {_name(one)} has {humanize.seconds((one.ttl_ms or 0) / 1000)} left"
    return _of_key(basis, HOT, one, title, "PTTL")


def _name(one: KeyRecord) -> SafeText:
    return display(one.key, limit=_NAME_LIMIT) or SafeText("(empty name)")


def _memory(one: KeyRecord) -> Amount | None:
    return None if one.memory_bytes is None else Amount(one.memory_bytes)


def _of_key(basis: Basis, rule: str, one: KeyRecord, title: str, command: str) -> Finding:
    return Finding(
        rule=rule,
        severity=basis.severity(rule),
        title=SafeText(title),
        where=_name(one),
        keys=Amount(1),
        memory=_memory(one),
        find_behind=lambda: behind_key(one.key),
        find_command=lambda: key_line(command, one.key),
        example_keys=(one.key,),
    )
