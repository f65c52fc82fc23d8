"""The way to a server: through SSH hosts, a SOCKS proxy, and to other addresses."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.guard.command import Secret
from rtui.server.options import AnalysisOptions
from rtui.server.wire.connection import Connection, why_lost
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, TargetError
from rtui.server.wire.target import AddressMap, Target, Timeouts, Tls, Way, checked_host, checked_proxy
from tests.server.targets import eventually, failing
from tests.servers import Server, free_port
from tests.ssh_host import SshHost, ssh_children


def instead_of_ssh(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a shell script in the place of ssh."""
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


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
    failed = await failing(Connection(Target(port=valkey.port, way=Way((host,)))))
    assert failed.kind is FailureKind.SSH
    assert f"ssh {host}: " in failed.happened
    assert said in failed.happened
    assert failed.happened.count("authorised") <= 2  # of the banner only the end is shown
    await eventually(lambda: not ssh_children())


async def test_ssh_says_itself_why_it_gets_no_further(bastion: SshHost) -> None:
    dead = await failing(Connection(Target(port=free_port(), way=Way(("bastion",)))))
    assert dead.kind is FailureKind.SSH
    assert "Connection refused" in dead.happened
    await eventually(lambda: not ssh_children())


async def test_a_server_that_ends_behind_a_host_with_a_banner_is_not_the_fault_of_ssh(
    bastion: SshHost, redis70: Server
) -> None:
    connection = Connection(Target(port=redis70.port, way=Way(("bastion",))))
    await connection.open()
    redis70.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await eventually(lambda: not connection.is_online)
    assert "authorised" not in why_lost(connection.state)
    await connection.close()


async def test_what_ssh_says_is_read_all_the_time(
    bastion: SshHost, valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With LogLevel DEBUG it comes to say more than a pipe holds, and would wait for a reader."""
    instead_of_ssh(f'seq 20000 >&2\nexec {bastion.path / "ssh"} "$@"', tmp_path, monkeypatch)
    connection = Connection(Target(port=valkey.port, way=Way(("bastion",))))
    await connection.open()
    assert await connection.run(guard.ping()) == [b"PONG"]
    await connection.close()


async def test_ssh_may_take_longer_than_a_server(
    bastion: SshHost, valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead_of_ssh(f'sleep 0.3\nexec {bastion.path / "ssh"} "$@"', tmp_path, monkeypatch)
    connection = Connection(Target(port=valkey.port, way=Way(("bastion",), timeouts=Timeouts(direct_s=0.01))))
    await connection.open()
    assert await connection.run(guard.ping()) == [b"PONG"]
    await connection.close()


async def test_ssh_that_hangs_is_not_said_to_be_a_server_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead_of_ssh("exec sleep 60", tmp_path, monkeypatch)
    connection = Connection(Target(port=1, way=Way(("bastion",), timeouts=Timeouts(direct_s=0.01, ssh_s=0.1))))
    with pytest.raises(ConnectFailure) as failed:
        await connection.open()
    await connection.close()
    assert failed.value.kind is FailureKind.TIMEOUT
    assert failed.value.happened == "127.0.0.1:1 via bastion did not answer within 0.1 s, and ssh says nothing."
    assert "`ssh bastion`" in failed.value.remedy


async def test_without_ssh_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    failed = await failing(Connection(Target(way=Way(("bastion",)))))
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


async def test_a_socks_proxy(bastion: SshHost, valkey: Server) -> None:
    port = free_port()
    with bastion.socks_proxy(port):
        way = Way(proxy=checked_proxy(f"socks5h://127.0.0.1:{port}"))
        connection = Connection(Target("localhost", valkey.port, way=way))
        await connection.open()
        assert await connection.run(guard.ping()) == [b"PONG"]
        await connection.close()
    failed = await failing(Connection(Target(port=valkey.port, way=way)))
    assert failed.kind is FailureKind.PROXY


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
        ("[2001:DB8:0::1]=localhost:7000", ("2001:db8::0001", 6379), ("localhost", 7000)),
        ("[2001:db8::*]=localhost:700x", ("2001:0DB8:0:0::3", 6379), ("localhost", 7003)),
        ("DB-*.internal=*.example", ("db-A.Internal", 6379), ("A.example", 6379)),
        ("10.0.0.*:6379=localhost:7xxxx", ("10.0.0.70000", 6379), ("10.0.0.70000", 6379)),
    ],
)
def test_where_a_server_is_reached(rule: str, address: tuple[str, int], expected: tuple[str, int]) -> None:
    assert AddressMap((rule,)).reached_at(address) == expected


@pytest.mark.parametrize(
    "rule",
    ["", "a", "=", "a=", "=b", "*.*=b", "a:x=b", "a:1=b:2=c", "a b=c", "a=b:123456", "a=b:0", "a:65536=b", "a?=b"],
)
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


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("socks5://127.0.0.1:1080", "socks5://127.0.0.1:1080"),
        ("SOCKS5h://me:p%40w@[::1]:1080", "socks5://me:p%40w@[::1]:1080"),
        ("socks4a://proxy.example:1080", "socks4://proxy.example:1080"),
    ],
)
def test_proxies_as_curl_has_them(url: str, read: str) -> None:
    assert checked_proxy(url).reveal() == read


@pytest.mark.parametrize(
    "url", ["hunter2", "hunter2:1", "socks5://hunter2", "socks5://:1", "socks5://hunter2:0", "ssh://hunter2:1"]
)
def test_what_is_no_proxy(url: str) -> None:
    with pytest.raises(TargetError) as failed:
        checked_proxy(url)
    assert "hunter2" not in f"{failed.value}{failed.value.remedy}"


def test_a_way_shows_no_password() -> None:
    target = replace(Target(), way=Way(proxy=Secret("socks5://me:hunter2@p:1")))
    assert "hunter2" not in f"{target!r}{target.label}"


async def test_a_proxy_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_socks.async_.asyncio", None)
    failed = await failing(Connection(Target(way=Way(proxy=Secret("socks5://127.0.0.1:1")))))
    assert "redis-rtui[proxy]" in failed.remedy
