"""A sample of a real server, inspected; and what the largest keys are asked alone at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.columns import EVERYTHING, SAMPLE_EVERY, SAMPLED_COLUMNS
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import BigReport, KeyRecord
from rtui.server.inspection.largest import READ_BY_RTUI, complete_largest, largest_keys
from rtui.server.inspection.pipeline import EveryNth, InspectionPipeline, ListedKeys
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.sample_pass import SamplePass
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.own_reads import OwnReads
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.inspection.gathered import Gathered
from tests.server.scanned import numbered, plant
from tests.server.targets import connected, target_of
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
