"""The consumer groups of a stream: groups, their consumers and what is pending, when there are few of them."""

from __future__ import annotations

from typing import Final

from rtui.server import guard
from rtui.server.guard import MAX_FIELD_BYTES, ConsumerEvidence, GroupEvidence
from rtui.server.guard.evidence import MAX_CONSUMERS, MAX_GROUPS
from rtui.server.preview.page import Cell, Column, Meaning, Section
from rtui.server.preview.replies import cell, items, mapping
from rtui.server.preview.source import Source, optional
from rtui.server.reply import Reply

DETAILED_GROUPS: Final = 10
"""Groups whose consumers are listed."""

_GROUPS: Final = (
    ("group", b"name", Meaning.NAME),
    ("consumers", b"consumers", Meaning.COUNT),
    ("pending", b"pending", Meaning.COUNT),
    ("lag", b"lag", Meaning.COUNT),
    ("last delivered", b"last-delivered-id", Meaning.STREAM_ID),
)
_CONSUMERS: Final = (
    ("consumer", b"name", Meaning.NAME),
    ("pending", b"pending", Meaning.COUNT),
    ("idle", b"idle", Meaning.DURATION_MS),
    ("inactive", b"inactive", Meaning.DURATION_MS),
)
_PENDING: Final = (
    Column("oldest pending", Meaning.STREAM_ID),
    Column("newest pending", Meaning.STREAM_ID),
)


async def read_groups(source: Source, described: dict[bytes, Reply]) -> tuple[tuple[Section, ...], tuple[str, ...]]:
    """Give tables of the groups and consumers of a stream that XINFO STREAM described, and notes on what is missing."""
    count = described.get(b"groups")
    if not isinstance(count, int) or not count:
        return (), ()
    if count > MAX_GROUPS:
        return (), (f"{count:,} groups: more than {MAX_GROUPS} are not listed, the server has no pages for them",)
    (reply,) = await source.more(guard.xinfo_groups(source.key, GroupEvidence(count)))
    groups = [mapping(group) for group in items(optional(reply))]
    if not groups:
        return (), ("the groups were not told",)
    detailed = [group for group in groups if _is_detailed(group)][:DETAILED_GROUPS]
    known = {
        name: ConsumerEvidence(count)
        for group in detailed
        if isinstance(name := group.get(b"name"), bytes) and isinstance(count := group.get(b"consumers"), int)
    }
    names = list(known)
    replies = await source.more(
        *(guard.xinfo_consumers(source.key, name, evidence) for name, evidence in known.items()),
        *(guard.xpending(source.key, name, evidence) for name, evidence in known.items()),
    )
    pending = dict(zip(names, replies[len(names) :], strict=True))
    consumers = tuple(
        _consumers(name, optional(reply)) for name, reply in zip(names, replies[: len(names)], strict=True)
    )
    left_out = sum(1 for group in groups if group.get(b"consumers")) - len(names)
    notes = (f"the consumers of {left_out} groups are not listed",) if left_out > 0 else ()
    return (_groups(groups, pending), *consumers), notes


def _is_detailed(group: dict[bytes, Reply]) -> bool:
    consumers, name = group.get(b"consumers"), group.get(b"name")
    if not isinstance(consumers, int) or not isinstance(name, bytes):
        return False
    return 0 < consumers <= MAX_CONSUMERS and len(name) <= MAX_FIELD_BYTES


def _groups(groups: list[dict[bytes, Reply]], pending: dict[bytes, Reply]) -> Section:
    columns = [Column(title, meaning) for title, _, meaning in _GROUPS]
    rows = tuple((*(cell(group.get(name)) for _, name, _ in _GROUPS), *_span(group, pending)) for group in groups)
    return Section("groups", (*columns, *_PENDING), rows)


def _span(group: dict[bytes, Reply], pending: dict[bytes, Reply]) -> tuple[Cell, Cell]:
    """Give the ids of the oldest and newest entry that a group has pending."""
    name = group.get(b"name")
    summary = items(optional(pending.get(name))) if isinstance(name, bytes) else []
    return (cell(summary[1]), cell(summary[2])) if len(summary) > 2 else (None, None)


def _consumers(group: bytes, reply: Reply) -> Section:
    consumers = [mapping(consumer) for consumer in items(reply)]
    known = [part for part in _CONSUMERS if any(part[1] in consumer for consumer in consumers)]
    columns = tuple(Column(title, meaning) for title, _, meaning in known)
    rows = tuple(tuple(cell(consumer.get(name)) for _, name, _ in known) for consumer in consumers)
    return Section("consumers of", columns, rows, subject=group)
