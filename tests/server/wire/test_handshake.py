"""What a connection says first, seen by the server, and what it makes of refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

import rtui
from rtui.server import guard
from rtui.server.guard.command import Secret
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.identity import NoTouch
from rtui.server.wire.opening import HandshakeOutcome, handshake
from rtui.server.wire.target import Target
from tests.proxy import DelayProxy
from tests.server.targets import ask, connected, lane_to, target_of
from tests.servers import Server
from tests.wire import Listener, answering

HOSTILE_PASSWORDS = ["pass word", "a'\"b", "p\r\nFLUSHALL\r\n", "п@ß:w/ö?rd#", "\udcff\udc80\x00", "$8\r\n", "x" * 500]


def newest_client(server: Server) -> dict[str, str]:
    """What the server says of the youngest of rtui's connections."""
    clients: list[dict[str, str]] = [client for client in server.admin.client_list() if client["name"] == "rtui"]
    return max(clients, key=lambda client: int(client["id"]))


def knows_no_touch(server: Server) -> bool:
    return server.product == "valkey" or server.version >= (7, 2)


async def test_the_server_sees_who_it_is(server: Server) -> None:
    async with connected(target_of(server, db=3)) as connection:
        seen = newest_client(server)
        assert seen["name"] == "rtui"
        assert seen["db"] == "3"
        if knows_no_touch(server):
            assert (seen["lib-name"], seen["lib-ver"]) == ("rtui", rtui.__version__)
            assert "T" in seen["flags"]
            assert connection.no_touch is NoTouch.ON
        else:
            assert connection.no_touch is NoTouch.UNSUPPORTED


async def test_the_bulk_lane_is_as_ready(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all")
    async with connected(target_of(server, db=2, user="app", password=Secret("pw"))) as connection:
        await connection.bulk()
        seen = newest_client(server)
        assert (seen["name"], seen["db"], seen["user"]) == ("rtui", "2", "app")
        assert ("T" in seen["flags"]) == knows_no_touch(server)


async def test_a_refused_step_is_not_sent_again(redis62: Server) -> None:
    async with DelayProxy(redis62.port) as proxy, connected(Target(port=proxy.port)) as connection:
        assert [b"CLIENT", b"NO-TOUCH", b"ON"] in proxy.commands()
        before = len(proxy.commands())
        await connection.bulk()
        later = proxy.commands()[before:]
        assert [b"CLIENT", b"SETNAME", b"rtui"] in later
        assert not [argv for argv in later if argv[1:2] in ([b"NO-TOUCH"], [b"SETINFO"])]
        assert connection.no_touch is NoTouch.UNSUPPORTED


async def test_no_touch_that_is_denied(valkey: Server) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-client|no-touch")
    async with connected(target_of(valkey, user="app", password=Secret("pw"))) as connection:
        assert connection.no_touch is NoTouch.DENIED


async def test_everything_optional_may_be_denied(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "-@all", "+scan")
    for protocol in (None, 2, 3):
        async with connected(target_of(server, user="app", password=Secret("pw"), protocol=protocol)) as connection:
            assert isinstance(await ask(connection, guard.scan(0, count=10)), list)
            assert connection.server.run_id is None
            if knows_no_touch(server):
                assert connection.no_touch is NoTouch.DENIED


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("password", HOSTILE_PASSWORDS)
async def test_any_password_goes_out_as_it_is(valkey: Server, password: str, protocol: int) -> None:
    raw = password.encode("utf-8", "surrogateescape")
    valkey.admin.execute_command("ACL", "SETUSER", "app", "reset", "on", b">" + raw, "~*", "+@all")
    async with connected(target_of(valkey, user="app", password=Secret(password), protocol=protocol)):
        assert newest_client(valkey)["user"] == "app"


async def test_a_user_without_password(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "open", "on", "nopass", "~*", "+@all")
    async with connected(target_of(server, user="open")):
        assert newest_client(server)["user"] == "open"


async def test_protocol_3_is_spoken_when_asked_for(server: Server) -> None:
    server.admin.zadd("z", {"a": 1.5, "b": 3})
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all")
    spoken: list[list[Reply]] = []
    for protocol in (2, 3):
        target = target_of(server, protocol=protocol, user="app", password=Secret("pw"))
        async with lane_to(target) as lane:
            await handshake(lane, target, HandshakeOutcome())
            assert lane.protocol == protocol
            if server.version >= (7, 0):
                assert newest_client(server)["resp"] == str(protocol)
            spoken.append(await lane.run(guard.zrange(b"z", 0, 10), guard.pttl(b"z"), guard.key_type(b"z")))
    assert spoken[0] == spoken[1] == [[b"a", b"1.5", b"b", b"3"], -1, b"zset"]


@asynccontextmanager
async def old_server() -> AsyncIterator[tuple[int, list[Sequence[bytes]]]]:
    """A server that knows PING and AUTH only, as a proxy might; its port, and what it was asked."""
    asked: list[Sequence[bytes]] = []
    known = {b"PING": b"+PONG\r\n", b"AUTH": b"+OK\r\n"}

    def reply(argv: Sequence[bytes]) -> bytes:
        asked.append(argv)
        return known.get(argv[0], b"-ERR unknown command `" + argv[0] + b"`\r\n")

    async with Listener(answering(reply)) as server:
        yield server.port, asked


async def test_without_hello_protocol_2_will_do() -> None:
    async with old_server() as (port, asked):
        target = Target(port=port, protocol=3, password=Secret("pw"))
        learned = HandshakeOutcome()
        for _ in range(2):
            async with lane_to(target) as lane:
                await handshake(lane, target, learned)
                assert lane.protocol == 2
    assert [argv for argv in asked if argv[0] == b"HELLO"] == [[b"HELLO", b"3", b"AUTH", b"default", b"pw"]]
    assert [argv for argv in asked if argv[0] == b"AUTH"] == [[b"AUTH", b"pw"]] * 2


async def test_a_server_that_knows_nothing_but_the_oldest_commands() -> None:
    async with old_server() as (port, _), connected(Target(port=port)) as connection:
        assert connection.no_touch is NoTouch.UNSUPPORTED
        assert connection.server.product is None
        assert isinstance((await connection.run(guard.dbsize()))[0], ServerError)


async def test_a_password_is_not_in_what_a_lane_shows(valkey: Server) -> None:
    secret = Secret("pa55word")
    assert "pa55word" not in f"{guard.auth('app', secret)!r}{guard.hello(3, 'app', secret)!r}"
