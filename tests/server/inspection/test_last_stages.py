"""The stages of an inspection: limits on costly queries, lengths of some keys only, a timed MEMORY USAGE."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.columns import ALL_COLUMNS, EVERYTHING, SAMPLED_COLUMNS, parse_columns
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.formats import write_text
from rtui.analysis.report.document import ColumnState, CoverageKind, HotSource, Report, Scope
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.keys import of_sample
from rtui.keyspace.types import HASH, LIST, SET, SHORT_LENGTH, STREAM, STRING, TYPES, ZSET
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.facts.answers import expected
from rtui.server.guard.evidence import MAX_WATCHED as MOST
from rtui.server.guard.evidence import MemoryUsagePolicy, TypeEvidence
from rtui.server.inspection.pipeline import TOO_COSTLY_NOTE, LastStages
from rtui.server.inspection.plan import LEFT_OUT, InspectionPlan
from rtui.server.inspection.queries import MOMENT_S, KeyQuery, QueryStage, WaitingKeys, moment, read_answers
from rtui.server.inspection.tables import InspectedBatch, Tables
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.scan.server_time import CHEAP_S, COSTLY_S, MAX_COSTLY, CostWatch
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.errors import Reply, ServerBusyError, ServerError
from rtui.server.wire.identity import NoTouch, Product, ServerIdentity
from tests.conftest import known
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.every_type import NO_TOUCH
from tests.server.inspection.kept import Gathered, inspecting
from tests.server.targets import connected, target_of
from tests.servers import Server

NOW_S = 1_000.0
KEYS = [b"a", b"b", b"c"]
STREAMS = InspectedBatch(STREAM.name, KEYS, ttl_ms=[-1, -1, -1])
REFUSED = ServerError("NOPERM User app has no permissions to run the 'memory|usage' command")


class Stages:
    """Last stages of a server where nothing bounds the MEMORY USAGE of a stream, and what comes of their keys."""

    def __init__(self) -> None:
        server = ServerIdentity(product="redis", version=(7, 0, 0))
        self.plan = InspectionPlan(Capabilities(), server, NoTouch.ON, SAMPLED_COLUMNS)
        self._found, self.gone, self.typed = Gathered(), list[bytes](), WaitingKeys()
        self._tables = Tables(self._found, "")
        self.stages = LastStages(self.plan, self._tables, clock=lambda: NOW_S, gone=self.gone.extend)

    @property
    def found(self) -> Gathered:
        self._tables.hand_on()
        return self._found

    def timed(self) -> KeyQuery:
        """The timed query that is sent next."""
        query = known(self.stages.timed_query(self.typed))
        assert query.stage is QueryStage.TIMED
        return query


def test_keys_of_which_all_is_known_go_to_the_findings() -> None:
    one = Stages()
    one.stages.go_on(InspectedBatch(HASH.name, KEYS, memory_bytes=[80, 90, 99], lengths=[1, 2, 3]))
    assert set(one.found.facts) == set(KEYS)
    assert not one.stages.keys


def test_keys_whose_length_is_zero_are_gone_unless_their_type_may_be_empty() -> None:
    one = Stages()
    one.stages.go_on(InspectedBatch(HASH.name, KEYS, memory_bytes=[80, 90, 99], lengths=[1, 0, 3]))
    one.stages.go_on(InspectedBatch(STRING.name, [b"s"], memory_bytes=[50], lengths=[0]))
    assert one.gone == [b"b"]
    assert set(one.found.facts) == {b"a", b"c", b"s"}


def test_a_length_is_asked_late_of_keys_that_are_not_sampled() -> None:
    one = Stages()
    one.stages.go_on(InspectedBatch(HASH.name, KEYS, memory_bytes=[80, 90, 99], is_sampled=False))
    assert (one.stages.keys, len(one.found.facts)) == (3, 0)
    (query,) = one.stages.length_queries(2)
    assert (query.stage, len(query.batch.keys), one.stages.keys) == (QueryStage.THIRD, 2, 1)
    one.stages.put_back(query)
    assert one.stages.keys == 3
    (query,) = one.stages.length_queries(9)
    assert sorted(query.batch.keys) == KEYS
    one.stages.go_on_after_third(query.batch)
    assert (set(one.found.facts), one.stages.keys) == (set(KEYS), 0)


def test_one_timed_query_at_a_time_with_more_keys_while_they_are_cheap() -> None:
    one = Stages()
    one.stages.go_on(STREAMS)
    query = one.timed()
    assert len(query.batch.keys) == 1
    assert one.stages.timed_query(one.typed) is None
    one.stages.put_back(query)
    assert one.stages.keys == 3
    query = one.timed()
    one.stages.go_on_after_timed([query.batch], 1, 0.0)
    assert len(one.found.facts) == 1
    assert len(one.timed().batch.keys) == 2
    assert not one.stages.keys


def test_keys_that_wait_go_on_with_a_note_once_others_were_costly() -> None:
    one = Stages()
    one.stages.go_on(STREAMS)
    for _ in range(MAX_COSTLY - 1):
        one.stages.cost_watch.observe(1, 2 * COSTLY_S)
    query = one.timed()
    one.stages.go_on_after_timed([replace(query.batch, memory_bytes=[900])], 1, 2 * COSTLY_S)
    one.stages.go_on(InspectedBatch(STREAM.name, [b"later"]))
    assert not one.stages.keys
    notes = {key: facts["note"] for key, facts in one.found.facts.items()}
    assert notes.pop(query.batch.keys[0]) == ""
    assert len(notes) == 3
    assert set(notes.values()) == {TOO_COSTLY_NOTE}


def test_another_server_may_take_less_time() -> None:
    one = Stages()
    for _ in range(MAX_COSTLY):
        one.stages.cost_watch.observe(1, 2 * COSTLY_S)
    one.stages.use_other_server()
    one.stages.go_on(STREAMS)
    assert (one.stages.keys, len(one.found.facts)) == (3, 0)


def test_keys_whose_memory_is_refused_meanwhile_wait_for_the_second_stage_again() -> None:
    one = Stages()
    one.stages.go_on(STREAMS)
    one.plan.capabilities.record(guard.memory_usage.spec.name, REFUSED)
    assert one.stages.timed_query(one.typed) is None
    assert (one.stages.keys, one.typed.keys) == (0, 3)


@pytest.mark.parametrize("is_reset", [True, False])
def test_all_keys_are_taken_or_forgotten_at_once(is_reset: bool) -> None:
    one = Stages()
    one.stages.go_on(InspectedBatch(HASH.name, KEYS, memory_bytes=[80, 90, 99], is_sampled=False))
    one.stages.go_on(STREAMS)
    one.timed()
    assert one.stages.late_lengths.asked(HASH.name)
    if is_reset:
        one.stages.reset()
        assert not one.stages.late_lengths.asked(HASH.name)
    else:
        assert sum(len(batch.keys) for batch in one.stages.take_all()) == 5
    assert not one.stages.keys
    one.stages.go_on(STREAMS)
    # whoever takes all keys away leaves the query that is under way
    assert (one.stages.timed_query(one.typed) is not None) is is_reset


COUNTS = (1, 2, 3, 10, 100, 500, 513, 5_000)


def fill_lean(client: Any) -> None:
    """Write values that take as little memory as their length allows."""
    for number in (0, 7, 10_000, -(1 << 63), (1 << 63) - 1):
        client.set(f"i{number}", number)
    for count in COUNTS:
        client.set(f"s{count}", "x" * count)
        client.hset(f"h{count}", mapping={str(field): field % 10 for field in range(count)})
        client.hset(f"H{count}", mapping={f"{field:x}": "" for field in range(count)})
        client.sadd(f"S{count}", *range(count))
        client.sadd(f"t{count}", *(f"{member:x}" for member in range(count)))
        client.zadd(f"z{count}", {str(member): member for member in range(count)})
        client.zadd(f"Z{count}", {f"{member:x}": 0 for member in range(count)})
    client.hset("h", "", "")
    client.sadd("S", "")
    client.zadd("z", {"": 0})


def test_memory_bounds_the_length_on_every_server(server: Server) -> None:
    client: Any = server.client()
    every_type.fill(server, client)
    for largest in (0, 100_000):
        for kind in ("hash", "zset", "set"):
            for entries in client.config_get(f"{kind}-m*-entries"):
                client.config_set(entries, min(largest, 1) if "-min-" in entries else largest)
        fill_lean(client)
        for key in client.keys("*"):
            kind = client.type(key)
            least = TYPES[kind].least_element_bytes
            length = client.execute_command(every_type.LENGTHS[kind], key) if least else 0
            if length > SHORT_LENGTH:
                assert length * least <= client.memory_usage(key), (key, length)
        client.flushall()


def fill(client: Any, keys: int) -> None:
    """Write keys of five types whose lengths are heavy in their tails, shuffled by the server's own hash."""
    pipe = client.pipeline(transaction=False)
    for number in range(keys):
        size = round(2_000_000 / (1 + number * 7_919 % keys) ** 1.2) // 100 + 1
        kind = number % 5
        if kind == 0:
            pipe.set(f"s:{number}", "x" * size)
        elif kind == 1:
            pipe.hset(f"h:{number}", mapping={str(field): field for field in range(min(size, 2_000))})
        elif kind == 2:
            pipe.sadd(f"t:{number}", *range(min(size, 2_000)))
        elif kind == 3:
            pipe.zadd(f"z:{number}", {str(member): member for member in range(min(size, 2_000))})
        else:
            pipe.rpush(f"l:{number}", *range(min(size, 2_000)))
        if number % 500 == 499:
            pipe.execute()
    pipe.execute()


