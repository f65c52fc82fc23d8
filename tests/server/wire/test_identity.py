"""What is read out of INFO, HELLO and CLUSTER INFO, and what is left unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.display import HOSTILE
from rtui.server.guard.command import Secret
from rtui.server.wire.errors import ServerError
from rtui.server.wire.identity import ServerIdentity, parse_identity
from tests.server.targets import connected, target_of
from tests.servers import Server

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
