"""Every way of not getting a connection, on real servers: the kind, the words, and what to try."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.display import HOSTILE
from rtui.server.deployment.sentinel import PrimaryFinder
from rtui.server.guard.command import Secret
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import (
    ConnectFailure,
    ConnectionLost,
    FailureKind,
    Reply,
    RtuiError,
    ServerError,
    TargetError,
    as_resp2,
)
from rtui.server.wire.failures import auth_refusal, database_failure, os_failure, refusal, sentinel_failure
from rtui.server.wire.opening import open_lane
from rtui.server.wire.target import AddressMap, ProtocolVersion, Sentinels, Target, Tls, Way, parse_target
from tests.conftest import known, require
from tests.server.targets import connected, impatient, target_of
from tests.servers import Server, certificates, free_port
from tests.wire import Listener

KEY_OF_NOBODY = "/nowhere/key.pem"

PROTOCOLS: tuple[ProtocolVersion, ...] = (2, 3)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def failing(target: Target, within_s: float = 5.0) -> ConnectFailure:
    connection = Connection(impatient(target, direct_s=within_s))
    with pytest.raises(ConnectFailure) as caught:
        await connection.open()
    assert not connection.is_online
    failed = caught.value
    assert failed.title
    assert failed.happened
    assert failed.remedy
    return failed


async def test_a_name_without_address() -> None:
    failed = await failing(Target(host="no-such-host.invalid"))
    assert failed.kind is FailureKind.NAME
    assert "no-such-host.invalid" in failed.happened


async def test_a_name_that_no_resolver_takes() -> None:
    failed = await failing(Target(host="a" * 70 + ".invalid"))
    assert failed.kind is FailureKind.NAME


async def test_a_port_where_nobody_listens() -> None:
    port = free_port()
    failed = await failing(Target(port=port))
    assert failed.kind is FailureKind.REFUSED
    assert f"127.0.0.1:{port}" in failed.happened


@pytest.mark.parametrize(("target", "is_named"), [(Target(), False), (Target(port=6380), True), (Target("db"), True)])
def test_who_named_no_server_is_told_how(target: Target, is_named: bool) -> None:
    remedy = os_failure(target, ConnectionRefusedError(errno.ECONNREFUSED, "")).remedy
    assert ("rtui redis://" in remedy) is ("rtui --demo" in remedy) is not is_named


async def test_every_address_of_a_name_is_tried(valkey: Server) -> None:
    async with connected(target_of(valkey, host="localhost")) as connection:
        assert connection.is_online


async def test_a_server_that_accepts_nobody() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        crowd = [socket.socket() for _ in range(4)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        failed = await failing(Target(port=port), within_s=0.2)
        for one in crowd:
            one.close()
    assert failed.kind is FailureKind.TIMEOUT
    assert "firewall" in failed.remedy


async def test_a_server_that_says_nothing() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with Listener(silent) as server:
        failed = await failing(server.target, within_s=0.2)
    assert failed.kind is FailureKind.TIMEOUT
    assert "--tls" in failed.remedy


async def test_a_server_that_hangs(valkey: Server) -> None:
    valkey.freeze()
    failed = await failing(target_of(valkey), within_s=0.2)
    assert failed.kind is FailureKind.TIMEOUT


async def test_a_web_server() -> None:
    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await writer.drain()

    async with Listener(web) as server:
        failed = await failing(server.target)
    assert failed.kind is FailureKind.PROTOCOL


@pytest.mark.parametrize(
    "greeting", [b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail ESMTP\r\n", b"\x15\x03\x01\x00\x02\x02\x46", b"+OK hi\r\n"]
)
async def test_servers_that_speak_first(greeting: bytes) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await writer.drain()
        await reader.read(1)

    async with Listener(other) as server:
        failed = await failing(server.target)
    assert failed.kind in {FailureKind.PROTOCOL, FailureKind.CLOSED}


async def test_a_server_that_hangs_up() -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with Listener(rude) as server:
        failed = await failing(server.target)
    assert failed.kind is FailureKind.CLOSED


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (b"-DENIED Redis is running in protected mode because\r\n", FailureKind.PROTECTED),
        (b"-ERR max number of clients reached\r\n", FailureKind.MAX_CLIENTS),
        (b"-ERR max number of clients + cluster connections reached\r\n", FailureKind.MAX_CLIENTS),
    ],
)
@pytest.mark.parametrize("early", [True, False])
async def test_what_is_said_before_hanging_up(said: bytes, kind: FailureKind, early: bool) -> None:
    async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not early:
            await reader.read(1)
        writer.write(said)
        await writer.drain()

    async with Listener(refusing) as server:
        failed = await failing(server.target)
    assert failed.kind is kind


async def test_no_room_for_another_client(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        valkey.admin.config_set("maxclients", 2)
        failed = await failing(target_of(valkey))
        assert failed.kind is FailureKind.MAX_CLIENTS
        with pytest.raises(ConnectFailure, match="maxclients"):
            await connection.bulk()
        valkey.admin.config_set("maxclients", 100)


async def test_a_password_is_wanted(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "default", "resetpass", ">right")
    failed = await failing(target_of(server))
    assert failed.kind is FailureKind.NOAUTH
    assert "--askpass" in failed.remedy


@pytest.mark.parametrize("protocol", [2, 3])
async def test_the_password_is_wrong(server: Server, protocol: int) -> None:
    server.admin.execute_command("ACL", "SETUSER", "default", "resetpass", ">right")
    failed = await failing(target_of(server, password=Secret("wr0ng-secret"), protocol=protocol))
    assert failed.kind is FailureKind.WRONGPASS
    assert "wr0ng-secret" not in f"{failed!r}{failed}{failed.args}{failed.remedy}"


async def test_the_user_is_unknown(server: Server) -> None:
    failed = await failing(target_of(server, user="nobody", password=Secret("x")))
    assert failed.kind is FailureKind.WRONGPASS
    assert "nobody" in failed.happened


async def test_a_password_for_a_server_without(server: Server) -> None:
    failed = await failing(target_of(server, password=Secret("x")))
    assert failed.kind is FailureKind.WRONGPASS
    assert "no password set" in failed.happened


async def test_a_database_that_is_not_there(server: Server) -> None:
    failed = await failing(target_of(server, db=4000))
    assert failed.kind is FailureKind.DATABASE
    assert "4000" in failed.happened


async def test_a_database_that_the_user_may_not_choose(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "shut", "on", ">pw", "~*", "+@all", "-select")
    failed = await failing(target_of(server, user="shut", password=Secret("pw"), db=1))
    assert failed.kind is FailureKind.NOPERM
    assert "rtui acl" in failed.remedy


async def test_a_cluster_has_one_database(cluster_node: Server) -> None:
    failed = await failing(target_of(cluster_node, db=500))
    assert failed.kind is FailureKind.DATABASE


async def test_a_replica_that_lost_its_primary(server: Server) -> None:
    server.admin.config_set("replica-serve-stale-data", "no")
    server.admin.replicaof("127.0.0.1", free_port())
    try:
        failed = await failing(target_of(server))
    finally:
        server.admin.replicaof("NO", "ONE")
    assert failed.kind is FailureKind.MASTERDOWN


def mapped(rule: str) -> Way:
    return Way(addresses=AddressMap((rule,)))


async def test_tls_by_an_authority_nobody_knows(tls_server: Server) -> None:
    failed = await failing(target_of(tls_server, tls=Tls()))
    assert failed.kind is FailureKind.TLS
    assert "--cacert" in failed.remedy


async def test_tls_for_another_name(tls_server: Server) -> None:
    tls = Tls(cacert=str(known(tls_server.tls).ca))
    for target, checked, advice in (
        (target_of(tls_server, tls=replace(tls, sni="elsewhere.example")), "elsewhere.example", "without it 127.0.0.1"),
        (
            Target("a.internal.invalid", 7, tls=tls, way=mapped(f"*.invalid=localhost:{tls_server.port}")),
            f"against a.internal.invalid, though --map leads to localhost:{tls_server.port}.",
            "--sni localhost",
        ),
        (
            Target("10.9.8.7", 7, tls=replace(tls, sni="b"), way=mapped(f"10.*:7=127.0.0.1:{tls_server.port}")),
            "the name of --sni, b.",
            "without it 10.9.8.7",
        ),
    ):
        failed = await failing(target)
        assert failed.kind is FailureKind.TLS
        assert "mismatch" in failed.happened
        assert checked in failed.happened
        assert ".." not in failed.happened
        assert "--sni" in failed.remedy
        assert advice in failed.remedy


async def test_tls_by_an_address_that_is_not_in_the_certificate() -> None:
    made = certificates("subjectAltName=DNS:redis.example")
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(made.cert, made.key)
    async with Listener(tls=served) as server:
        found = Target(port=server.port, tls=Tls(cacert=str(made.ca)))
        failed = await failing(found)
        assert "Connect by a name" in failed.remedy
        assert "--sni" in failed.remedy
        assert "127.0.0.1" in failed.happened
        with pytest.raises(ConnectFailure) as caught:  # the primary, as Sentinels have told where it is
            await open_lane(replace(found, sentinels=Sentinels("m", (("s1", 26379),))))
        assert "Sentinels" in caught.value.remedy
        assert "--sni" in caught.value.remedy
        sentinel = replace(found, tls=None, sentinels=Sentinels("m", ((found.host, found.port),), tls=found.tls))
        finder = PrimaryFinder(sentinel, sentinel.sentinels or Sentinels("m", ()), CommandLog())
        with pytest.raises(ConnectFailure, match="mismatch") as caught:
            await finder.locate()
        assert "Name the Sentinels" in caught.value.remedy
        key = KEY_OF_NOBODY
        unusable = replace(sentinel.sentinels or Sentinels("m", ()), tls=Tls(cert=key, key=key))
        with pytest.raises(TargetError, match="can't be read"):  # it is not the Sentinels' fault
            await PrimaryFinder(sentinel, unusable, CommandLog()).locate()
        await finder.close()


async def test_tls_where_there_is_none(valkey: Server) -> None:
    failed = await failing(target_of(valkey, tls=Tls()), within_s=0.5)
    assert failed.kind is FailureKind.TLS
    assert "--tls" in failed.remedy


async def test_none_where_there_is_tls(tls_server: Server) -> None:
    failed = await failing(target_of(tls_server, tls=None), within_s=0.5)
    assert failed.kind in {FailureKind.PROTOCOL, FailureKind.CLOSED, FailureKind.TIMEOUT}
    assert "--tls" in failed.remedy


async def test_tls_that_is_accepted(tls_server: Server) -> None:
    assert tls_server.tls is not None
    with_authority = Tls(cacert=str(tls_server.tls.ca))
    own = replace(with_authority, cert=str(tls_server.tls.client_cert), key=str(tls_server.tls.client_key))
    for tls in (with_authority, own, replace(with_authority, sni="localhost"), Tls(insecure=True)):
        async with connected(target_of(tls_server, tls=tls)) as connection:
            assert connection.is_online


async def test_tls_that_wants_a_certificate(tls_server: Server) -> None:
    tls_server.admin.config_set("tls-auth-clients", "yes")
    failed = await failing(target_of(tls_server))
    assert failed.kind in {FailureKind.TLS, FailureKind.CLOSED}
    assert "--cert" in failed.remedy


@pytest.mark.parametrize("tls", [Tls(cacert="/none.pem"), Tls(cert="/none.pem")])
async def test_tls_files_that_are_not_there(tls: Tls) -> None:
    with pytest.raises(TargetError) as caught:
        await Connection(Target(port=free_port(), tls=tls)).open()
    assert "No such file" in caught.value.happened


async def test_tls_files_that_are_no_certificates(tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    for tls in (Tls(cacert=str(junk)), Tls(cert=str(junk)), Tls(key=str(junk))):
        with pytest.raises(TargetError):
            await Connection(Target(port=free_port(), tls=tls)).open()


async def test_a_socket_that_is_not_there(tmp_path: Path) -> None:
    failed = await failing(Target(socket_path=str(tmp_path / "none.sock")))
    assert failed.kind is FailureKind.SOCKET
    assert "does not exist" in failed.happened


async def test_a_socket_without_a_server(tmp_path: Path) -> None:
    path = tmp_path / "old.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    failed = await failing(Target(socket_path=str(path)))
    assert failed.kind is FailureKind.SOCKET
    assert "no server" in failed.happened


async def test_a_file_that_is_no_socket(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    failed = await failing(Target(socket_path=str(path)))
    assert failed.kind is FailureKind.SOCKET


def test_a_socket_of_somebody_else() -> None:
    failed = os_failure(Target(socket_path="/run/s.sock"), PermissionError(errno.EACCES, "Permission denied"))
    assert failed.kind is FailureKind.SOCKET
    assert "unixsocketperm" in failed.remedy


def test_a_network_without_a_way() -> None:
    failed = os_failure(Target(host="10.0.0.9"), OSError(errno.EHOSTUNREACH, "No route to host"))
    assert failed.kind is FailureKind.UNREACHABLE
    assert "No route to host" in failed.happened


async def test_a_socket_path_that_is_too_long() -> None:
    failed = await failing(Target(socket_path="/" + "x" * 300))
    assert failed.kind is FailureKind.SOCKET


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("NOAUTH Authentication required.", FailureKind.NOAUTH),
        ("WRONGPASS invalid username-password pair or user is disabled.", FailureKind.WRONGPASS),
        ("NOPERM this user has no permissions to run the 'ping' command", FailureKind.NOPERM),
        ("LOADING Redis is loading the dataset in memory", FailureKind.LOADING),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", FailureKind.MASTERDOWN),
        ("DENIED Redis is running in protected mode", FailureKind.PROTECTED),
        ("ERR max number of clients reached", FailureKind.MAX_CLIENTS),
    ],
)
def test_the_kind_of_an_error_reply(message: str, kind: FailureKind) -> None:
    assert known(refusal(Target(), ServerError(message))).kind is kind


def test_an_error_reply_that_stops_nothing() -> None:
    assert refusal(Target(), ServerError("ERR unknown command 'CLIENT'")) is None


@pytest.mark.parametrize(
    "message",
    [
        "ERR invalid password",
        "ERR AUTH <password> called without any password configured for the default user.",
        "ERR Client sent AUTH, but no password is set",
        "ERR something new",
    ],
)
def test_auth_that_old_servers_refuse_in_their_words(message: str) -> None:
    target = Target(password=Secret("s3cret"))
    assert auth_refusal(target, ServerError(message)).kind is FailureKind.WRONGPASS


async def test_a_server_that_quotes_what_it_does_not_know() -> None:
    async def quoting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while requests := await reader.read(10_000):
            count = requests.count(b"\r\n*") + 1
            writer.write(b"-ERR unknown command 'X', with args beginning with: 'app' 'pa55word'\r\n" * count)

    async with Listener(quoting) as server:
        for protocol in PROTOCOLS:
            login = replace(server.target, user="app", password=Secret("pa55word"), protocol=protocol)
            failed = await failing(login)
            assert failed.kind is FailureKind.WRONGPASS
            assert "pa55word" not in f"{failed!r}{failed}{failed.args}{failed.remedy}"


async def test_an_error_of_its_own_accord_is_not_repeated() -> None:
    async def babbling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"-ERR unknown command 'X', with args beginning with: 'app' 'pa55word'\r\n" * 20)
        await reader.read()

    async with Listener(babbling) as server:
        for protocol in PROTOCOLS:
            failed = await failing(replace(server.target, user="app", password=Secret("pa55word"), protocol=protocol))
            assert "pa55word" not in f"{failed!r}{failed}{failed.args}{failed.remedy}"


async def test_a_sentinel(tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text(f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\n")
    program = require("redis-7.0").path
    process = await asyncio.create_subprocess_exec(program, config, "--sentinel", stdout=asyncio.subprocess.PIPE)
    try:
        while b"+monitor" not in (line := await known(process.stdout).readline()) and b"Sentinel ID" not in line:
            assert line
        failed = await failing(Target(port=port))
    finally:
        process.kill()
        await process.communicate()
    assert failed.kind is FailureKind.SENTINEL


def test_a_database_index_that_is_refused() -> None:
    failed = database_failure(Target(db=77), ServerError("ERR DB index is out of range"))
    assert failed.kind is FailureKind.DATABASE
    assert "77" in failed.happened


def test_services_of_a_sentinel_are_named_as_a_url_can_hold_them() -> None:
    masters: Reply = [[b"name", b"my caf\xc3\xa9/1"], [b"name", b"\xff"], [b"ip", b"::1"]]
    remedy = sentinel_failure(Target("::1", 26_379), masters).remedy
    urls = remedy.removeprefix("Name the service instead: ").removesuffix(".").split(", ")
    assert urls == ["sentinel://[::1]:26379/my%20caf%C3%A9%2F1", "sentinel://[::1]:26379/%FF"]
    found = known(parse_target(urls[0]).sentinels)
    assert (found.service, found.addresses) == ("my café/1", (("::1", 26_379),))


@given(st.text())
def test_whatever_a_server_says_is_safe(message: str) -> None:
    said = ServerError(message)
    lost = ConnectionLost(message, message)
    for shown in (str(said), said.text, said.code, lost.happened, lost.remedy, str(lost)):
        assert HOSTILE.search(shown) is None


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        ("NOPERM User x has no permissions", "NOPERM", "User x has no permissions"),
        ("ERR unknown command", "ERR", "unknown command"),
        ("WRONGTYPE Operation against", "WRONGTYPE", "Operation against"),
        ("value is not an integer", "ERR", "value is not an integer"),
        ("LOADING", "LOADING", ""),
        ("", "ERR", ""),
        ("\x1b[31mERR x", "ERR", None),
    ],
)
def test_the_code_is_the_first_word(message: str, code: str, text: str | None) -> None:
    said = ServerError(message)
    assert said.code == code
    if text is not None:
        assert said.text == text


def test_a_long_error_is_cut() -> None:
    assert len(ServerError("ERR " + "x" * 100_000).text) < 2_000


def test_every_error_has_its_parts() -> None:
    for error in (
        RtuiError("title", "happened", "remedy"),
        TargetError("title", "happened", "remedy"),
        ConnectFailure(FailureKind.NAME, "happened", "remedy"),
    ):
        title = "Unknown host" if isinstance(error, ConnectFailure) else "title"
        assert (error.title, error.happened, error.remedy) == (title, "happened", "remedy")
        assert str(error) == f"{title}: happened"


def test_only_loading_is_waited_for() -> None:
    assert [kind for kind in FailureKind if kind.is_temporary] == [FailureKind.LOADING, FailureKind.FAILOVER]


@pytest.mark.parametrize(
    ("name", "reply", "expected"),
    [
        ("XINFO STREAM", {b"length": 1, b"groups": {b"a": None}}, [b"length", 1, b"groups", [b"a", None]]),
        ("ZRANGE", [[b"a", 1.5], [b"b", 3.0]], [b"a", b"1.5", b"b", b"3"]),
        ("ZRANGE", [], []),
        ("ZRANGE", [[b"a", float("inf")]], [b"a", b"inf"]),
        ("HRANDFIELD", [[b"f", b"v"]], [b"f", b"v"]),
        ("HRANDFIELD", [b"f", b"g"], [b"f", b"g"]),
        ("XRANGE", [[b"1-0", [b"f", b"v"]]], [[b"1-0", [b"f", b"v"]]]),
        ("HSCAN", [b"0", [b"f", b"v"]], [b"0", [b"f", b"v"]]),
        ("X", True, 1),
        ("X", False, 0),
        ("X", None, None),
        ("X", 1e300, b"1e+300"),
        ("TYPE", b"zset", b"zset"),
    ],
)
def test_shapes(name: str, reply: Reply, expected: Reply) -> None:
    assert as_resp2(name, reply) == expected
