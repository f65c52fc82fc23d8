"""Memory and disks driven into each state, and found: fragmented, full by each policy, growing, unwritable."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import redis

from rtui.analysis.health.panel import State
from tests.server.health.driven import Given, Looking, looking, number, raw_clients
from tests.server.targets import eventually
from tests.servers import Server, running

MIB: Final = 1 << 20

VALUES: Final = 30_000
ATTEMPTS: Final = 20

ORDERS: Final = {
    "allkeys-lru": "keys are evicted, least recently used first",
    "allkeys-lfu": "keys are evicted, least frequently used first",
    "allkeys-lrm": "keys are evicted, least recently modified first",
    "allkeys-random": "keys are evicted, at random",
    "volatile-lru": "keys with a TTL are evicted, least recently used first",
    "volatile-lfu": "keys with a TTL are evicted, least frequently used first",
    "volatile-lrm": "keys with a TTL are evicted, least recently modified first",
    "volatile-random": "keys with a TTL are evicted, at random",
    "volatile-ttl": "keys with a TTL are evicted, soonest to expire first",
    "noeviction": "commands that need more memory fail with OOM",
}
"""What each policy means."""


def fill(server: Server, count: int, size: int, *, first: int = 0) -> None:
    with server.client() as client:
        pipeline = client.pipeline(transaction=False)
        for at in range(first, first + count):
            pipeline.set(f"key:{at}", "x" * size)
        pipeline.execute()


def policies(server: Server) -> list[str]:
    known = []
    for policy in ORDERS:
        with contextlib.suppress(redis.ResponseError):
            server.admin.config_set("maxmemory-policy", policy)
            known.append(policy)
    return known


def fill_up(server: Server) -> None:
    """Set a limit a little above what is used, and write until a write fails."""
    server.admin.config_set("maxmemory", int(server.admin.info("memory")["used_memory"]) + 2 * MIB)
    with pytest.raises(redis.ResponseError, match="maxmemory"):
        fill(server, 1_000, 10_000, first=100_000)


def shown_meaning(looked: Looking) -> str:
    return str(looked.line("memory", "maxmemory_policy").said)


@pytest.mark.slow
async def test_fragmentation(server: Server) -> None:
    """Of every four values three are deleted, so that hardly any page gets free; on a server without a past."""
    given: Given = {"memory-fragmented": {"least": 5 * MIB}}
    with running(server.binary) as own:
        fill(own, VALUES, 1_000)
        async with looking(own, given) as looked:
            await looked.look()
            assert looked.broken == []
            before = {one.id: one for one in looked.panel("memory").lines}
            with own.client() as client:
                pipeline = client.pipeline(transaction=False)
                for at in range(VALUES):
                    if at % 4:
                        pipeline.delete(f"key:{at}")
                pipeline.execute()
            await eventually(lambda: own.admin.info("memory")["mem_fragmentation_ratio"] > 1.5)
            await looked.look()
        is_libc = str(own.admin.info("memory")["mem_allocator"]).startswith("libc")
    assert looked.broken == ["memory-fragmented"]
    found = looked.finding("memory-fragmented")
    assert number(looked.wrong("memory", "mem_fragmentation_ratio")) > 1.5
    told = {one.id: one for one in looked.panel("memory").lines}
    if is_libc:
        assert "allocator_frag_ratio" not in told, "this malloc tells nothing of itself"
        assert not [text for text in found.evidence if "activedefrag" in text]
    else:
        assert number(told["allocator_frag_ratio"]) > 1.2 * number(before["allocator_frag_ratio"])
        assert any("activedefrag returns it" in text for text in found.evidence)


async def test_the_ratio_of_a_small_dataset_means_nothing(server: Server) -> None:
    async with looking(server) as looked:
        await looked.look()
    line = looked.line("memory", "mem_fragmentation_ratio")
    assert number(line) > 1.5
    assert (line.state, line.said) == (State.NORMAL, "not meaningful below 100 MiB used")


async def test_what_each_policy_means_for_keys_without_a_ttl(server: Server) -> None:
    fill(server, 1_200, 10)
    server.admin.config_set("maxmemory", 500 * MIB)
    known = policies(server)
    assert len(known) == (10 if server.product == "redis" and server.version >= (8, 6) else 8)
    async with looking(server) as looked:
        for policy in known:
            server.admin.config_set("maxmemory-policy", policy)
            await looked.look()
            assert looked.line("memory", "maxmemory_policy").value == policy
            assert ORDERS[policy] in shown_meaning(looked)
            if policy.startswith("volatile-"):
                assert "no key has a TTL, so nothing can be evicted" in shown_meaning(looked)
                assert looked.broken == ["eviction-impossible"]
                assert looked.wrong("memory", "evictable_keys_share").value == 0
                assert looked.finding("eviction-impossible").title == f"{policy} can evict none of 1,200 keys"
            else:
                assert looked.broken == []
        with server.client() as client:
            for at in range(300):
                client.expire(f"key:{at}", 10_000)
        server.admin.config_set("maxmemory-policy", "volatile-ttl")
        await looked.look()
        assert looked.broken == []
        assert looked.line("memory", "evictable_keys_share").value == 0.25
        assert shown_meaning(looked).endswith("75% of the keys have no TTL and stay")
    assert looked.table("memory", "databases").rows[0][:4] == (0, 1_200, 300, 0.25)


async def test_a_full_server_whose_policy_evicts_nothing(server: Server) -> None:
    fill(server, 100, 10)
    known = policies(server)
    async with looking(server) as looked:
        for policy in (one for one in known if not one.startswith("allkeys-")):
            server.admin.config_set("maxmemory-policy", policy)
            fill_up(server)
            await looked.look()
            rule = "memory-near-limit" if policy == "noeviction" else "eviction-impossible"
            assert {rule, "writes-refused"} == set(looked.broken) - {"command-banned"}, "FLUSHALL is used below"
            assert any(" used, policy " in text for text in looked.finding(rule).evidence)
            with pytest.raises(redis.ResponseError, match="maxmemory"):
                fill(server, 500, 10_000, first=200_000)
            await looked.look()
            assert " writes refused (OOM) since " in looked.finding("writes-refused").title
            assert " in the last " in looked.finding("writes-refused").title
            if policy == "noeviction":
                looked.wrong("memory", "used_memory")
            else:
                looked.wrong("memory", "evictable_keys_share", State.BAD)
            server.admin.config_set("maxmemory", 0)
            server.admin.flushall()
            await looked.look()
            assert looked.line("memory", "used_memory").state is State.NORMAL


async def test_a_full_server_that_evicts(server: Server) -> None:
    server.admin.config_set("maxmemory-policy", "allkeys-lru")
    server.admin.config_set("maxmemory", int(server.admin.info("memory")["used_memory"]) + 2 * MIB)
    async with looking(server) as looked:
        await looked.look()
        fill(server, 1_000, 10_000)
        await looked.look()
    assert looked.broken == []
    assert number(looked.line("memory", "evicted_keys")) > 10


async def test_a_cache_that_is_too_small(redis810: Server) -> None:
    given: Given = {"eviction-fast": {"stay": 1_000}}
    with running(redis810.binary, "--maxmemory-policy", "allkeys-random") as server:
        server.admin.config_set("maxmemory", int(server.admin.info("memory")["used_memory"]) + MIB)
        async with looking(server, given) as looked:
            await looked.look()
            fill(server, 4_000, 20_000)
            await eventually(lambda: server.admin.info("server")["uptime_in_seconds"] > 0)
            await looked.look()
            async with looking(server, given) as later:
                await later.look()
    assert looked.broken == later.broken == ["eviction-fast"]
    assert " evicted since the server started " in later.finding("eviction-fast").title


async def test_memory_that_will_be_full_soon(redis810: Server) -> None:
    with running(redis810.binary) as server:
        server.admin.config_set("maxmemory", int(server.admin.info("memory")["used_memory"]) + 60 * MIB)
        async with looking(server) as looked:
            for turn in range(9):
                fill(server, 100, 10_000, first=turn * 100)
                await looked.look()
                assert turn > 4 or looked.broken == []
            assert looked.broken == ["memory-near-limit"]
    assert any("at the current growth it is full in" in text for text in looked.finding("memory-near-limit").evidence)
    assert looked.wrong("memory", "used_memory").said.count("% of maxmemory") == 1


async def test_no_limit(server: Server) -> None:
    async with looking(server, {"memory-unlimited": {"share": 1e-6}}) as looked:
        await looked.look()
    assert looked.broken == ["memory-unlimited"]
    assert looked.wrong("memory", "maxmemory").value == "no limit"
    assert shown_meaning(looked) == "maxmemory is not set, so no key is ever evicted"
    async with looking(server) as looked:
        await looked.look()
    assert looked.broken == [], "of this machine's memory it takes next to nothing"


async def test_memory_that_is_not_resident(server: Server) -> None:
    """As when it was swapped out: the room for a large value has been asked for, and nothing was written there.

    Redis 6.2 takes the room back once a second, so it may have to be asked for again.
    """
    async with looking(server) as looked:
        for _ in range(ATTEMPTS):
            with raw_clients(server, 1, b"PING\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$300000000\r\nx") as (client,):
                assert client.recv(16) == b"+PONG\r\n", "what follows was read along with it"
                await looked.look()
            if looked.broken:
                break
    assert looked.broken == ["memory-swapped"]
    looked.wrong("memory", "used_memory_rss")


async def test_keys_that_must_stay_and_may_be_evicted(server: Server) -> None:
    server.admin.config_set("maxmemory", 500 * MIB)
    with server.client() as client:
        client.mset({f"lock:order:{at}": "x" for at in range(30)})
        client.mset({f"shop:product:{at}": "x" for at in range(30)})
        for at in range(20):
            client.set(f"shop:order-lock:{at}", "x", ex=900)
    async with looking(server) as looked:
        server.admin.config_set("maxmemory-policy", "allkeys-random")
        await looked.look()
        assert looked.broken == []
        await looked.analyse()
        await looked.look()
        assert looked.broken == ["eviction-of-lasting"] * 2
        assert {one.title for one in looked.found("eviction-of-lasting")} == {
            "allkeys-random may evict the 30 locks of lock:",
            "allkeys-random may evict the 20 locks of shop:order-lock:",
        }
        assert looked.wrong("memory", "lasting_keys_evictable").value == 2
        server.admin.config_set("maxmemory-policy", "volatile-ttl")
        await looked.look()
        found = looked.finding("eviction-of-lasting")
        assert found.title == "volatile-ttl may evict the 20 locks of shop:order-lock: that have a TTL"
        assert "soonest to expire first" in found.evidence[0]
        server.admin.config_set("maxmemory-policy", "noeviction")
        await looked.look()
        assert looked.broken == []


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
    for at in range(count):
        server.admin.set(f"noise:{at}", os.urandom(4_000))


async def save_in_background(server: Server) -> None:
    with contextlib.suppress(redis.ResponseError):
        server.admin.bgsave()
    await eventually(lambda: not server.admin.info("persistence")["rdb_bgsave_in_progress"])


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("fixture", ["redis62", "valkey"])
async def test_huge_pages(request: pytest.FixtureRequest, fixture: str) -> None:
    of_version: Server = request.getfixturevalue(fixture)
    with running(of_version.binary, "--disable-thp", "no") as own:
        async with looking(own) as looked:
            await looked.look()
    assert looked.broken == ["huge-pages"]
    assert looked.wrong("persistence", "disable_thp").value == "no"
