"""Browsing sessions of real clusters: one tree of all nodes' keys, each key asked at its node."""

from __future__ import annotations

import asyncio
from math import sqrt
from pathlib import Path

import pytest

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_TTL, Reason, Unknown
from rtui.analysis.humanize import Mark
from rtui.analysis.query.parsing import parse
from rtui.keyspace.slots import SLOTS, key_slot
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Segment
from rtui.registry.load import read_registry
from rtui.server.browsing.first_rows import SLOT_SAMPLE_KEYS, Overviews
from rtui.server.deployment.nodes import Deployment
from rtui.server.facts.preview.page import PreviewKind
from rtui.server.guard.command import Secret
from rtui.server.options import FindOptions
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.search.run import KeySearch
from rtui.server.search.search import Stage, UnansweredTermError
from rtui.server.wire.errors import RtuiError
from tests.clusters import TestCluster, cluster_of
from tests.conftest import known, require
from tests.keyspace.naive import find
from tests.monitor import Recorder
from tests.server.browsing.test_session import browsing, until, whole
from tests.server.deployment.test_nodes import deployed
from tests.server.scan.test_cluster_scan import disturb, fill
from tests.server.targets import eventually, numbered, target_of

KEYS = [b"shop:user:%d" % number for number in range(3_000)]

BUDGET_BYTES = 20_000
"""Less than their names take."""

VERSIONS = pytest.mark.parametrize("cluster", ["redis-7.0", "redis-8.10", "valkey-9.1"], indirect=True)
ONE_VERSION = pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)