async def test_a_sampled_pass_asks_one_key_in_eight_and_the_long_ones(server: Server) -> None:
    client: Any = server.client()
    fill(client, 6_000)
    found = Gathered(Scope(top=10))
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        scan, pipeline = await inspecting(connection, found, columns=SAMPLED_COLUMNS)
        await scan.run()
        sent = Counter(argv[0] for argv in proxy.commands())
    assert scan.state is ScanState.DONE
    assert pipeline.waiting == 0
    assert set(found.times.values()) == {1}
    assert len(found.facts) == 6_000
    sampled = {key for key, facts in found.facts.items() if facts["idle"] is not None}
    assert 6_000 // 8 - 1 <= len(sampled) <= 6_000 // 8 + 1
    assert all(facts["ttl"] == -1 and facts["memory"] for facts in found.facts.values())
    lengths = {key: facts["length"] for key, facts in found.facts.items() if facts["length"] is not None}
    if not every_type.has_no_touch(server):
        assert not lengths
        return
    assert sampled <= set(lengths)
    assert sum(sent[name.encode()] for name in every_type.LENGTHS.values()) < 6_500
    for kind, prefix in ((STRING, b"s"), (HASH, b"h"), (SET, b"t"), (ZSET, b"z"), (LIST, b"l")):
        keys = client.keys(prefix + b":*")
        true = sorted(((client.execute_command(every_type.LENGTHS[kind.name], key), key) for key in keys), reverse=True)
        threshold = true[9][0]
        assert {key for length, key in true if length > threshold} <= set(lengths)
        assert all(lengths[key] == length for length, key in true if key in lengths)


