"""What a connection says first, what is read of the replies, and one verdict a feature under every refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rtui
from rtui.keyspace.text.display import HOSTILE
from rtui.server import guard
from rtui.server.guard.command import Secret
from rtui.server.wire.capability import Capabilities, Feature, Verdict, capability_from
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.identity import NoTouch, ServerIdentity, parse_identity
from rtui.server.wire.opening import HandshakeOutcome, handshake
from rtui.server.wire.target import Target
from tests.conftest import Pool
from tests.proxy import DelayProxy
from tests.server.targets import ask, connected, lane_to, target_of
from tests.servers import Server
from tests.wire import Listener, answering

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


HOSTILE_PASSWORDS = ["pass word", "a'\"b", "p\r\nFLUSHALL\r\n", "п@ß:w/ö?rd#", "\udcff\udc80\x00", "$8\r\n", "x" * 500]


def newest_client(server: Server) -> dict[str, str]:
    """What the server says of the youngest of rtui's connections."""
    clients: list[dict[str, str]] = [client for client in server.admin.client_list() if client["name"] == "rtui"]
    return max(clients, key=lambda client: int(client["id"]))


def knows_no_touch(server: Server) -> bool:
    return server.product == "valkey" or server.version >= (7, 2)


async def test_the_server_sees_who_it_is(server: Server) -> None:
    async with connected(target_of(server, db=3)) as connection:
        seen = newest_client(server)
        assert seen["name"] == "rtui"
        assert seen["db"] == "3"
        if knows_no_touch(server):
            assert (seen["lib-name"], seen["lib-ver"]) == ("rtui", rtui.__version__)
            assert "T" in seen["flags"]
            assert connection.no_touch is NoTouch.ON
        else:
            assert connection.no_touch is NoTouch.UNSUPPORTED


