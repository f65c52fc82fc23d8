"""Facts of keys: type, TTL, memory and so on, in two round trips for the rows on screen or the key under the cursor.

Memory is in the second round trip, since the cost of MEMORY USAGE depends on the type; for a key whose row has the type
it is in the first (`first_answers`). Idle time and frequency are read before everything else, and the length after
everything else: it alone counts as an access without NO-TOUCH. `key_preview` reads a page of the value of one key, with
the reader of its type in `preview`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rtui.analysis.facts import (
    GONE,
    NOT_ASKED,
    Frequency,
    KeyFacts,
    LfuSettings,
    Reason,
    RowFacts,
    Unknown,
    gone_key,
    gone_row,
)
from rtui.keyspace.types import type_of
from rtui.server import guard, wall_clock
from rtui.server.facts.answers import KeyAnswers, queries_of
from rtui.server.facts.first_answers import (
    FIRST_PAGES,
    KnownKey,
    first_answers,
    length_query_of,
    note_read,
    type_evidence,
)
from rtui.server.facts.preview.page import FIRST, Page, Preview, PreviewKind
from rtui.server.facts.preview.value_reader import STRING_WINDOW_BYTES, Refused, ValueReader
from rtui.server.guard.command import MAX_BULK_KEY_BYTES, Command, KeyCommand, build_batch, split_keys
from rtui.server.guard.evidence import MemoryUsagePolicy, TypeEvidence
from rtui.server.guard.spec import MAX_KEY_BYTES
from rtui.server.scan.server_time import CostWatch
from rtui.server.wire.capability import Capabilities, CommandRunner, Feature, Querier, Verdict
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection


@for_purpose(Purpose.ROWS)
async def row_facts(
    connection: CommandRunner,
    keys: Sequence[bytes],
    capabilities: Capabilities | None = None,
    *,
    with_more: bool = False,
    clock: Callable[[], float] = wall_clock.now_s,
) -> list[RowFacts]:
    """Return type and TTL of the rows on screen, and memory if their types make it cheap, in the order of `keys`.

    Takes two round trips. For collections the encoding is read as well, since a page can then be requested with the
    details (`first_answers`). `with_more` also reads the encoding and, if reading does not count as an access, the idle
    time and, in a third round trip, the length. `clock` gives seconds since the epoch. Names over 64 KiB are not sent.
    If `capabilities` has no verdict on a command yet, it is sent for one key first, so that it is refused once. Raises
    ConnectionLost.
    """
    querier = Querier(connection, Capabilities() if capabilities is None else capabilities)
    answers = {key: KeyAnswers(querier.capabilities, {}) for key in keys if len(key) <= MAX_BULK_KEY_BYTES}
    is_recency_asked = with_more and not querier.touches and not connection.server.is_lfu
    first = [guard.object_idletime] if is_recency_asked else []
    first += [guard.key_type, guard.pttl, *([guard.object_encoding] if with_more else [])]
    await _query_rows(querier, first, {None: list(answers)}, answers)
    asked_at_s = clock()
    evidence = {key: type_evidence(querier, answer.type) for key, answer in answers.items()}
    groups: dict[TypeEvidence | None, list[bytes]] = {}
    for key, answer in answers.items():
        if not answer.is_gone and evidence[key].memory_cost.policy is MemoryUsagePolicy.FREE:
            groups.setdefault(evidence[key], []).append(key)
    read_ahead = [] if with_more else [key for key, answer in answers.items() if answer.type in FIRST_PAGES]
    await asyncio.gather(
        _query_rows(querier, (guard.memory_usage,), groups, answers),
        _query_rows(querier, (guard.object_encoding,), {None: read_ahead}, answers),
    )
    if with_more and not querier.touches:
        await _query_lengths(querier, answers)
    rows, encoded = [], frozenset(read_ahead)
    for key in keys:
        if key not in answers:
            why = f"a name of {len(key):,} bytes: names over 64 KiB are not sent for rows"
            unknown = Unknown(Reason.TOO_LARGE, why)
            rows.append(RowFacts(key, unknown, unknown, unknown, asked_at_s))
        elif answers[key].is_gone:
            rows.append(gone_row(key, asked_at_s))
        else:
            answer = answers[key]
            memory_bytes = answer.number(Feature.MEMORY_USAGE, evidence[key].memory_cost.why)
            row = RowFacts(key, answer.type, answer.ttl_ms, memory_bytes, asked_at_s)
            if with_more:
                row = _with_more(row, answer)
            elif key in encoded:
                row = replace(row, encoding=answer.name(Feature.OBJECT_ENCODING))
            rows.append(row)
    return rows


def _with_more(row: RowFacts, answer: KeyAnswers) -> RowFacts:
    """Return a row with the facts for wider screens."""
    command = _length_command(answer)
    length: int | Unknown = NOT_ASKED if command is None else answer.number(command.spec.name)
    is_removed = length == 0 and isinstance(row.type, bytes) and type_of(row.type).removed_when_empty
    return replace(
        row,
        length=GONE if is_removed else length,
        encoding=answer.name(Feature.OBJECT_ENCODING),
        idle_s=answer.number(Feature.OBJECT_IDLETIME),
    )


def _length_command(answer: KeyAnswers) -> KeyCommand | None:
    return None if answer.is_gone or isinstance(answer.type, Unknown) else queries_of(answer.type).length


async def _query_lengths(querier: Querier, answers: Mapping[bytes, KeyAnswers]) -> None:
    """Put the lengths into `answers`, each by the command of its type; an untried command is sent for one key first."""
    groups: dict[KeyCommand, list[bytes]] = {}
    for key, answer in answers.items():
        command = _length_command(answer)
        if command is not None:
            groups.setdefault(command, []).append(key)
    is_known = {group: querier.capabilities[group.spec.name].verdict is not Verdict.UNTRIED for group in groups}
    tried = {one: [] if is_known[one] else keys[:1] for one, keys in groups.items()}
    rest = {one: keys if is_known[one] else keys[1:] for one, keys in groups.items()}
    for write in (tried, rest):
        allowed = {one: keys for one, keys in write.items() if keys and querier.capabilities.allows(one.spec.name)}
        asked = [(key, one.spec.name) for one, keys in allowed.items() for key in keys]
        if not asked:
            continue
        batches = [build_batch(one, some) for one, keys in allowed.items() for some in split_keys(keys, 1)]
        replies = await querier.connection.run(*batches)
        querier.record([name for _, name in asked], replies)
        for (key, name), reply in zip(asked, replies, strict=True):
            answers[key].replies[name] = reply


async def _query_rows(
    querier: Querier,
    wanted: Sequence[KeyCommand],
    groups: Mapping[TypeEvidence | None, Sequence[bytes]],
    answers: Mapping[bytes, KeyAnswers],
) -> None:
    """Put the replies to allowed commands into `answers`; the keys are grouped by their evidence."""
    writes = [groups]
    if groups and any(querier.capabilities[command.spec.name].verdict is Verdict.UNTRIED for command in wanted):
        evidence, group = next(iter(groups.items()))
        writes = [{evidence: group[:1]}, {**groups, evidence: group[1:]}]
    for write in writes:
        commands = [command for command in wanted if querier.capabilities.allows(command.spec.name)]
        keys = [key for group in write.values() for key in group]
        if not commands or not keys:
            continue
        batches = [
            build_batch(commands, some, evidence)
            for evidence, group in write.items()
            for some in split_keys(group, len(commands))
        ]
        replies = await querier.connection.run(*batches)
        names = [command.spec.name for command in commands]
        querier.record(names * len(keys), replies)
        for key, at in zip(keys, range(0, len(replies), len(names)), strict=True):
            answers[key].replies.update(zip(names, replies[at : at + len(names)], strict=True))


@for_purpose(Purpose.FACTS)
async def key_facts(
    connection: Connection,
    key: bytes,
    capabilities: Capabilities | None = None,
    *,
    may_touch: bool = True,
    known: KnownKey | None = None,
    lfu: LfuSettings = LfuSettings(),  # noqa: B008 - a frozen value
    watch: CostWatch | None = None,
    clock: Callable[[], float] = wall_clock.now_s,
) -> KeyFacts:
    """Return all facts of one key, in two round trips; `clock` gives seconds since the epoch.

    If `known` has the type, one round trip mostly does, and the first page of a small value is requested as well.
    Without `may_touch` the length is left out if it would count as an access. `watch` limits the unbounded cost of
    MEMORY USAGE from key to key. Raises ConnectionLost.
    """
    if len(key) > MAX_KEY_BYTES:
        unknown = Unknown(Reason.TOO_LARGE, f"a name of {len(key):,} bytes: names over 1 MiB are not sent")
        return KeyFacts(key, clock(), unknown, unknown, unknown, unknown, unknown, unknown, unknown)
    querier = Querier(connection, Capabilities() if capabilities is None else capabilities, connection.own_reads)
    first = await first_answers(querier, key, known, may_touch=may_touch, clock=clock)
    compatible = connection.server.compatible
    answers, asked_at_s, idle_s, counter = first.answers, first.asked_at_s, first.idle_s, first.counter
    if answers.is_gone:
        return gone_key(key, asked_at_s)
    evidence = type_evidence(querier, answers.type)
    length_query = length_query_of(querier, key, evidence.key_type, may_touch=may_touch)
    is_asked = isinstance(length_query, Command) and length_query.name in answers.replies
    if querier.touches and isinstance(length_query, Command) and not is_asked:
        # Before it is sent, since the caller may be cancelled while it is under way.
        note_read(querier.own_reads, key, clock(), first)
    watch = CostWatch() if watch is None else watch
    memory_bytes, length = await _memory_and_length(
        querier, key, evidence, length_query, watch=watch, answers=answers, round_trip_s=first.round_trip_s
    )
    if answers.is_gone or (length == 0 and type_of(evidence.key_type).removed_when_empty):
        return gone_key(key, asked_at_s)
    return KeyFacts(
        key=key,
        asked_at_s=asked_at_s,
        type=answers.type,
        encoding=answers.name(Feature.OBJECT_ENCODING),
        length=length,
        memory_bytes=memory_bytes,
        ttl_ms=answers.ttl_ms,
        idle_s=idle_s,
        frequency=counter if isinstance(counter, Unknown) else Frequency(counter, lfu),
        idle_basis=first.basis,
        touched=querier.touches and isinstance(length, int),
        notes=first.notes,
        is_on_disk=compatible is not None and compatible.sizes_on_disk,
    )


async def _memory_and_length(
    querier: Querier,
    key: bytes,
    evidence: TypeEvidence,
    length_query: Command | Unknown,
    *,
    watch: CostWatch,
    answers: KeyAnswers,
    round_trip_s: float,
) -> tuple[int | Unknown, int | Unknown]:
    """Return memory and length, asking in one write for those that are not in `answers` yet.

    `round_trip_s` is the time of a write without costly commands. The time of an unbounded MEMORY USAGE is the server's
    own from INFO before and after, once a round trip was slow, else the round trip's excess time.
    """
    cost = evidence.memory_cost
    why_no_memory = cost.why
    is_watched = cost.policy is MemoryUsagePolicy.WATCHED
    memory: list[Command] = []
    if is_watched and watch.is_over:
        why_no_memory += ", which was too slow for others"
    elif cost.policy is not MemoryUsagePolicy.NEVER and Feature.MEMORY_USAGE not in answers.replies:
        memory = [guard.memory_usage_of(key, evidence)]
    is_watched = is_watched and bool(memory) and querier.capabilities.allows(Feature.MEMORY_USAGE)
    asks_clock = is_watched and watch.was_slow and watch.asks_clock
    clock = [guard.info("commandstats")] if asks_clock else []
    is_length_due = isinstance(length_query, Command) and length_query.name not in answers.replies
    length = [length_query] if is_length_due and isinstance(length_query, Command) else []
    began = time.monotonic()
    replies = await querier.run(*clock, *memory, *clock, *length) if memory or length else []
    extra_s = time.monotonic() - began - round_trip_s
    if memory:
        answers.replies[Feature.MEMORY_USAGE] = replies[len(clock)]
        server_s = watch.server_s(replies[0], replies[2], 1) if asks_clock else None
        if server_s is not None:
            watch.observe(1, server_s)
        elif is_watched:
            watch.observe_round_trip(extra_s)
    memory_bytes = answers.number(Feature.MEMORY_USAGE, why_no_memory)
    if isinstance(length_query, Unknown):
        return memory_bytes, length_query
    if length:
        answers.replies[length_query.name] = replies[-1]
    return memory_bytes, answers.number(length_query.name)


@for_purpose(Purpose.PREVIEW)
async def key_preview(
    connection: Connection,
    facts: KeyFacts,
    page: Page | None = None,
    *,
    capabilities: Capabilities | None = None,
    window_bytes: int = STRING_WINDOW_BYTES,
    known: KnownKey | None = None,
) -> Preview:
    """Read one page of a key's value, the first without `page`; `window_bytes` ≤ 64 KiB is for strings.

    Commands that were sent ahead with the facts of a `known` key are not sent again. A refusal, a key that is gone or
    has changed its type, and a too large value are previews too: `refusal` has the reason. Raises ConnectionLost.
    """
    page = FIRST if page is None else page
    if isinstance(facts.type, Unknown):
        return Preview(facts.key, facts.type, PreviewKind.NOTHING, page, refusal=facts.type)
    capabilities = Capabilities() if capabilities is None else capabilities
    querier = Querier(connection, capabilities, connection.own_reads, known)
    reader = ValueReader(querier, facts, page, window_bytes)
    try:
        queries = queries_of(facts.type)
        shown = await (queries.preview if page.find is None else queries.find)(reader)
    except Refused as refused:
        return replace(reader.preview(PreviewKind.NOTHING), refusal=refused.why, offers=refused.offers)
    is_empty = not shown.rows and (shown.window is None or not shown.window.data)
    if not is_empty or page.number == 1 or page.find is not None or shown.next_page is not None:
        return shown
    ended = "no data here: the value became shorter, or ended with the previous page"
    return replace(shown, notes=(*shown.notes, ended))