@VERSIONS
async def test_the_tree_has_the_keys_of_all_nodes(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(KEYS)
    for seed in (cluster.members[0], cluster.members[-1]):  # a primary, a replica
        async with browsing(target_of(seed.server), tmp_path) as session:
            await whole(session)
            assert session.store.keys == len(KEYS)
            await until(session, lambda: session.status.total == len(KEYS))
            status = session.status
            assert [node.id for node in status.nodes] == [one.id for one in cluster.members if one.slots]
            assert sum(node.keys or 0 for node in status.nodes) == len(KEYS)
            assert {node.scan.state for node in status.nodes if node.scan is not None} == {ScanState.DONE}
            assert status.progress.state is ScanState.DONE
            assert status.notes == ()
            rows = await session.keys.row_facts(KEYS[:30], with_more=True)
            assert [(row.key, row.type, row.ttl_ms) for row in rows] == [(key, b"string", NO_TTL) for key in KEYS[:30]]
            for key in KEYS[:5]:
                facts = await session.keys.key_facts(key)
                owner = next(one for one in cluster.members if one.slots and key_slot(key) in range(*one.slots))
                assert facts.node.endswith(f":{owner.server.port}")
                preview = await session.keys.preview(facts)
                assert known(preview.window).data == b"x"
                assert await session.keys.lookup(key)
            assert await session.keys.lookup(b"no such key") is False


@ONE_VERSION
async def test_a_search_asks_each_key_at_its_node(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(KEYS)
    async with browsing(target_of(cluster.members[1].server), tmp_path) as session:
        scanned = session.search(parse("ttl:none shop:user:1*"))
        scanned.prepare()
        await eventually(lambda: scanned.stage is Stage.OVER)
        wanted = {key for key in KEYS if key.startswith(b"shop:user:1")}
        assert {one.key for one in scanned.kept} == wanted
        await whole(session)
        await until(session, lambda: session.status.total == len(KEYS))
        held = session.search(parse("type:string shop:user:1*"))
        held.prepare()
        await eventually(lambda: held.stage is Stage.OVER)
        assert {one.key for one in held.kept} == wanted
        assert (held.notes, held.failure) == (held.notes[:1], None)


@VERSIONS
async def test_a_search_on_one_node_scans_no_other(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(KEYS)
    first, other = cluster.members[0], cluster.members[1]
    assert first.slots is not None
    wanted = {key for key in KEYS if first.slots[0] <= key_slot(key) <= first.slots[1]}
    with Recorder(first.server) as asked, Recorder(other.server) as not_asked:
        async with deployed(target_of(other.server)) as deployment:
            for line in (f"node:{first.server.host}:{first.server.port}", "shard:1", "slot:0-5460 type:string"):
                run = KeySearch(deployment, parse(line), FindOptions())
                await run.run()
                assert {one.key for one in run.matches.kept} == wanted
                assert run.mark is Mark.EXACT
                assert run.notes == ()
            run = KeySearch(deployment, parse("node:10.9.9.9:1"), FindOptions())
            await run.run()
            assert isinstance(run.failure, UnansweredTermError)
    assert {one.argv[2:4] for one in asked.commands if one.name == "SCAN"} > {(b"COUNT", b"1")}
    scans = [one.argv for one in not_asked.commands if one.name == "SCAN"]
    assert {argv[2:4] for argv in scans} == {(b"COUNT", b"1")}  # probes of what may be asked, and of cursors


@ONE_VERSION
async def test_names_that_are_globs_are_found_on_the_nodes_of_their_slots(cluster: TestCluster) -> None:
    named = [b"job[%d]:x" % number for number in range(12)]
    cluster.fill([*named, *(b"job%d:x" % number for number in range(12))])
    async with deployed(target_of(cluster.members[1].server)) as deployment:
        for number, name in enumerate(named):
            for more in ("", " ttl:none type:string"):
                run = KeySearch(deployment, parse(name.decode() + more), FindOptions())
                await run.run()
                wanted = {name, *(b"job%d:x" % int(digit) for digit in str(number))}
                assert {one.key for one in run.matches.kept} == wanted
                assert run.count == len(wanted)
                assert run.mark is Mark.EXACT


@ONE_VERSION
async def test_references_are_looked_up_on_all_nodes(cluster: TestCluster, tmp_path: Path) -> None:
    users = [b"user:%d" % number for number in range(20)]
    cluster.fill(users)
    client = cluster.client()
    client.sadd("users", *(str(number) for number in range(25)))
    client.close()
    registry = read_registry(
        """
[[pattern]]
pattern = "users"
references = [{ from = "member", to = "user:{member}" }]
[[pattern]]
pattern = "user:<id>"
"""
    )
    async with browsing(target_of(cluster.members[0].server), tmp_path) as session:
        facts = await session.keys.key_facts(b"users")
        preview = await session.keys.preview(facts)
        assert preview.kind is PreviewKind.SET
        found = await session.keys.references(registry, facts, preview)
        assert {one.key for one in found.outgoing if one.is_there} == set(users)
        assert found.dangling == 5


@ONE_VERSION
async def test_a_key_whose_slot_has_moved_is_asked_where_it_is_now(cluster: TestCluster, tmp_path: Path) -> None:
    first, second, *_ = cluster.members
    key = next(key for key in KEYS if first.slots and first.slots[0] <= key_slot(key) <= first.slots[1])
    async with browsing(target_of(first.server), tmp_path) as session:
        await whole(session)
        assert (await session.keys.key_facts(key)).is_gone
        for member in (second, first):
            member.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "NODE", second.id)
        try:
            second.server.admin.set(key, b"there")
            async with asyncio.timeout(20):  # until the node that is asked for the topology has heard of it
                while (facts := await session.keys.key_facts(key)).node != f"127.0.0.1:{second.server.port}":
                    assert facts.type != b"string"
            assert facts.type == b"string"
            (row,) = await session.keys.row_facts([key])
            assert row.type == b"string"
        finally:
            second.server.admin.delete(key)
            for member in (first, second):
                member.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "NODE", first.id)


@ONE_VERSION
async def test_a_key_on_its_way_is_said_to_be(cluster: TestCluster, tmp_path: Path) -> None:
    first, second, *_ = cluster.members
    key = next(key for key in KEYS if first.slots and first.slots[0] <= key_slot(key) <= first.slots[1])
    second.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "IMPORTING", first.id)
    first.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "MIGRATING", second.id)
    try:
        async with browsing(target_of(first.server), tmp_path) as session:
            (row,) = await session.keys.row_facts([key])
            assert isinstance(row.type, Unknown)
            assert "its slot is being moved" in row.type.detail
            sent = {name for entry in session.log.entries for name in entry.sent}
            assert "ASKING" not in sent
    finally:
        for member in (first, second):
            member.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "STABLE")


