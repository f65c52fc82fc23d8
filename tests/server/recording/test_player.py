"""Answering from a recording: by command and time, and SCAN by its cursor."""

from __future__ import annotations

from itertools import pairwise

import hiredis
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.recording.document import Exchange, Header, Recording, as_json
from rtui.server.recording.player import NOT_RECORDED, Player, packed
from rtui.server.scan.cursor import Dialect
from rtui.server.wire.errors import Reply, ServerError

HEADER = Header(rtui="1", began_ms=0, seed=1, server="s", separators=[":"], width=80, height=24)
BUCKETS = 64

REPLIES: st.SearchStrategy[Reply] = st.recursive(
    st.binary(max_size=8) | st.integers(-(1 << 63), (1 << 63) - 1) | st.none(),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


def exchange(at_ms: float, argv: list[str], reply: Reply, db: int = 0) -> Exchange:
    return Exchange(at_ms, 1.0, db, argv, as_json(reply))


def bucket_cursor(bucket: int) -> int:
    """The cursor before a bucket, in the order of the scan."""
    return 0 if bucket >= BUCKETS else Dialect.STANDALONE.cursor(bucket * ((1 << 64) // BUCKETS))


def page(at_ms: float, start: int, end: int, count: int) -> Exchange:
    keys: list[Reply] = [b"key:%d" % bucket for bucket in range(start, min(end, BUCKETS))]
    argv = ["SCAN", str(bucket_cursor(start)), "COUNT", str(count)]
    return exchange(at_ms, argv, [str(bucket_cursor(end)).encode(), keys])


def scanned(player: Player, count: bytes) -> list[str]:
    """All keys of a scan from the beginning to the end."""
    cursor, keys = b"0", list[str]()
    for _ in range(1000):
        reply, _ = player.reply(0, (b"SCAN", cursor, b"COUNT", count))
        assert isinstance(reply, list)
        assert isinstance(reply[0], bytes)
        assert isinstance(reply[1], list)
        cursor = reply[0]
        keys += [key.decode() for key in reply[1] if isinstance(key, bytes)]
        if cursor == b"0":
            return keys
    raise AssertionError("the scan does not end")


@given(
    st.lists(st.integers(1, BUCKETS - 1), max_size=12, unique=True), st.lists(st.integers(0, BUCKETS - 1), max_size=8)
)
def test_a_scan_in_other_steps_finds_every_key_once(cuts: list[int], samples: list[int]) -> None:
    borders = [0, *sorted(cuts), BUCKETS]
    pages = [page(10.0 * at, start, end, 100) for at, (start, end) in enumerate(pairwise(borders))]
    small = [page(5.0, start, start + 1, 1) for start in samples]
    player = Player(Recording(HEADER, sorted([*pages, *small], key=lambda one: one.at)), lambda: 1000.0)
    every = {f"key:{bucket}" for bucket in range(BUCKETS)}
    assert sorted(scanned(player, b"100")) == sorted(every)
    for count in (b"1", b"7"):
        assert set(scanned(player, count)) == every


def test_what_a_scan_did_not_see_is_not_taken_for_empty() -> None:
    player = Player(Recording(HEADER, [page(0, 0, 16, 10), page(1, 32, 48, 10)]), lambda: 1000.0)
    for bucket, is_known in ((0, True), (7, True), (16, False), (31, False), (40, True), (48, False)):
        reply, _ = player.reply(0, (b"SCAN", str(bucket_cursor(bucket)).encode(), b"COUNT", b"3"))
        assert (reply is not NOT_RECORDED) == is_known


def test_a_reply_is_the_latest_of_its_time() -> None:
    clock = [0.0]
    recording = Recording(HEADER, [exchange(at, ["PTTL", "a"], at) for at in (1000, 5000, 9000)])
    player = Player(recording, lambda: clock[0])
    found = []
    for now_ms in (0.0, 1000.0, 4700.0, 4800.0, 8000.0, 20_000.0):
        clock[0] = now_ms
        found.append(player.reply(0, (b"PTTL", b"a"))[0])
    assert found == [1000, 1000, 1000, 5000, 5000, 9000]


def test_what_was_not_asked_is_said() -> None:
    player = Player(Recording(HEADER, [exchange(0, ["TYPE", "a"], b"string", db=3)]), lambda: 0.0)
    assert player.reply(0, (b"TYPE", b"a"))[0] is NOT_RECORDED
    assert player.reply(3, (b"TYPE", b"a"))[0] == b"string"
    assert player.reply(0, (b"SCAN", b"0", b"COUNT", b"10"))[0] is NOT_RECORDED
    assert player.missing == 2


def test_a_password_is_taken_where_one_was() -> None:
    player = Player(Recording(HEADER, [exchange(0, ["AUTH"], b"OK"), exchange(0, ["HELLO"], b"OK")]), lambda: 0.0)
    assert player.reply(0, (b"AUTH", b"anything"))[0] == b"OK"
    assert player.reply(0, (b"HELLO", b"3", b"AUTH", b"a", b"b"))[0] == b"OK"


@given(REPLIES)
def test_replies_go_over_the_wire_as_they_were(reply: Reply) -> None:
    for protocol in (2, 3):
        reader = hiredis.Reader()
        reader.feed(packed(reply, protocol))
        assert reader.gets() == reply


def test_an_error_is_one_line() -> None:
    reader = hiredis.Reader(replyError=ServerError)
    reader.feed(packed(ServerError("ERR two\r\nlines"), 2))
    assert str(reader.gets()) == "ERR two lines"
