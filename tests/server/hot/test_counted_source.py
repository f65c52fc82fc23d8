"""Hot keys by what was inspected and by HOTKEYS GET, and the loads of slots."""

from __future__ import annotations

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.report.document import HotReport, HotSource, KeyRecord, Node, NodeKind, Stats, Summary
from rtui.keyspace.slots import key_slot
from rtui.server.guard.command import Secret
from rtui.server.guard.evidence import SlotMetric
from rtui.server.hot.hotkeys import MAX_LISTED_KEYS, NAME_BYTES, HotSession, WindowKey, parse_hotkeys
from rtui.server.hot.report import (
    ASSUMED,
    KEYS_ONLY,
    NO_RATE,
    READS_COUNT,
    counted_source,
    parse_slot_loads,
    slot_loads,
)
from rtui.server.wire.capability import Capabilities, Feature, Querier
from rtui.server.wire.errors import Reply, ServerError, as_resp2
from rtui.server.wire.own_reads import OwnReads
from tests.server.targets import connected, raw, target_of
from tests.servers import Server

KNOWN = LfuSettings(10, 1, assumed=False)


def source_of(
    *records: KeyRecord,
    lfu: LfuSettings = KNOWN,
    is_lfu_policy: bool | None = True,
    basis: IdleBasis = IdleBasis.ACCESS,
    capabilities: Capabilities | None = None,
    own_reads: OwnReads | None = None,
) -> HotReport:
    return counted_source(
        summary_of(*records),
        capabilities or Capabilities(),
        lfu=lfu,
        is_lfu_policy=is_lfu_policy,
        basis=basis,
        now_s=ASKED_AT_S + 7,
        own_reads=own_reads,
    )


def test_counters_become_accesses_a_minute() -> None:
    found = source_of(counted(b"cool", 5), counted(b"warm", 105), lfu=LfuSettings(10, 2, assumed=False))
    (hot,) = found.lists
    assert found.source is HotSource.FREQUENCY
    assert hot.unit == "accesses/min"
    assert [(one.record.key, one.value) for one in hot.keys] == [(b"warm", 500.5), (b"cool", 0.5)]
    assert found.age_s == 7
    assert not found.better


def test_the_top_of_the_counter_is_a_lower_bound_without_ranks() -> None:
    (hot,) = source_of(counted(b"z", 255), counted(b"a", 255), counted(b"b", 254)).lists
    assert [(one.record.key, one.value, one.at_least) for one in hot.keys] == [
        *((b"a", 2501.0, True), (b"z", 2501.0, True), (b"b", 2491.0, False))
    ]


def test_defaults_are_called_so() -> None:
    assert source_of(counted(b"a", 9), lfu=LfuSettings()).better == (ASSUMED,)


def test_a_counter_that_never_falls_is_no_rate() -> None:
    found = source_of(counted(b"a", 9), counted(b"b", 255), lfu=LfuSettings(10, 0, assumed=False))
    (hot,) = found.lists
    assert hot.unit == "LFU counter"
    assert [one.value for one in hot.keys] == [255.0, 9.0]
    assert found.better == (NO_RATE,)


def test_idle_times_where_there_are_no_counters() -> None:
    found = source_of(idle(b"late", 90), idle(b"now", 0), is_lfu_policy=False)
    (hot,) = found.lists
    assert found.source is HotSource.IDLE
    assert [(one.record.key, one.value) for one in hot.keys] == [(b"now", 0.0), (b"late", 90.0)]
    assert "last use" in found.about
    assert "LFU" in found.better[0]


def test_keys_whose_last_use_was_rtuis_own_do_not_lead_the_list() -> None:
    own_reads = OwnReads()
    own_reads.add(b"old", ASKED_AT_S - 1, used_s=ASKED_AT_S - 10_000)
    own_reads.add(b"unknown", ASKED_AT_S - 1)
    own_reads.add(b"used since", ASKED_AT_S - 30, used_s=ASKED_AT_S - 10_000)
    records = (idle(b"old", 1), idle(b"unknown", 0), idle(b"used since", 5), idle(b"late", 90))
    found = source_of(*records, is_lfu_policy=False, own_reads=own_reads)
    assert [(one.record.key, one.value) for one in found.lists[0].keys] == [(b"used since", 5.0), (b"late", 90.0)]
    assert any(text.startswith("2 keys are excluded: last accessed by rtui") for text in found.better)


