"""Targets as people write them, and the ways to them: SSH hosts, a SOCKS proxy, other addresses."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import signal
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.guard.command import MASK, Secret
from rtui.server.options import AnalysisOptions
from rtui.server.wire.connection import Connection, why_lost
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, TargetError
from rtui.server.wire.target import (
    AddressMap,
    Sentinels,
    Target,
    Timeouts,
    Tls,
    Way,
    checked_host,
    checked_proxy,
    parse_target,
)
from tests.conftest import known
from tests.server.targets import eventually, failing
from tests.servers import Server, free_port
from tests.ssh_host import SshHost, ssh_children

MARK = "S3CR3T"
"""A part of every password below, so that it can be looked for."""

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PASSWORDS = st.builds(lambda before, after: before + MARK + after, TEXT, TEXT)
HOSTS = st.from_regex(r"[a-z][a-z0-9-]{0,20}(\.[a-z]{2,5})?", fullmatch=True)
SCHEMES = st.sampled_from(["redis", "rediss", "valkey", "valkeys", "REDIS"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Target()),
        ("cache", Target(host="cache")),
        ("cache:7000", Target(host="cache", port=7000)),
        (":7000", Target(port=7000)),
        ("cache:", Target(host="cache")),
        ("a,b:7000,[::1]:7001", Target(host="a", seeds=(("b", 7000), ("::1", 7001)))),
        ("redis://app@a:1,b/3", Target(host="a", port=1, user="app", db=3, seeds=(("b", 6379),))),
        ("::1", Target(host="::1")),
        ("[::1]", Target(host="::1")),
        ("[::1]:6380", Target(host="::1", port=6380)),
        ("[fe80::1%25eth0]:1", Target(host="fe80::1%eth0", port=1)),
        ("/run/redis.sock", Target(socket_path="/run/redis.sock")),
        ("redis://", Target()),
        ("redis://cache", Target(host="cache")),
        ("redis://cache/", Target(host="cache")),
        ("redis://cache:6380/3", Target(host="cache", port=6380, db=3)),
        ("redis://cache/3?db=5", Target(host="cache", db=5)),
        ("redis://cache?db=5", Target(host="cache", db=5)),
        ("redis://cache?protocol=3", Target(host="cache", protocol=3)),
        ("redis://[::1]:6380/3", Target(host="::1", port=6380, db=3)),
        ("valkey://cache", Target(host="cache")),
        ("rediss://cache", Target(host="cache", tls=Tls())),
        ("valkeys://cache", Target(host="cache", tls=Tls())),
        ("redis://:pw@cache", Target(host="cache", password=Secret("pw"))),
        ("redis://app:pw@cache", Target(host="cache", user="app", password=Secret("pw"))),
        ("redis://app@cache", Target(host="cache", user="app")),
        ("redis://:a%40b%2Fc%3A@cache", Target(host="cache", password=Secret("a@b/c:"))),
        ("redis://:a@b@cache", Target(host="cache", password=Secret("a@b"))),
        ("redis://:a:b@cache", Target(host="cache", password=Secret("a:b"))),
        ("redis://:%FF@cache", Target(host="cache", password=Secret("\udcff"))),
        ("unix:///run/redis.sock", Target(socket_path="/run/redis.sock")),
        ("unix:///run/redis.sock?db=2", Target(socket_path="/run/redis.sock", db=2)),
        ("unix://app:pw@/run/a@b.sock", Target(socket_path="/run/a@b.sock", user="app", password=Secret("pw"))),
        ("unix:///run/a%20b", Target(socket_path="/run/a b")),
        ("sentinel://s1/m", Target(sentinels=Sentinels("m", (("s1", 26379),)))),
        (
            "sentinel://app:pw@s1,s2:7000,[::1]:7001/my%2Fmaster/3",
            Target(
                user="app",
                password=Secret("pw"),
                db=3,
                sentinels=Sentinels("my/master", (("s1", 26379), ("s2", 7000), ("::1", 7001))),
            ),
        ),
    ],
)
def test_what_people_write(text: str, expected: Target) -> None:
    assert parse_target(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "http://cache", "redis+sentinel://cache", "sentinel://s1,,s2/m", "cache:port", "cache:0", "cache:65536",
        "cache:-1", "cache:٣", "cache:1:2", "ca che", "[::1", "[::1]x", "redis://cache/x", "redis://cache/-1",
        "redis://cache/99999999999", "redis://cache?password=x", "redis://cache?db=1&db=2", "redis://cache?protocol=4",
        "redis://:p/w@cache", "redis://:p?w@cache", "redis://:p#w@cache", "user:pw@cache", "unix://", "unix:///",
        "unix://host/path", "unix://:p/w@/path", "/run/\0", "cache\n", "sentinel://s1,,s2/m", "\ud800",
    ],
)  # fmt: skip
def test_what_is_refused(text: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(text)
    assert caught.value.remedy


@given(SCHEMES, st.one_of(st.just(""), HOSTS), PASSWORDS, HOSTS, st.tuples(st.integers(1, 65535), st.integers(0, 99)))
def test_a_password_that_is_written_right_comes_out_as_it_was(
    scheme: str, user: str, password: str, host: str, numbers: tuple[int, int]
) -> None:
    port, db = numbers
    target = parse_target(f"{scheme}://{user}:{quote(password, safe='')}@{host}:{port}/{db}")
    assert target.password == Secret(password)
    assert (target.user or "", target.host, target.port, target.db) == (user, host, port, db)
    assert MARK not in f"{target!r}{target.label}{target.redis_cli_args()}"


@given(
    st.sampled_from(
        ["redis://:{}@cache:1/0", "rediss://u:{}@[::1]:1", "unix://:{}@/run/s", "{}@cache", "u:{}@cache:1"]
    ),
    PASSWORDS,
)
@example("redis://:{}@cache:1/0", f"/{MARK}")
@example("redis://:{}@cache:1/0", f"@{MARK}/")
@example("redis://:{}@cache:1/0", f"#{MARK}?")
@example("redis://:{}@cache:1/0", f"%{MARK}%")
@example("unix://:{}@/run/s", f"/{MARK}@/x")
@example("{}@cache", f"/{MARK}")
def test_a_password_that_is_written_wrong_is_never_repeated(shape: str, password: str) -> None:
    try:
        target = parse_target(shape.format(password))
    except TargetError as error:
        lines = traceback.format_exception(error)
        assert MARK not in f"{error.title}{error.happened}{error.remedy}{error!r}{''.join(lines)}"
    else:
        assert MARK in known(target.password).reveal()
        assert MARK not in f"{target!r}{target.label}{target.redis_cli_args()}"


@given(st.text())
def test_anything_else_is_a_target_or_an_error(text: str) -> None:
    try:
        target = parse_target(text)
    except TargetError:
        return
    assert 0 < target.port <= 65535


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("redis:/10.0.0.5", "redis://, with a colon and two slashes"),
        ("REDISS:cache:7000", "rediss://, with a colon and two slashes"),
        ("valkey//cache", "valkey://, with a colon and two slashes"),
        ("redis:cache", "redis://, with a colon and two slashes"),
        ("unix:/run/s", "unix:///"),
        ("sentinel:/a,b/m", "sentinel://"),
        ("http://cache:6379", "Did you mean redis://?"),
        ("HTTPS://cache", "Did you mean rediss://?"),
        ("rediss+ssl://cache", "Did you mean rediss://?"),
        ("reddis://cache", "Did you mean redis://?"),
        ("vakley://cache", "Did you mean valkey://?"),
        ("redis+sentinel://a/m", "Did you mean sentinel://?"),
        ("redis://cache:7000/users", "The database, which follows the / after the host"),
        ("redis://cache?db=x", "The database"),
        ("cache:x", "The port, which follows the colon after the host"),
        ("redis://cache:99999", "from 1 to 65535"),
        ("cache/3", "it is not a URL"),
        ("cache:7000/3", "it is not a URL"),
        ("./redis.sock", "not absolute"),
        ("[::1:7000", "brackets"),
    ],
)
def test_what_is_wrong_is_said_precisely(text: str, said: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(text)
    assert said in f"{caught.value.happened} {caught.value.remedy}"


@pytest.mark.parametrize("text", ["redis", "redis:7000", "valkey:", "unix:1", "sentinel:26379", "http", "rediss"])
def test_hosts_may_be_called_like_schemes(text: str) -> None:
    assert parse_target(text).host == text.partition(":")[0]


@pytest.mark.parametrize(
    ("target", "label"),
    [
        (Target(), "127.0.0.1:6379"),
        (Target(host="::1"), "[::1]:6379"),
        (Target(socket_path="/run/s"), "/run/s"),
        (Target(host="a\x1b[31m"), "a␛[31m:6379"),
    ],
)
def test_the_label(target: Target, label: str) -> None:
    assert target.label == label


def test_redis_cli_reaches_the_same_place() -> None:
    tls = Tls(cacert="/ca", cert="/c", key="/k", sni="s", insecure=True)
    target = Target(host="h", port=7, user="u", password=Secret(MARK), db=3, tls=tls, cluster=True)
    expected = "-h h -p 7 --user u --askpass -n 3 -c --tls --cacert /ca --cert /c --key /k --sni s --insecure"
    assert " ".join(target.redis_cli_args()) == expected
    assert Target(socket_path="/run/s").redis_cli_args() == ("-s", "/run/s")


SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text not in MASK)


@given(SECRETS)
def test_nothing_shows_it(password: str) -> None:
    secret = Secret(password)
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r}", f"{secret:>9}", "%s" % secret):  # noqa: UP031
        assert shown.strip() == MASK
    assert secret.reveal() == password


def test_a_target_does_not_show_it() -> None:
    target = Target(user="app", password=Secret("pa55word"))
    assert "pa55word" not in f"{target}{target!r}{target.label}{dataclasses.asdict(target)}{target.redis_cli_args()}"


def test_it_does_not_travel() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret("pa55word"))


def test_copies_are_as_closed() -> None:
    secret = Secret("pa55word")
    assert copy.deepcopy([secret]) == [secret] == [copy.copy(secret)]


def test_a_traceback_with_values_does_not_show_it() -> None:
    try:
        raise ValueError(Target(password=Secret("pa55word")), Secret("pa55word"))
    except ValueError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    assert "pa55word" not in "".join(line for line in shown.format() if "raise ValueError" not in line)


def test_only_the_same_secret_is_equal() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1


def test_an_empty_one_is_false() -> None:
    assert not Secret("")
    assert Secret(" ")


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
    assert known(run.report).head.coverage.keys == 500
    assert len(ssh_children()) == 2
    assert all(f"-W 127.0.0.1:{valkey.port} -- {via[-1]}" in line for line in ssh_children().values())
    await connection.close()
    await eventually(lambda: not ssh_children())


async def test_tls_goes_through_ssh_as_well(bastion: SshHost, tls_server: Server) -> None:
    tls = Tls(cacert=str(known(tls_server.tls).ca))
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
    where, at = AddressMap(("a*:1=b*:2", "*=c:xx")).reached_at((host, port))
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
