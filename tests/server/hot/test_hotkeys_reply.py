"""Replies to HOTKEYS GET: as servers and manuals write them, and as nobody would."""

from __future__ import annotations

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.guard.evidence import SlotMetric
from rtui.server.hot.hotkeys import MAX_LISTED_KEYS, NAME_BYTES, HotSession, WindowKey, parse_hotkeys
from rtui.server.wire.errors import Reply, as_resp2

WINDOW = (
    b"*2\r\n*6\r\n$3\r\nkey\r\n$14\r\nproduct:8fd21a\r\n$2\r\ndb\r\n:0\r\n$3\r\nqps\r\n:48200\r\n"
    b"*6\r\n$3\r\nkey\r\n$14\r\nsession:2c1f09\r\n$2\r\ndb\r\n:3\r\n$3\r\nqps\r\n:12700\r\n"
)
"""What Valkey 9.2 is documented to send under protocol 2."""

WINDOW_3 = WINDOW.replace(b"*6", b"%3")
"""The same under protocol 3."""

MAP: dict[Reply, Reply] = {
    b"tracking-active": 0,
    b"sample-ratio": 10,
    b"selected-slots": [[0, 16383]],
    b"collection-start-time-unix-ms": 1_790_000_000_500,
    b"collection-duration-ms": 60_000,
    b"by-cpu-time-us": [b"a", 6, b"\x1b[31m\xff", 16],
    b"by-net-bytes": [b"a", 90_870],
}
"""What Redis 8.6 and 8.10 send under protocol 3."""

REPLIES = st.recursive(
    st.none() | st.integers() | st.binary(max_size=9) | st.sampled_from([*MAP, b"key", b"db", b"qps"]),
    lambda inner: st.lists(inner, max_size=8),
    max_leaves=30,
)


def sent(packed: bytes) -> Reply:
    reader = hiredis.Reader()
    reader.feed(packed)
    reply: Reply = reader.gets()
    return as_resp2("HOTKEYS GET", reply)


@pytest.mark.parametrize("packed", [WINDOW, WINDOW_3], ids=["protocol 2", "protocol 3"])
def test_a_window_of_valkey(packed: bytes) -> None:
    assert parse_hotkeys(sent(packed)) == (
        WindowKey(b"product:8fd21a", 0, 48_200),
        WindowKey(b"session:2c1f09", 3, 12_700),
    )


def test_a_window_without_keys_and_no_session() -> None:
    assert parse_hotkeys([]) == ()
    assert parse_hotkeys(None) is None


def test_a_session_of_redis() -> None:
    found = parse_hotkeys(as_resp2("HOTKEYS GET", [MAP]))
    assert found == HotSession(
        is_active=False,
        sample_ratio=10,
        started_s=1_790_000_000.5,
        lasted_s=60.0,
        slots=16_384,
        measured={SlotMetric.CPU: ((b"\x1b[31m\xff", 16), (b"a", 6)), SlotMetric.NET: ((b"a", 90_870),)},
    )


@pytest.mark.parametrize(
    ("slots", "count"), [([], 16_384), ([[0, 99]], 100), ([5, [7, 8]], 3), ([[9]], 1), (None, 16_384), ([b"x"], 16_384)]
)
def test_slots_that_were_chosen(slots: Reply, count: int) -> None:
    found = parse_hotkeys([[b"tracking-active", 1, b"selected-slots", slots]])
    assert isinstance(found, HotSession)
    assert found.slots == count
    assert found.is_active


def test_long_lists_are_cut() -> None:
    flat: list[Reply] = [part for index in range(MAX_LISTED_KEYS + 5) for part in (b"%d" % index, index)]
    found = parse_hotkeys([[b"tracking-active", 1, b"by-cpu-time-us", flat]])
    assert isinstance(found, HotSession)
    assert len(found.measured[SlotMetric.CPU]) == MAX_LISTED_KEYS


@pytest.mark.parametrize("size", [1 << 16, 1 << 20])
def test_lists_of_long_names_end_with_the_hottest(size: int) -> None:
    count = 2 * NAME_BYTES // size
    names = [b"%0*d" % (size, index) for index in range(count)]
    flat: list[Reply] = [part for index, name in enumerate(names) for part in (name, index)]
    session = parse_hotkeys([[b"tracking-active", 1, b"by-cpu-time-us", flat]])
    window = parse_hotkeys([[b"key", name, b"db", 0, b"qps", index] for index, name in enumerate(names)])
    assert isinstance(session, HotSession)
    assert isinstance(window, tuple)
    hottest = names[: -NAME_BYTES // size - 1 : -1]
    assert [key for key, _ in session.measured[SlotMetric.CPU]] == hottest
    assert [one.key for one in window] == hottest
    assert sum(map(len, hottest)) == NAME_BYTES


@given(REPLIES)
def test_any_reply_is_read_without_an_error(reply: Reply) -> None:
    found = parse_hotkeys(reply)
    if isinstance(found, HotSession):
        assert found.sample_ratio >= 1
        assert all(value >= 0 for keys in found.measured.values() for _, value in keys)