def test_under_a_policy_that_counts_writes_reads_change_nothing() -> None:
    own_reads = OwnReads()
    own_reads.add(b"a", ASKED_AT_S - 1, used_s=ASKED_AT_S - 60)
    found = source_of(idle(b"a", 1), is_lfu_policy=False, basis=IdleBasis.WRITE, own_reads=own_reads)
    assert [one.value for one in found.lists[0].keys] == [1.0]
    assert READS_COUNT not in found.better


def test_idle_times_that_count_writes() -> None:
    assert "last write" in source_of(idle(b"a", 1), is_lfu_policy=False, basis=IdleBasis.WRITE).about


def test_a_policy_that_nobody_knows_goes_by_what_was_found() -> None:
    assert source_of(counted(b"a", 9), is_lfu_policy=None).source is HotSource.FREQUENCY
    assert source_of(idle(b"a", 9), is_lfu_policy=None).source is HotSource.IDLE


def test_nothing_is_said_with_the_reason() -> None:
    capabilities = Capabilities()
    capabilities.record(Feature.OBJECT_IDLETIME, ServerError("NOPERM this user has no permissions to run it"))
    found = source_of(KeyRecord(b"a"), capabilities=capabilities)
    assert not found.lists
    assert "OBJECT IDLETIME" in found.better[0]
    assert source_of().better


@given(st.lists(st.tuples(st.binary(max_size=4), st.integers(0, 255)), max_size=20), st.integers(0, 100))
def test_hotter_is_never_below(found: list[tuple[bytes, int]], factor: int) -> None:
    source = source_of(*(counted(key, counter) for key, counter in found), lfu=LfuSettings(factor, 1, assumed=False))
    for one in source.lists:
        values = [hot.value for hot in one.keys]
        assert values == sorted(values, reverse=True)
        assert len(values) == len(found)


WINDOW = (
    b"*2\r\n*6\r\n$3\r\nkey\r\n$14\r\nproduct:8fd21a\r\n$2\r\ndb\r\n:0\r\n$3\r\nqps\r\n:48200\r\n"
    b"*6\r\n$3\r\nkey\r\n$14\r\nsession:2c1f09\r\n$2\r\ndb\r\n:3\r\n$3\r\nqps\r\n:12700\r\n"
)
"""What Valkey 9.2 is documented to send under protocol 2."""

WINDOW_3 = WINDOW.replace(b"*6", b"%3")
"""The same under protocol 3."""

MAP: dict[Reply, Reply] = {
    b"tracking-active": 0,
    b"sample-ratio": 10,
    b"selected-slots": [[0, 16383]],
    b"collection-start-time-unix-ms": 1_790_000_000_500,
    b"collection-duration-ms": 60_000,
    b"by-cpu-time-us": [b"a", 6, b"\x1b[31m\xff", 16],
    b"by-net-bytes": [b"a", 90_870],
}
"""What Redis 8.6 and 8.10 send under protocol 3."""

REPLIES = st.recursive(
    st.none() | st.integers() | st.binary(max_size=9) | st.sampled_from([*MAP, b"key", b"db", b"qps"]),
    lambda inner: st.lists(inner, max_size=8),
    max_leaves=30,
)


def sent(packed: bytes) -> Reply:
    reader = hiredis.Reader()
    reader.feed(packed)
    reply: Reply = reader.gets()
    return as_resp2("HOTKEYS GET", reply)


@pytest.mark.parametrize("packed", [WINDOW, WINDOW_3], ids=["protocol 2", "protocol 3"])
def test_a_window_of_valkey(packed: bytes) -> None:
    assert parse_hotkeys(sent(packed)) == (
        WindowKey(b"product:8fd21a", 0, 48_200),
        WindowKey(b"session:2c1f09", 3, 12_700),
    )


def test_a_window_without_keys_and_no_session() -> None:
    assert parse_hotkeys([]) == ()
    assert parse_hotkeys(None) is None


