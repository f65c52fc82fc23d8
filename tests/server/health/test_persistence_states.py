"""Disks that can't be written to, forks and huge pages, on servers of their own: found, and told on the panel."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from rtui.analysis.health.panel import State
from tests.server.health.driven import looking
from tests.server.targets import eventually
from tests.servers import Server, running

pytestmark = pytest.mark.slow
"""Each starts a server."""


def _ran(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A folder with something mounted on it; skips the test where this process may mount nothing."""
    folder.mkdir(exist_ok=True)
    if os.geteuid() or not _ran("mount", *options, str(folder)):
        pytest.skip("this process may not mount anything: it takes root and CAP_SYS_ADMIN")
    try:
        yield folder
    finally:
        _ran("umount", "--lazy", str(folder))


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """A folder that nothing can be written to, not by root either."""
    folder.mkdir()
    if os.geteuid():
        folder.chmod(0o500)
        yield folder
        folder.chmod(0o700)
        return
    with mounted(folder, "--bind", str(folder)):
        assert _ran("mount", "-o", "remount,ro,bind", str(folder))
        yield folder


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of 1 MiB."""
    with mounted(folder, "-t", "tmpfs", "-o", "size=1m", "none"):
        yield folder


def write_noise(server: Server, count: int) -> None:
    """Write so many values of 4 KB that do not compress."""
    for number in range(count):
        server.admin.set(f"noise:{number}", os.urandom(4_000))


async def save_in_background(server: Server) -> None:
    with contextlib.suppress(redis.ResponseError):
        server.admin.bgsave()
    await eventually(lambda: not server.admin.info("persistence")["rdb_bgsave_in_progress"])


async def test_a_folder_that_can_not_be_written_to(server: Server, tmp_path: Path) -> None:
    with read_only(tmp_path / "disk") as folder, running(server.binary, "--dir", str(folder)) as own:
        own.admin.mset({"a": "b", "c": "d"})
        async with looking(own) as looked:
            await looked.look()
            assert looked.broken == []
            await save_in_background(own)
            await looked.look()
    assert looked.broken == ["persistence-failing"]
    found = looked.finding("persistence-failing")
    assert found.title == "The last RDB save failed"
    assert found.evidence[0].endswith("since the last RDB save")
    assert found.evidence[1] == "writes continue: save is empty"
    assert looked.wrong("persistence", "rdb_last_bgsave_status", State.BAD).value == "err"


async def test_a_disk_that_is_full(server: Server, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as folder, running(server.binary, "--dir", str(folder)) as own:
        write_noise(own, 400)
        async with looking(own) as looked:
            await save_in_background(own)
            await looked.look()
            assert looked.finding("persistence-failing").title == "The last RDB save failed"
            own.admin.config_set("save", "3600 100000")
            await looked.look()
            says = "writes fail with MISCONF: stop-writes-on-bgsave-error is yes"
            assert says in looked.finding("persistence-failing").evidence
            with pytest.raises(redis.ResponseError, match=r"MISCONF|unable to persist"):
                own.admin.set("a", "b")
            own.admin.config_set("stop-writes-on-bgsave-error", "no")
            await looked.look()
            assert any("writes continue" in text for text in looked.finding("persistence-failing").evidence)
            own.admin.flushall()
            (folder / "dump.rdb").unlink(missing_ok=True)
            await save_in_background(own)
            await looked.look()
    assert looked.broken == ["writes-refused"], "the write that failed with MISCONF"
    line = looked.line("persistence", "rdb_last_bgsave_status")
    assert (line.value, line.state) == ("ok", State.NORMAL)
    assert line.said.startswith("it took ")


async def test_an_aof_on_a_disk_that_is_full(server: Server, tmp_path: Path) -> None:
    aof = ("--appendonly", "yes", "--appendfsync", "everysec")
    with small_disk(tmp_path / "disk") as folder, running(server.binary, "--dir", str(folder), *aof) as own:
        async with looking(own) as looked:
            await looked.look()
            assert looked.broken == []
            assert looked.line("persistence", "aof_last_write_status").state is State.NORMAL
            with pytest.raises(redis.ResponseError, match=r"MISCONF|AOF"):
                write_noise(own, 1_000)
            await eventually(lambda: own.admin.info("persistence")["aof_last_write_status"] == "err")
            await looked.look()
    assert looked.broken == ["persistence-failing", "writes-refused"]
    assert "The last AOF write failed" in looked.finding("persistence-failing").title
    assert looked.wrong("persistence", "aof_last_write_status", State.BAD).value == "err"
    assert looked.line("persistence", "rdb_last_bgsave_status").state is State.NORMAL
    assert looked.line("persistence", "aof_current_size").state is State.PLAIN


async def test_a_rewrite_of_the_aof_that_fails(server: Server, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as folder, running(server.binary, "--dir", str(folder)) as own:
        write_noise(own, 400)
        async with looking(own) as looked:
            await looked.look()
            with contextlib.suppress(redis.ResponseError):
                own.admin.config_set("appendonly", "yes")
            await eventually(lambda: own.admin.info("persistence")["aof_last_bgrewrite_status"] == "err")
            await looked.look()
    assert looked.broken == ["persistence-failing"]
    assert looked.finding("persistence-failing").title == "The last AOF rewrite failed"


async def test_forks(server: Server, tmp_path: Path) -> None:
    given = {"fork-slow": {"longest": 0.001}}
    with running(server.binary, "--dir", str(tmp_path)) as own:
        own.admin.set("a", "b" * 1_000_000)
        async with looking(own, given) as looked, looking(own) as usual:
            await looked.look()
            assert looked.line("persistence", "latest_fork").said.startswith("none so far; with ")
            assert "expect " in looked.line("persistence", "latest_fork").said
            await save_in_background(own)
            await looked.look()
            await usual.look()
    assert looked.broken == ["fork-slow"]
    assert "per GiB used; 9ms to 13ms is usual" in looked.finding("fork-slow").evidence[0]
    assert "all clients wait during a fork" in looked.wrong("persistence", "latest_fork").said
    assert usual.broken == []


@pytest.mark.parametrize("fixture", ["redis62", "valkey"])
async def test_huge_pages(request: pytest.FixtureRequest, fixture: str) -> None:
    of_version: Server = request.getfixturevalue(fixture)
    with running(of_version.binary, "--disable-thp", "no") as own:
        async with looking(own) as looked:
            await looked.look()
    assert looked.broken == ["huge-pages"]
    assert looked.wrong("persistence", "disable_thp").value == "no"