async def report_of(server: Server, **options: Any) -> Report:
    async with connected(target_of(server)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, **options))
        await analysis.run()
    return known(analysis.report)


@NO_TOUCH
async def test_the_longest_keys_are_those_of_a_pass_that_asks_everything(server: Server) -> None:
    fill(server.client(), 6_000)
    every = await report_of(server, columns=EVERYTHING, top=20)
    some = await report_of(server, columns=SAMPLED_COLUMNS, top=20)
    assert some.head.coverage == every.head.coverage
    assert some.summary.big.length_not_asked == {}

    def longest(report: Report) -> dict[bytes, list[tuple[bytes, int | None]]]:
        lists = report.summary.big.by_type_length
        return {kind: [(record.key, record.length) for record in records] for kind, records in lists.items()}

    assert longest(some) == longest(every)
    assert some.summary.big.over == every.summary.big.over
    assert [one.key for one in some.summary.big.by_length] == [one.key for one in every.summary.big.by_length]
    assert all(one.idle_s is not None and one.length is not None for one in some.summary.big.by_memory)
    assert [one.length and one.length.max for one in some.summary.types] == [
        one.length and one.length.max for one in every.summary.types
    ]
    root, true = some.summary.root.stats, every.summary.root.stats
    assert (root.keys, root.memory_bytes, root.no_ttl_keys) == (true.keys, true.memory_bytes, true.no_ttl_keys)
    assert sum(as_estimate(one).value for one in known(root.idle)) == pytest.approx(6_000)
    assert some.head.scope.columns == SAMPLED_COLUMNS
    columns = some.head.columns
    assert columns["ttl"].state is columns["memory"].state is ColumnState.COMPLETE
    assert columns["idle"].state is columns["length"].state is ColumnState.SOME
    assert some.head.cost.commands < 0.8 * every.head.cost.commands
    assert len(some.summary.hottest) == 20


