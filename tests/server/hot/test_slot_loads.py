"""What a node counts of its slots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.slots import key_slot
from rtui.server.guard.command import Secret
from rtui.server.hot.report import KEYS_ONLY, parse_slot_loads, slot_loads
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.errors import Reply
from tests.server.targets import connected, target_of
from tests.servers import Server


async def test_keys_where_nothing_else_is_counted(cluster_node: Server) -> None:
    cluster_node.admin.set("key", "x")
    async with connected(target_of(cluster_node)) as connection:
        slots, missing = await slot_loads(Querier(connection, Capabilities()))
    assert [(load.slot, load.values) for load in slots] == [(key_slot(b"key"), {"key-count": 1})]
    assert missing == (KEYS_ONLY,)


async def test_time_and_traffic_where_they_are_counted(cluster_node: Server) -> None:
    admin = cluster_node.admin
    admin.config_set("cluster-slot-stats-enabled", "yes")
    for _ in range(50):
        admin.set("hot", "x" * 1000)
    admin.get("cold")
    async with connected(target_of(cluster_node)) as connection:
        slots, missing = await slot_loads(Querier(connection, Capabilities()))
    assert not missing
    assert slots[0].slot == key_slot(b"hot")
    assert slots[0].values["cpu-usec"] > 0
    assert slots[0].values["network-bytes-in"] > 50_000


async def test_outside_a_cluster_nothing_is_asked(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        capabilities = Capabilities()
        assert await slot_loads(Querier(connection, capabilities)) == ((), ())
        assert capabilities.allows("CLUSTER SLOT-STATS")


async def test_denied(cluster_node: Server) -> None:
    cluster_node.admin.acl_setuser("few", enabled=True, passwords=["+word"], keys=["*"], commands=["+@all"])
    cluster_node.admin.execute_command("ACL", "SETUSER", "few", "-cluster|slot-stats")
    async with connected(target_of(cluster_node, user="few", password=Secret("word"))) as connection:
        slots, missing = await slot_loads(Querier(connection, Capabilities()))
    assert slots == ()
    assert "NOPERM" in missing[0]
    assert cluster_node.admin.acl_log()[0]["count"] == 1


REPLIES = st.recursive(
    st.none() | st.integers() | st.sampled_from([b"key-count", b"cpu-usec", b"\x1b[31m"]),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=30,
)


@given(REPLIES)
def test_any_reply_is_read_without_an_error(reply: Reply) -> None:
    assert all(0 <= load.slot < 16_384 for load in parse_slot_loads(reply))


def test_only_known_metrics_and_slots_with_load() -> None:
    reply: Reply = [[1, [b"key-count", 2, b"\x1b[31m", 3]], [2, [b"key-count", 0]], [70_000, [b"key-count", 1]]]
    assert [(load.slot, load.values) for load in parse_slot_loads(reply)] == [(1, {"key-count": 2})]
