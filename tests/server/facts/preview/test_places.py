"""What is typed to go to a place in a value leads to that place, on every server."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import KeyFacts, Unknown
from rtui.server.facts.key_facts import key_facts, key_preview
from rtui.server.facts.preview.hashes import MAX_VALUE_BYTES, read_field
from rtui.server.facts.preview.page import Page, Preview
from rtui.server.facts.preview.places import find_place, parse_score, stream_id
from rtui.server.facts.preview.strings import string_windows
from rtui.server.facts.preview.value_reader import Refused, ValueReader
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.connection import Connection
from tests.server.facts.preview.test_whole import FEW, on
from tests.server.targets import connected, target_of
from tests.servers import Server

NOW_S = datetime(2026, 11, 22, 16, 30, tzinfo=UTC).timestamp()


def reader_of(connection: Connection, facts: KeyFacts) -> ValueReader:
    return ValueReader(Querier(connection, Capabilities(), connection.own_reads), facts)


async def gone_to(connection: Connection, text: str, key: bytes = b"key") -> Preview | Unknown:
    """The page at a typed place."""
    capabilities = Capabilities()
    facts = await key_facts(connection, key, capabilities)
    page = await find_place(reader_of(connection, facts), text, NOW_S)
    return page if isinstance(page, Unknown) else await key_preview(connection, facts, page, capabilities=capabilities)


def go(server: Server, text: str) -> Preview | Unknown:
    async def look(connection: Connection) -> Preview | Unknown:
        return await gone_to(connection, text)

    found: Preview | Unknown = on(server, look)
    return found


def page_at(server: Server, text: str) -> Preview:
    found = go(server, text)
    assert isinstance(found, Preview), found
    return found


def why_not(server: Server, text: str) -> str:
    found = go(server, text)
    assert isinstance(found, Unknown), found
    return found.detail


def test_an_index_of_a_list_is_the_first_row_and_pages_lead_both_ways(server: Server) -> None:
    server.client().rpush("key", *range(12_000))
    for text, index in (("5,000", 5_000), ("-1", 11_999), ("0", 0), ("0x10", 16), ("-20000", 0), (" 150 ", 150)):
        shown = page_at(server, text)
        assert shown.rows[0] == (index, b"%d" % index)
        assert shown.first == index
        before = shown.page.before
        assert (before is None) == (index == 0)
        if before is not None:
            assert (before.position, before.seen) == (max(0, index - 100),) * 2
    assert "11,999" in why_not(server, "12000")
    assert "not a whole number" in why_not(server, "first")


def test_an_offset_of_a_string(server: Server) -> None:
    server.client().set("key", bytes(range(256)) * 1_000)
    for text, offset in (("65536", 65_536), ("0x100", 256), ("-1", 255_999)):
        shown = page_at(server, text)
        assert shown.window is not None
        assert shown.window.offset_bytes == offset
        assert shown.window.data[0] == offset % 256


@FEW
@given(
    scores=st.lists(st.integers(-50, 50) | st.floats(-50, 50), min_size=1, max_size=300),
    wanted=st.integers(-60, 60) | st.floats(-60, 60),
    other=st.integers(-60, 60),
)
def test_a_score_leads_to_the_first_member_that_has_it_or_more(
    server: Server, scores: list[float], wanted: float, other: int
) -> None:
    client = server.client()
    client.delete("key")
    client.zadd("key", {f"m{at}": score for at, score in enumerate(scores)})
    in_order = sorted(map(float, scores))
    rank = bisect_left(in_order, wanted)
    if rank == len(scores):
        assert "or more" in why_not(server, repr(wanted))
    else:
        shown = page_at(server, repr(wanted))
        assert shown.rows[0][0] == shown.first == rank
        assert shown.rows[0][2] == in_order[rank]
    low, high = sorted((wanted, float(other)))
    inside = in_order[bisect_left(in_order, low) : bisect_right(in_order, high)]
    text = f"{low!r}..{high!r}"
    if not inside:
        assert "no member" in why_not(server, text)
        return
    shown = page_at(server, text)
    rows = list(shown.rows)
    assert shown.page.span is not None
    assert shown.page.span.length == len(inside)
    assert [row[2] for row in rows] == inside[:100]
    assert (shown.next_page is None) == (len(inside) <= 100)


def test_open_ranges_ranks_and_members_of_a_sorted_set(server: Server) -> None:
    client = server.client()
    client.zadd("key", {f"m{n:04}": n for n in range(1_000)})
    client.zadd("key", {"42": 2_000.0})
    assert page_at(server, "#700").rows[0][:2] == (700, b"m0700")
    assert page_at(server, "m0123").rows[0][:2] == (123, b"m0123")
    assert page_at(server, '"42"').rows[0][:2] == (1_000, b"42")
    assert page_at(server, "42").rows[0][:2] == (42, b"m0042")
    assert page_at(server, "990..").page.span is not None
    assert len(page_at(server, "..9").rows) == 10
    assert page_at(server, "-inf").rows[0][0] == 0
    assert "no such member" in why_not(server, "m9999")
    assert "scores are equal" in why_not(server, "[m")


def test_members_in_the_order_of_their_bytes(server: Server) -> None:
    names = sorted(f"name{n}".encode() for n in range(400))
    server.client().zadd("key", dict.fromkeys(names, 0))
    assert page_at(server, "[name25").rows[0][1] == names[bisect_left(names, b"name25")]
    assert page_at(server, "(name25").rows[0][1] == names[bisect_right(names, b"name25")]
    shown = page_at(server, "[name25..(name26")
    assert [row[1] for row in shown.rows] == [name for name in names if b"name25" <= name < b"name26"]
    assert "no member" in why_not(server, "[zzz")


def test_a_field_and_a_member_are_looked_up_by_their_whole_names(server: Server) -> None:
    client = server.client()
    client.hset("key", mapping={f"f{n}": n for n in range(3_000)})
    client.hset("key", mapping={"f 7": "odd", "empty": ""})
    assert [row[:2] for row in page_at(server, "f2999").rows] == [(b"f2999", b"2999")]
    assert [row[:2] for row in page_at(server, r"f\x207").rows] == [(b"f 7", b"odd")]
    assert [row[:2] for row in page_at(server, "empty").rows] == [(b"empty", b"")]
    assert page_at(server, "f29").rows[0][:2] == (b"f29", b"29")
    assert page_at(server, "no such").rows == ()
    assert "escape" in why_not(server, r"\q")


def test_ids_times_and_ranges_of_a_stream(server: Server) -> None:
    client = server.client()
    start_ms = int(datetime(2026, 11, 22, 15, 0, tzinfo=UTC).timestamp() * 1000)
    for minute in range(180):
        client.execute_command("XADD", "key", f"{start_ms + minute * 60_000}-5", "minute", str(minute))

    def minutes(text: str) -> list[object]:
        return [row[2] for row in page_at(server, text).rows]

    assert minutes("16:00")[0] == b"60"
    assert minutes("2026-11-22 15:10")[0] == b"10"
    assert minutes("2026-11-22T15:10:00+00:00")[0] == b"10"
    assert minutes("1h ago")[0] == b"30"
    assert minutes("-10m")[0] == b"80"
    assert minutes(f"{start_ms + 60_000}-5")[0] == b"1"
    assert minutes(f"{start_ms + 60_000}-4")[0] == b"0"
    assert minutes("15:10..15:12") == [b"12", b"11", b"10"]
    assert minutes("..15:01") == [b"1", b"0"]
    assert minutes("2026-11-21") == []
    assert "neither" in why_not(server, "yesterday")
    shown = page_at(server, "15:00..17:00")
    assert shown.next_page is not None
    assert shown.page.span is not None


@given(st.text(max_size=30))
def test_any_text_is_a_place_or_a_reason(text: str) -> None:
    try:
        assert stream_id(text, NOW_S, is_end=True)
    except Refused as refused:
        assert refused.why.detail.isprintable()
    number = parse_score(text)
    assert number is None or number == number  # noqa: PLR0124 - no NaN


async def test_whole_values_are_read_in_bounded_pieces(server: Server) -> None:
    client = server.client()
    data = bytes(range(256)) * 1_000
    client.set("string", data)
    client.hset("hash", mapping={"small": b"s", "wide": b"w" * 500_000, "huge": b"h" * (MAX_VALUE_BYTES + 1)})
    async with connected(target_of(server)) as connection:
        capabilities = Capabilities()
        facts = await key_facts(connection, b"string", capabilities)
        windows = [part async for part in string_windows(reader_of(connection, facts))]
        fields = await key_facts(connection, b"hash", capabilities)
        found = [
            await read_field(reader_of(connection, fields), name) for name in (b"small", b"wide", b"huge", b"none")
        ]
    assert all(isinstance(part, bytes) and len(part) <= 65_536 for part in windows)
    assert b"".join(part for part in windows if isinstance(part, bytes)) == data
    assert found[:2] == [b"s", b"w" * 500_000]
    assert all(isinstance(one, Unknown) for one in found[2:])


async def test_a_string_that_is_deleted_meanwhile_ends_with_the_reason(valkey: Server) -> None:
    client = valkey.client()
    client.set("key", b"x" * 200_000)
    parts: list[bytes | Unknown] = []
    async with connected(target_of(valkey)) as connection:
        facts = await key_facts(connection, b"key", Capabilities())
        async for part in string_windows(reader_of(connection, facts)):
            parts.append(part)
            client.delete("key")
    assert isinstance(parts[-1], Unknown)
    assert len(parts) == 2


@pytest.mark.parametrize(("text", "score"), [("1e3", 1000.0), ("inf", float("inf")), ("nan", None), ("1_0", None)])
def test_scores_are_numbers(text: str, score: float | None) -> None:
    assert parse_score(text) == score


def test_a_page_has_the_one_before_it_within_its_span_only() -> None:
    assert Page.at(250, 100).before == Page.at(150, 100)
    assert Page.at(50, 100).before == Page.at(0, 100)
    assert Page.at(0, 100).before is None
