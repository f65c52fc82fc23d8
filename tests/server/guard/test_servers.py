"""The closed list against every server there is: what the servers themselves say about each command."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from rtui.server import guard
from rtui.server.guard.acl import NOT_OF_SERVERS, Release, parse_release
from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.command import build_batch
from rtui.server.guard.spec import MODULE_GROUPS, CommandGroup, Spec
from tests.server.guard.harmless import samples
from tests.server.targets import fill, raw
from tests.servers import Server

HARMFUL = {"write", "blocking", "may_replicate", "pubsub", "denyoom"}
"""Flags of commands that change data, hold a connection or replicate."""

CONNECTION_LEVEL = {
    *("ping", "hello", "auth", "select", "readonly", "client|setname", "client|setinfo", "client|no-touch"),
    *("info", "cluster|info", "cluster|nodes", "cluster|slots", "cluster|countkeysinslot"),
    *("command|info", "cluster|slot-stats", "config|get", "hotkeys|get", "hotkeys|start", "slowlog|get", "client|list"),
    *("commandlog|get", "latency|latest", "latency|history"),
}
"""Commands without a readonly flag, since they read no key: the server's word is that they write none either."""

FOR_ADMINISTRATORS = {
    *("config|get", "hotkeys|get", "hotkeys|start", "slowlog|get", "client|list"),
    *("commandlog|get", "latency|latest", "latency|history"),
}
"""Commands that the server counts among those of administrators, though all but HOTKEYS START only read."""

ELSEWHERE = MODULE_GROUPS | NOT_OF_SERVERS
"""Groups that a plain server knows nothing of."""

KINDS = {
    CommandGroup.STRING: b"string", CommandGroup.HASH: b"hash", CommandGroup.LIST: b"list", CommandGroup.SET: b"set",
    CommandGroup.ZSET: b"zset", CommandGroup.STREAM: b"stream", CommandGroup.ARRAY: b"array",
    CommandGroup.VECTORS: b"vectors",
}  # fmt: skip
"""The key that each group's commands are tried on."""

SUBCOMMANDS_LISTED = (7, 0)
"""Since when COMMAND INFO knows subcommands."""


def release_of(server: Server) -> Release:
    return parse_release(server.name)


def key_of(spec: Spec) -> bytes:
    return KINDS.get(spec.group, b"string")


def flags_of(server: Server, name: str) -> set[str] | None:
    """What COMMAND INFO says about a command, None when the server does not know it."""
    reply: list[Any] = raw(server, b"COMMAND", b"INFO", name.encode())
    if reply[0] is None:
        return None
    return {flag.decode() if isinstance(flag, bytes) else str(flag) for flag in reply[0][2]}


def test_the_servers_own_flags_say_that_each_command_only_reads(server: Server) -> None:
    release = release_of(server)
    unknown = []
    for spec in TABLE:
        listed = server.version >= SUBCOMMANDS_LISTED
        flags = flags_of(server, spec.server_name if listed else spec.server_name.partition("|")[0])
        if flags is None:
            unknown.append(spec)
            continue
        assert not flags & HARMFUL, spec.name
        assert "readonly" in flags or spec.server_name in CONNECTION_LEVEL, spec.name
        assert not listed or ("admin" in flags) == (spec.server_name in FOR_ADMINISTRATORS), spec.name
    missing = {spec.name for spec in unknown if spec.group not in ELSEWHERE}
    too_new = {spec.name for spec in TABLE if spec.group not in ELSEWHERE and not release.knows(spec)}
    assert missing <= too_new, f"{server.name} should know {missing - too_new}"


def test_the_flags_of_commands_that_modules_bring(server: Server) -> None:
    names = sorted({spec.name for spec in TABLE if spec.group in MODULE_GROUPS})
    unknown = [name for name in names if flags_of(server, name.lower()) is None]
    for name in set(names) - set(unknown):
        flags = flags_of(server, name.lower())
        assert flags is not None
        assert "readonly" in flags
        assert not flags & HARMFUL, name
    if unknown:
        pytest.skip(f"{server.name} does not know {', '.join(unknown)}: not checked")


def test_since_when_a_server_knows_a_command_is_right(server: Server) -> None:
    release = release_of(server)
    for spec in TABLE:
        if spec.group in ELSEWHERE or (len(spec.words) > 1 and server.version < SUBCOMMANDS_LISTED):
            continue
        known = flags_of(server, spec.server_name) is not None
        newer_shape = any(other is not spec and other.words == spec.words for other in TABLE)
        if not newer_shape or release.knows(spec):
            assert known == release.knows(spec), spec.usage