async def test_keys_that_are_all_alike_are_not_all_asked_and_it_is_said(valkey: Server) -> None:
    client: Any = valkey.client()
    pipe = client.pipeline(transaction=False)
    for number in range(8_000):
        pipe.set(f"s:{number}", "x" * (200 + number % 7))
        pipe.rpush(f"l:{number}", "a", "b")
    pipe.execute()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, columns=SAMPLED_COLUMNS, top=10))
        await analysis.run()
        sent = Counter(argv[0] for argv in proxy.commands())
    assert analysis.report is not None
    most = 8_000 / 8 + 1_000 + 16_000 / 16 + 1_000
    assert sent[b"STRLEN"] < most
    assert sent[b"LLEN"] < most
    not_asked = analysis.report.summary.big.length_not_asked
    assert not_asked[b"list"] is None
    assert (not_asked[b"string"] or 0) > 206
    (note,) = {table.note for table in tables(analysis.report) if table.id == "big_keys_by_length"}
    assert note.startswith("There may be longer keys of type list: length was read of one key in 8")
    assert "There may be longer keys of type list" in write_text(analysis.report)


async def test_small_keyspaces_are_asked_everything_by_default(valkey: Server) -> None:
    fill(valkey.client(), 500)
    report = await report_of(valkey)
    assert report.head.scope.columns == ALL_COLUMNS
    assert report.head.columns["idle"].state is ColumnState.COMPLETE


async def test_an_estimate_asks_its_keys_everything(valkey: Server) -> None:
    fill(valkey.client(), 3_000)
    report = await report_of(valkey, columns=SAMPLED_COLUMNS, estimate_keys=500)
    assert report.head.coverage.kind is CoverageKind.ESTIMATE
    assert report.head.scope.columns == ALL_COLUMNS
    assert all(one.idle_s is not None for one in report.summary.big.by_memory)


async def test_columns_that_are_left_out_are_not_asked(valkey: Server) -> None:
    fill(valkey.client(), 1_000)
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        columns = parse_columns("type,length")
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, columns=columns))
        await analysis.run()
        sent = Counter(argv[0] for argv in proxy.commands())
    assert sent[b"PTTL"] <= 1
    assert sent[b"MEMORY"] <= 1
    assert sent[b"OBJECT"] <= 3
    report = known(analysis.report)
    assert {name for name, one in report.head.columns.items() if one.reason == LEFT_OUT} == {
        "ttl", "memory", "idle", "encoding",
    }  # fmt: skip
    assert report.summary.root.stats.keys == 1_000
    assert not any(record.note for records in report.summary.big.by_type_length.values() for record in records)
    assert all(one.length is not None for one in report.summary.types)


async def test_access_counters_of_one_key_in_eight(lfu_server: Server) -> None:
    client: Any = lfu_server.client()
    fill(client, 2_000)
    report = await report_of(lfu_server, columns=SAMPLED_COLUMNS, top=20)
    frequency = known(report.summary.root.stats.frequency)
    assert all(isinstance(one, Estimate) for one in frequency)
    assert sum(as_estimate(one).value for one in frequency) == pytest.approx(2_000)
    assert report.summary.root.stats.idle is None
    assert report.hot.source is HotSource.FREQUENCY
    assert of_sample(report) == "Access counter was read of one key in 8 only"
    assert all(one.frequency is not None for one in report.summary.big.by_memory)


async def test_the_longest_keys_over_tls(tls_server: Server) -> None:
    fill(tls_server.client(), 3_000)
    every = await report_of(tls_server, columns=EVERYTHING, top=20)
    some = await report_of(tls_server, columns=SAMPLED_COLUMNS, top=20)
    assert some.summary.big.length_not_asked == {}
    assert [one.key for one in some.summary.big.by_length] == [one.key for one in every.summary.big.by_length]


REFUSALS = ServerError("NOPERM User x has no permissions to run the 'pttl' command")
KEY_REFUSED = ServerError("NOPERM No permissions to access a key")
WRONG = ServerError("WRONGTYPE Operation against a key holding the wrong kind of value")

