"""Hot-key sessions, started with consent only, and the report on real servers."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.report.document import HotReport, HotSource, Summary
from rtui.keyspace.text.display import HOSTILE
from rtui.server.facts.first_answers import REPLICA_NOTE
from rtui.server.guard.command import Command, GuardError, Secret
from rtui.server.guard.evidence import Consent, SlotMetric
from rtui.server.hot.hotkeys import HOTKEYS, SINCE, SessionError, SessionRefusedError, server_source, start_session
from rtui.server.hot.report import READS_COUNT, hot_report
from rtui.server.wire.capability import Capabilities, Querier, Verdict
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.own_reads import OwnReads
from tests.proxy import DelayProxy
from tests.server.every_type import has_no_touch
from tests.server.hot.test_counted_source import counted, idle, session_of, summary_of
from tests.server.targets import connected, raw, target_of
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


CONSENT = Consent(duration_s=60, sample_ratio=100)
TAKES_ALL = Consent(duration_s=60, sample_ratio=100, discards_result=True)


async def start(server: Server, consent: Consent = CONSENT, **changes: object) -> None:
    async with connected(target_of(server, **changes)) as connection:
        await start_session(connection, consent)


def begin_session(server: Server, seconds: int = 3600) -> None:
    """Let another operator begin a session, with a key in it."""
    reply = raw(server, *f"HOTKEYS START METRICS 1 NET DURATION {seconds}".split(" "))
    assert reply in (b"OK", "OK"), reply
    server.admin.set("theirs", "x")


async def test_a_session_as_agreed(session_server: Server) -> None:
    async with DelayProxy(session_server.port) as proxy:
        await start(session_server, Consent(30, 50, (SlotMetric.NET,), count=5), port=proxy.port)
        sent = [b" ".join(line) for line in proxy.commands() if line[0] == b"HOTKEYS"]
    assert sent == [b"HOTKEYS GET", b"HOTKEYS START METRICS 1 NET COUNT 5 DURATION 30 SAMPLE 50"]
    found = session_of(session_server)
    assert found[b"tracking-active"] == 1
    assert found[b"sample-ratio"] == 50
    assert b"by-net-bytes" in found
    assert b"by-cpu-time-us" not in found


async def test_a_session_that_runs_is_left_alone(session_server: Server) -> None:
    begin_session(session_server)
    before = session_of(session_server)
    for consent in (CONSENT, TAKES_ALL):
        with pytest.raises(SessionRefusedError) as caught:
            await start(session_server, consent)
        assert "runs" in caught.value.happened
        assert caught.value.remedy
    after = session_of(session_server)
    assert after[b"tracking-active"] == 1
    for name in (b"sample-ratio", b"collection-start-time-unix-ms", b"by-net-bytes"):
        assert after[name] == before[name]


async def test_a_result_is_kept_unless_it_is_given_up(session_server: Server) -> None:
    begin_session(session_server)
    raw(session_server, "HOTKEYS", "STOP")
    before = session_of(session_server)
    with pytest.raises(SessionRefusedError, match="one result"):
        await start(session_server)
    assert session_of(session_server) == before
    await start(session_server, TAKES_ALL)
    assert session_of(session_server)[b"tracking-active"] == 1


async def test_a_consent_beyond_the_bounds_sends_nothing(session_server: Server) -> None:
    async with DelayProxy(session_server.port) as proxy:
        with pytest.raises(GuardError):
            await start(session_server, Consent(60, 1), port=proxy.port)
        assert not [line for line in proxy.commands() if line[0] == b"HOTKEYS"]
    assert raw(session_server, "HOTKEYS", "GET") is None


@pytest.mark.parametrize("rule", ["get", "start"])
async def test_a_denied_session(session_server: Server, rule: str) -> None:
    raw(session_server, "ACL", "SETUSER", "few", "on", ">word", "~*", "+@all", f"-hotkeys|{rule}")
    with pytest.raises(SessionError) as caught:
        await start(session_server, user="few", password=Secret("word"))
    assert f"+hotkeys|{rule}" in caught.value.remedy
    assert raw(session_server, "HOTKEYS", "GET") is None


async def test_servers_without_sessions(server: Server) -> None:
    if server.product == "redis" and server.version >= (8, 6):
        await start(server)
        return
    with pytest.raises(SessionError) as caught:
        await start(server)
    assert caught.value.happened


WINDOW: Reply = [[b"key", b"\x1b[31m", b"db", 3, b"qps", 48_200], [b"key", b"b", b"db", 0, b"qps", 7]]
INFO = b"# Hotkeys\r\nhotkeys_last_window_samples:19\r\nhotkeys_last_window_duration_ms:1002\r\n"


class Scripted:
    """Answers by the name of the command."""

    def __init__(self, product: str | None, version: tuple[int, ...] | None, **replies: Reply) -> None:
        self.server = ServerIdentity(product=product, version=version)  # type: ignore[arg-type]
        self.no_touch = NoTouch.ON
        self.own_reads = OwnReads()
        self.asked: list[str] = []
        self._replies = replies

    def run(self, *commands: Command) -> Awaitable[list[Reply]]:
        return self._answer([command.name for command in commands])

    async def _answer(self, names: list[str]) -> list[Reply]:
        self.asked += names
        return [self._replies[name.split(" ")[0].lower()] for name in names]


async def source_of(server: Scripted) -> HotReport:
    return await server_source(Querier(cast(Connection, server), Capabilities()), now_s=0.0)


async def test_a_window() -> None:
    found = await source_of(Scripted("valkey", (9, 2, 0), hotkeys=WINDOW, info=INFO))
    (hot,) = found.lists
    assert found.source is HotSource.SERVER
    assert hot.unit == "queries/s"
    assert [(one.record.key, one.value, one.record.note) for one in hot.keys] == [
        (b"\x1b[31m", 48_200.0, "in database 3"),
        (b"b", 7.0, "in database 0"),
    ]
    assert "the last window of 1s" in found.about


async def test_a_window_whose_length_is_not_told() -> None:
    found = await source_of(Scripted("valkey", (9, 2, 0), hotkeys=WINDOW, info=ServerError("NOPERM no")))
    assert "the last window," in found.about


async def test_tracking_that_is_off_or_saw_nothing() -> None:
    server = Scripted("valkey", (9, 2, 0), hotkeys=[])
    found = await source_of(server)
    assert not found.lists
    assert "hotkeys-top-k" in found.better[0]
    assert server.asked == ["HOTKEYS GET"]


@pytest.mark.parametrize(("product", "version"), [("redis", (8, 4, 9)), ("valkey", (9, 1, 2))])
async def test_servers_that_have_none_are_not_asked(product: str, version: tuple[int, ...]) -> None:
    server = Scripted(product, version)
    found = await source_of(server)
    assert server.asked == []
    assert "has no hot-key report" in found.better[0]


@pytest.mark.parametrize(("product", "version"), [("other", (1, 2, 3)), (None, None), ("redis", None)])
async def test_servers_that_nobody_knows_are_asked(product: str | None, version: tuple[int, ...] | None) -> None:
    unknown = ServerError("ERR unknown command \x1b[31m'HOTKEYS'")
    found = await source_of(Scripted(product, version, hotkeys=unknown))
    assert "unknown command" in found.better[0]
    assert "\x1b" not in found.better[0]


@pytest.mark.parametrize("reply", [5, b"text", [b"odd"], [[1, 2]]], ids=repr)
async def test_a_shape_that_nobody_knows(reply: Reply) -> None:
    found = await source_of(Scripted("redis", (9, 0, 0), hotkeys=reply))
    assert not found.lists
    assert "unknown format" in found.better[0]
