"""One verdict a feature, on every version, under every refusal."""

from __future__ import annotations

import pytest

from rtui.server import guard
from rtui.server.guard.command import Secret
from rtui.server.wire.capability import Capabilities, Feature, Verdict, capability_from
from rtui.server.wire.errors import Reply, ServerError
from tests.conftest import Pool
from tests.server.targets import connected, target_of
from tests.servers import Server

SINCE = {Feature.HPTTL: {"redis": (7, 4), "valkey": (9, 0)}}
"""Features that not every version of the tests has."""

ACL_NAMES = {
    Feature.MEMORY_USAGE: "memory|usage",
    Feature.OBJECT_ENCODING: "object|encoding",
    Feature.OBJECT_FREQ: "object|freq",
    Feature.OBJECT_IDLETIME: "object|idletime",
    Feature.SCAN_TYPE: "scan",
}
"""How ACL rules call what is not called by its own name."""


def has(server: Server, feature: Feature) -> bool:
    since = SINCE.get(feature)
    return since is None or server.version >= since[server.product]


async def found_on(server: Server, **login: object) -> Capabilities:
    capabilities = Capabilities()
    async with connected(target_of(server, **login)) as connection:
        await capabilities.probe(connection)
    return capabilities


async def test_what_each_version_has(server: Server) -> None:
    found = await found_on(server)
    for feature in Feature:
        if feature is Feature.OBJECT_FREQ:
            assert found[feature].verdict is Verdict.UNSUPPORTED
            assert "noeviction" in found[feature].reason
        elif has(server, feature):
            assert found[feature].verdict is Verdict.YES, (feature, found[feature])
            assert found[feature].reason == ""
        else:
            assert found[feature].verdict is Verdict.UNKNOWN_COMMAND
            assert found[feature].reason
            assert not found.allows(feature)


async def test_frequencies_instead_of_idle_times(lfu_server: Server) -> None:
    found = await found_on(lfu_server)
    assert found[Feature.OBJECT_FREQ].verdict is Verdict.YES
    assert found[Feature.OBJECT_IDLETIME].verdict is Verdict.UNSUPPORTED
    assert "allkeys-lfu" in found[Feature.OBJECT_IDLETIME].reason