async def test_the_bulk_lane_is_as_ready(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all")
    async with connected(target_of(server, db=2, user="app", password=Secret("pw"))) as connection:
        await connection.bulk()
        seen = newest_client(server)
        assert (seen["name"], seen["db"], seen["user"]) == ("rtui", "2", "app")
        assert ("T" in seen["flags"]) == knows_no_touch(server)


async def test_a_refused_step_is_not_sent_again(redis62: Server) -> None:
    async with DelayProxy(redis62.port) as proxy, connected(Target(port=proxy.port)) as connection:
        assert [b"CLIENT", b"NO-TOUCH", b"ON"] in proxy.commands()
        before = len(proxy.commands())
        await connection.bulk()
        later = proxy.commands()[before:]
        assert [b"CLIENT", b"SETNAME", b"rtui"] in later
        assert not [argv for argv in later if argv[1:2] in ([b"NO-TOUCH"], [b"SETINFO"])]
        assert connection.no_touch is NoTouch.UNSUPPORTED


async def test_no_touch_that_is_denied(valkey: Server) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-client|no-touch")
    async with connected(target_of(valkey, user="app", password=Secret("pw"))) as connection:
        assert connection.no_touch is NoTouch.DENIED


async def test_everything_optional_may_be_denied(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "-@all", "+scan")
    for protocol in (None, 2, 3):
        async with connected(target_of(server, user="app", password=Secret("pw"), protocol=protocol)) as connection:
            assert isinstance(await ask(connection, guard.scan(0, count=10)), list)
            assert connection.server.run_id is None
            if knows_no_touch(server):
                assert connection.no_touch is NoTouch.DENIED


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("password", HOSTILE_PASSWORDS)
async def test_any_password_goes_out_as_it_is(valkey: Server, password: str, protocol: int) -> None:
    raw = password.encode("utf-8", "surrogateescape")
    valkey.admin.execute_command("ACL", "SETUSER", "app", "reset", "on", b">" + raw, "~*", "+@all")
    async with connected(target_of(valkey, user="app", password=Secret(password), protocol=protocol)):
        assert newest_client(valkey)["user"] == "app"


async def test_a_user_without_password(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "open", "on", "nopass", "~*", "+@all")
    async with connected(target_of(server, user="open")):
        assert newest_client(server)["user"] == "open"


async def test_protocol_3_is_spoken_when_asked_for(server: Server) -> None:
    server.admin.zadd("z", {"a": 1.5, "b": 3})
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all")
    spoken: list[list[Reply]] = []
    for protocol in (2, 3):
        target = target_of(server, protocol=protocol, user="app", password=Secret("pw"))
        async with lane_to(target) as lane:
            await handshake(lane, target, HandshakeOutcome())
            assert lane.protocol == protocol
            if server.version >= (7, 0):
                assert newest_client(server)["resp"] == str(protocol)
            spoken.append(await lane.run(guard.zrange(b"z", 0, 10), guard.pttl(b"z"), guard.key_type(b"z")))
    assert spoken[0] == spoken[1] == [[b"a", b"1.5", b"b", b"3"], -1, b"zset"]


@asynccontextmanager
async def old_server() -> AsyncIterator[tuple[int, list[Sequence[bytes]]]]:
    """A server that knows PING and AUTH only, as a proxy might; its port, and what it was asked."""
    asked: list[Sequence[bytes]] = []
    known = {b"PING": b"+PONG\r\n", b"AUTH": b"+OK\r\n"}

    def reply(argv: Sequence[bytes]) -> bytes:
        asked.append(argv)
        return known.get(argv[0], b"-ERR unknown command `" + argv[0] + b"`\r\n")

    async with Listener(answering(reply)) as server:
        yield server.port, asked


async def test_without_hello_protocol_2_will_do() -> None:
    async with old_server() as (port, asked):
        target = Target(port=port, protocol=3, password=Secret("pw"))
        learned = HandshakeOutcome()
        for _ in range(2):
            async with lane_to(target) as lane:
                await handshake(lane, target, learned)
                assert lane.protocol == 2
    assert [argv for argv in asked if argv[0] == b"HELLO"] == [[b"HELLO", b"3", b"AUTH", b"default", b"pw"]]
    assert [argv for argv in asked if argv[0] == b"AUTH"] == [[b"AUTH", b"pw"]] * 2


async def test_a_server_that_knows_nothing_but_the_oldest_commands() -> None:
    async with old_server() as (port, _), connected(Target(port=port)) as connection:
        assert connection.no_touch is NoTouch.UNSUPPORTED
        assert connection.server.product is None
        assert isinstance((await connection.run(guard.dbsize()))[0], ServerError)


async def test_a_password_is_not_in_what_a_lane_shows(valkey: Server) -> None:
    secret = Secret("pa55word")
    assert "pa55word" not in f"{guard.auth('app', secret)!r}{guard.hello(3, 'app', secret)!r}"


LINES = st.lists(
    st.tuples(st.sampled_from(["run_id", "redis_version", "used_memory", "role", "db0", "loading"]), st.binary())
)


async def test_every_server_says_what_it_is(server: Server) -> None:
    server.admin.set("k", "v")
    async with connected(target_of(server)) as connection:
        found = connection.server
    said = server.admin.info()
    assert found.product == server.product
    assert found.version == server.version
    assert found.run_id == said["run_id"]
    assert found.role == "primary"
    assert found.mode == "standalone"
    assert found.cluster_enabled is False
    assert found.cluster_note is None
    assert found.maxmemory_policy == "noeviction"
    assert found.is_lfu is False
    assert found.databases == {0: 1}
    assert found.uptime_s is not None
    assert found.used_memory_bytes
    assert found.maxmemory_bytes == said["maxmemory"]
    assert found.ops_per_s is not None


async def test_a_replica(server: Server) -> None:
    server.admin.replicaof("127.0.0.1", 1)
    try:
        async with connected(target_of(server)) as connection:
            assert connection.server.role == "replica"
            assert connection.server.primary_link_up is False
            assert not connection.server.cluster_enabled
    finally:
        server.admin.replicaof("NO", "ONE")


async def test_a_node_of_a_cluster(cluster_node: Server) -> None:
    async with connected(target_of(cluster_node)) as connection:
        found = connection.server
    assert found.cluster_enabled
    assert found.mode == "cluster"
    assert found.cluster_note == "one node of 1"


async def test_an_lfu_policy(lfu_server: Server) -> None:
    async with connected(target_of(lfu_server)) as connection:
        assert connection.server.is_lfu
        assert connection.server.maxmemory_bytes == 256 << 20


async def test_without_info_hello_tells_some(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-info")
    for protocol in (2, 3):
        async with connected(target_of(server, user="app", password=Secret("pw"), protocol=protocol)) as connection:
            found = connection.server
        assert found.product == server.product
        assert found.role == "primary"
        assert found.run_id is None
        assert found.used_memory_bytes is None
        assert found.databases is None


def test_without_anything_all_is_unknown() -> None:
    error = ServerError("NOPERM no")
    assert parse_identity([error], error, error) == ServerIdentity()
    assert parse_identity([None]) == ServerIdentity()
    assert parse_identity([]) == ServerIdentity()


@pytest.mark.parametrize(
    ("info", "product", "name"),
    [
        (b"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n", "valkey", "valkey"),
        (b"redis_version:8.2.1\r\n", "redis", "redis"),
        (b"redis_version:7.4.0\r\ndragonfly_version:df-v1.27\r\n", "other", "dragonfly"),
        (b"redis_version:7.4.3\r\ngarnet_version:1.0.5\r\n", "other", "garnet"),
        (b"redis_version:6.3.4\r\nmvcc_depth:0\r\n", "other", "keydb"),
        (b"redis_version:7.0.0\r\nserver_name:mine\r\n", "other", "mine"),
        (b"", None, None),
    ],
)
def test_whose_program_it_is(info: bytes, product: str | None, name: str | None) -> None:
    found = parse_identity([info])
    assert (found.product, found.product_name) == (product, name)


def test_valkey_says_its_own_version() -> None:
    found = parse_identity([b"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n"])
    assert found.version == (9, 1, 2)
    assert found.version_text == "9.1.2"


@given(LINES)
def test_nonsense_is_unknown_and_never_hostile(lines: list[tuple[str, bytes]]) -> None:
    found = parse_identity([b"\r\n".join(name.encode() + b":" + value for name, value in lines)])
    for text in (found.product_name, found.mode, found.maxmemory_policy, found.version_text or ""):
        assert HOSTILE.search(text or "") is None


@given(st.binary(), st.one_of(st.none(), st.binary(), st.lists(st.one_of(st.binary(), st.integers()))))
def test_anything_can_be_read(info: bytes, hello: object) -> None:
    parse_identity([info], info, hello)


def test_numbers_that_are_none() -> None:
    found = parse_identity(
        [b"used_memory:many\r\nmaxmemory:\r\ncluster_enabled:?\r\ndb0:keys=x\r\ndb1:keys=3,expires=1\r\n"]
    )
    assert (found.used_memory_bytes, found.maxmemory_bytes, found.cluster_enabled) == (None, None, None)
    assert found.databases == {1: 3}


def test_a_cluster_that_does_not_tell_its_size() -> None:
    assert parse_identity([b"cluster_enabled:1\r\n"]).cluster_note == "one node of a cluster"
    assert parse_identity([b"cluster_enabled:1\r\n"], b"cluster_known_nodes:6\r\n").cluster_note == "one node of 6"
