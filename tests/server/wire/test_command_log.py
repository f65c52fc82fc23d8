"""The command log by itself and behind a lane: its bounds, its figures, what it never holds, and lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.guard.command import Secret, build_batch, pack_request, unpack_requests
from rtui.server.wire.command_log import CommandLog, LaneLog, LogEntry, Purpose, ReplySizes, for_purpose, sent_for
from rtui.server.wire.errors import ConnectFailure, Reply, ServerError
from tests.proxy import DelayProxy
from tests.server.targets import connected, eventually, lane_to, target_of
from tests.servers import Server

USER, PASSWORD = "the-user-0451", "the-password-0451"

bulk = st.binary(max_size=40).map(lambda data: b"$%d\r\n%b\r\n" % (len(data), data))
scalars = st.one_of(
    bulk,
    st.integers().map(lambda number: b":%d\r\n" % number),
    st.sampled_from(
        [b"$-1\r\n", b"*-1\r\n", b"_\r\n", b"#t\r\n", b",1.5\r\n", b"(123\r\n", b"+OK\r\n", b"-ERR no\r\n"]
    ),
    st.binary(max_size=90).map(lambda data: b"+%b\r\n" % data.replace(b"\r", b"").replace(b"\n", b"")),
    st.binary(max_size=20).map(lambda data: b"=%d\r\ntxt:%b\r\n" % (len(data) + 4, data)),
)


def joined(pairs: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(map(b"".join, pairs))


def nested(parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    lists = st.lists(parts, max_size=4)
    pairs = st.lists(st.tuples(parts, parts), max_size=3)
    return st.one_of(
        *(
            lists.map(lambda some, mark=mark: b"%b%d\r\n%b" % (mark, len(some), b"".join(some)))  # type: ignore[misc]
            for mark in (b"*", b"~")
        ),
        pairs.map(lambda some: b"%%%d\r\n%b" % (len(some), joined(some))),
        st.tuples(pairs, parts).map(
            lambda one: b"|%d\r\n%b%b" % (len(one[0]), b"".join(map(b"".join, one[0])), one[1])
        ),
    )


replies = st.recursive(scalars, nested, max_leaves=12)


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return (data[start:end] for start, end in pairwise(ends))


@given(st.lists(st.tuples(replies, st.booleans()), max_size=8), st.lists(st.integers(0, 10_000), max_size=12))
def test_replies_are_measured_in_whatever_pieces_they_come(found: list[tuple[bytes, bool]], places: list[int]) -> None:
    push = b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n"
    data = b"".join((push if has_push else b"") + reply for reply, has_push in found)
    sizes = ReplySizes()
    for piece in cut(data, places):
        sizes.feed(piece)
    assert list(sizes.sizes) == [len(reply) for reply, _ in found]


@given(st.binary(max_size=80))
def test_what_is_no_reply_is_measured_without_an_exception(data: bytes) -> None:
    sizes = ReplySizes()
    sizes.feed(data)
    assert sum(sizes.sizes) <= len(data)


@given(st.lists(st.lists(st.binary(max_size=20), min_size=1, max_size=4), max_size=5))
def test_requests_are_read_back(lines: list[list[bytes]]) -> None:
    assert list(unpack_requests(b"".join(map(pack_request, lines)))) == [tuple(line) for line in lines]


@given(st.lists(st.lists(st.binary(max_size=20), min_size=1, max_size=4), min_size=1, max_size=5), st.integers(0, 400))
def test_of_requests_that_are_cut_off_the_beginning_is_read_back(lines: list[list[bytes]], size: int) -> None:
    found = list(unpack_requests(b"".join(map(pack_request, lines))[:size]))
    for line, read in zip(lines, found, strict=False):
        *whole, last = read
        assert tuple(whole) == tuple(line[: len(whole)])
        assert line[len(whole)].startswith(last)
    assert all(len(read) == len(line) for line, read in zip(lines, found[:-1], strict=False))


def exchange(lane: LaneLog, keys: list[bytes], arrived: int) -> int:
    """Send PTTL about keys and have it answered with 1 each; return how many bytes have arrived since the beginning."""
    reply = b":1\r\n" * len(keys)
    lane.sent([guard.pttl(key) for key in keys], Purpose.ROWS)
    lane.received(reply, len(reply))
    lane.answered([1] * len(keys), arrived + len(reply))
    return arrived + len(reply)


@given(
    st.lists(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=6), max_size=40),
    st.integers(1, 30),
    st.integers(1000, 20_000),
)
def test_the_ring_is_bounded_and_its_totals_are_exact(writes: list[list[bytes]], entries: int, size: int) -> None:
    log = CommandLog(most_entries=entries, most_bytes=size)
    over: list[LogEntry] = []
    log.on_over.append(over.append)
    lane, arrived = log.open_lane("interactive"), 0
    for keys in writes:
        arrived = exchange(lane, keys, arrived)
    sent = [key for keys in writes for key in keys]
    assert len(log.entries) <= entries
    assert sum(600 + len(entry.request) for entry in log.entries) <= size
    assert log.dropped + len(log.entries) == log.commands == len(sent)
    assert [entry.number for entry in log.entries] == list(range(log.dropped + 1, len(sent) + 1))
    assert [next(unpack_requests(entry.request)) for entry in over] == [(b"PTTL", key) for key in sent]
    assert log.bytes_out == sum(len(guard.pttl(key).packed) for key in sent)
    assert log.bytes_in == arrived == 4 * len(sent)


@pytest.mark.slow
async def test_a_million_commands_take_no_more_room_than_ten_thousand() -> None:
    log = CommandLog()
    single, bulk, keys = log.open_lane("interactive"), log.open_lane("bulk", is_bulk=True), [b"k" * 200] * 1000
    bulk.ready(0)
    both = build_batch((guard.key_type, guard.pttl), keys)
    for _ in range(20):
        exchange(single, keys, 0)
    for purpose in (Purpose.SCAN, Purpose.INSPECTION) * 245:
        bulk.sent([both], purpose)
        bulk.answered([1] * 2000, 0)
    bulk.ended()
    assert log.commands == 1_000_000
    assert len(log.entries) == 10_000
    assert log.dropped == 20_490 - 10_000


def test_of_a_long_request_the_beginning_is_kept() -> None:
    log = CommandLog()
    name = b"n" * 100_000
    log.open_lane("interactive").sent([guard.pttl(name)], Purpose.FACTS)
    (entry,) = log.entries
    assert entry.is_cut
    assert len(entry.request) == 4096
    ((command, beginning),) = unpack_requests(entry.request)
    assert command == b"PTTL"
    assert name.startswith(beginning)


async def test_a_bulk_lane_adds_up_by_name() -> None:
    log = CommandLog()
    lane = log.open_lane("bulk", is_bulk=True)
    lane.ready(100)
    keys = [b"a", b"b", b"c"]
    with sent_for(Purpose.INSPECTION):
        both = build_batch((guard.key_type, guard.pttl), keys)
        lane.sent([both, guard.scan(0, count=10)], Purpose.INSPECTION)
        page: list[Reply] = [b"0", []]
        lane.answered([b"string", 1, b"string", 1, b"string", 1, page], 180)
        lane.worked({"TYPE": 5, "HLEN": 2}, 6, 70, 200)
    (entry,) = log.entries
    assert entry.counts == {"TYPE": 8, "PTTL": 3, "SCAN": 1, "HLEN": 2}
    assert (entry.outcome, entry.owed, entry.bytes_in) == ("waiting", 1, 100)
    assert entry.bytes_out == len(both.packed) + len(guard.scan(0, count=10).packed) + 70
    assert log.commands == 14
    lane.sent([guard.dbsize()], Purpose.SCAN)
    lane.answered([3, 7], 230)
    assert (entry.is_over, entry.outcome, entry.bytes_in) == (True, "answered", 130)
    assert [one.purpose for one in log.entries] == [Purpose.INSPECTION, Purpose.SCAN]
    lane.ended()
    assert all(one.is_over for one in log.entries)


async def test_a_sum_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.wire.command_log.BATCH_S", 0.001)
    log = CommandLog()
    lane = log.open_lane("bulk", is_bulk=True)
    lane.ready(0)
    lane.sent([guard.dbsize()], Purpose.SCAN)
    lane.answered([3], 4)
    await eventually(lambda: log.entries[0].is_over)
    lane.sent([guard.dbsize()], Purpose.SCAN)
    assert len(log.entries) == 2
    lane.ended()
    assert log.entries[1].outcome == "lost"


async def test_the_purpose_is_that_of_whoever_began_the_work(valkey: Server) -> None:
    log = CommandLog()
    async with lane_to(target_of(valkey), log=log.open_lane("interactive")) as lane:

        @for_purpose(Purpose.PREVIEW)
        async def read() -> None:
            await lane.run(guard.strlen(b"k"))
            with sent_for(Purpose.HOT):
                await asyncio.create_task(ping())

        async def ping() -> None:
            await lane.run(guard.ping())

        await asyncio.gather(read(), ping(), read())
    found = sorted((entry.counts_text, entry.purpose.value) for entry in log.entries)
    assert found == [("PING", "hot keys"), ("PING", "hot keys"), ("PING", "other"), *[("STRLEN", "preview")] * 2]


async def test_each_command_has_its_bytes(server: Server) -> None:
    server.admin.set("k", "x" * 5000)
    log = CommandLog()
    commands = [guard.getrange(b"k", 0, 4999), guard.strlen(b"k"), guard.hlen(b"k"), guard.key_type(b"gone")]
    async with lane_to(target_of(server), log=log.open_lane("interactive")) as lane:
        await lane.run(*commands)
        traffic = lane.traffic
    assert [entry.bytes_out for entry in log.entries] == [len(command.packed) for command in commands]
    value, length, error, name = (entry.bytes_in for entry in log.entries)
    assert (value, length, name) == (5000 + len("$5000\r\n\r\n"), len(":5000\r\n"), len("+none\r\n"))
    assert value + length + error + name == traffic.bytes_in
    assert [entry.outcome for entry in log.entries] == ["answered", "answered", "error", "answered"]
    assert log.entries[2].error == "WRONGTYPE"
    assert [entry.connection for entry in log.entries] == ["interactive 1"] * 4


def everything_in(log: CommandLog) -> str:
    """All that the log holds, as it would be shown in a traceback."""
    return "".join(
        repr([getattr(entry, name) for name in LogEntry.__slots__]) + repr(list(unpack_requests(entry.request)))
        for entry in log.entries
    )


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("password", [PASSWORD, "wrong-" + PASSWORD])
async def test_a_user_and_a_password_are_never_in_it(server: Server, protocol: Any, password: str) -> None:
    server.admin.execute_command("ACL", "SETUSER", USER, "on", f">{PASSWORD}", "+@all", "~*")
    log = CommandLog()
    target = target_of(server, user=USER, password=Secret(password), protocol=protocol)
    try:
        async with connected(target, log=log):
            pass
    except ConnectFailure as error:
        assert password != PASSWORD, error
    login = "HELLO" if protocol == 3 else "AUTH"
    secret = [entry for entry in log.entries if entry.is_secret]
    assert [entry.counts_text for entry in secret] == [login]
    assert secret[0].outcome == ("answered" if password == PASSWORD else "error")
    text = everything_in(log)
    assert USER not in text
    assert PASSWORD not in text


def test_an_error_that_repeats_a_password_is_not_kept() -> None:
    log = CommandLog()
    lane = log.open_lane("interactive")
    lane.sent([guard.auth("SECRETUSER", Secret("SECRETWORD"))], Purpose.HANDSHAKE)
    lane.answered([ServerError("SECRETWORD is wrong")], 30)
    assert log.entries[0].outcome == "error"
    assert "SECRET" not in everything_in(log)


async def test_a_lost_connection_marks_what_was_not_answered(valkey: Server) -> None:
    log = CommandLog()
    async with (
        DelayProxy(valkey.port) as proxy,
        lane_to(target_of(valkey, port=proxy.port), log=log.open_lane("interactive")) as lane,
    ):
        await lane.run(guard.ping())
        proxy.hold_replies()
        pending = lane.run(guard.ping(), guard.dbsize())
        await eventually(lambda: len(proxy.commands()) == 3)
        assert [entry.outcome for entry in log.entries] == ["answered", "waiting", "waiting"]
        proxy.cut()
        await asyncio.wait([pending])
        assert [entry.outcome for entry in log.entries] == ["answered", "lost", "lost"]
        assert all(entry.is_over for entry in log.entries)
        proxy.release_replies()


async def test_connections_are_numbered_as_they_are_made(valkey: Server) -> None:
    log = CommandLog()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port), log=log) as connection:
        await connection.bulk()
        proxy.cut()
        await eventually(lambda: connection.generation == 2)
        await connection.bulk()
    assert list(dict.fromkeys(entry.connection for entry in log.entries)) == [
        "interactive 1", "bulk 1", "interactive 2", "bulk 2"
    ]  # fmt: skip
    assert {entry.purpose for entry in log.entries} == {Purpose.HANDSHAKE}