def test_every_way_to_use_a_command_is_understood(server: Server) -> None:
    fill(server)
    release = release_of(server)
    for spec in TABLE:
        if spec.group in ELSEWHERE or not release.knows(spec):
            continue
        for line in samples(spec, key_of(spec)):
            reply = raw(server, *line)
            error = str(reply).lower() if isinstance(reply, Exception) else ""
            bad = ("syntax", "wrong number", "unknown command", "unknown subcommand", "wrongtype", "not an integer")
            assert not any(word in error for word in bad), f"{line[:6]!r}: {error}"


def test_what_the_server_is_too_old_for_is_an_error_and_no_more(server: Server) -> None:
    fill(server)
    release = release_of(server)
    late = [spec for spec in TABLE if not release.knows(spec)]
    for spec in late:
        assert isinstance(raw(server, *samples(spec, key_of(spec))[0]), redis.ResponseError), spec.usage
    assert raw(server, b"PING") in (b"PONG", "PONG")


def frequency(server: Server, key: bytes) -> int:
    found: int = server.admin.execute_command("OBJECT", "FREQ", key)
    return found


def watch_uses(server: Server) -> None:
    """Make every use of a key visible: its frequency rises by one each time."""
    admin = server.admin
    admin.config_set("maxmemory-policy", "allkeys-lfu")
    admin.config_set("lfu-log-factor", 0)
    admin.config_set("lfu-decay-time", 0)
    fill(server)


@pytest.mark.parametrize("no_touch", [False, True], ids=["plain", "no-touch"])
def test_what_counts_as_a_use_of_a_key_is_known(server: Server, *, no_touch: bool) -> None:
    release = release_of(server)
    (switch,) = [spec for spec in TABLE if spec.name == "CLIENT NO-TOUCH"]
    if no_touch and not release.knows(switch):
        assert isinstance(raw(server, b"CLIENT", b"NO-TOUCH", b"ON"), redis.ResponseError)
        return
    watch_uses(server)
    client = server.client(single_connection_client=True)
    connection = client.connection
    assert connection is not None
    if no_touch:
        connection.send_command("CLIENT", "NO-TOUCH", "ON")
        connection.read_response()
    for spec in reads(release):
        key = key_of(spec)
        before = frequency(server, key)
        connection.send_command(*samples(spec, key)[0])
        connection.read_response()
        touched = frequency(server, key) - before
        assert touched == (1 if spec.touches and not no_touch else 0), spec.usage
    client.close()


def reads(release: Release) -> list[Spec]:
    """Entries that look at one key and answer on this version."""
    refused = {"OBJECT IDLETIME"}
    return [
        spec
        for spec in TABLE
        if spec.shape
        and "key" in spec.usage.split()
        and release.knows(spec)
        and spec.group not in ELSEWHERE
        and spec.name not in refused
    ]


def hits(server: Server) -> int:
    stats: dict[str, Any] = server.admin.info("stats")
    return int(stats["keyspace_hits"]) + int(stats["keyspace_misses"])


def test_what_counts_as_a_hit_is_known(server: Server) -> None:
    watch_uses(server)
    for spec in reads(release_of(server)):
        before = hits(server)
        raw(server, *samples(spec, key_of(spec))[0])
        assert (hits(server) > before) == spec.counts, spec.usage


def test_nothing_on_the_list_changes_the_data(server: Server) -> None:
    fill(server)
    admin = server.admin
    before = {key: admin.dump(key) for key in admin.scan_iter()}
    changes = admin.info("persistence")["rdb_changes_since_last_save"]
    for spec in TABLE:
        for line in samples(spec, key_of(spec)):
            raw(server, *line)
    assert admin.info("persistence")["rdb_changes_since_last_save"] == changes
    assert {key: admin.dump(key) for key in admin.scan_iter()} == before


def test_batches_are_answered_key_by_key(server: Server) -> None:
    fill(server)
    batch = build_batch([guard.key_type, guard.pttl], [b"string", b"nothing", b"list"])
    client = server.client()
    connection = client.connection_pool.get_connection()
    connection.send_packed_command([batch.packed], check_health=False)
    replies = [connection.read_response() for _ in range(batch.replies)]
    connection.disconnect()
    client.close()
    assert [reply if isinstance(reply, int) else reply.decode() for reply in replies] == [
        *("string", -1),
        *("none", -2),
        *("list", -1),
    ]
