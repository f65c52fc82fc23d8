"""Slots of a report, beside what the server says of each key and of each slot."""

from __future__ import annotations

from collections import Counter

from tests.oracles.analysed import report_on
from tests.oracles.counted import facts
from tests.oracles.keyspaces import grown
from tests.server.targets import target_of
from tests.servers import Server

KEYS = 1_500


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
