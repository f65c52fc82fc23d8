"""Starting a session: with consent only, and never in place of another one."""

from __future__ import annotations

import pytest

from rtui.server.guard.command import GuardError, Secret
from rtui.server.guard.evidence import Consent, Metric
from rtui.server.hot.hotkeys import SessionError, SessionRefusedError, start_session
from tests.proxy import DelayProxy
from tests.server.hot.sessions import session_of
from tests.server.raw_commands import raw
from tests.server.targets import connected, target_of
from tests.servers import Server

CONSENT = Consent(duration_s=60, sample_ratio=100)
TAKES_ALL = Consent(duration_s=60, sample_ratio=100, discards_result=True)


async def start(server: Server, consent: Consent = CONSENT, **changes: object) -> None:
    async with connected(target_of(server, **changes)) as connection:
        await start_session(connection, consent)


def begin(server: Server, seconds: int = 3600) -> None:
    """Let another operator begin a session, with a key in it."""
    reply = raw(server, *f"HOTKEYS START METRICS 1 NET DURATION {seconds}".split(" "))
    assert reply in (b"OK", "OK"), reply
    server.admin.set("theirs", "x")


async def test_a_session_as_agreed(session_server: Server) -> None:
    async with DelayProxy(session_server.port) as proxy:
        await start(session_server, Consent(30, 50, (Metric.NET,), count=5), port=proxy.port)
        sent = [b" ".join(line) for line in proxy.commands() if line[0] == b"HOTKEYS"]
    assert sent == [b"HOTKEYS GET", b"HOTKEYS START METRICS 1 NET COUNT 5 DURATION 30 SAMPLE 50"]
    found = session_of(session_server)
    assert found[b"tracking-active"] == 1
    assert found[b"sample-ratio"] == 50
    assert b"by-net-bytes" in found
    assert b"by-cpu-time-us" not in found


async def test_a_session_that_runs_is_left_alone(session_server: Server) -> None:
    begin(session_server)
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
    begin(session_server)
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
async def test_denied(session_server: Server, rule: str) -> None:
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
