"""Samples of cluster nodes whose cursors go slot by slot."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.slots import key_slot
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import SlotSample, sample_slots, wanted_keys
from tests.server.targets import connected, target_of
from tests.servers import Server


@given(st.lists(st.integers(0, 10_000), max_size=60), st.integers(1, 500), st.integers(0, 2**32))
def test_every_slot_gives_its_part(sizes: list[int], keys: int, seed: int) -> None:
    wanted = wanted_keys(enumerate(sizes), keys, Random(seed))
    total = sum(sizes)
    most = {one.slot: one.most for one in wanted}
    for slot, size in enumerate(sizes):
        part = size * min(1.0, keys / total) if total else 0.0
        assert part - 1 < most.get(slot, 0) < part + 1
        assert most.get(slot, 0) <= size
    assert abs(sum(most.values()) - min(keys, total)) <= 1


async def drawn(server: Server, keys: int, seed: int) -> tuple[list[bytes], SlotSample]:
    found: list[bytes] = []
    async with connected(target_of(server)) as connection:
        taken = await sample_slots(
            *(await connection.bulk(), ((0, 16_383),), RunControl(Pace.FULL)),
            keys=keys,
            on_keys=found.extend,
            on_wait=lambda reason: None,
            rng=Random(seed),
        )
    return found, taken


@pytest.mark.parametrize("keys", [900, 2_500, 6_000, 8_900])
async def test_a_heavy_slot_gives_as_many_as_it_has(cluster_node: Server, keys: int) -> None:
    """One hash tag has a third of the keys; random cursors would hardly ever meet its slot."""
    tagged = [b"{cart}:%d" % number for number in range(3_000)]
    others = [b"page:%d" % number for number in range(6_000)]
    pipeline = cluster_node.client().pipeline(transaction=False)
    for name in (*tagged, *others):
        pipeline.set(name, b"x")
    pipeline.execute()
    found, taken = await drawn(cluster_node, keys, 7)
    assert taken.failure is None
    assert taken.total == 9_000
    assert len(found) == len(set(found))
    assert set(found) <= {*tagged, *others}
    assert abs(len(found) - keys) <= 1
    by_slot = Counter(map(key_slot, found))
    assert by_slot[key_slot(b"{cart}")] == pytest.approx(keys / 3, abs=2)


async def test_what_is_denied_is_said(cluster_node: Server) -> None:
    cluster_node.client().set(b"a", b"x")
    cluster_node.admin.execute_command("ACL SETUSER default -cluster|countkeysinslot")
    try:
        found, taken = await drawn(cluster_node, 10, 1)
    finally:
        cluster_node.admin.execute_command("ACL SETUSER default +@all")
    assert found == []
    assert taken.failure is not None
    assert "CLUSTER COUNTKEYSINSLOT" in taken.failure.happened
