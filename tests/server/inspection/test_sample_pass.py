"""A sample of a server, inspected; what servers say of their own keys; tables made of batches."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.columns import EVERYTHING, SAMPLE_EVERY, SAMPLED_COLUMNS
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import BigReport, KeyRecord, KeySizes
from rtui.analysis.report.thresholds import preset
from rtui.keyspace.slots import key_slot
from rtui.server.guard.command import Secret
from rtui.server.health.info import parse_key_sizes
from rtui.server.inspection.largest import READ_BY_RTUI, complete_largest, largest_keys
from rtui.server.inspection.pipeline import EveryNth, InspectionPipeline, ListedKeys
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.report_head import key_sizes, memory_bound, parse_memory_bound
from rtui.server.inspection.sample_pass import SamplePass
from rtui.server.inspection.tables import TABLE_ROWS, InspectedBatch, LengthFloors, Tables, table_of
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.own_reads import OwnReads
from rtui.table.schema import LATEST_MS, NEVER, SCHEMA, keys_of
from rtui.table.tops import TopKeys, Tops
from tests.oracles.counted import report_on
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.inspection.kept import Gathered, Kept
from tests.server.targets import connected, numbered, plant, raw, target_of
from tests.servers import Server

MANY = 20_000


async def sampling(
    connection: Connection, found: Gathered, *, keys: int, size: int | None = MANY, match: bytes | None = None
) -> SamplePass:
    """A sample of so many keys into `found`, not yet run."""
    capabilities = Capabilities()
    await capabilities.probe(connection)
    pipeline = InspectionPipeline(InspectionPlan(capabilities, connection.server, connection.no_touch), found)
    return SamplePass(connection, pipeline, keys=keys, size=size, only=ScanFilter(match), control=RunControl(Pace.FULL))


async def test_a_sample_is_of_distinct_keys_of_which_all_is_known(server: Server) -> None:
    names = plant(server, numbered(MANY))
    found = Gathered()
    async with connected(target_of(server)) as connection:
        taken = await sampling(connection, found, keys=1_000)
        await taken.run()
    assert taken.progress.state is ScanState.DONE
    assert taken.progress.fraction == 1.0
    assert taken.population == MANY
    assert 900 <= len(found.facts) == taken.drawn <= 2_500
    assert set(found.facts) < names
    assert set(found.times.values()) == {1}
    assert all(facts["memory"] and facts["ttl"] == -1 for facts in found.facts.values())
    assert taken.cost.commands >= 4 * taken.drawn


async def test_with_a_filter_the_population_is_an_estimate_itself(valkey: Server) -> None:
    plant(valkey, [*numbered(MANY // 4, b"few:"), *numbered(3 * MANY // 4, b"many:")])
    found = Gathered()
    async with connected(target_of(valkey)) as connection:
        taken = await sampling(connection, found, keys=2_000, match=b"few:*")
        await taken.run()
    assert all(key.startswith(b"few:") for key in found.facts)
    assert isinstance(taken.population, Estimate)
    assert taken.population.low * 0.8 < MANY / 4 < taken.population.high * 1.2


async def test_without_dbsize_the_density_tells_how_many_there_are(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    found = Gathered()
    async with connected(target_of(valkey)) as connection:
        taken = await sampling(connection, found, keys=4_000, size=None)
        await taken.run()
    assert isinstance(taken.population, Estimate)
    assert 0.8 * MANY < taken.population.value < 1.2 * MANY


async def test_it_can_be_paused_and_ended(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    found = Gathered()
    async with connected(target_of(valkey)) as connection:
        taken = await sampling(connection, found, keys=4_000)
        paused = asyncio.Event()

        def pause() -> None:
            taken.control.pause()
            paused.set()

        found.at(100, pause)
        running = asyncio.create_task(taken.run())
        await paused.wait()
        while_paused = taken.progress
        taken.control.resume()
        taken.control.stop()
        await running
    assert while_paused.state is ScanState.PAUSED
    assert taken.progress.state is ScanState.STOPPED
    assert len(found.facts) < 4_000


async def test_a_lost_connection_ends_it_with_the_reason(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    found = Gathered()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        taken = await sampling(connection, found, keys=4_000)
        found.at(100, proxy.cut)
        await taken.run()
    assert taken.progress.state is ScanState.FAILED
    assert taken.progress.reason


class Learnt:
    def __init__(self) -> None:
        self.lengths: dict[bytes, int] = {}
        self.encodings: dict[bytes, bytes] = {}
        self.notes: dict[bytes, str] = {}

    def learn(
        self, key: bytes, *, length: int | None = None, encoding: bytes | None = None, note: str | None = None
    ) -> None:
        if note is not None:
            self.notes[key] = note
        if length is not None:
            self.lengths[key] = length
        if encoding is not None:
            self.encodings[key] = encoding


def records(client_keys: Sequence[bytes], types: dict[bytes, bytes]) -> tuple[KeyRecord, ...]:
    return tuple(KeyRecord(key, key_type=types[key], memory_bytes=1) for key in client_keys)


async def test_the_largest_are_asked_for_length_and_encoding_on_every_version(server: Server) -> None:
    client = server.client()
    types = every_type.fill(server, client)
    learnt = Learnt()
    async with connected(target_of(server)) as connection:
        capabilities = Capabilities()
        await capabilities.probe(connection)
        plan = InspectionPlan(capabilities, connection.server, connection.no_touch)
        big = BigReport(by_memory=records(sorted(types), types))
        own_reads = OwnReads()
        largest = largest_keys(big, plan, 5)
        await complete_largest(await connection.bulk(), plan, largest, learnt.learn, own_reads)
    asked = sorted(types)[:5]
    touched = [] if every_type.has_no_touch(server) else asked
    assert learnt.notes == dict.fromkeys(touched, READ_BY_RTUI)
    assert [key for key in types if own_reads.get(key) is not None] == touched
    assert set(learnt.lengths) == set(learnt.encodings) == set(asked)
    assert learnt.lengths == {key: client.execute_command(every_type.LENGTHS[types[key]], key) for key in asked}
    assert learnt.encodings == {key: client.object("encoding", key) for key in asked}


async def test_what_is_known_already_is_not_asked_again(valkey: Server) -> None:
    plant(valkey, [b"a"])
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        capabilities = Capabilities()
        await capabilities.probe(connection)
        plan = InspectionPlan(capabilities, connection.server, connection.no_touch)
        known = KeyRecord(b"a", key_type=b"string", length=1, encoding=b"embstr")
        lane = await connection.bulk()
        assert await complete_largest(lane, plan, [known], Learnt().learn, OwnReads()) == 0


PAGES = st.lists(st.integers(0, 40), max_size=12)


def plan_of(columns: object = SAMPLED_COLUMNS) -> InspectionPlan:
    """A plan that samples one key in eight, or asks everything of all."""
    return InspectionPlan(Capabilities(), ServerIdentity(), NoTouch.ON, columns)  # type: ignore[arg-type]


def pages_of(sizes: list[int]) -> tuple[list[bytes], list[list[bytes]]]:
    """Keys in the order in which they are listed, and pages of them."""
    keys = [b"%d" % index for index in range(sum(sizes))]
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    return keys, [keys[end - size : end] for size, end in zip(sizes, ends, strict=True)]


@given(PAGES, st.integers(0, SAMPLE_EVERY - 1))
def test_every_eighth_key_is_sampled_over_all_pages(sizes: list[int], first: int) -> None:
    keys, pages = pages_of(sizes)
    listed = ListedKeys(plan_of(), first)
    sampled: list[bytes] = []
    for page in pages:
        some, others = listed.divided(page)
        assert sorted([*some, *others]) == sorted(page)
        sampled += some
    assert sampled == keys[first::SAMPLE_EVERY]
    assert listed.skip == (first - len(keys)) % SAMPLE_EVERY


def test_the_first_sampled_key_is_one_of_the_first_eight() -> None:
    firsts = {ListedKeys(plan_of()).skip for _ in range(500)}
    assert firsts == set(range(SAMPLE_EVERY))


def test_all_keys_are_sampled_where_all_is_asked_of_all() -> None:
    page = [b"a", b"b"]
    assert ListedKeys(plan_of(EVERYTHING)).divided(page) == (page, [])


@given(st.integers(0, 100), st.integers(0, 100), st.lists(st.integers(1, 30), max_size=20))
def test_sampled_keys_and_others_run_out_together(sampled: int, others: int, mosts: list[int]) -> None:
    listed = ListedKeys(plan_of(), 0)
    listed.add([b"s%d" % index for index in range(sampled)], is_sampled=True)
    listed.add([b"o%d" % index for index in range(others)], is_sampled=False)
    taken: dict[bool, list[bytes]] = {True: [], False: []}
    for most in mosts:
        before = listed.keys
        for batch in listed.take(most):
            assert batch.keys
            taken[batch.is_sampled] += batch.keys
        assert before - listed.keys == min(most, before)
        if listed.keys:  # their shares of what was taken differ by no more than rounding up a take each
            share = sampled / (sampled + others)
            assert 0 <= len(taken[True]) - share * (len(taken[True]) + len(taken[False])) < len(mosts)
    rest = listed.take_all()
    assert not listed.keys
    assert taken[True] + [key for key in rest if key.startswith(b"s")] == [b"s%d" % index for index in range(sampled)]
    assert taken[False] + [key for key in rest if key.startswith(b"o")] == [b"o%d" % index for index in range(others)]


@given(PAGES, st.integers(1, 16))
def test_every_nth_key_of_a_type_is_chosen_over_all_pages(sizes: list[int], every: int) -> None:
    keys, pages = pages_of(sizes)
    sample = EveryNth()
    hashes: list[bytes] = []
    sets: list[bytes] = []
    for page in pages:
        hashes += [page[index] for index in sample.choose(b"hash", len(page), every)]
        sets += [page[index] for index in sample.choose(b"set", len(page[:1]), every)]
    assert hashes == keys[::every]
    assert sets == [page[0] for page in pages if page][::every]


INFO = (
    b"# Keysizes\r\ndb0_distrib_strings_sizes:0=1,1=1,2K=1,512M=2\r\ndb0_distrib_lists_items:4=1\r\n"
    b"db12_distrib_hashes_items:1M=3\r\ndb0_\x1b[31m:1=1\r\ndb0_distrib_zsets_items:x=1,4=,-1=2,8=5\r\n"
)


async def sizes_of(server: Server, db: int, **login: object) -> tuple[KeySizes, ...]:
    async with connected(target_of(server, db=db, **login)) as connection:
        return await key_sizes(connection, Capabilities(), db)


async def test_key_sizes_of_each_version(server: Server) -> None:
    server.admin.mset({"empty": "", "small": "x", "large": "x" * 3000})
    server.admin.rpush("list", *range(5))
    keeps = server.product == "redis" and server.version >= (8, 0)
    strings = KeySizes("distrib_strings_sizes", ((0, 1), (1, 1), (2048, 1)))
    expected = (strings, KeySizes("distrib_lists_items", ((4, 1),))) if keeps else ()
    assert await sizes_of(server, 0) == expected
    assert await sizes_of(server, 1) == ()


async def test_key_sizes_are_empty_where_info_is_denied(redis810: Server) -> None:
    redis810.admin.set("key", "x")
    raw(redis810, "ACL", "SETUSER", "few", "on", ">word", "~*", "+@all", "-info")
    assert await sizes_of(redis810, 0, user="few", password=Secret("word")) == ()


def test_key_sizes_are_of_one_database_and_only_what_is_understood() -> None:
    assert parse_key_sizes(INFO, 0) == (
        KeySizes("distrib_strings_sizes", ((0, 1), (1, 1), (2048, 1), (512 << 20, 2))),
        KeySizes("distrib_lists_items", ((4, 1),)),
        KeySizes("distrib_zsets_items", ((8, 5),)),
    )
    assert parse_key_sizes(INFO, 12) == (KeySizes("distrib_hashes_items", ((1 << 20, 3),)),)
    assert parse_key_sizes(INFO, 1) == ()


@given(st.binary(max_size=200), st.integers(0, 20))
def test_any_key_sizes_are_read_without_an_error(reply: bytes, db: int) -> None:
    parse_key_sizes(b"db%d_distrib_strings_sizes:" % db + reply, db)


MEMORY = b"# Memory\r\nused_memory:10000000\r\nused_memory_startup:1000000\r\nused_memory_dataset:%d\r\n"
KEYSPACE = b"# Keyspace\r\ndb0:keys=1000,expires=0,avg_ttl=0\r\ndb3:keys=5,expires=0,avg_ttl=0\r\n"


@pytest.mark.parametrize(
    ("memory", "keyspace", "bound"),
    [
        (MEMORY % 7_000_000, KEYSPACE, 7_032_000),
        (MEMORY % 8_990_000, KEYSPACE, 9_000_000),
        (MEMORY % 7_000_000, None, 9_000_000),
        (b"used_memory:500\r\n", KEYSPACE, 500),
        (b"used_memory:500\r\nused_memory_startup:900\r\n", KEYSPACE, 0),
        (None, KEYSPACE, None),
        (b"", b"", None),
    ],
)
def test_the_memory_bound_is_what_the_server_uses_for_keys(
    memory: bytes | None, keyspace: bytes | None, bound: int | None
) -> None:
    assert parse_memory_bound(memory, keyspace, 0) == bound


async def test_keys_of_many_sorts_stay_within_the_memory_bound(server: Server) -> None:
    client = server.client()
    pipeline = client.pipeline(transaction=False)
    for number in range(4_000):  # so many that what the server uses beside the keys is little
        pipeline.set(b"s:%d" % number, b"v" * (number % 300), ex=None if number % 2 else 9_999)
        pipeline.hset(b"h:%d" % number, mapping={b"a": b"b" * 20, b"c": b"d" * 30})
        pipeline.rpush(b"l:%d" % number, *range(30))
    pipeline.set(b"giant", b"v" * 2_000_000)
    pipeline.execute()
    report = await report_on(target_of(server))
    whole = report.summary.root.stats.memory_bytes
    assert isinstance(whole, int)
    async with connected(target_of(server)) as connection:
        bound = await memory_bound(connection, Capabilities())
    assert bound is not None
    assert whole <= bound < 1.5 * whole


KEYS = st.lists(st.one_of(st.binary(max_size=12), st.text(max_size=9).map(str.encode), st.just(b"{a}b")), max_size=30)


def batch_of(keys: list[bytes], key_type: bytes | None = b"hash", **facts: Any) -> InspectedBatch:
    """A batch whose facts follow from its keys."""
    ttl_ms = [-1 if len(key) % 3 else 100 * len(key) for key in keys]
    return InspectedBatch(key_type, keys, ttl_ms, [50 + len(key) for key in keys], **facts)


@given(KEYS, KEYS, KEYS)
def test_a_table_says_what_the_batches_say(one: list[bytes], other: list[bytes], named: list[bytes]) -> None:
    lengths = [*map(len, other)]
    found = [
        (batch_of(one, is_sampled=False), 5.0),
        (batch_of(other, b"set", lengths=lengths, idle_s=[3] * len(other), encodings=[b"raw"] * len(other)), 7.0),
        (InspectedBatch(None, named), 1.0),
    ]
    keys = [*one, *other, *named]
    table = table_of(found, "node:1", 3)
    assert table.schema == SCHEMA
    assert keys_of(table) == keys
    assert table["slot"].to_list() == [*map(key_slot, keys)]
    assert table["sampled"].to_list() == [False] * len(one) + [True] * (len(other) + len(named))
    assert table["memory_bytes"].to_list() == [50 + len(key) for key in (*one, *other)] + [None] * len(named)
    assert table["length"].to_list() == [None] * len(one) + lengths + [None] * len(named)
    assert table["idle_s"].to_list() == [None] * len(one) + [3] * len(other) + [None] * len(named)
    assert table["encoding"].to_list() == [None] * len(one) + ["raw"] * len(other) + [None] * len(named)
    assert table["type"].to_list() == ["hash"] * len(one) + ["set"] * len(other) + [None] * len(named)
    expected = [
        NEVER if len(key) % 3 else 100 * len(key) + at for part, at in ((one, 5_000), (other, 7_000)) for key in part
    ]
    assert table["expires_ms"].to_list() == expected + [None] * len(named)
    assert set(table["node"]) <= {"node:1"}
    assert set(table["database"]) <= {3}


def test_what_expires_after_the_last_moment_expires_in_it() -> None:
    batch = InspectedBatch(b"set", [b"a", b"b"], ttl_ms=[LATEST_MS, LATEST_MS - 5_000])
    assert table_of([(batch, 5.001)], "", 0)["expires_ms"].to_list() == [LATEST_MS, LATEST_MS]


def test_types_of_any_bytes_are_told_apart() -> None:
    table = table_of([(batch_of([b"a"], b"\xff"), 1.0), (batch_of([b"b"], b"\\xfe"), 1.0)], "", 0)
    assert table["type"].to_list() == ["\\xff", "\\xfe"]
    assert pl.concat([table, table])["type"].n_unique() == 2


class Counted(Kept):
    """Findings that count the tables."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: list[float] = []

    def add_rows(self, made: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        assert made().height == rows
        self.tables.append(made())
        self.moments.append(asked_at_s)


@given(st.lists(st.integers(1, 700), max_size=30))
def test_each_key_goes_into_one_table_none_of_which_is_large(sizes: list[int]) -> None:
    found = Counted()
    tables = Tables(found, "node:1")
    tables.ahead_ms = 2_000
    for at, size in enumerate(sizes):
        tables.add(batch_of([b"%d:%d" % (at, index) for index in range(size)]), float(at))
    tables.hand_on()
    assert tables.rows == 0
    assert keys_of(found.rows) == [b"%d:%d" % (at, index) for at, size in enumerate(sizes) for index in range(size)]
    assert all(0 < table.height < TABLE_ROWS + 700 for table in found.tables)
    assert found.moments[-1:] == ([len(sizes) - 1 + 2.0] if sizes else [])


def test_keys_that_are_forgotten_are_in_no_table() -> None:
    found = Counted()
    tables = Tables(found, "")
    tables.add(batch_of([b"a"]), 1.0)
    tables.clear()
    tables.hand_on()
    assert not found.tables


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=1), min_size=1), st.integers(1, 5))
def test_the_floor_is_the_least_of_the_longest(parts: list[list[int]], top: int) -> None:
    floors = LengthFloors(TopKeys(top))
    for part in parts:
        floors.add(b"string", np.array(part, np.int64))
    longest = sorted([length for part in parts for length in part])[-top:]
    limit = preset("rtui").limits(b"string").length
    assert limit is not None
    assert floors.length_floor(b"string") == (0 if len(longest) < top else min(longest[0], limit + 1))
    assert floors.length_floor(b"hash") == 0


def test_what_is_left_out_is_told() -> None:
    big = TopKeys(3)
    LengthFloors(big).leave_out(b"hash", 10_001)
    big.take(Tops(3), Counter(hash=0), Counter())
    assert b"hash" in big.over.uncertain