@pytest.mark.slow
async def test_a_node_that_is_down_costs_its_own_rows_and_what_has_to_be_listed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.scan.cluster_scan.SETTLE_S", 0.5)
    with cluster_of(require("valkey-9.1")) as cluster:
        cluster.fill(KEYS)
        last = cluster.members[2]
        async with browsing(
            target_of(cluster.members[0].server), tmp_path, memory_budget_bytes=BUDGET_BYTES
        ) as session:
            await whole(session)
            last.server.stop()
            rows = await session.keys.row_facts(KEYS[:30])
            shop = known(find(session.store, (Segment(b"shop", b":"),)))
            with pytest.raises(RtuiError, match="were not covered"):
                await session.open_namespace(shop)
            assert session.store.needs_scan(shop)
        down = [row for row in rows if key_slot(row.key) >= known(last.slots)[0]]
        assert down
        assert all(isinstance(row.type, Unknown) and row.type.reason is Reason.FAILED for row in down)
        assert all("can't be reached" in row.type.detail for row in down if isinstance(row.type, Unknown))
        assert all(row.type == b"string" for row in rows if row not in down)


@pytest.mark.slow
async def test_a_scan_says_which_node_it_waits_for(tmp_path: Path) -> None:
    with cluster_of(require("valkey-9.1")) as cluster:
        cluster.fill(KEYS)
        dead = cluster.members[2].server
        dead.stop()
        async with browsing(target_of(cluster.members[0].server), tmp_path) as session:
            await eventually(lambda: session.status.progress.state is ScanState.WAITING)
            assert f"Nothing listens on 127.0.0.1:{dead.port}" in str(session.status.progress.reason)


async def test_numbered_databases_of_a_cluster(tmp_path: Path) -> None:
    with cluster_of(require("valkey-9.1"), "--cluster-databases", "16") as cluster:
        for member in cluster.members:
            client = member.server.client(db=3)
            for key in KEYS[:30]:
                if member.slots and member.slots[0] <= key_slot(key) <= member.slots[1]:
                    client.set(key, b"x")
        async with browsing(target_of(cluster.members[0].server, db=3), tmp_path) as session:
            await whole(session)
            assert session.store.keys == 30
            assert (await session.keys.key_facts(KEYS[0])).type == b"string"
            assert not await session.deployment.look()


