"""Facts of keys: type, TTL, memory and so on, in two round trips for the rows on screen or the key under the cursor.

Memory is in the second round trip, since what MEMORY USAGE costs depends on the type. Idle time and frequency are read
before everything else, and the length after everything else: it alone counts as an access, where NO-TOUCH is not on.
`key_preview` reads a page of the value of one key, with the reader of its type in `preview`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rtui.analysis.facts import (
    Frequency,
    IdleBasis,
    KeyFacts,
    LfuSettings,
    Reason,
    RowFacts,
    Unknown,
    gone_key,
    gone_row,
)
from rtui.keyspace.types import type_of
from rtui.server import guard
from rtui.server.facts.answers import KeyAnswers
from rtui.server.facts.preview.page import FIRST, Page, Preview, PreviewKind
from rtui.server.facts.preview.value_reader import STRING_WINDOW_BYTES, Refused, ValueReader
from rtui.server.facts.types import queries_of
from rtui.server.guard.command import MAX_BULK_KEY_BYTES, Command, KeyCommand, build_batch, split_keys
from rtui.server.guard.evidence import MemoryUsagePolicy, TypeEvidence
from rtui.server.guard.spec import MAX_KEY_BYTES
from rtui.server.scan.server_time import CostWatch
from rtui.server.wire.capability import Capabilities, CommandRunner, Feature, Querier, Verdict, unknown_from
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.own_reads import COUNTER_NOTE, IDLE_NOTE, UNKNOWN_USE, OwnReads
from rtui.server.wire.replies import ServerError

REPLICA_NOTE: Final = "idle time and frequency are this replica's own: what clients read on the primary is not in them"


@for_purpose(Purpose.ROWS)
async def row_facts(
    connection: CommandRunner,
    keys: Sequence[bytes],
    capabilities: Capabilities | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> list[RowFacts]:
    """Return type and TTL of the rows on screen, and memory where their types make that cheap, in the order of `keys`.

    Takes two round trips. `clock` gives seconds since the epoch. Names over 64 KiB are not sent. Where `capabilities`
    knows nothing of a command yet, it is sent for one key first, so that it is refused once. Raises ConnectionLost.
    """
    querier = Querier(connection, Capabilities() if capabilities is None else capabilities)
    answers = {key: KeyAnswers(querier.capabilities, {}) for key in keys if len(key) <= MAX_BULK_KEY_BYTES}
    await _query_rows(querier, (guard.key_type, guard.pttl), {None: list(answers)}, answers)
    asked_at_s = clock()
    evidence = {key: _type_evidence(querier, answer.type) for key, answer in answers.items()}
    groups: dict[TypeEvidence | None, list[bytes]] = {}
    for key, answer in answers.items():
        if not answer.is_gone and evidence[key].memory_cost.policy is MemoryUsagePolicy.FREE:
            groups.setdefault(evidence[key], []).append(key)
    await _query_rows(querier, (guard.memory_usage,), groups, answers)
    rows = []
    for key in keys:
        if key not in answers:
            why = f"a name of {len(key):,} bytes: longer ones than 64 KiB are not sent for rows"
            unknown = Unknown(Reason.TOO_LARGE, why)
            rows.append(RowFacts(key, unknown, unknown, unknown, asked_at_s))
        elif answers[key].is_gone:
            rows.append(gone_row(key, asked_at_s))
        else:
            memory_bytes = answers[key].number(Feature.MEMORY_USAGE, evidence[key].memory_cost.why)
            rows.append(RowFacts(key, answers[key].type, answers[key].ttl_ms, memory_bytes, asked_at_s))
    return rows


async def _query_rows(
    querier: Querier,
    wanted: Sequence[KeyCommand],
    groups: Mapping[TypeEvidence | None, Sequence[bytes]],
    answers: Mapping[bytes, KeyAnswers],
) -> None:
    """Put the replies to those commands that may be sent into `answers`; the keys are grouped by their evidence."""
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


def _type_evidence(querier: Querier, key_type: bytes | Unknown) -> TypeEvidence:
    server = querier.connection.server
    return TypeEvidence(None if isinstance(key_type, Unknown) else key_type, server.product, server.version)


@for_purpose(Purpose.FACTS)
async def key_facts(
    connection: Connection,
    key: bytes,
    capabilities: Capabilities | None = None,
    *,
    may_touch: bool = True,
    lfu: LfuSettings = LfuSettings(),  # noqa: B008 - a frozen value
    watch: CostWatch | None = None,
    clock: Callable[[], float] = time.time,
) -> KeyFacts:
    """Return all facts of one key, in two round trips; `clock` gives seconds since the epoch.

    Without `may_touch` the length is left out where it would count as an access. `watch` limits from key to key what
    MEMORY USAGE may cost where nothing bounds that. Raises ConnectionLost.
    """
    if len(key) > MAX_KEY_BYTES:
        unknown = Unknown(Reason.TOO_LARGE, f"a name of {len(key):,} bytes: longer ones than 1 MiB are not sent")
        return KeyFacts(key, clock(), unknown, unknown, unknown, unknown, unknown, unknown, unknown)
    querier = Querier(connection, Capabilities() if capabilities is None else capabilities, connection.own_reads)
    began = time.monotonic()
    answers = await _query_untouching(querier, key)
    round_trip_s = time.monotonic() - began
    asked_at_s = clock()
    if answers.is_gone:
        return gone_key(key, asked_at_s)
    server = connection.server
    basis = IdleBasis.WRITE if "lrm" in (server.maxmemory_policy or "") else IdleBasis.ACCESS
    idle_s, counter = answers.number(Feature.OBJECT_IDLETIME), answers.number(Feature.OBJECT_FREQ)
    notes: tuple[str, ...] = (REPLICA_NOTE,) if server.role == "replica" else ()
    if querier.touches and basis is IdleBasis.ACCESS:
        idle_s, note = _without_own_reads(querier.own_reads, key, idle_s, counter, asked_at_s)
        notes += note
    evidence = _type_evidence(querier, answers.type)
    length_query = _length_query(querier, key, evidence.key_type, may_touch=may_touch)
    if querier.touches and isinstance(length_query, Command):
        # Before it is sent, since the caller may be cancelled while it is under way.
        used_s = None if isinstance(idle_s, Unknown) else asked_at_s - idle_s
        querier.own_reads.add(key, clock(), used_s=used_s, counter=None if isinstance(counter, Unknown) else counter)
    watch = CostWatch() if watch is None else watch
    memory_bytes, length = await _memory_and_length(
        querier, key, evidence, length_query, watch=watch, answers=answers, round_trip_s=round_trip_s
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
        idle_basis=basis,
        touched=querier.touches and isinstance(length, int),
        notes=notes,
    )


def _without_own_reads(
    own_reads: OwnReads, key: bytes, idle_s: int | Unknown, counter: int | Unknown, asked_at_s: float
) -> tuple[int | Unknown, tuple[str, ...]]:
    """Return the idle time as if rtui had not read the key, and a note on what its reading has changed, if anything."""
    read = own_reads.get(key)
    if read is None:
        return idle_s, ()
    if isinstance(idle_s, Unknown):
        if isinstance(counter, Unknown):
            return idle_s, ()
        before = "" if read.counter is None else f"; it was {read.counter} before the first time"
        return idle_s, (f"{COUNTER_NOTE}{before}",)
    found = own_reads.idle(key, idle_s, asked_at_s)
    if found.seconds is None:
        return Unknown(Reason.NOT_ASKED, UNKNOWN_USE), ()
    return found.seconds, (IDLE_NOTE,) if found.is_own_read else ()


async def _query_untouching(querier: Querier, key: bytes) -> KeyAnswers:
    """Ask what never counts as an access, idle time or frequency first, by which of them the policy keeps.

    Where the policy has been changed since, the other one is asked in a round trip of its own.
    """
    server = querier.connection.server
    recency, other = guard.object_idletime, guard.object_freq
    if server.is_lfu:
        recency, other = other, recency
    commands = (recency, guard.key_type, guard.pttl, guard.object_encoding)
    names = [command.spec.name for command in commands]
    replies = dict(zip(names, await querier.run(*(command(key) for command in commands)), strict=True))
    refusal = replies[recency.spec.name]
    if isinstance(refusal, ServerError) and unknown_from(refusal).reason is Reason.UNSUPPORTED:
        (replies[other.spec.name],) = await querier.connection.run(other(key))
    else:
        policy = f"maxmemory policy {server.maxmemory_policy}" if server.maxmemory_policy else "this maxmemory policy"
        missing = "access frequencies" if other is guard.object_freq else "idle times"
        replies[other.spec.name] = ServerError(f"{policy} keeps no {missing}")
    return KeyAnswers(querier.capabilities, replies)


def _length_query(querier: Querier, key: bytes, key_type: bytes | None, *, may_touch: bool) -> Command | Unknown:
    """Return the command that asks for the length, or why it is not asked."""
    command = queries_of(key_type).length
    if key_type is None:
        return Unknown(Reason.NOT_ASKED, "the type is not known")
    if command is None:
        return Unknown(Reason.UNSUPPORTED, "no command returns the length of this type")
    if querier.touches and not may_touch:
        return Unknown(Reason.NOT_ASKED, "asking would count as an access")
    return command(key)


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
    """Ask for memory, whose reply goes into `answers`, and for the length, in one write.

    `round_trip_s` is what a write without costly commands took. The time of MEMORY USAGE, where nothing bounds it, is
    the server's own as INFO has it before and after, once a round trip was slow, else what the round trip took longer.
    """
    cost = evidence.memory_cost
    why_no_memory = cost.why
    is_watched = cost.policy is MemoryUsagePolicy.WATCHED
    memory: list[Command] = []
    if is_watched and watch.is_over:
        why_no_memory += ", which took the server too long for others"
    elif cost.policy is not MemoryUsagePolicy.NEVER:
        memory = [guard.memory_usage(key, evidence)]
    is_watched = is_watched and bool(memory) and querier.capabilities.allows(Feature.MEMORY_USAGE)
    asks_clock = is_watched and watch.was_slow and watch.asks_clock
    clock = [guard.info("commandstats")] if asks_clock else []
    length = [length_query] if isinstance(length_query, Command) else []
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
    return memory_bytes, KeyAnswers(querier.capabilities, {length_query.name: replies[-1]}).number(length_query.name)


@for_purpose(Purpose.PREVIEW)
async def key_preview(
    connection: Connection,
    facts: KeyFacts,
    page: Page | None = None,
    *,
    capabilities: Capabilities | None = None,
    window_bytes: int = STRING_WINDOW_BYTES,
) -> Preview:
    """Read one page of a key's value, the first when no page is given; `window_bytes` ≤ 64 KiB is for strings.

    A refusal, a key that is gone or has changed its type, and a value that is too large are previews too: `refusal`
    says which. Raises ConnectionLost.
    """
    page = FIRST if page is None else page
    if isinstance(facts.type, Unknown):
        return Preview(facts.key, facts.type, PreviewKind.NOTHING, page, refusal=facts.type)
    querier = Querier(connection, Capabilities() if capabilities is None else capabilities, connection.own_reads)
    reader = ValueReader(querier, facts, page, window_bytes)
    try:
        queries = queries_of(facts.type)
        shown = await (queries.preview if page.find is None else queries.find)(reader)
    except Refused as refused:
        return replace(reader.preview(PreviewKind.NOTHING), refusal=refused.why)
    is_empty = not shown.rows and (shown.window is None or not shown.window.data)
    if not is_empty or page.number == 1 or page.find is not None or shown.next_page is not None:
        return shown
    ended = "nothing is here: the value has become shorter, or ended with the page before"
    return replace(shown, notes=(*shown.notes, ended))
