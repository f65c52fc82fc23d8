"""Who sends KEYS: told by real servers of all versions, denied, too many to ask; and replies that nobody would send."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.sample import ClientFigures, LoggedCommand
from rtui.server.guard.evidence import MAX_CLIENTS
from rtui.server.health.callers import Callers, Calls, ask_callers, parse_calls
from rtui.server.health.clients import parse_clients, too_many
from rtui.server.health.slow_log import parse_slow_log
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.replies import Reply
from tests.server.targets import connected, target_of
from tests.server.test_denied import POOR, let_in, logged
from tests.servers import Server

REPLIES: st.SearchStrategy[Reply] = st.recursive(
    st.none() | st.integers() | st.binary(max_size=9) | st.just(b"KEYS"),
    lambda inner: st.lists(inner, max_size=8),
    max_leaves=30,
)

OLD = b"addr=127.0.0.1:50123 fd=8 name= age=7 idle=0 flags=N db=3 sub=0 qbuf=26 omem=0 events=r cmd=client"
NEW = (
    b"id=9 addr=[::1]:50124 laddr=[::1]:6379 fd=8 name=nightly age=70 idle=12 flags=N db=0 sub=0 psub=0 ssub=0 "
    b"multi=-1 watch=0 qbuf=26 qbuf-free=20448 argv-mem=10 multi-mem=0 rbs=1024 rbp=0 obl=100 oll=2 omem=20512 "
    b"tot-mem=42880 events=r cmd=keys user=app redir=-1 resp=3 lib-name=redis-py lib-ver=8.1.0 io-thread=0"
)


def test_lines_of_old_and_new_servers() -> None:
    old, new = parse_clients(OLD + b"\n" + NEW + b"\n")
    assert old == ClientFigures(
        None,
        b"127.0.0.1:50123",
        flags="N",
        db=3,
        connected_s=7,
        idle_s=0,
        last_command="CLIENT",
        subscriptions=0,
        query_bytes=26,
        output_bytes=0,
    )
    assert new == ClientFigures(
        *(9, b"[::1]:50124", b"nightly", b"redis-py 8.1.0", b"app", "N", 0, 70, 12, "KEYS"),
        subscriptions=0,
        query_bytes=26,
        output_bytes=20_612,
        total_bytes=42_880,
    )


@given(st.lists(st.sampled_from((OLD, NEW, b"", b"addr", b"addr=", b"\xff\x1b[31m=\x00", b"addr=x age=-1 idle=9" * 9))))
def test_any_list_is_read(lines: list[bytes]) -> None:
    assert len(parse_clients(b"\n".join(lines))) == sum(b"addr=" in line for line in lines)


def test_entries_of_every_length() -> None:
    entry: list[Reply] = [7, 1_790_000_000, 12_345, [b"keys", b"shop:*"]]
    who: list[Reply] = [b"127.0.0.1:1", b"nightly", 2]
    assert parse_slow_log([entry]) == (LoggedCommand(7, 1_790_000_000, 12_345, (b"keys", b"shop:*")),)
    (whole,) = parse_slow_log([[*entry, *who]])
    assert parse_slow_log([[*entry, *who[:2]]]) == (replace(whole, argument_count=None),)
    assert whole.argument_count == 2
    assert parse_slow_log([[*entry, *who]])[0].client_name == b"nightly"
    assert parse_slow_log([entry])[0].name == "KEYS"


@given(REPLIES)
def test_no_reply_is_too_strange(reply: Reply) -> None:
    parse_slow_log(reply)
    parse_clients(reply)


def test_calls() -> None:
    assert parse_calls({"cmdstat_keys": "calls=3,usec=250,usec_per_call=83.33"}, "KEYS") == Calls(3, 250)
    assert parse_calls({"cmdstat_get": "calls=1,usec=1"}, "KEYS") == Calls(0, 0)


@pytest.mark.parametrize("info", [{}, {"role": "x"}, {"cmdstat_keys": "calls=x"}, {"cmdstat_keys": ""}])
def test_calls_that_are_not_told_are_not_none(info: dict[str, str]) -> None:
    assert isinstance(parse_calls(info, "KEYS"), Unknown)


def test_a_call_that_two_lists_tell_is_told_once() -> None:
    slow = (LoggedCommand(2, 990, 80, (b"KEYS", b"a*"), b"1.1.1.1:1", b"x"), LoggedCommand(1, 900, 9, (b"GET", b"a")))
    clients = (
        ClientFigures(1, b"1.1.1.1:1", b"x", b"lib 1", b"app", idle_s=10, last_command="KEYS"),
        ClientFigures(2, b"1.1.1.1:2", idle_s=2, last_command="KEYS"),
        ClientFigures(3, b"1.1.1.1:3", last_command="GET"),
    )
    latest, other = Callers(1000.0, clients=clients, slow=slow).of_keys
    assert (latest.address, latest.at_s, latest.pattern) == (b"1.1.1.1:2", 998.0, None)
    assert (other.address, other.library, other.pattern, other.took_us) == (b"1.1.1.1:1", b"lib 1", b"a*", 80)


def test_clients_of_one_socket_are_not_taken_for_one_another() -> None:
    slow = (LoggedCommand(2, 990, 80, (b"KEYS", b"a*"), b"/redis.sock:0"),)
    clients = tuple(ClientFigures(one, b"/redis.sock:0", user=b"app", idle_s=0, last_command="KEYS") for one in (1, 2))
    found = Callers(1000.0, clients=clients, slow=slow).of_keys
    assert [caller.user for caller in found] == [b"app", b"app", b""]


async def test_who_has_sent_keys(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 0)
    client = server.client()
    client.client_setname("nightly-report")
    client.keys("shop:\x1b[31m*")
    server.admin.config_set("slowlog-log-slower-than", 1_000_000)
    async with connected(target_of(server)) as connection:
        found = await ask_callers(connection, Capabilities(), time.time)
    assert isinstance(found.calls, Calls)
    assert found.calls.count == 1
    assert found.connected is not None
    (caller,) = found.of_keys
    assert (caller.name, caller.pattern) == (b"nightly-report", b"shop:\x1b[31m*")
    assert caller.took_us is not None
    assert isinstance(found.clients, tuple)
    assert {b"nightly-report", b"rtui"} <= {one.name for one in found.clients}
    client.close()


@pytest.mark.parametrize("denied", ["info", "slowlog", "client|list"])
async def test_what_is_denied_is_said_and_asked_once(redis70: Server, denied: str) -> None:
    let_in(redis70, "+@all", f"-{denied}")
    async with connected(target_of(redis70, **POOR)) as connection:
        redis70.admin.execute_command("ACL", "LOG", "RESET")
        capabilities = Capabilities()
        for _ in range(3):
            found = await ask_callers(connection, capabilities, time.time)
    wanted = {"info": found.calls, "slowlog": found.slow, "client|list": found.clients}[denied]
    assert isinstance(wanted, Unknown)
    assert wanted.reason is Reason.DENIED
    assert max(logged(redis70).values(), default=1) == 1
    assert denied == "info" or isinstance(found.calls, Calls)


async def test_many_clients_are_not_listed(valkey: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.guard.evidence.MAX_CLIENTS", 1)
    others = [valkey.client() for _ in range(3)]
    for other in others:
        other.ping()
    async with connected(target_of(valkey)) as connection:
        before = valkey.admin.info("commandstats").get("cmdstat_client|list")
        found = await ask_callers(connection, Capabilities(), time.time)
        assert valkey.admin.info("commandstats").get("cmdstat_client|list") == before
    assert found.connected is not None
    assert found.clients == too_many(found.connected)
    for other in others:
        other.close()


def test_the_reason_tells_the_bound() -> None:
    assert f"{MAX_CLIENTS:,}" in too_many(5_000).detail
    assert too_many(None).detail
