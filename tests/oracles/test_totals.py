"""Counts, sums and quantiles of a report, beside a brute-force count of the same keys."""

from __future__ import annotations

from collections import Counter
from math import ceil

import pytest

from rtui.analysis.columns import EVERYTHING
from rtui.analysis.report.document import ColumnState, CoverageKind, Quantiles, Stats
from tests.oracles.counted import Total, by_namespace, by_type, facts, report_on
from tests.oracles.keyspaces import Path, grown
from tests.server import every_type
from tests.server.targets import target_of
from tests.servers import Server

KEYS = 1_500


def zoo_path(key: bytes) -> Path:
    """Where one of the keys belongs that stand for every type: all are names."""
    *above, last = key.split(b":")
    return (*((name, b":") for name in above), (last, b""))


async def test_every_namespace_at_every_level_and_every_type(server: Server) -> None:
    client = server.client()
    paths = {key: one.path for key, one in grown(client, keys=KEYS, seed=server.version[0]).items()}
    paths |= {key: zoo_path(key) for key in every_type.fill(server, client) if key not in paths}
    for key in every_type.UNSTEADY_MEMORY & paths.keys():
        client.unlink(key)
    report = await report_on(target_of(server), columns=EVERYTHING)
    found = facts(client)
    coverage, summary = report.head.coverage, report.summary
    assert (coverage.kind, coverage.keys, coverage.vanished) == (CoverageKind.EXACT, len(found), 0)
    namespaces = by_namespace(found.values(), paths)
    nodes = {tuple((node.name, node.separator) for node in path[1:]): path[-1] for path in summary.root.walk()}
    assert nodes.keys() == namespaces.keys()
    for path, total in namespaces.items():
        agrees(nodes[path].stats, total, whole=namespaces[()])
    types = by_type(found.values())
    assert {one.name: one.stats.keys for one in summary.types} == {kind: one.keys for kind, one in types.items()}
    has_lengths = every_type.has_no_touch(server)
    assert (report.head.columns["length"].state is ColumnState.COMPLETE) is has_lengths
    for one in summary.types:
        agrees(one.stats, types[one.name], whole=namespaces[()])
        assert (one.length is not None) is has_lengths
        if one.length is not None:
            is_near(one.length, types[one.name].lengths)
    encodings = {(one.key_type, one.encoding): one.keys for one in summary.encodings}
    for pair, keys in encodings.items():
        assert keys == sum((one.kind, one.encoding) == pair for one in found.values())
    assert sum(one for one in encodings.values() if isinstance(one, int)) == len(found)


def agrees(stats: Stats, total: Total, *, whole: Total) -> None:
    """Hold the figures of a namespace or type against the count."""
    assert stats.keys == total.keys
    assert stats.memory_bytes == total.memory_bytes
    assert stats.memory_known_keys == total.keys
    assert stats.no_ttl_keys == total.no_ttl_keys
    assert stats.no_ttl_memory_bytes == total.no_ttl_memory_bytes
    assert stats.no_ttl_share == pytest.approx(total.no_ttl_keys / total.keys)
    assert stats.share_keys == pytest.approx(total.keys / whole.keys)
    assert stats.share_memory == pytest.approx(total.memory_bytes / whole.memory_bytes)
    assert stats.ttl is None or list(stats.ttl) == total.ttl
    assert stats.ttl is not None or not sum(total.ttl)
    assert dict(stats.types) == total.types
    assert stats.idle is not None
    assert sum(count for count in stats.idle if isinstance(count, int)) == total.keys
    assert stats.memory is not None
    is_near(stats.memory, total.sizes)


def is_near(quantiles: Quantiles, sizes: list[int]) -> None:
    """Hold quantiles against the exact ones: within the error that they state, the largest and the mean without any."""
    ordered = sorted(sizes)
    assert quantiles.max == ordered[-1]
    assert quantiles.mean == pytest.approx(sum(sizes) / len(sizes))
    for share, said in ((0.5, quantiles.p50), (0.9, quantiles.p90), (0.99, quantiles.p99)):
        exact = ordered[ceil(share * len(ordered)) - 1]
        assert said == pytest.approx(exact, rel=quantiles.error), (share, ordered)


async def test_on_a_cluster_node(cluster_node: Server) -> None:
    client = cluster_node.client()
    keys = list(grown(client, keys=KEYS, seed=9))
    report = await report_on(target_of(cluster_node))
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.execute_command("CLUSTER", "KEYSLOT", key)
    slot_of = dict(zip(keys, pipeline.execute(), strict=True))
    slots = report.summary.slots
    assert {slot: count for slot, count in enumerate(slots.keys) if count} == Counter(slot_of.values())
    for slot in range(16384):
        pipeline.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot)
    assert list(slots.keys) == pipeline.execute()
    assert slots.owned == ((0, 16383),)
    sizes: Counter[int] = Counter()
    for key, fact in facts(client).items():
        sizes[slot_of[key]] += fact.memory_bytes
    assert slots.memory_bytes is not None
    assert {slot: count for slot, count in enumerate(slots.memory_bytes) if count} == sizes


async def test_hash_tags_are_those_of_the_keys(valkey: Server) -> None:
    client = valkey.client()
    pipeline = client.pipeline(transaction=False)
    for number in range(600):
        pipeline.set(b"{cart:%d}:item:%d" % (number % 3, number), b"v" * 50)
        pipeline.set(b"plain:%d" % number, b"v")
    pipeline.execute()
    report = await report_on(target_of(valkey))
    tags = {one.tag: one for one in report.summary.slots.tags}
    sizes = {key: fact.memory_bytes for key, fact in facts(client).items()}
    for number in range(3):
        mine = [size for key, size in sizes.items() if key.startswith(b"{cart:%d}" % number)]
        tag = tags[b"cart:%d" % number]
        assert (tag.keys, tag.memory_bytes) == (200, sum(mine))
    assert report.summary.slots.owned is None
