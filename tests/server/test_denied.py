"""What a server denies is asked once a connection: each further try would be another entry in its ACL LOG."""

from __future__ import annotations

from collections import Counter

import pytest

from rtui.analysis.facts import Unknown
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.guard.command import Secret
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.capability import CommandRunner
from rtui.server.wire.errors import ServerError
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.targets import connected, eventually, target_of
from tests.servers import Server

POOR = {"user": "poor", "password": Secret("pw")}

READS = ("-getrange", "-hscan", "-hmget", "-hrandfield", "-lrange", "-sscan", "-zrange", "-xrevrange", "-xinfo")
"""Rules that deny what previews read."""


def let_in(server: Server, *rules: str) -> None:
    """Have a user `poor` with exactly these rules."""
    server.admin.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">pw", "~*", *rules)
    server.admin.execute_command("ACL", "LOG", "RESET")


def logged(server: Server) -> Counter[str]:
    """How often each command was denied."""
    found: Counter[str] = Counter()
    for entry in server.admin.acl_log(count=1_000):
        found[str(entry["object"])] += int(str(entry["count"]))
    return found


async def look(session: BrowsingSession, keys: list[bytes]) -> None:
    """Let the cursor rest on each of the keys once."""
    await session.keys.row_facts(keys)
    for key in keys:
        await session.keys.preview(await session.keys.key_facts(key))
        await session.keys.lookup(key)


async def test_previews_that_are_denied_are_asked_once_a_connection(server: Server) -> None:
    keys = sorted(every_type.fill(server, server.client()))
    let_in(server, "+@all", *READS)
    session = BrowsingSession(BrowseOptions(target_of(server, **POOR), resume=False))
    await session.start()
    try:
        for _ in range(3):
            await look(session, keys)
    finally:
        await session.close()
    found = logged(server)
    assert {rule[1:] for rule in READS[:2]} <= set(found)
    assert max(found.values()) == 1


@pytest.mark.slow
@pytest.mark.sampled("rules")
@pytest.mark.parametrize("rules", [("+scan",), ("+@all", "-info"), ("+@all", "-ping", "-dbsize"), ("+scan", "+type")])
async def test_a_poor_user_s_session_adds_nothing_to_the_log_as_it_goes_on(
    server: Server, monkeypatch: pytest.MonkeyPatch, rules: tuple[str, ...]
) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.01)
    keys = sorted(every_type.fill(server, server.client()))
    let_in(server, *rules)
    session = BrowsingSession(BrowseOptions(target_of(server, **POOR), resume=False))
    session.connection._heartbeat_s = 0.01
    probe, rounds = session.capabilities.probe, 0

    async def counted(connection: CommandRunner) -> None:
        nonlocal rounds
        rounds += 1
        await probe(connection)

    monkeypatch.setattr(session.capabilities, "probe", counted)
    await session.start()
    try:
        await look(session, keys)
        await eventually(lambda: rounds >= 2)
        await eventually(lambda: session.status.progress.state.is_over)
        first = logged(server)
        assert first
        for _ in range(2):
            await look(session, keys)
            await session.filter(None)
            await eventually(lambda: session.status.progress.state.is_over)
        before = rounds
        await eventually(lambda: rounds >= before + 2)
        assert logged(server) == first
    finally:
        await session.close()


async def test_a_cluster_s_node_that_denies_what_it_is_asks_once(
    cluster_node: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.001)
    let_in(cluster_node, "+@all", "-cluster")
    session = BrowsingSession(BrowseOptions(target_of(cluster_node, **POOR), resume=False))
    await session.start()
    try:
        await eventually(lambda: session.status.progress.state.is_over)
        first = logged(cluster_node)
        assert "cluster|info" in first
        revision = session.connection.revision
        await eventually(lambda: session.connection.revision >= revision + 5)
        await session.filter(None)
        assert logged(cluster_node) == first
    finally:
        await session.close()


async def test_another_analysis_tries_once_more_what_the_last_one_was_denied(valkey: Server) -> None:
    every_type.fill(valkey, valkey.client())
    let_in(valkey, "+@all", "-memory", "-object", "-config", "-strlen", "-hlen")
    async with connected(target_of(valkey, **POOR)) as connection:
        for turn in range(1, 4):
            await AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL)).run()
            assert logged(valkey)["strlen"] == turn
            assert logged(valkey)["memory|usage"] == turn


async def test_a_lane_answers_in_order_what_it_sends_and_what_it_does_not(server: Server) -> None:
    let_in(server, "+@all", "-strlen", "-get")
    server.admin.set("k", "four")
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port, **POOR)) as connection:
        assert isinstance((await connection.run(guard.strlen(b"k")))[0], ServerError)
        kind, denied, there, again = await connection.run(
            guard.key_type(b"k"), guard.strlen(b"k"), guard.exists(b"k"), guard.strlen(b"k")
        )
        assert (kind, there) == (b"string", 1)
        assert isinstance(denied, ServerError)
        assert denied is again
        assert denied.denies_command
        (alone,) = await connection.run(guard.strlen(b"k"))
        assert alone is denied
        assert sum(argv[0] == b"STRLEN" for argv in proxy.commands()) == 1
    assert logged(server)["strlen"] == 1


async def test_a_denied_key_is_no_denied_command(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">pw", "~mine:*", "+@all")
    server.admin.mset({"mine:k": "four", "k": "four"})
    async with connected(target_of(server, **POOR)) as connection:
        (denied,) = await connection.run(guard.strlen(b"k"))
        assert isinstance(denied, ServerError)
        assert not denied.denies_command
        assert await connection.run(guard.strlen(b"mine:k")) == [4]


async def test_a_new_connection_tries_again(valkey: Server) -> None:
    valkey.admin.set("k", "four")
    let_in(valkey, "+@all", "-pttl")
    session = BrowsingSession(BrowseOptions(target_of(valkey, **POOR), resume=False))
    await session.start()
    try:
        (before,) = await session.keys.row_facts([b"k"])
        assert isinstance(before.ttl_ms, Unknown)
        let_in(valkey, "+@all")
        valkey.admin.client_kill_filter(_type="normal")
        await eventually(lambda: session.connection.generation > 1 and session.connection.is_online)
        (after,) = await session.keys.row_facts([b"k"])
        assert not isinstance(after.ttl_ms, Unknown)
    finally:
        await session.close()


async def test_a_report_of_a_user_who_may_read_some_keys_says_so(valkey: Server) -> None:
    valkey.admin.mset({f"{word}:{n}": n for n in range(300) for word in ("mine", "yours", "theirs")})
    valkey.admin.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">pw", "~mine:*", "+@all")
    async with connected(target_of(valkey, **POOR)) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        await run.run()
    assert run.report is not None
    notes = [note for note in run.report.head.notes if "ACL key patterns" in note]
    assert len(notes) == 1
    assert notes[0].startswith("The type of 600 keys is not known")
