"""Compatible servers: how they are recognised, and that what they must not get never leaves."""

from __future__ import annotations

import pytest

from rtui.server import guard
from rtui.server.guard.command import Command, build_batch, scan_template
from rtui.server.guard.compatible import COMPATIBLE, CompatibleServer, compatible_server
from rtui.server.wire.capability import Verdict, capability_from, refuses_command
from rtui.server.wire.errors import ServerError
from rtui.server.wire.identity import parse_identity
from tests.fakes.base import FakeServer
from tests.fakes.servers import ALL, Garnet
from tests.server.targets import connected, target_of
from tests.servers import Server

BY_NAME = {one.name: one for one in COMPATIBLE}
OF_FORBIDDEN: dict[bytes, Command] = {
    b"DBSIZE": guard.dbsize(),
    b"INFO keyspace": guard.info("keyspace"),
    b"SCAN MATCH": guard.scan(0, count=10, match=b"a*"),
    b"SCAN TYPE": guard.scan(0, count=10, key_type=b"string"),
    b"OBJECT IDLETIME": guard.object_idletime(b"a"),
}

each_row = pytest.mark.parametrize("row", COMPATIBLE, ids=lambda row: row.name)


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind.name in BY_NAME], ids=lambda kind: kind.__name__)
async def test_each_is_recognised_and_not_sent_what_harms_it(kind: type[FakeServer]) -> None:
    async with kind({}) as server, connected(server.target) as connection:
        found = connection.server.compatible
        assert found is BY_NAME[kind.name]
        before = len(server.asked)
        for name in kind.forbidden:
            (reply,) = await connection.run(OF_FORBIDDEN[name])
            assert isinstance(reply, ServerError)
            assert kind.name in reply.text
            assert capability_from(reply).verdict is Verdict.UNSUPPORTED
            assert refuses_command(reply)
        bulk = await connection.bulk()
        assert bulk.server.compatible is found
        sent = server.asked[before:]
        assert not [argv for argv in sent if argv[0] in (b"DBSIZE", b"SCAN", b"OBJECT")]


async def test_what_may_be_sent_is_sent_beside_what_may_not() -> None:
    async with Garnet({}) as server, connected(server.target) as connection:
        replies = await connection.run(guard.ping(), guard.dbsize(), guard.key_type(b"a"))
    assert replies[0] == b"PONG"
    assert isinstance(replies[1], ServerError)
    assert replies[2] == b"none"


async def test_redis_and_valkey_are_none_of_them(server: Server) -> None:
    async with connected(target_of(server)) as connection:
        assert connection.server.compatible is None


@each_row
def test_words_of_a_pattern_are_not_taken_for_options(row: CompatibleServer) -> None:
    if not row.sends("SCAN MATCH"):
        return
    for word in (b"TYPE", b"COUNT", b"MATCH"):
        assert row.refusal(guard.scan(0, count=10, match=word)) is None


def test_a_large_count_is_not_sent_to_keydb() -> None:
    row = BY_NAME["KeyDB"]
    template = scan_template(b"a*")
    assert row.refusal(template.command(0, row.most_count)) is None
    assert "COUNT" in str(row.refusal(template.command(0, row.most_count + 1)))


def test_a_batch_with_a_command_that_is_not_sent_is_not_sent() -> None:
    batch = build_batch((guard.key_type, guard.object_idletime), [b"a", b"b"])
    assert BY_NAME["Garnet"].refusal(batch) is not None
    assert BY_NAME["Dragonfly"].refusal(batch) is None


def test_the_program_tells_keydb_and_the_folder_does_not() -> None:
    assert compatible_server({"executable": "/opt/keydb/redis-server"}) is None
    assert compatible_server({"executable": "/opt/KeyDB-Server"}) is BY_NAME["KeyDB"]


def test_redis_enterprise_is_redis_behind_a_proxy() -> None:
    found = parse_identity([b"redis_version:7.4.3\r\nrlec_version:7.22.0\r\nredis_mode:standalone\r\n"])
    assert found.product == "redis"
    assert found.compatible is BY_NAME["Redis Enterprise"]


def test_another_compatible_server_is_another_server() -> None:
    one, other = (parse_identity([b"%b_version:1\r\n" % name]) for name in (b"kvrocks", b"garnet"))
    assert one.product == other.product == "other"
    assert not one.is_like(other)