@ONE_VERSION
async def test_beyond_the_memory_budget_a_scan_of_the_prefix_asks_all_nodes(
    cluster: TestCluster, tmp_path: Path
) -> None:
    cluster.fill([*KEYS, b"other"])
    async with browsing(target_of(cluster.members[1].server), tmp_path, memory_budget_bytes=BUDGET_BYTES) as session:
        await whole(session)
        assert session.store.memory.dropped
        assert session.store.keys == len(KEYS) + 1
        shop = known(find(session.store, (Segment(b"shop", b":"),)))
        assert session.store.needs_scan(shop)
        await session.open_namespace(shop)
        user = known(find(session.store, (Segment(b"shop", b":"), Segment(b"user", b":"))))
        assert user.count == shop.count == len(KEYS)
        assert session.status.notes == ()


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-7.0"], indirect=True)
async def test_an_overview_before_the_count(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill([*(b"shop:user:%d" % number for number in range(20_000)), *(b"{log}:%d" % at for at in range(10_000))])
    async with browsing(target_of(cluster.members[0].server), tmp_path) as session:
        await until(session, lambda: session.status.sampled >= 10_000)
        shop = known(find(session.store, (Segment(b"shop", b":"),)))
        assert isinstance(shop.estimate, Estimate)
        assert shop.estimate.value == pytest.approx(20_000, rel=0.05)
        await whole(session)
        assert session.store.keys == 30_000


@pytest.mark.parametrize("cluster", ["redis-8.10", "valkey-9.1"], indirect=True)
async def test_an_overview_by_slots_counts_a_loaded_slot_for_what_it_is(
    cluster: TestCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.browsing.first_rows.SLOT_SAMPLE_FROM", 10_000)
    names = {b"shop": 12_000, b"log": 2_000, b"{cart}": 6_000}
    cluster.fill(b"%b:%d" % (name, at) for name, count in names.items() for at in range(count))
    expected: dict[bytes, Estimate] = {}
    monkeypatch.setattr(NamespaceStore, "expect", lambda self, path, found: expected.update({path[0].name: found}))
    async with browsing(target_of(cluster.members[0].server), tmp_path, pace=Pace.FULL) as session:
        await whole(session)
        status = session.status
    assert SLOT_SAMPLE_KEYS - 3 <= status.sampled <= SLOT_SAMPLE_KEYS + 3
    assert status.cost.commands > SLOTS  # the size of every slot was asked
    assert expected.keys() == names.keys()
    total = sum(names.values())
    for name, count in names.items():
        five_deviations = 5 * sqrt(count / total * (1 - count / total) / SLOT_SAMPLE_KEYS) * total
        assert abs(expected[name].value - count) < five_deviations
        assert expected[name].low < expected[name].value < expected[name].high


@ONE_VERSION
async def test_without_the_right_to_ask_sizes_of_slots_one_question_is_denied(
    cluster: TestCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.browsing.first_rows.SLOT_SAMPLE_FROM", 1_000)
    monkeypatch.setattr("rtui.server.browsing.first_rows.SAMPLE_FROM", 1_000)
    cluster.fill(KEYS)
    for member in cluster.members:
        member.server.admin.execute_command(
            *("ACL", "SETUSER", "few", "on", ">word", "~*", "+@all", "-cluster|countkeysinslot")
        )
        member.server.admin.acl_log_reset()
    try:
        target = target_of(cluster.members[0].server, user="few", password=Secret("word"))
        async with browsing(target, tmp_path) as session:
            await whole(session)
            assert session.store.keys == len(KEYS)
            assert session.status.sampled == 0
        assert [entry["count"] for one in cluster.primaries for entry in one.admin.acl_log()] == [1, 1, 1]
    finally:
        for member in cluster.members:
            member.server.admin.acl_deluser("few")


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_the_tree_has_every_key_once_though_slots_move_and_a_primary_dies(
    cluster: TestCluster, tmp_path: Path
) -> None:
    names = fill(cluster)
    async with browsing(target_of(cluster.members[1].server), tmp_path, pace=Pace.GENTLE) as session:
        await until(session, lambda: session.store.keys >= len(names) // 4)
        session.control.pause()
        await asyncio.to_thread(disturb, cluster, names)
        session.control.resume()
        await until(session, lambda: session.status.progress.state.is_over)
        assert session.status.progress.state is ScanState.DONE, session.status.progress.reason
        assert session.store.keys == len(names)
        assert {name for page in HeldNames(session.store).pages() for name in page} == names


async def test_a_slot_that_moves_in_the_middle_of_a_scan_costs_no_key(tmp_path: Path) -> None:
    with cluster_of(require("valkey-9.1")) as cluster:
        cluster.fill(KEYS)
        first, second, _ = cluster.members
        assert first.slots is not None
        key = next(key for key in KEYS if key_slot(key) > first.slots[1] - 500 and key_slot(key) <= first.slots[1])
        async with browsing(target_of(first.server), tmp_path, pace=Pace.GENTLE) as session:
            await until(session, lambda: session.store.keys > 100)
            session.control.pause()
            second.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "IMPORTING", first.id)
            first.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "MIGRATING", second.id)
            keys = first.server.admin.execute_command("CLUSTER GETKEYSINSLOT", key_slot(key), 100)
            first.server.admin.execute_command("MIGRATE", "127.0.0.1", second.server.port, "", 0, 5_000, "KEYS", *keys)
            for member in (second, first):
                member.server.admin.execute_command("CLUSTER SETSLOT", key_slot(key), "NODE", second.id)
            session.control.resume()
            await whole(session)
            assert session.store.keys == len(KEYS)
            assert session.status.progress.state is ScanState.DONE


@pytest.mark.parametrize("cluster", ["redis-7.0"], indirect=True)
async def test_what_is_asked_of_all_nodes_is_counted(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(numbered(3_000))
    deployment = Deployment(target_of(cluster.members[0].server))
    await deployment.open()
    try:
        nodes = [ScanNode(one.connection, size=1_000) for one in await deployment.scanned()]
        before = sum(one.connection.sent.commands for one in nodes)
        overviews = Overviews(deployment, NamespaceStore(), RunControl(Pace.FULL), ScanFilter(None, None))
        await overviews.take(nodes, 3_000)
        sent = sum(one.connection.sent.commands for one in nodes) - before
    finally:
        await deployment.close()
    assert overviews.cost.commands == sent > 3
    overviews.forget()
    assert overviews.cost.commands == sent
