"""Recent servers: what is remembered of one, what never is, and what a broken file costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.keyspace.text.display import display_text
from rtui.server.recent import KEPT, RecentServers
from rtui.server.wire.target import Secret, Target, Tls


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


def test_no_password_is_written(recent: RecentServers) -> None:
    recent.add(Target("cache", password=Secret("hunter2")))
    assert "hunter2" not in recent.path.read_text()
    assert recent.servers() == [Target("cache")]
    assert recent.path.stat().st_mode & 0o077 == 0


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
