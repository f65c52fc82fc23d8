"""Each trouble that people call at night about, made real on a real server: its rule finds it, and no other one does.

A trouble is found by what has come to be since the server's start, by somebody who looks once and sees nothing happen,
as well as by somebody who watches meanwhile. When its cause is gone and the statistics begin anew, nothing is found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import pytest

from rtui.registry.rules import Severity
from tests.server.health.driven import Given, looking, raw_clients
from tests.servers import Server, wait_until

TIMES: Final = 30
WRITE: Final = b"SET more x\r\n"


@dataclass(frozen=True)
class Trouble:
    """A trouble, and the rules that find it."""

    make: Callable[[Server], contextlib.AbstractContextManager[object]]
    """Make it, and take its cause away at the end."""
    rules: frozenset[str]


TROUBLES: Final[dict[str, Trouble]] = {}


def trouble(*rules: str) -> Callable[[Callable[[Server], Iterator[None]]], None]:
    def register(make: Callable[[Server], Iterator[None]]) -> None:
        TROUBLES[make.__name__] = Trouble(contextmanager(make), frozenset(rules))

    return register


def fail(server: Server, line: bytes, error: bytes, times: int = TIMES, before: bytes = b"") -> None:
    """Send a command that is answered with an error, after others that are answered with OK."""
    with raw_clients(server, 1, before) as (client,):
        replies = client.makefile("rb")
        for _ in range(before.count(b"\n")):
            assert replies.readline().startswith(b"+OK")
        for _ in range(times):
            client.sendall(line)  # one at a time: Redis 8 leaves the rest unread after a failed AUTH
            assert replies.readline().startswith(b"-" + error)


@contextmanager
def settings(server: Server, **values: str | int) -> Iterator[None]:
    """Other settings meanwhile."""
    names = [name.replace("_", "-") for name in values]
    before = {name: str(server.admin.config_get(name)[name]) for name in names}
    for name, value in zip(names, values.values(), strict=True):
        server.admin.config_set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            server.admin.config_set(name, value)


def fill(server: Server, policy: str) -> contextlib.AbstractContextManager[None]:
    """Less memory than is used by keys of which none has a TTL."""
    with server.client() as client:
        client.mset({f"shop:user:{at}": "x" * 100 for at in range(300)})
    used = server.admin.info("memory")["used_memory"]
    return settings(server, maxmemory=used * 3 // 4, maxmemory_policy=policy)


@trouble("writes-refused", "memory-near-limit")
def full_memory(server: Server) -> Iterator[None]:
    with fill(server, "noeviction"):
        fail(server, WRITE, b"OOM")
        yield


@trouble("writes-refused", "eviction-impossible")
def full_memory_without_any_ttl(server: Server) -> Iterator[None]:
    with fill(server, "volatile-lru"):
        fail(server, WRITE, b"OOM")
        yield


@trouble("writes-refused")
def too_few_replicas(server: Server) -> Iterator[None]:
    with settings(server, min_replicas_to_write=1):
        fail(server, WRITE, b"NOREPLICAS")
        yield


@trouble("eviction-impossible")
def keys_that_a_volatile_policy_can_not_evict(server: Server) -> Iterator[None]:
    with server.client() as client:
        client.mset({f"shop:user:{at}": "x" for at in range(300)})
    with settings(server, maxmemory="900mb", maxmemory_policy="volatile-lfu"):
        yield
    server.admin.flushall()


@trouble("connections-refused")
def too_many_connections(server: Server) -> Iterator[None]:
    connected = int(server.admin.info("clients")["connected_clients"])
    with settings(server, maxclients=connected), raw_clients(server, TIMES) as clients:
        assert all(client.recv(64).startswith(b"-ERR max") for client in clients)
    yield


@trouble("clients-limit")
def nearly_as_many_connections_as_there_may_be(server: Server) -> Iterator[None]:
    with settings(server, maxclients=20), raw_clients(server, 16) as clients:
        for client in clients:
            client.recv(16)
        yield


@trouble("command-banned")
def keys(server: Server) -> Iterator[None]:
    with server.client(client_name="batchjob") as client:
        for _ in range(5):
            client.keys("*")
        yield


@trouble("monitor-attached")
def monitor(server: Server) -> Iterator[None]:
    with raw_clients(server, 1, b"MONITOR\r\n") as (client,):
        assert client.recv(16).startswith(b"+OK")
        yield


@trouble("logins-failed")
def wrong_passwords(server: Server) -> Iterator[None]:
    fail(server, b"AUTH shop wrong\r\n", b"WRONGPASS")
    yield


@trouble("acl-denied")
def denied_commands(server: Server) -> Iterator[None]:
    server.admin.acl_setuser("shop", enabled=True, nopass=True, commands=["+get", "+client"], keys=["shop:*"])
    for line in (b"SET shop:1 x\r\n", b"GET other\r\n"):
        fail(server, line, b"NOPERM", before=b"AUTH shop x\r\n")
    yield


@trouble("calls-failed")
def another_type(server: Server) -> Iterator[None]:
    fail(server, b"LPUSH shop:cart x\r\n", b"WRONGTYPE", 300, before=b"SET shop:cart x\r\n")
    yield


@trouble("calls-failed")
def missing_arguments(server: Server) -> Iterator[None]:
    fail(server, b"HSET shop:cart\r\n", b"ERR wrong number", 300)
    yield


@trouble("hit-ratio-low")
def misses(server: Server) -> Iterator[None]:
    with server.client() as client:
        pipeline = client.pipeline(transaction=False)
        for at in range(1_000):
            pipeline.get(f"shop:gone:{at}")
        pipeline.execute()
    yield


@trouble("clients-closed")
def a_subscriber_that_reads_nothing(server: Server) -> Iterator[None]:
    limit = "pubsub 65536 0 0"
    with settings(server, client_output_buffer_limit=limit), raw_clients(server, 4, b"SUBSCRIBE news\r\n"):
        wait_until(lambda: server.admin.pubsub_numsub("news")[0][1] == 4, server.log)
        while server.admin.publish("news", "x" * 100_000):
            pass
        yield


@trouble("expire-cycles-late")
def many_keys_that_expire_at_once(server: Server) -> Iterator[None]:
    for first in range(0, 300_000, 10_000):
        script = f"for at = {first}, {first + 9_999} do redis.call('SET', 'page:' .. at, 'x', 'PX', 1500) end"
        server.admin.eval(script, 0)
    wait_until(lambda: server.admin.info("stats")["expired_time_cap_reached_count"] > 1, server.log)
    yield
    server.admin.flushall()


GIVEN: Final[Given] = {"expire-cycles-late": {"count": 2, "now": 2}}
"""Lower limits of what would take a real server hours."""

UNCOUNTED: Final = {"clients-closed": "client_output_buffer_limit_disconnections"}
"""By rule the field that not all versions have."""


def expected(server: Server, rules: frozenset[str]) -> set[str]:
    told = server.admin.info("stats")
    return {rule for rule in rules if rule not in UNCOUNTED or UNCOUNTED[rule] in told}


@pytest.mark.parametrize("name", TROUBLES)
async def test_a_trouble_is_found_by_its_rule_alone(server: Server, name: str) -> None:
    made = TROUBLES[name]
    async with looking(server, GIVEN) as watched:
        await watched.look()
        assert watched.broken == [], "it is healthy before"
        with made.make(server):
            await watched.look()
            assert set(watched.broken) == expected(server, made.rules), "by somebody who watches"
            async with looking(server, GIVEN) as looked:
                await looked.look()
                await looked.look()
            assert set(looked.broken) == expected(server, made.rules), "by somebody who looks later"
        server.admin.config_set("maxmemory", 0)
        server.admin.config_resetstat()
        await watched.look()
        assert watched.broken == [], "its cause is gone"


ALONE: Final = {
    "many_keys_that_expire_at_once", "keys_that_a_volatile_policy_can_not_evict",
    "nearly_as_many_connections_as_there_may_be",
}  # fmt: skip
"""Troubles that can't be together with others: of other settings, or none could connect any more."""


@pytest.mark.slow
async def test_all_troubles_together(server: Server) -> None:
    names = [name for name in TROUBLES if name not in ALONE and not TROUBLES[name].rules & {"writes-refused"}]
    names += ["full_memory_without_any_ttl"]
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(TROUBLES[name].make(server))
        async with looking(server, GIVEN) as looked:
            await looked.look()
            await looked.look()
    rules = {rule for name in names for rule in TROUBLES[name].rules}
    assert set(looked.broken) == expected(server, frozenset(rules))
    found = {one.rule: one for one in looked.health.found.findings}
    assert found["eviction-impossible"].severity is Severity.ERROR
    assert any("batchjob" in line for line in found["command-banned"].evidence)
