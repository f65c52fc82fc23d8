"""Names of renamed commands: which are taken, and that nothing but the first word of a request changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.command import (
    FIXED,
    MAX_BATCH_BYTES,
    MAX_BATCH_COMMANDS,
    MAX_BATCH_KEYS,
    MAX_BULK_KEY_BYTES,
    SERVER_COMMANDS,
    Command,
    CommandNames,
    CommandNamesError,
    GuardError,
    KeyCommand,
    KeyTemplate,
    build_batch,
    command_names,
    find_spec,
    key_template,
    renamed,
    scan_template,
    split_keys,
    unpack_requests,
)
from rtui.server.guard.compatible import COMPATIBLE, CompatibleServer, compatible_server
from rtui.server.guard.evidence import EntryEvidence, Evidence, GroupEvidence, TypeEvidence
from rtui.server.wire.capability import Verdict, capability_from, refuses_command
from rtui.server.wire.errors import ServerError
from rtui.server.wire.identity import parse_identity
from tests.fakes.servers import ALL, FakeServer, Garnet
from tests.server.targets import connected, raw, target_of
from tests.servers import Server
from tests.wire import Requests

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
        {"INFO": "a b"}, {"INFO": "a\r\nFLUSHALL"}, {"INFO": "é"}, {"INFO": "x" * 65}, {"INFO": "json.del"},
        {"INFO": "x-one", "DBSIZE": "X-ONE"}, {"AUTH": "login"}, {"HELLO": "hi"}, {"COMMAND": "c"},
        {"FLUSHALL": "secret", "INFO": "secret"}, {"FLUSHALL": "get"}, {"NOTHING": "x"}, {"": "x"},
        {"CLIENT NO-TOUCH": "x"},
    ],
)  # fmt: skip
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
        assert not [argv for argv in server.asked[before:] if argv[0] in (b"DBSIZE", b"SCAN", b"OBJECT")]


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


EVERY = [value for value in vars(guard).values() if isinstance(value, KeyCommand)]
BULK = [build for build in EVERY if build.spec.in_bulk]
ENOUGH: dict[type[Evidence], Evidence] = {
    TypeEvidence: TypeEvidence(b"hash", "redis", (7, 0)),
    EntryEvidence: EntryEvidence(1.0),
    GroupEvidence: GroupEvidence(1),
}
"""By what a command needs, evidence that permits it."""
HASHES = ENOUGH[TypeEvidence]
BATCH_KEYS = st.lists(
    st.one_of(st.binary(max_size=40), st.sampled_from([b"k" * size for size in (511, 512, 513, 65_536)])),
    min_size=1,
    max_size=12,
)


@given(st.lists(st.sampled_from(BULK), min_size=1, max_size=MAX_BATCH_COMMANDS), BATCH_KEYS)
def test_a_batch_is_its_commands_one_after_another(builds: list[KeyCommand], keys: list[bytes]) -> None:
    batch = build_batch(builds, keys, HASHES)
    slow = [build(key, HASHES) for key in keys for build in builds]
    assert batch.packed == b"".join(command.packed for command in slow)
    assert batch.replies == len(slow)
    assert type(batch.packed) is bytes


def test_only_the_guard_makes_templates() -> None:
    forged: Any
    for forged in (
        lambda: KeyTemplate(object(), "PTTL", b""),
        lambda: key_template(guard.memory_usage),
        lambda: key_template(guard.memory_usage, TypeEvidence(b"stream", "redis", (7, 0))),
    ):
        with pytest.raises(GuardError):
            forged()


@given(st.sampled_from(BULK), BATCH_KEYS)
def test_a_batch_reads_back_as_lines_of_the_list(build: KeyCommand, keys: list[bytes]) -> None:
    requests = Requests()
    requests.feed(build_batch(build, keys, HASHES).packed)
    assert not requests.incomplete
    assert [line[-1] for line in requests.commands] == keys
    assert all(find_spec(line) is build.spec for line in requests.commands)


@pytest.mark.parametrize(
    "build", [build for build in EVERY if not build.spec.in_bulk], ids=lambda build: build.spec.name
)
def test_what_is_not_constant_in_time_is_not_sent_in_bulk(build: KeyCommand) -> None:
    known = None if build.spec.evidence is None else ENOUGH[build.spec.evidence]
    assert build(b"key", known).replies == 1
    with pytest.raises(GuardError):
        build_batch(build, [b"key"])
    with pytest.raises(GuardError):
        build_batch([guard.key_type, build], [b"key"])


@pytest.mark.parametrize(
    ("known", "most"),
    [
        (TypeEvidence(b"stream", "redis", (8, 4)), 2_000),
        (TypeEvidence(b"stream", "valkey", (8, 0)), 2_000),
        (TypeEvidence(b"vectorset", None, None), 2_000),
        (TypeEvidence(b"stream", "redis", (8, 2, 9)), 1),
        (TypeEvidence(b"stream", "other", (99, 0)), 1),
        (TypeEvidence(b"stream", None, None, proved=1), 2),
        (TypeEvidence(b"stream", "redis", (7, 0), proved=20), 40),
        (TypeEvidence(b"stream", "redis", (7, 0), proved=10**9), 64),
        (TypeEvidence(b"ReJSON-RL", "redis", (8, 6), proved=64), 0),
        (TypeEvidence(None, "valkey", (9, 1), proved=64), 0),
        (None, 0),
    ],
)
def test_how_many_keys_one_write_may_ask_for_their_memory(known: TypeEvidence | None, most: int) -> None:
    if most:
        assert build_batch([guard.memory_usage, guard.xlen], [b"key"] * most, known).replies == 2 * most
    with pytest.raises(GuardError):
        build_batch([guard.xlen, guard.memory_usage], [b"key"] * (most + 1), known)


def test_builders_that_are_none_are_refused() -> None:
    forged: Any = lambda key: guard.ping()  # noqa: E731
    with pytest.raises((GuardError, AttributeError)):
        build_batch([forged], [b"key"])


@pytest.mark.parametrize(
    ("builds", "keys"),
    [
        ([], [b"k"]),
        ([guard.pttl], []),
        ([guard.pttl], [b"k"] * (MAX_BATCH_KEYS + 1)),
        ([guard.pttl] * (MAX_BATCH_COMMANDS + 1), [b"k"]),
        ([guard.pttl], [b"k", b"k" * (MAX_BULK_KEY_BYTES + 1)]),
        ([guard.pttl], [b"k" * MAX_BULK_KEY_BYTES] * 300),
        ([guard.pttl, guard.key_type], [b"k" * MAX_BULK_KEY_BYTES] * 200),
    ],
    ids=["no command", "no key", "keys", "commands", "key size", "bytes", "bytes of two"],
)
def test_batches_are_bounded(builds: list[KeyCommand], keys: list[bytes]) -> None:
    with pytest.raises(GuardError):
        build_batch(builds, keys)


def test_the_largest_batch() -> None:
    assert build_batch(guard.pttl, [b"k"] * MAX_BATCH_KEYS).replies == MAX_BATCH_KEYS
    keys = [b"k" * MAX_BULK_KEY_BYTES] * (MAX_BATCH_BYTES // MAX_BULK_KEY_BYTES)
    assert len(build_batch(guard.pttl, keys).packed) >= MAX_BATCH_BYTES


def test_a_key_is_bytes() -> None:
    text: Any = ["key"]
    with pytest.raises(TypeError):
        build_batch(guard.pttl, text)


@given(st.lists(st.tuples(st.integers(0, 65_536), st.integers(1, 900)), max_size=8), st.integers(1, MAX_BATCH_COMMANDS))
def test_portions_hold_every_key_in_order_and_fit_into_a_batch(runs: list[tuple[int, int]], commands: int) -> None:
    keys = [b"k" * size for size, repeat in runs for _ in range(min(repeat, 2_000_000 // (size + 1)))]
    cut = list(split_keys(keys, commands))
    assert [key for part in cut for key in part] == keys
    for part in cut:
        assert 1 <= len(part) <= MAX_BATCH_KEYS
        assert sum(map(len, part)) * commands <= MAX_BATCH_BYTES


def test_portions_are_cut_at_the_bytes_and_each_can_be_sent() -> None:
    keys = [b"k" * MAX_BULK_KEY_BYTES] * 600
    builds = [guard.key_type, guard.pttl]
    cut = list(split_keys(keys, len(builds)))
    assert [len(part) for part in cut] == [128, 128, 128, 128, 88]
    assert sum(build_batch(builds, part).replies for part in cut) == 1200


@given(
    st.integers(-3, 1 << 65) | st.integers(0, 999),
    st.integers(-3, 1_100),
    st.sampled_from([None, b"a*"]),
    st.sampled_from([None, b"hash"]),
)
def test_a_template_of_scan_writes_what_its_builder_does(
    cursor: int, count: int, match: bytes | None, key_type: bytes | None
) -> None:
    template = scan_template(match, key_type)
    try:
        expected = guard.scan(cursor, count=count, match=match, key_type=key_type)
    except GuardError:
        with pytest.raises(GuardError):
            template.command(cursor, count)
    else:
        made = template.command(cursor, count)
        assert (made.name, made.packed, made.replies) == (expected.name, expected.packed, expected.replies)