TYPE, PTTL, MEMORY = expected("TYPE"), expected("PTTL"), expected("MEMORY USAGE")

INSPECTED_TYPES: st.SearchStrategy[Reply] = st.sampled_from([b"string", b"hash", b"none", KEY_REFUSED, REFUSALS])
NUMBERS: st.SearchStrategy[Reply] = st.one_of(st.sampled_from([-2, KEY_REFUSED, WRONG]), st.integers(-1, 9))


def is_gone(reply: Reply) -> bool:
    return reply in (-2, b"none") or reply is WRONG


@given(st.lists(st.tuples(INSPECTED_TYPES, NUMBERS)))
def test_replies_become_columns_without_holes(rows: list[tuple[Reply, Reply]]) -> None:
    keys = [b"%d" % index for index in range(len(rows))]
    found = read_answers(keys, [reply for row in rows for reply in row], (TYPE, PTTL))
    there = {key: row for key, row in zip(keys, rows, strict=True) if not any(map(is_gone, row))}
    assert len(found.gone) == len(rows) - len(there)
    seen: dict[bytes, tuple[Reply, Reply]] = {}
    for part in found.parts:
        types, numbers = part.answers
        for index, key in enumerate(part.keys):
            seen[key] = (None if types is None else types[index], None if numbers is None else numbers[index])
    assert seen == {
        key: tuple(None if isinstance(reply, ServerError) else reply for reply in row) for key, row in there.items()
    }
    assert all(error is REFUSALS for error in found.errors.values())


def test_a_page_on_which_all_is_well_is_not_looked_at_key_by_key() -> None:
    keys = [b"a", b"b"]
    (part,) = read_answers(keys, [b"string", 5, b"hash", -1], (TYPE, PTTL)).parts
    assert part.keys is keys
    assert part.answers == ([b"string", b"hash"], [5, -1])


GARBAGE: list[Reply] = [None, b"7", -3, 1 << 70, [], [[1]], b"", b"x" * 1000]


@pytest.mark.parametrize("reply", GARBAGE, ids=lambda reply: repr(reply)[:12])
def test_an_answer_that_makes_no_sense_costs_that_fact(reply: Reply) -> None:
    found = read_answers([b"a", b"b"], [b"string", reply, b"hash", 5], (TYPE, PTTL))
    assert {key: part.answers for part in found.parts for key in part.keys} == {
        b"a": ([b"string"], None),
        b"b": ([b"hash"], [5]),
    }
    assert not found.gone
    assert found.unread == {1: 1}
    assert not found.errors


@pytest.mark.parametrize("reply", [None, 7, [b"string"], b"", b"x" * 1000], ids=lambda reply: repr(reply)[:12])
def test_a_type_that_makes_no_sense_is_unknown(reply: Reply) -> None:
    (part,) = read_answers([b"a"], [reply, 5], (TYPE, PTTL)).parts
    assert part.answers == (None, [5])


def test_memory_means_gone_by_nil_and_nothing_below_zero() -> None:
    found = read_answers([b"a", b"b", b"c"], [None, -2, 7], (MEMORY,))
    assert found.gone == [b"a"]
    assert found.unread == {0: 1}
    assert {key: part.answers for part in found.parts for key in part.keys} == {b"b": (None,), b"c": ([7],)}


@pytest.mark.parametrize("error", ["BUSY Redis is busy", "LOADING Redis is loading", "MASTERDOWN Link down"])
def test_a_server_that_becomes_busy_in_the_middle_is_asked_again(error: str) -> None:
    with pytest.raises(ServerBusyError):
        read_answers([b"a", b"b"], [b"string", 5, ServerError(error), ServerError(error)], (TYPE, PTTL))


BATCHES = st.lists(
    st.tuples(
        st.sampled_from([b"string", b"hash", None]), st.integers(1, 20), st.booleans(), st.sampled_from(["", "n"])
    )
)


