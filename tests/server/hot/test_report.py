"""The report on real servers: the best source, what is missing, and nothing changed."""

from __future__ import annotations

import time
from typing import Any

from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.report.document import HotReport, HotSource, Summary
from rtui.keyspace.text.display import HOSTILE
from rtui.server.facts.first_answers import REPLICA_NOTE
from rtui.server.guard.command import Secret
from rtui.server.hot.hotkeys import HOTKEYS, SINCE
from rtui.server.hot.report import READS_COUNT, hot_report
from rtui.server.wire.capability import Capabilities, Verdict
from tests.proxy import DelayProxy
from tests.server.every_type import has_no_touch
from tests.server.hot.sessions import counted, idle, session_of, summary_of
from tests.server.raw_commands import raw
from tests.server.targets import connected, target_of
from tests.servers import Server

NASTY = b"\x1b[31m\xff[bold]\r\n"
IDLE = summary_of(idle(b"idle", 3))
SESSION_S = 3600


async def report_of(
    server: Server, summary: Summary = IDLE, *, capabilities: Capabilities | None = None, **login: Any
) -> HotReport:
    async with connected(target_of(server, **login)) as connection:
        return await hot_report(
            connection,
            Capabilities() if capabilities is None else capabilities,
            summary,
            lfu=LfuSettings(assumed=False),
            now_s=time.time(),
            looked_since_s=min((record.asked_at_s for record in summary.hottest), default=None),
        )


def begin(server: Server, *more: str) -> None:
    """Let another operator begin a session."""
    reply = raw(server, *f"HOTKEYS START METRICS 2 CPU NET DURATION {SESSION_S}".split(" "), *more)
    assert reply in (b"OK", "OK"), reply


def use(server: Server) -> None:
    for _ in range(20):
        server.admin.set(NASTY, "x" * 5000)
    server.admin.set("quiet", "x")


async def test_without_a_session_the_idle_times_and_what_would_be_better(server: Server) -> None:
    capabilities = Capabilities()
    found = await report_of(server, capabilities=capabilities)
    assert found.source is HotSource.IDLE
    assert [hot.record.key for hot in found.lists[0].keys] == [b"idle"]
    told, policy, *own_reads = found.better
    assert own_reads == ([] if has_no_touch(server) else [READS_COUNT])
    has_report = server.version >= SINCE[server.product]
    assert ("HOTKEYS START" in told) == has_report
    assert ("has no hot-key report" in told) != has_report
    assert "allkeys-lfu" in policy
    assert capabilities[HOTKEYS].verdict is (Verdict.YES if has_report else Verdict.UNTRIED)
    assert found.lfu is None
    assert found.idle_basis is IdleBasis.ACCESS


async def test_access_counters(lfu_server: Server) -> None:
    found = await report_of(lfu_server, summary_of(counted(b"hot", 255), counted(b"warm", 20)))
    assert found.source is HotSource.FREQUENCY
    assert found.lfu == LfuSettings(assumed=False)
    assert [hot.at_least for hot in found.lists[0].keys] == [True, False]


async def test_a_session_that_runs(session_server: Server) -> None:
    begin(session_server)
    use(session_server)
    found = await report_of(session_server)
    assert found.source is HotSource.SERVER
    assert found.age_s == 0.0
    assert "a session that runs" in found.about
    assert "commands of rtui during the session are included" in found.about
    cpu, traffic, last_use = found.lists
    assert (cpu.unit, traffic.unit, last_use.unit) == ("µs of CPU", "bytes of network traffic", "seconds idle")
    assert traffic.keys[0].record.key == NASTY
    assert traffic.keys[0].value >= 20 * 5000
    assert traffic.keys[-1].record.key == b"quiet"


async def test_a_session_that_has_ended(session_server: Server) -> None:
    begin(session_server, "SAMPLE", "1")
    use(session_server)
    raw(session_server, "HOTKEYS", "STOP")
    found = await report_of(session_server, summary_of())
    assert found.source is HotSource.SERVER
    assert found.age_s is not None
    assert 0 <= found.age_s < 60
    assert found.about.startswith("a session of ")
    assert "meanwhile" not in found.about


async def test_what_was_sampled_is_multiplied(session_server: Server) -> None:
    begin(session_server, "SAMPLE", "2")
    for _ in range(2000):
        session_server.admin.set("key", "x" * 1000)
    found = await report_of(session_server)
    assert "1 command in 2 measured and multiplied" in found.about
    assert 1_800_000 < found.lists[1].keys[0].value < 2_400_000


async def test_a_session_without_keys_gives_way(session_server: Server) -> None:
    begin(session_server)
    found = await report_of(session_server)
    assert found.source is HotSource.IDLE
    assert "has measured no key" in found.better[0]


async def test_the_session_of_another_operator_is_left_as_it_is(session_server: Server) -> None:
    begin(session_server)
    use(session_server)
    raw(session_server, "HOTKEYS", "STOP")
    before = session_of(session_server)
    async with DelayProxy(session_server.port) as proxy:
        await report_of(session_server, port=proxy.port)
        asked = [line for line in proxy.commands() if line[0] in (b"HOTKEYS", b"CONFIG", b"CLUSTER")]
    assert session_of(session_server) == before
    assert asked == [[b"HOTKEYS", b"GET"]]


async def test_hostile_names_stay_bytes_and_every_text_is_safe(session_server: Server) -> None:
    begin(session_server)
    use(session_server)
    found = await report_of(session_server)
    texts = [found.about, *found.better, *(text for one in found.lists for text in (one.title, one.unit))]
    assert not any(HOSTILE.search(text) for text in texts)


async def test_denied(session_server: Server) -> None:
    begin(session_server)
    use(session_server)
    raw(session_server, "ACL", "SETUSER", "few", "on", ">word", "~*", "+@all", "-hotkeys")
    capabilities = Capabilities()
    login: dict[str, Any] = {"user": "few", "password": Secret("word")}
    found = await report_of(session_server, capabilities=capabilities, **login)
    again = await report_of(session_server, capabilities=capabilities, **login)
    assert found.source is again.source is HotSource.IDLE
    assert "+hotkeys|get" in found.better[0]
    assert found.better == again.better
    (refusal,) = session_server.admin.acl_log()
    assert refusal["count"] == 1


async def test_nothing_is_known(valkey: Server) -> None:
    found = await report_of(valkey, summary_of())
    assert found.source is HotSource.NONE
    assert not found.lists
    assert found.about
    assert found.better


async def test_slots_of_a_cluster(cluster_node: Server) -> None:
    cluster_node.admin.set("key", "x")
    found = await report_of(cluster_node)
    assert len(found.slots) == 1
    assert "cluster-slot-stats-enabled" in found.better[-1]


async def test_a_replica_says_so(valkey: Server, redis70: Server) -> None:
    redis70.admin.replicaof("127.0.0.1", 1)
    try:
        found = await report_of(redis70)
    finally:
        redis70.admin.replicaof("NO", "ONE")
    assert REPLICA_NOTE in found.about
    assert REPLICA_NOTE not in (await report_of(valkey)).about
