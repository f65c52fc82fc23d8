"""A sample of a real server, inspected; and what the largest keys are asked alone at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import BigReport, KeyRecord
from rtui.server.inspection.largest import READ_BY_RTUI, complete_largest, largest_keys
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.sample_pass import SamplePass
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
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
