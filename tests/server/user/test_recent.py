"""Recent servers: what is remembered of one, what never is, and what a broken file costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rtui.keyspace.text.display import display_text
from rtui.server.guard.command import Secret
from rtui.server.user.known_servers import KEPT, RecentServers
from rtui.server.wire.target import AddressMap, Sentinels, Target, Tls, Way, parse_target


@pytest.fixture
def recent(tmp_path: Path) -> RecentServers:
    return RecentServers(tmp_path / "rtui" / "recent.json")


def test_the_last_one_comes_first_and_once(recent: RecentServers) -> None:
    one, other = Target("cache", 1), Target("queue", 2, user="app", tls=Tls(cacert="/ca.pem"), protocol=3)
    for target in (one, other, Target("cache", 1, db=4)):
        recent.add(target)
    assert recent.servers() == [Target("cache", 1, db=4), other]


def test_sockets_and_profiles_are_remembered(recent: RecentServers) -> None:
    recent.add(Target(socket_path="/run/redis.sock", db=2))
    recent.add(Target("cache", name=display_text("prod")))
    recent.add(Target("moved", name=display_text("prod")))
    assert recent.servers() == [Target("moved", name=display_text("prod")), Target(socket_path="/run/redis.sock", db=2)]


def test_a_service_is_remembered_with_its_sentinels_and_without_their_password(recent: RecentServers) -> None:
    sentinels = Sentinels("mymaster", (("s1", 26379), ("s2", 7)), "watcher", Secret("hunter2"), Tls())
    recent.add(Target("10.0.0.1", 6379, sentinels=sentinels))
    recent.add(Target("10.0.0.2", 6379, sentinels=sentinels))
    assert "hunter2" not in recent.path.read_text()
    assert recent.servers() == [Target(sentinels=replace(sentinels, password=None))]


def test_the_way_is_remembered(recent: RecentServers) -> None:
    way = Way(("one", "two"), AddressMap(("10.0.0.1:6379=localhost:7001",)))
    recent.add(Target("10.0.0.1", way=replace(way, proxy=Secret("socks5://me:hunter2@p"))))
    recent.add(Target("10.0.0.1"))
    assert "hunter2" not in recent.path.read_text()
    assert recent.servers() == [Target("10.0.0.1"), Target("10.0.0.1", way=way)]


def test_how_a_cluster_was_looked_at_is_remembered(recent: RecentServers) -> None:
    whole = Target("10.0.0.1", seeds=(("10.0.0.2", 6379), ("10.0.0.3", 7000)), cluster=True, replicas="only", zone="z")
    one = Target("10.0.0.4", only_node=True)
    recent.add(whole)
    recent.add(one)
    assert recent.servers() == [one, whole]


def test_no_password_is_written(recent: RecentServers) -> None:
    recent.add(Target("cache", password=Secret("hunter2")))
    assert "hunter2" not in recent.path.read_text()
    assert recent.servers() == [Target("cache")]
    assert recent.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "url",
    [
        "redis://app:hunter2@cache/3",
        "rediss://:hunter2@cache:6380",
        "valkey://app:hunter2@[::1]:7000/1",
        "unix://app:hunter2@/run/redis.sock?db=2",
    ],
)
def test_no_password_of_a_url_is_written(recent: RecentServers, url: str) -> None:
    target = parse_target(url)
    assert target.password == Secret("hunter2")
    recent.add(target)
    assert "hunter2" not in recent.path.read_text()
    assert [one.password for one in recent.servers()] == [None]


def test_there_are_never_too_many(recent: RecentServers) -> None:
    for port in range(1, KEPT + 10):
        recent.add(Target("cache", port))
    assert [one.port for one in recent.servers()] == list(range(KEPT + 9, 9, -1))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"port": 99999}]', "[" * 100_000, "\0"])
def test_a_broken_file_counts_as_empty(recent: RecentServers, text: str) -> None:
    recent.path.parent.mkdir()
    recent.path.write_text(text)
    assert recent.servers() == []
    recent.add(Target("cache"))
    assert recent.servers() == [Target("cache")]


def test_a_name_that_is_no_text_is_not_remembered(recent: RecentServers) -> None:
    recent.add(Target("cache", user="\udcff"))
    assert recent.servers() == []


def test_the_key_of_a_client_is_remembered_without_its_passphrase(recent: RecentServers) -> None:
    tls = Tls(cert="/c.pem", key="/k.pem")
    known = Target("cache", tls=tls, sentinels=Sentinels("m", (("s1", 1),), tls=tls))
    recent.add(known.with_key_password(Secret("hunter2")))
    assert "hunter2" not in recent.path.read_text()
    assert [(one.tls, one.sentinels and one.sentinels.tls) for one in recent.servers()] == [(tls, tls)]
