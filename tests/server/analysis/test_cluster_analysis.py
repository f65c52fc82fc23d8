"""An analysis of all nodes of a cluster: one report, the same as of one server with all keys."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rtui.analysis.estimates import Estimate
from rtui.analysis.formats.json import read_json, write_json
from rtui.analysis.report.document import CoverageKind, Report
from rtui.keyspace.slots import SLOTS, each_slot, key_slot
from rtui.keyspace.text.display import SafeText
from rtui.registry.load import read_registry
from rtui.server.analysis.key_pass import SLOT_BY_SLOT
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.target import ReplicaPolicy, Target
from tests.clusters import TestCluster, cluster_of, set_slots
from tests.conftest import examples, require
from tests.oracles.counted import facts
from tests.oracles.keyspaces import grown
from tests.server.scan.test_cluster_scan import disturb, fill
from tests.server.targets import eventually, target_of
from tests.servers import binaries, running

KEYS = 2_500


SETTLE = "rtui.server.scan.cluster_scan.SETTLE_S"
"""How long it is waited for slots that nobody serves."""


@asynccontextmanager
async def analysing(target: Target, **options: Any) -> AsyncIterator[AnalysisRun]:
    """An analysis of all nodes of the cluster that a target is of, or of a server alone, that has not begun."""
    deployment = Deployment(target)
    await deployment.open()
    try:
        yield AnalysisRun(deployment.home, AnalysisOptions(**{"pace": Pace.FULL, **options}), deployment=deployment)
    finally:
        await deployment.close()


async def report_of(target: Target, **options: Any) -> Report:
    """A report on all nodes of the cluster that a target is of, or on a server alone."""
    async with analysing(target, **options) as analysis:
        await analysis.run()
    assert analysis.report is not None
    return analysis.report


def reported(analysis: AnalysisRun) -> int:
    """How many keys the report has that there is now."""
    return 0 if analysis.report is None else analysis.report.head.coverage.keys


def outline(report: Report) -> dict[Any, Any]:
    """What the report says of every namespace, but for what passes with time and what every process counts anew."""
    return {
        tuple(node.step for node in path): (stats.keys, stats.no_ttl_keys, stats.ttl, {*stats.types}, stats.strings)
        for path in report.summary.root.walk()
        for stats in [path[-1].stats]
    }


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-7.0", "redis-8.10", "valkey-9.1"], indirect=True)
async def test_it_is_the_report_of_one_server_with_all_keys(cluster: TestCluster) -> None:
    version = cluster.members[0].server.binary.name
    with running(binaries()[version], cluster=True) as server, cluster.client() as client:
        for one in (server.client(), client):
            grown(one, keys=KEYS, seed=11)
        known = {key: fact for primary in cluster.primaries for key, fact in facts(primary.admin).items()}
        alone = await report_of(target_of(server))
        report = await report_of(target_of(cluster.members[-1].server))
    assert report.head.coverage == alone.head.coverage
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert report.head.columns == alone.head.columns
    assert report.head.notes == alone.head.notes
    assert outline(report) == outline(alone)
    one, other = report.summary, alone.summary
    for found, expected in zip(*(sorted(each.types, key=lambda of: of.name) for each in (one, other)), strict=True):
        assert (found.name, found.stats.keys, found.length) == (expected.name, expected.stats.keys, expected.length)
    assert one.slots.keys == other.slots.keys
    assert one.slots.owned == ((0, 16383),)
    assert [(tag.tag, tag.keys) for tag in one.slots.tags] == [(tag.tag, tag.keys) for tag in other.slots.tags]
    sizes = {key: fact.memory_bytes for key, fact in known.items()}
    assert one.root.stats.memory_bytes == sum(sizes.values())
    assert {record.key: record.memory_bytes for record in one.big.by_memory}.items() <= sizes.items()
    assert [record.memory_bytes for record in one.big.by_memory] == sorted(sizes.values(), reverse=True)[:100]
    assert all(record.encoding is not None and record.length is not None for record in one.big.by_memory)
    assert [(found.key, found.length) for found in one.big.by_length] == [
        (found.key, found.length) for found in other.big.by_length
    ]


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_a_registry_counts_the_keys_of_all_nodes(cluster: TestCluster) -> None:
    registry = read_registry('[[pattern]]\npattern = "user:<id>"\nplaceholders = { id = "int" }\ntype = "hash"\n')
    cluster.fill(b"user:%d" % number for number in range(900))
    report = await report_of(target_of(cluster.members[0].server), registry=registry)
    assert report.summary.registry is not None
    (entry,) = report.summary.registry.entries
    assert (entry.keys, [one.keys for one in entry.expectations]) == (900, [900])


@pytest.mark.slow
async def test_a_numbered_database_of_a_cluster_is_a_keyspace_of_its_own() -> None:
    with cluster_of(require("valkey-9.1"), "--cluster-databases", "16") as cluster:
        cluster.fill(b"first:%d" % number for number in range(300))
        for member in cluster.members:
            member.server.admin.execute_command("SELECT", 3)
        cluster.fill(b"third:%d" % number for number in range(200))
        report = await report_of(target_of(cluster.members[0].server, db=3))
    assert (report.head.coverage.kind, report.head.coverage.keys) == (CoverageKind.EXACT, 200)
    assert report.head.server.db == 3
    assert {one.name for one in report.summary.root.children} == {b"third"}
    assert report.cluster is not None
    assert sum(node.keys for node in report.cluster.nodes if isinstance(node.keys, int)) == 200


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_each_node_has_what_its_slots_hold(cluster: TestCluster) -> None:
    with cluster.client() as client:
        grown(client, keys=KEYS, seed=3)
    report = await report_of(target_of(cluster.members[0].server))
    assert report.cluster is not None
    assert report.cluster.uncovered == ()
    for node, primary in zip(report.cluster.nodes, cluster.members[:3], strict=True):
        known = facts(primary.server.admin).values()
        assert (node.id, node.slots, node.role) == (primary.id, (primary.slots,), "primary")
        assert node.label == f"{primary.server.host}:{primary.server.port}"
        assert (node.keys, node.memory_bytes) == (len(known), sum(one.memory_bytes for one in known))
        assert node.no_ttl_share == sum(one.ttl_ms < 0 for one in known) / len(known)
        assert (node.fraction, node.failure, node.version) == (1.0, "", ".".join(map(str, primary.server.version)))
        assert node.cost.commands > len(known)
    assert sum(node.cost.commands for node in report.cluster.nodes) <= report.head.cost.commands
    assert read_json(write_json(report)) == report


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_the_load_of_each_node_is_that_of_its_slots(cluster: TestCluster) -> None:
    for primary in cluster.primaries:
        primary.admin.config_set("cluster-slot-stats-enabled", "yes")
    try:
        cluster.fill(b"key:%d" % number for number in range(600))
        report = await report_of(target_of(cluster.members[0].server))
    finally:
        for primary in cluster.primaries:
            primary.admin.config_set("cluster-slot-stats-enabled", "no")
    assert report.cluster is not None
    assert [one.node for one in report.hot.nodes] == [node.label for node in report.cluster.nodes]
    assert all(one.cpu_us > 0 and one.at_least for one in report.hot.nodes)  # 200 keys in as many slots, 100 told


@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_slots_that_are_being_moved_are_named(cluster: TestCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTLE, 1.0)
    cluster.fill(b"key:%d" % number for number in range(600))
    source, target = cluster.members[0].server, cluster.members[1].server
    cluster.begin_moves([77], source, target)
    try:
        report = await report_of(target_of(target))
    finally:
        cluster.cancel_moves([77], source, target)
    assert report.cluster is not None
    labels = [f"{one.host}:{one.port}" for one in (source, target)]
    assert [(one.slot, one.node, one.to) for one in report.cluster.moving] == [(77, *labels)]
    assert read_json(write_json(report)).cluster == report.cluster


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_every_key_counts_once_though_slots_move_and_a_primary_dies(cluster: TestCluster) -> None:
    names = fill(cluster)
    async with analysing(target_of(cluster.members[1].server), pace=Pace.GENTLE) as analysis:
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= len(names) // 4)
        analysis.control.pause()
        await asyncio.to_thread(disturb, cluster, names)
        analysis.control.resume()
        await running
    report = analysis.report
    assert report is not None
    coverage, found = report.head.coverage, report.cluster
    assert (coverage.kind, coverage.reason) == (CoverageKind.EXACT, "")
    assert (coverage.keys, coverage.vanished, coverage.repeats_possible) == (len(names), 0, False)
    assert found is not None
    assert found.uncovered == ()
    held = {cluster.node_id(primary): primary.admin.dbsize() for primary in cluster.primaries}
    assert {node.id: node.keys for node in found.nodes} == held
    assert cluster.members[0].id not in held
    assert report.summary.slots.owned == ((0, 16383),)


@pytest.mark.slow
@pytest.mark.sampled("cluster", "replicas", one_in=4)
@pytest.mark.parametrize("replicas", ["prefer", "never"])
@pytest.mark.parametrize("cluster", ["redis-7.0", "redis-8.10"], indirect=True)
async def test_marks_of_moves_that_were_given_up_cost_no_slot(
    cluster: TestCluster, replicas: ReplicaPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.scan.cluster_scan.VIEW_EVERY_S", 0.2)
    names = fill(cluster)
    set_slots(cluster.members[1].server, range(40), "IMPORTING", cluster.members[0].id)
    report = await report_of(target_of(cluster.members[2].server, replicas=replicas))
    assert (report.head.coverage.kind, report.head.coverage.keys) == (CoverageKind.EXACT, len(names))


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_slots_that_lose_their_node_in_the_middle_are_named(
    cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTLE, 1.0)
    names = fill(cluster)
    lost = cluster.members[0]
    async with analysing(target_of(cluster.members[1].server), pace=Pace.GENTLE) as analysis:
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= len(names) // 4)
        for member in cluster.members:
            if lost.id in {member.id, member.primary_id}:
                member.server.stop()
        await running
    report = analysis.report
    assert report is not None
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    assert report.cluster is not None
    assert {one.node for one in report.cluster.uncovered} == {f"{lost.server.host}:{lost.server.port}"}
    uncovered = {
        slot for one in report.cluster.uncovered for first, last in one.slots for slot in range(first, last + 1)
    }
    elsewhere = sum(key_slot(name) not in uncovered for name in names)
    assert elsewhere <= report.head.coverage.keys < len(names)
    assert report.head.coverage.fraction == pytest.approx(report.head.coverage.keys / len(names), abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_a_cluster_that_is_down_is_said_to_be(cluster: TestCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody takes over from a node, the others answer no more questions about keys by default."""
    monkeypatch.setattr(SETTLE, 1.0)
    cluster.fill(b"key:%d" % number for number in range(600))
    for member in cluster.members[3:]:
        member.server.admin.config_set("cluster-replica-no-failover", "yes")
    lost, other, third, *_ = (member.server for member in cluster.members)
    lost.stop()
    await eventually(lambda: {one.admin.cluster("INFO")["cluster_state"] for one in (other, third)} == {"fail"})
    report = await report_of(target_of(other))
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    assert report.cluster is not None
    reasons = {one.node: one.reason for one in report.cluster.uncovered}
    assert set(reasons) == {f"127.0.0.1:{server.port}" for server in (lost, other, third)}
    assert all("cluster is down" in reasons[f"127.0.0.1:{server.port}"] for server in (other, third))


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-8.10", "valkey-9.1"], indirect=True)
async def test_a_part_of_the_keys_says_which_slots_are_listed(
    cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FIRST_REPORT_S", 0.02), ("REPORT_EVERY_S", 0.02), ("REPORT_SHARE", 1.0)):
        monkeypatch.setattr(f"rtui.server.analysis.run.{name}", value)
    names = [b"key:%d" % number for number in range(90_000)]  # of each node more than may be out of order, twice
    cluster.fill(names)
    held = Counter(map(key_slot, names))
    async with analysing(target_of(cluster.members[0].server), pace=Pace.GENTLE) as analysis:
        running_analysis = asyncio.create_task(analysis.run())
        for keys in range(6_000, len(names), 6_000):  # it waits for its reports, which a busy machine makes late
            await eventually(lambda keys=keys: analysis.progress.keys >= keys)  # type: ignore[misc]
            analysis.control.pause()
            await eventually(lambda keys=keys: reported(analysis) >= keys)  # type: ignore[misc]
            if analysis.report is not None and analysis.report.summary.slots.listed:
                break
            analysis.control.resume()
        analysis.control.stop(SafeText("That is enough"))
        await running_analysis
    report = analysis.report
    assert report is not None
    slots = report.summary.slots
    assert slots.listed is not None
    listed = set(each_slot(slots.listed))
    assert 0 < len(listed) < SLOTS
    assert all(slots.keys[slot] <= held[slot] for slot in range(SLOTS))
    assert not [slot for slot in listed if slots.keys[slot] != held[slot]]
    assert (await report_of(target_of(cluster.members[0].server))).summary.slots.listed is None


@pytest.mark.parametrize("cluster", ["redis-7.0"], indirect=True)
async def test_a_node_that_is_gone_is_named_with_its_slots_and_the_report_is_not_exact(
    cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTLE, 1.0)
    lost, *_ = cluster.members
    cluster.fill(b"key:%d" % number for number in range(600))
    held = lost.server.admin.dbsize()
    for member in cluster.members[3:]:  # nobody takes over its slots
        member.server.admin.config_set("cluster-replica-no-failover", "yes")
    lost.server.stop()
    report = await report_of(target_of(cluster.members[1].server))
    coverage, found = report.head.coverage, report.cluster
    assert coverage.kind is CoverageKind.PARTIAL
    assert coverage.keys == 600 - held
    assert coverage.reason.startswith(f"slots 0–5460 of {lost.server.host}:{lost.server.port} were not covered (")
    assert found is not None
    assert [(one.slots, one.node) for one in found.uncovered] == [(((0, 5460),), found.nodes[0].label)]
    assert found.nodes[0].keys is None
    assert report.summary.slots.listed == ((5461, 16_383),)


@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_nodes_whose_names_have_no_address_are_no_part_of_what_was_covered(
    cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTLE, 1.0)
    cluster.fill([b"key:%d" % number for number in range(600)])
    seed, *_ = cluster.primaries
    for at, member in enumerate(cluster.members):
        member.server.admin.config_set("cluster-announce-hostname", f"node{at}.invalid")
    seed.admin.config_set("cluster-preferred-endpoint-type", "hostname")
    names = {f"node{at}.invalid" for at in range(3)}
    await eventually(
        lambda: names <= set(re.findall(r"[\w.]+invalid", str(seed.admin.execute_command("CLUSTER NODES"))))
    )
    try:
        coverage = (await report_of(target_of(seed))).head.coverage
    finally:
        seed.admin.config_set("cluster-preferred-endpoint-type", "ip")
        for member in cluster.members:
            member.server.admin.config_set("cluster-announce-hostname", "")
    assert coverage.kind is CoverageKind.PARTIAL
    assert "No address is known for node1.invalid" in coverage.reason
    assert coverage.keys == seed.admin.dbsize() < 600
    assert coverage.fraction == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize("cluster", ["redis-7.0", "redis-8.10", "valkey-9.1"], indirect=True)
async def test_an_estimate_draws_from_every_node_by_its_size(cluster: TestCluster) -> None:
    """Two thirds of the keys have one hash tag, so that one node has most of them."""
    truth = {b"cart": 4_000, b"page": 2_000}
    cluster.fill(b"cart:{tag}:%d" % number for number in range(truth[b"cart"]))
    cluster.fill(b"page:%d" % number for number in range(truth[b"page"]))
    report = await report_of(target_of(cluster.members[2].server), estimate_keys=1_200)
    coverage = report.head.coverage
    assert coverage.kind is CoverageKind.ESTIMATE
    assert 900 < coverage.keys <= 1_250  # random places overlap
    assert coverage.total_keys == 6_000
    for node in report.summary.root.children:
        assert isinstance(node.stats.keys, Estimate)
        assert node.stats.keys.value == pytest.approx(truth[node.name], rel=0.15)
        interval = node.stats.keys.high - node.stats.keys.low  # which lacks the truth one time in twenty
        assert abs(node.stats.keys.value - truth[node.name]) < 1.5 * interval
    is_slotted = cluster.members[0].server.binary.name != "redis-7.0"
    assert (SLOT_BY_SLOT in report.head.notes) is is_slotted


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-8.10"], indirect=True)
async def test_intervals_hold_the_truth_where_hash_tags_load_slots(cluster: TestCluster) -> None:
    with cluster.client() as client:
        grown(client, keys=8_000, seed=5)
    exact = await report_of(target_of(cluster.members[0].server))
    truth = {path[-1].name: path[-1].stats for path in exact.summary.root.walk() if len(path) == 2}
    held = asked = 0
    for _ in range(examples(50)):
        report = await report_of(target_of(cluster.members[0].server), estimate_keys=1_000)
        for node in report.summary.root.children:
            known = truth.get(node.name)
            if known is not None and isinstance(node.stats.keys, Estimate) and isinstance(known.keys, int):
                asked += 1
                held += known.keys in node.stats.keys
    assert held >= 0.9 * asked