def test_a_session_of_redis() -> None:
    found = parse_hotkeys(as_resp2("HOTKEYS GET", [MAP]))
    assert found == HotSession(
        is_active=False,
        sample_ratio=10,
        started_s=1_790_000_000.5,
        lasted_s=60.0,
        slots=16_384,
        measured={SlotMetric.CPU: ((b"\x1b[31m\xff", 16), (b"a", 6)), SlotMetric.NET: ((b"a", 90_870),)},
    )


@pytest.mark.parametrize(
    ("slots", "count"), [([], 16_384), ([[0, 99]], 100), ([5, [7, 8]], 3), ([[9]], 1), (None, 16_384), ([b"x"], 16_384)]
)
def test_slots_that_were_chosen(slots: Reply, count: int) -> None:
    found = parse_hotkeys([[b"tracking-active", 1, b"selected-slots", slots]])
    assert isinstance(found, HotSession)
    assert found.slots == count
    assert found.is_active


def test_long_lists_are_cut() -> None:
    flat: list[Reply] = [part for index in range(MAX_LISTED_KEYS + 5) for part in (b"%d" % index, index)]
    found = parse_hotkeys([[b"tracking-active", 1, b"by-cpu-time-us", flat]])
    assert isinstance(found, HotSession)
    assert len(found.measured[SlotMetric.CPU]) == MAX_LISTED_KEYS


@pytest.mark.parametrize("size", [1 << 16, 1 << 20])
def test_lists_of_long_names_end_with_the_hottest(size: int) -> None:
    count = 2 * NAME_BYTES // size
    names = [b"%0*d" % (size, index) for index in range(count)]
    flat: list[Reply] = [part for index, name in enumerate(names) for part in (name, index)]
    session = parse_hotkeys([[b"tracking-active", 1, b"by-cpu-time-us", flat]])
    window = parse_hotkeys([[b"key", name, b"db", 0, b"qps", index] for index, name in enumerate(names)])
    assert isinstance(session, HotSession)
    assert isinstance(window, tuple)
    hottest = names[: -NAME_BYTES // size - 1 : -1]
    assert [key for key, _ in session.measured[SlotMetric.CPU]] == hottest
    assert [one.key for one in window] == hottest
    assert sum(map(len, hottest)) == NAME_BYTES


@given(REPLIES)
def test_any_reply_is_read_without_an_error(reply: Reply) -> None:
    found = parse_hotkeys(reply)
    if isinstance(found, HotSession):
        assert found.sample_ratio >= 1
        assert all(value >= 0 for keys in found.measured.values() for _, value in keys)


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


SLOT_REPLIES = st.recursive(
    st.none() | st.integers() | st.sampled_from([b"key-count", b"cpu-usec", b"\x1b[31m"]),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=30,
)


@given(SLOT_REPLIES)
def test_any_reply_about_slots_is_read_without_an_error(reply: Reply) -> None:
    assert all(0 <= load.slot < 16_384 for load in parse_slot_loads(reply))


def test_only_known_metrics_and_slots_with_load() -> None:
    reply: Reply = [[1, [b"key-count", 2, b"\x1b[31m", 3]], [2, [b"key-count", 0]], [70_000, [b"key-count", 1]]]
    assert [(load.slot, load.values) for load in parse_slot_loads(reply)] == [(1, {"key-count": 2})]


GOES_ON = {b"total-cpu-time-user-ms", b"total-cpu-time-sys-ms"}
"""What the server counts on after a session has ended."""


def session_of(server: Server) -> dict[bytes, object]:
    """The reply to HOTKEYS GET as a map, without what goes on in any case."""
    (found,) = raw(server, "HOTKEYS", "GET")
    fields = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
    return {name: value for name, value in fields.items() if name not in GOES_ON}


ASKED_AT_S = 1_790_000_000.0


def summary_of(*hottest: KeyRecord) -> Summary:
    """A summary with nothing but its hottest keys."""
    root = Node(b"", b"", NodeKind.LITERAL, Stats(keys=len(hottest), share_keys=1.0))
    return Summary(root=root, hottest=hottest)


def counted(key: bytes, counter: int) -> KeyRecord:
    return KeyRecord(key, frequency=counter, asked_at_s=ASKED_AT_S)


def idle(key: bytes, seconds: int) -> KeyRecord:
    return KeyRecord(key, idle_s=seconds, asked_at_s=ASKED_AT_S)
