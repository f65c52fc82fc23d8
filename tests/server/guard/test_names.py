"""Names of renamed commands: which are taken, and that nothing but the first word of a request changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.command import (
    FIXED,
    SERVER_COMMANDS,
    Command,
    CommandNames,
    CommandNamesError,
    KeyCommand,
    build_batch,
    command_names,
    key_template,
    renamed,
    scan_template,
    unpack_requests,
)
from rtui.server.guard.compatible import COMPATIBLE, CompatibleServer, compatible_server
from rtui.server.guard.evidence import TypeEvidence
from rtui.server.wire.capability import Verdict, capability_from, refuses_command
from rtui.server.wire.errors import ServerError
from rtui.server.wire.identity import parse_identity
from tests.fakes.base import FakeServer
from tests.fakes.servers import ALL, Garnet
from tests.server.raw_commands import raw
from tests.server.targets import connected, target_of
from tests.servers import Server

SENT = sorted({spec.words[0].decode() for spec in TABLE} - FIXED)
"""Commands that may have another name."""

OTHER_NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="."), min_size=1).filter(
    lambda name: len(name) <= 64 and name.upper() not in SERVER_COMMANDS
)
KEYS = st.lists(st.binary(max_size=80), min_size=1, max_size=20)
IN_BULK = [guard.key_type, guard.pttl, guard.strlen, guard.object_idletime, guard.object_encoding]


@pytest.mark.parametrize("word", ["GETRANGE", "PTTL"])
def test_no_command_takes_the_name_of_another(word: str) -> None:
    for name in SERVER_COMMANDS:
        for written in (name, name.lower()):
            with pytest.raises(CommandNamesError):
                command_names({word: written})


@pytest.mark.parametrize(
    "given_names",
    [
        {"INFO": "a b"},
        {"INFO": "a\r\nFLUSHALL"},
        {"INFO": "é"},
        {"INFO": "x" * 65},
        {"INFO": "json.del"},
        {"INFO": "x-one", "DBSIZE": "X-ONE"},
        {"AUTH": "login"},
        {"HELLO": "hi"},
        {"COMMAND": "c"},
        {"FLUSHALL": "secret", "INFO": "secret"},
        {"FLUSHALL": "get"},
        {"NOTHING": "x"},
        {"": "x"},
        {"CLIENT NO-TOUCH": "x"},
    ],
)
def test_what_can_not_be_renamed(given_names: dict[str, str]) -> None:
    with pytest.raises(CommandNamesError) as refused:
        command_names(given_names)
    assert not any(name and name in str(refused.value) for name in given_names.values() if len(name) > 1)


def test_what_is_never_sent_may_have_any_name() -> None:
    assert command_names({"flushall": "b840", "KEYS": "", "DEBUG": "d-1", "INFO": "i-1"}) == command_names(
        {"info": "i-1"}
    )
    assert not command_names({"FLUSHALL": ""})


def test_the_commands_of_every_server_are_known(server: Server) -> None:
    listed = {str(one[0].decode()).upper() for one in raw(server, b"COMMAND")}
    assert {name for name in listed if "." not in name} <= SERVER_COMMANDS


@given(st.sampled_from(SENT), OTHER_NAMES)
def test_no_name_is_shown(word: str, name: str) -> None:
    names = command_names({word.lower(): name})
    assert names.others == {word.encode(): name.encode()}
    assert repr(names) == repr(CommandNames())


@given(KEYS, st.sets(st.sampled_from(["TYPE", "PTTL", "OBJECT"])), st.lists(st.sampled_from(IN_BULK), min_size=1))
def test_only_the_name_of_the_command_changes_on_the_wire(
    keys: list[bytes], words: set[str], builds: list[KeyCommand]
) -> None:
    names = command_names({word: f"x-{word}" for word in words})
    batch = build_batch(list(dict.fromkeys(builds)), keys)
    sent = renamed(batch, names)
    expected = [(names.others.get(word, word), *rest) for word, *rest in unpack_requests(batch.packed)]
    assert list(unpack_requests(sent.packed)) == expected
    assert (sent.name, sent.replies, sent.request) == (batch.name, batch.replies, batch.packed)
    assert (sent is batch) == (not words & {build.spec.words[0].decode() for build in builds})


def test_a_subcommand_is_kept() -> None:
    names = command_names({"CLIENT": "c", "DBSIZE": ""})
    assert list(unpack_requests(renamed(guard.no_touch(), names).packed)) == [(b"c", b"NO-TOUCH", b"ON")]
    assert renamed(guard.dbsize(), names).packed == guard.dbsize().packed
    assert list(names.disabled()) == ["DBSIZE"]


@given(st.integers(0, 2**64 - 1), st.integers(1, 1000), st.none() | st.just(b"a*"), st.none() | st.just(b"hash"))
def test_the_templates_of_the_compiled_engine_have_the_other_names(
    cursor: int, count: int, match: bytes | None, key_type: bytes | None
) -> None:
    names = command_names({"SCAN": "look", "MEMORY": "m"})
    of_server = scan_template(match, key_type, names).command(cursor, count)
    assert of_server.packed == renamed(scan_template(match, key_type).command(cursor, count), names).packed
    string = TypeEvidence(b"string", "redis", (7, 0))
    template = key_template(guard.memory_usage, string, names)
    assert template.before + b"1\r\nk\r\n" == renamed(guard.memory_usage(b"k", string), names).packed
    assert key_template(guard.pttl, names=names) == key_template(guard.pttl)


def test_errors_have_the_own_names() -> None:
    names = command_names({"CLIENT": "x-client", "INFO": "i(nfo", "TYPE": "x"})
    assert names.known("unknown command 'x', next 'X'") == "unknown command 'TYPE', next 'TYPE'"
    assert names.known("unknown subcommand 'a'. Try X-CLIENT HELP.") == "unknown subcommand 'a'. Try CLIENT HELP."
    assert names.known("wrong number of arguments for 'I(NFO'") == "wrong number of arguments for 'INFO'"


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
