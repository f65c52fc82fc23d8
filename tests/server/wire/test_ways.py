"""The way to a server: through SSH hosts, a SOCKS proxy, and to other addresses."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.analysis_run import AnalysisRun
from rtui.server.options import AnalysisOptions
from rtui.server.wire import tunnels
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, TargetError
from rtui.server.wire.secret import Secret
from rtui.server.wire.target import Target, Tls
from rtui.server.wire.tunnels import patience_s
from rtui.server.wire.ways import AddressMap, SocksProxy, Way, checked_host, socks_proxy
from tests.server.targets import eventually
from tests.servers import Server, free_port
from tests.ssh_host import SshHost, ssh_children


async def failing(target: Target) -> ConnectFailure:
    connection = Connection(target)
    with pytest.raises(ConnectFailure) as failed:
        await connection.open()
    await connection.close()
    return failed.value


@pytest.mark.parametrize("via", [("bastion",), ("inner", "bastion")])
async def test_a_whole_analysis_goes_through_ssh_hosts(bastion: SshHost, valkey: Server, via: tuple[str, ...]) -> None:
    valkey.admin.mset({f"user:{n}": n for n in range(500)})
    connection = Connection(Target(port=valkey.port, way=Way(via)))
    await connection.open()
    run = AnalysisRun(connection, AnalysisOptions())
    await run.run()
    assert run.report is not None
    assert run.report.head.coverage.keys == 500
    assert len(ssh_children()) == 2
    assert all(f"-W 127.0.0.1:{valkey.port} -- {via[-1]}" in line for line in ssh_children().values())
    await connection.close()
    await eventually(lambda: not ssh_children())


async def test_tls_goes_through_ssh_as_well(bastion: SshHost, tls_server: Server) -> None:
    assert tls_server.tls is not None
    tls = Tls(cacert=str(tls_server.tls.ca))
    connection = Connection(Target(port=tls_server.port, tls=tls, way=Way(("bastion",))))
    await connection.open()
    assert await connection.run(guard.ping()) == [b"PONG"]
    await connection.close()


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("stranger", "Host key verification failed"),
        ("locked", "Permission denied (publickey"),
        ("nowhere", "Could not resolve hostname nowhere.invalid"),
    ],
)
async def test_ssh_says_itself_why_it_fails(bastion: SshHost, valkey: Server, host: str, said: str) -> None:
    failed = await failing(Target(port=valkey.port, way=Way((host,))))
    assert failed.kind is FailureKind.SSH
    assert f"ssh {host}: " in failed.happened
    assert said in failed.happened
    await eventually(lambda: not ssh_children())


async def test_ssh_says_itself_why_it_gets_no_further(bastion: SshHost) -> None:
    dead = await failing(Target(port=free_port(), way=Way(("bastion",))))
    assert dead.kind is FailureKind.SSH
    assert "Connection refused" in dead.happened
    await eventually(lambda: not ssh_children())


async def test_without_ssh_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    failed = await failing(Target(way=Way(("bastion",))))
    assert (failed.kind, failed.remedy) == (FailureKind.SSH, "Install the OpenSSH client.")


async def test_a_tunnel_that_ends_is_made_again(bastion: SshHost, valkey: Server) -> None:
    connection = Connection(Target(port=valkey.port, way=Way(("bastion",))))
    await connection.open()
    (child,) = ssh_children()
    os.kill(child, signal.SIGKILL)
    await eventually(lambda: not connection.is_online)
    with pytest.raises(ConnectionLost):
        await connection.run(guard.ping())
    connection.retry_now()
    await connection.online()
    assert await connection.run(guard.ping()) == [b"PONG"]
    await connection.close()


async def test_ssh_that_could_go_no_further_was_reached_itself(bastion: SshHost) -> None:
    port = free_port()
    failed = await failing(Target(port=port, way=Way(("bastion",))))
    assert failed.happened.endswith("open failed: connect failed: Connection refused; stdio forwarding failed")
    assert failed.remedy.startswith("An SSH host was reached, but can't connect any further")


@pytest.mark.parametrize("name", ["bastion", "locked"])
async def test_a_banner_is_no_failure(
    bastion: SshHost, redis70: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PATH", f"{chatty(bastion, tmp_path)}:{os.environ['PATH']}")
    connection = Connection(Target(port=redis70.port, way=Way((name,))))
    if name == "locked":
        with pytest.raises(ConnectFailure) as failed:
            await connection.open()
        assert failed.value.happened.startswith("ssh locked: …; ")
        assert "Permission denied (publickey" in failed.value.happened
        return
    await connection.open()
    await asyncio.to_thread(redis70.admin.client_kill_filter, _type="normal")
    await eventually(lambda: not connection.is_online)
    assert connection.state.reason.happened == "The server closed the connection."  # type: ignore[union-attr]
    await connection.close()


def chatty(bastion: SshHost, folder: Path) -> Path:
    """A folder with an `ssh` that says a lot before it connects, as the hosts on the way to the last one may."""
    words = "UNAUTHORISED USE IS FORBIDDEN. " * 3
    (folder / "ssh").write_text(
        f"#!/bin/sh\nfor n in 1 2 3 4 5 6 7 8 9; do echo '{words}' >&2; done\nexec {bastion.path / 'ssh'} \"$@\"\n"
    )
    (folder / "ssh").chmod(0o700)
    return folder


async def test_a_slow_host_has_longer_to_answer_and_is_not_taken_for_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "ssh").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert patience_s(Way(("slow",)), 5) > 5 == patience_s(Way(), 5)
    monkeypatch.setattr(tunnels, "PATIENCE_S", 0.1)
    for tls in (None, Tls(insecure=True)):
        connection = Connection(Target("cache", way=Way(("slow",)), tls=tls), connect_timeout_s=0.01)
        with pytest.raises(ConnectFailure) as failed:
            await connection.open()
        assert failed.value.happened.startswith("cache:6379 via slow has not answered within 0.1 s, and ssh")
        await connection.close()


@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "SOCKS4", "socks4a"])
async def test_a_socks_proxy(bastion: SshHost, valkey: Server, scheme: str) -> None:
    port = free_port()
    with bastion.socks_proxy(port):
        way = Way(proxy=Secret(f"{scheme}://127.0.0.1:{port}"))
        connection = Connection(Target("localhost", valkey.port, way=way))
        await connection.open()
        assert await connection.run(guard.ping()) == [b"PONG"]
        await connection.close()
    failed = await failing(Target(port=valkey.port, way=way))
    assert failed.kind is FailureKind.PROXY


async def test_a_proxy_that_wants_user_and_password(valkey: Server) -> None:
    seen = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(2 + 2) == b"\5\2\0\2"  # without a user, or with
        writer.write(b"\5\2")
        _, length = await reader.readexactly(2)
        seen.append(await reader.readexactly(length))
        seen.append(await reader.readexactly((await reader.readexactly(1))[0]))
        writer.write(b"\1\1")  # it does not accept them
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    failed = await failing(Target(port=valkey.port, way=Way(proxy=Secret(f"socks5://me:s3cr%40t%2F@127.0.0.1:{port}"))))
    server.close()
    assert seen == [b"me", b"s3cr@t/"]
    assert failed.kind is FailureKind.PROXY
    assert "s3cr" not in f"{failed!r}{failed.happened}{failed.remedy}"


async def test_a_proxy_that_hangs_or_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        port = hangs.getsockname()[1]
        connection = Connection(Target(way=Way(proxy=Secret(f"socks5://127.0.0.1:{port}"))), connect_timeout_s=0.1)
        with pytest.raises(ConnectFailure, match=r"connect to the server: there was no answer within 0\.1 s\.$"):
            await connection.open()
    with pytest.raises(ConnectFailure, match=rf"Could not connect to proxy 127\.0\.0\.1:{port}\.$"):
        await connection.open()
    await connection.close()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("socks5://p", SocksProxy(5, "p", 1080, None, None)),
        ("socks4a://me@p:1", SocksProxy(4, "p", 1, "me", None)),
        ("socks5h://me:a%3Ab%40@[::1]:65535/", SocksProxy(5, "::1", 65_535, "me", Secret("a:b@"))),
    ],
)
def test_what_a_proxy_is_written_as(url: str, expected: SocksProxy) -> None:
    assert socks_proxy(Secret(url)) == expected


@pytest.mark.parametrize(
    "url",
    [
        "p:1",
        "http://hunter2@p",
        "socks5://p:0",
        "socks5://p:99999",
        "socks5://",
        "socks5://me:hun@ter2@p",
        "socks5a://p",
    ],
)
def test_what_is_no_proxy(url: str) -> None:
    with pytest.raises(TargetError) as failed:
        Way(proxy=Secret(url))
    assert "hunter2" not in f"{failed.value!r}"
    assert failed.value.remedy


async def test_another_address(valkey: Server) -> None:
    way = Way(addresses=AddressMap((f"10.0.0.*:6379=127.0.0.1:{valkey.port}",)))
    connection = Connection(Target("10.0.0.7", 6379, way=way))
    await connection.open()
    assert await connection.run(guard.ping()) == [b"PONG"]
    await connection.close()


@pytest.mark.parametrize(
    ("rule", "address", "expected"),
    [
        ("10.0.0.*:6379=localhost:70xx", ("10.0.0.5", 6379), ("localhost", 7005)),
        ("10.0.0.*:6379=localhost:70xx", ("10.0.0.5", 6380), ("10.0.0.5", 6380)),
        ("10.0.0.*=192.0.2.*", ("10.0.0.12", 6380), ("192.0.2.12", 6380)),
        ("redis-*.internal:6379=redis-*.example:16379", ("redis-a.internal", 6379), ("redis-a.example", 16379)),
        ("redis-*.internal=localhost:70xx", ("redis-a.internal", 6379), ("redis-a.internal", 6379)),
        ("[2001:db8::1]:6379=localhost:7000", ("2001:db8::1", 6379), ("localhost", 7000)),
        ("10.0.0.1=localhost", ("10x0.0.1", 6379), ("10x0.0.1", 6379)),
        ("10.0.0.*:6379=localhost:7xxxx", ("10.0.0.70000", 6379), ("10.0.0.70000", 6379)),
    ],
)
def test_where_a_server_is_reached(rule: str, address: tuple[str, int], expected: tuple[str, int]) -> None:
    assert AddressMap((rule,)).reached_at(address) == expected


@pytest.mark.parametrize("rule", ["", "a", "=", "a=", "=b", "*.*=b", "a:x=b", "a:1=b:2=c", "a b=c", "a=b:123456"])
def test_a_rule_that_can_not_be_read(rule: str) -> None:
    with pytest.raises(TargetError):
        AddressMap((rule,))


@given(st.text(max_size=20), st.integers(1, 65_535))
def test_every_address_is_led_somewhere(host: str, port: int) -> None:
    rules = AddressMap(("a*:1=b*:2", "*=c:xx"))
    where, at = rules.reached_at((host, port))
    assert isinstance(where, str)
    assert 0 < at < 65_536


@pytest.mark.parametrize("host", ["", "-oProxyCommand=x", "a b", "a\nb", "x" * 300])
def test_what_is_no_ssh_host(host: str) -> None:
    with pytest.raises(TargetError):
        checked_host(host)


def test_a_way_shows_no_password() -> None:
    target = replace(Target(), way=Way(proxy=Secret("socks5://me:hunter2@p:1")))
    assert "hunter2" not in f"{target!r}{target.label}"


async def test_a_proxy_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_socks.async_.asyncio", None)
    failed = await failing(Target(way=Way(proxy=Secret("socks5://127.0.0.1:1"))))
    assert "redis-rtui[proxy]" in failed.remedy