@given(BATCHES, st.lists(st.integers(1, 30), min_size=1))
def test_keys_that_wait_are_given_back_as_they_were(
    batches: list[tuple[bytes | None, int, bool, str]], portions: list[int]
) -> None:
    waiting = WaitingKeys()
    given_in: set[tuple[bytes, bytes | None, int | None, str]] = set()
    number = 0
    for kind, count, has_ttl, note in batches:
        keys = [b"%d" % (number + step) for step in range(count)]
        ttl = [number + step for step in range(count)] if has_ttl else None
        number += count
        waiting.add(InspectedBatch(kind, keys, ttl_ms=ttl, note=note))
        given_in |= {(key, kind, int(key) if has_ttl else None, note) for key in keys}
    assert waiting.keys == number
    taken: set[tuple[bytes, bytes | None, int | None, str]] = set()
    turn = 0
    while waiting.keys:
        most, before = portions[turn % len(portions)], waiting.keys
        for batch in waiting.take(most):
            columns = [None] * len(batch.keys) if batch.ttl_ms is None else batch.ttl_ms
            taken |= {(key, batch.key_type, ttl, batch.note) for key, ttl in zip(batch.keys, columns, strict=True)}
        assert before - waiting.keys == min(most, before)
        turn += 1
    assert taken == given_in


def test_keys_that_were_asked_at_different_times_are_not_joined() -> None:
    waiting = WaitingKeys()
    for number in range(10):
        waiting.add(InspectedBatch(b"string", [b"%d" % number], ttl_ms=[9], asked_at_s=float(number // 5)))
    assert {(len(batch.keys), batch.asked_at_s) for batch in waiting.take(99)} == {(5, 0.0), (5, 1.0)}


@given(st.floats(1e9, 2e9))
def test_a_moment_is_over_and_no_more_than_its_length_ago(now_s: float) -> None:
    assert 0 <= moment(now_s) - now_s < MOMENT_S


def test_what_proves_cheap_is_asked_in_larger_portions() -> None:
    watch = CostWatch()
    asked = []
    for _ in range(10):
        asked.append(watch.most)
        watch.observe(watch.most, CHEAP_S / 2)
    assert asked == [1, 2, 4, 8, 16, 32, 64, MOST, MOST, MOST]
    watch.observe(MOST, CHEAP_S * 2)
    assert watch.most == 1
    assert not watch.is_over


def test_single_dear_questions_end_it() -> None:
    watch = CostWatch()
    for _ in range(MAX_COSTLY):
        assert not watch.is_over
        watch.observe(1, COSTLY_S * 2)
    assert watch.is_over


def test_what_was_not_timed_says_nothing() -> None:
    watch = CostWatch()
    watch.observe(1, None)
    assert watch.most == 1
    assert not watch.is_over


@pytest.mark.parametrize(
    ("product", "version", "kind", "manner"),
    [
        ("redis", (8, 4, 0), b"stream", MemoryUsagePolicy.FREE),
        ("redis", (8, 2, 9), b"stream", MemoryUsagePolicy.WATCHED),
        ("redis", (6, 2, 14), b"stream", MemoryUsagePolicy.WATCHED),
        ("valkey", (8, 0, 1), b"stream", MemoryUsagePolicy.FREE),
        (None, None, b"stream", MemoryUsagePolicy.WATCHED),
        (None, None, b"hash", MemoryUsagePolicy.FREE),
        ("redis", (8, 6, 3), b"ReJSON-RL", MemoryUsagePolicy.NEVER),
        ("redis", (8, 6, 3), None, MemoryUsagePolicy.NEVER),
    ],
)
def test_what_memory_usage_costs(
    product: Product | None, version: tuple[int, ...] | None, kind: bytes | None, manner: MemoryUsagePolicy
) -> None:
    cost = TypeEvidence(kind, product, version).memory_cost
    assert cost.policy is manner
    assert bool(cost.why) is (manner is not MemoryUsagePolicy.FREE)


def test_the_clock_of_the_server_tells_what_was_dear() -> None:
    watch = CostWatch()
    before = b"cmdstat_memory|usage:calls=10,usec=100,usec_per_call=10.00\r\n"
    after = b"cmdstat_memory|usage:calls=12,usec=5100,usec_per_call=425.00\r\n"
    assert watch.server_s(before, after, 2) == 0.005
    assert watch.server_s(b"cmdstat_get:calls=1,usec=2,usec_per_call=2.00\r\n", b"", 2) is None
    assert watch.asks_clock
    assert watch.server_s(ServerError("NOPERM no"), b"", 2) is None
    assert not watch.asks_clock