async def test_any_one_command_denied(server: Server) -> None:
    for denied in filter(lambda feature: has(server, feature), Feature):
        rule = ACL_NAMES.get(denied, denied.lower())
        if server.version < (7, 0):
            rule = rule.partition("|")[0]
        server.admin.execute_command("ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "+@all", f"-{rule}")
        found = await found_on(server, user="app", password=Secret("pw"))
        assert found[denied].verdict is Verdict.DENIED
        assert "NOPERM" in found[denied].reason
        assert not found.allows(denied)
        for feature in filter(lambda feature: has(server, feature), Feature):
            if feature is not Feature.OBJECT_FREQ and command_of(feature) != command_of(denied):
                assert found[feature].verdict is Verdict.YES, (denied, feature, found[feature])


def command_of(feature: Feature) -> str:
    return feature.partition(" ")[0]


async def test_with_scan_alone(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "-@all", "+scan")
    found = await found_on(server, user="app", password=Secret("pw"))
    usable = {feature for feature in Feature if found.allows(feature)}
    assert usable == {Feature.SCAN, Feature.SCAN_TYPE}


async def test_a_user_who_may_read_some_keys_only(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~app:*", "+@all")
    found = await found_on(server, user="app", password=Secret("pw"))
    assert found[Feature.TYPE].verdict is Verdict.YES
    assert found[Feature.MEMORY_USAGE].verdict is Verdict.YES


async def test_a_command_that_was_renamed_away(pool: Pool) -> None:
    server = pool.take(
        "renamed", "redis-7.0", "--rename-command", "MEMORY", "", "--rename-command", "DBSIZE", "SIZE-9f"
    )
    found = await found_on(server)
    assert found[Feature.MEMORY_USAGE].verdict is Verdict.UNKNOWN_COMMAND
    assert found[Feature.DBSIZE].verdict is Verdict.UNKNOWN_COMMAND
    assert found[Feature.TYPE].verdict is Verdict.YES


async def test_on_a_node_of_a_cluster(cluster_node: Server) -> None:
    found = await found_on(cluster_node)
    assert found[Feature.TYPE].verdict is Verdict.YES
    assert found[Feature.SCAN].verdict is Verdict.YES


async def test_each_is_tried_once(valkey: Server) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-dbsize", "-memory|usage")
    capabilities = Capabilities()
    async with connected(target_of(valkey, user="app", password=Secret("pw"))) as connection:
        await capabilities.probe(connection)
        calls = valkey.admin.info("commandstats")
        await capabilities.probe(connection)
        again = valkey.admin.info("commandstats")
    assert calls["cmdstat_dbsize"] == again["cmdstat_dbsize"]
    assert calls["cmdstat_type"] == again["cmdstat_type"]
    assert again["cmdstat_dbsize"]["rejected_calls"] == 1


async def test_a_probe_leaves_nothing_behind(server: Server) -> None:
    server.admin.set("k", "v")
    before = server.admin.object("idletime", "k")
    changes = server.admin.info("persistence")["rdb_changes_since_last_save"]
    await found_on(server)
    assert server.admin.keys() == [b"k"]
    assert server.admin.info("persistence")["rdb_changes_since_last_save"] == changes
    assert server.admin.object("idletime", "k") >= before


async def test_a_refusal_later_on_is_learned(valkey: Server) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all")
    capabilities = Capabilities()
    async with connected(target_of(valkey, user="app", password=Secret("pw"))) as connection:
        await capabilities.probe(connection)
        valkey.admin.execute_command("ACL", "SETUSER", "app", "-hlen")
        revision = capabilities.revision
        (reply,) = await connection.run(guard.hlen(b"k"))
        assert capabilities.record(Feature.HLEN, reply) is Verdict.DENIED
        assert capabilities.revision > revision
    capabilities.forget()
    assert capabilities[Feature.HLEN].verdict is Verdict.UNTRIED
    assert capabilities.allows(Feature.HLEN)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (0, Verdict.YES),
        (None, Verdict.YES),
        (b"none", Verdict.YES),
        (ServerError("WRONGTYPE Operation against a key"), Verdict.YES),
        (ServerError("ERR no such key"), Verdict.YES),
        (ServerError("MOVED 1 127.0.0.1:1"), Verdict.YES),
        (ServerError("NOPERM No permissions to access a key"), Verdict.YES),
        (ServerError("NOPERM this user has no permissions to access one of the keys used as arguments"), Verdict.YES),
        (ServerError("NOPERM User app has no permissions to access the 'k' key"), Verdict.YES),
        (
            ServerError("NOPERM this user has no permissions to run the 'type' command or its subcommand"),
            Verdict.DENIED,
        ),
        (ServerError("NOPERM User key-access has no permissions to run the 'type' command"), Verdict.DENIED),
        (ServerError("ERR command is not allowed on this plan"), Verdict.DENIED),
        (ServerError("ERR unknown command 'X', with args beginning with:"), Verdict.UNKNOWN_COMMAND),
        (ServerError("ERR Unknown subcommand or wrong number of arguments for 'USAGE'."), Verdict.UNKNOWN_COMMAND),
        (ServerError("ERR unknown subcommand 'USAGE'. Try MEMORY HELP."), Verdict.UNKNOWN_COMMAND),
        (
            ServerError("ERR An LFU maxmemory policy is not selected, access frequency not tracked."),
            Verdict.UNSUPPORTED,
        ),
        (ServerError("ERR syntax error"), Verdict.UNSUPPORTED),
        (ServerError("LOADING Redis is loading the dataset in memory"), Verdict.UNTRIED),
        (ServerError("BUSY Redis is busy running a script."), Verdict.UNTRIED),
        (ServerError("CLUSTERDOWN Hash slot not served"), Verdict.UNTRIED),
    ],
)
def test_what_a_reply_says(reply: Reply, verdict: Verdict) -> None:
    assert capability_from(reply).verdict is verdict
