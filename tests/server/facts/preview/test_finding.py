"""Finding in a value and going to a place in it, on every server, with little asked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import KeyFacts, Reason, Unknown
from rtui.keyspace.text.glob import GlobMatcher, PatternError
from rtui.server.facts.key_facts import key_facts, key_preview
from rtui.server.facts.preview.finding import CALLS
from rtui.server.facts.preview.hashes import MAX_VALUE_BYTES, read_field
from rtui.server.facts.preview.page import Find, Page, Preview, PreviewRow, Unread
from rtui.server.facts.preview.places import find_place, parse_score, stream_id
from rtui.server.facts.preview.strings import string_windows
from rtui.server.facts.preview.value_reader import Refused, ValueReader
from rtui.server.guard.command import find_spec
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.connection import Connection
from tests.conftest import known
from tests.monitor import Recorder, escapes_quotes
from tests.server.facts.preview.test_bounds import BYTES, FEW, on, padded
from tests.server.targets import Watched, connected, target_of
from tests.servers import Server


async def found_in(connection: Connection, find: Find, key: bytes = b"key") -> list[Preview]:
    """Every page of what is found."""
    capabilities = Capabilities()
    facts = await key_facts(connection, key, capabilities)
    page: Page | None = Page(find=find)
    pages: list[Preview] = []
    while page is not None:
        pages.append(await key_preview(connection, facts, page, capabilities=capabilities))
        page = pages[-1].next_page
        assert len(pages) < 1_000
    return pages


def rows_found(server: Server, text: bytes, *, is_exact: bool = False) -> list[PreviewRow]:
    async def look(connection: Connection) -> list[PreviewRow]:
        return [row for page in await found_in(connection, Find(text, is_exact)) for row in page.rows]

    found: list[PreviewRow] = on(server, look)
    return found


TEXTS = st.sampled_from([b"plain 3", b"9", b"*7", b"?lain [12]*", b"no such", b"", b"pl", b"plain 250"]) | BYTES
MANY = st.sampled_from([0, 1, 99, 600, 2_300])


def matching(text: bytes, names: list[bytes]) -> list[bytes]:
    """Those of the names that are to be found, by the rule that is written in the help."""
    is_glob = any(byte in text for byte in b"*?[")
    return [name for name in names if (GlobMatcher(text)(name) if is_glob else text in name)]


@FEW
@given(names=st.lists(BYTES), many=MANY, text=TEXTS)
def test_fields_that_match_are_found_with_their_values(
    server: Server, names: list[bytes], many: int, text: bytes
) -> None:
    client = server.client()
    client.delete("key")
    whole = {name: b"value of " + name for name in padded([*names, b"plain"], many)}
    client.execute_command("HSET", "key", *(part for pair in whole.items() for part in pair))
    expected = {name: whole[name] for name in matching(text, list(whole))}
    rows = rows_found(server, text)
    if text in whole:  # what is exactly so is found first, a glob or not
        assert rows[0][0] == text
        expected[text] = whole[text]
    assert Counter(row[:2] for row in rows) == Counter(expected.items())
    assert [row[:2] for row in rows_found(server, text, is_exact=True)] == [
        (name, value) for name, value in whole.items() if name == text
    ]


@FEW
@given(members=st.lists(BYTES), many=MANY, text=TEXTS)
def test_members_that_match_are_found(server: Server, members: list[bytes], many: int, text: bytes) -> None:
    client = server.client()
    client.delete("key")
    whole = padded([*members, b"plain"], many)
    client.sadd("key", *whole)
    expected = {*matching(text, whole), *({text} & set(whole))}
    assert Counter(row[0] for row in rows_found(server, text)) == Counter(expected)
    assert rows_found(server, text, is_exact=True) == [(name,) for name in whole if name == text]


@FEW
@given(members=st.lists(BYTES), many=MANY, text=TEXTS)
def test_members_of_a_sorted_set_are_found_with_their_scores(
    server: Server, members: list[bytes], many: int, text: bytes
) -> None:
    client = server.client()
    client.delete("key")
    whole = {member: float(at) / 3 for at, member in enumerate(padded([*members, b"plain"], many))}
    client.zadd("key", whole)
    expected = {name: whole[name] for name in [*matching(text, list(whole)), *({text} & set(whole))]}
    rows = rows_found(server, text)
    assert Counter((row[1], row[2]) for row in rows) == Counter(expected.items())
    ranked = [row for row in rows if row[0] is not None]
    assert [row[1] for row in ranked] == [text] * (text in whole)
    assert all(client.zrank("key", str(row[1])) == row[0] for row in ranked if row[1] == b"plain")


@FEW
@given(items=st.lists(BYTES, min_size=1), many=MANY, text=TEXTS)
def test_items_that_match_are_found_with_their_indexes(
    server: Server, items: list[bytes], many: int, text: bytes
) -> None:
    client = server.client()
    client.delete("key")
    whole = [*items, *(b"plain %d" % index for index in range(many))]
    client.rpush("key", *whole)
    wanted = set(matching(text, whole))
    assert rows_found(server, text) == [(at, item) for at, item in enumerate(whole) if item in wanted]


@pytest.mark.parametrize("text", [b"even", b"v 117", b"no such"])
async def test_entries_of_a_stream_are_found_by_field_and_value(server: Server, text: bytes) -> None:
    client = server.client()
    entries = [(f"{n + 1}-0", "even" if n % 2 == 0 else "odd", f"v {n}") for n in range(1_300)]
    for entry_id, name, value in entries:
        client.execute_command("XADD", "key", entry_id, name, value, "other", "x")
    async with connected(target_of(server)) as connection:
        pages = await found_in(connection, Find(text))
    ids = [row[0] for page in pages for row in page.rows if row[0] is not None]
    expected = [one[0].encode() for one in reversed(entries) if text.decode() in one[1] or text.decode() in one[2]]
    assert ids == expected
    assert sum(page.elements or 0 for page in pages) == len(expected)


@FEW
@given(
    before=st.integers(0, 200_000), text=st.binary(min_size=1, max_size=30), after=st.integers(0, 70_000),
)  # fmt: skip
def test_bytes_are_found_wherever_windows_are_cut(valkey: Server, before: int, text: bytes, after: int) -> None:
    filler = bytes([(text[0] + 1) % 256])
    data = filler * before + text + filler * after
    valkey.client().set("key", data)

    async def look(connection: Connection) -> list[Preview]:
        return await found_in(connection, Find(text))

    pages: list[Preview] = on(valkey, look)
    windows = [page.window for page in pages if page.window is not None]
    expected = [at for at in range(len(data)) if data.startswith(text, at)]
    assert [window.offset_bytes for window in windows] == expected
    assert all(window.data.startswith(text[: len(window.data)]) for window in windows)


async def test_a_field_of_very_many_is_found_in_the_first_page(server: Server) -> None:
    client = server.client()
    pipeline = client.pipeline(transaction=False)
    for start in range(0, 50_000, 5_000):
        pipeline.hset("key", mapping={f"field:{n}": n for n in range(start, start + 5_000)})
    pipeline.execute()
    async with connected(target_of(server)) as connection:
        watched = Watched(connection)
        facts = await key_facts(watched, b"key", Capabilities())
        watched.runs.clear()
        shown = await key_preview(watched, facts, Page(find=Find(b"field:49999")))
    assert shown.rows[0][:2] == (b"field:49999", b"49999")
    assert shown.next_page is not None
    assert [name for run in watched.runs for name in run].count("HSCAN") <= CALLS
    assert shown.looked_at == CALLS * 100


async def test_what_is_found_of_large_values_is_not_read(valkey: Server) -> None:
    client = valkey.client()
    client.hset("key", mapping={f"field{n}": n for n in range(2_000)})
    client.hset("key", "field-large", b"x" * 1_000_000)
    async with connected(target_of(valkey)) as connection:
        pages = await found_in(connection, Find(b"large"))
    assert [row for page in pages for row in page.rows] == [(b"field-large", Unread(1_000_000))]


async def test_a_large_compact_value_is_not_walked_over(redis70: Server) -> None:
    admin = redis70.admin
    admin.config_set("hash-max-listpack-entries", 100_000)
    admin.config_set("hash-max-listpack-value", 1_000)
    client = redis70.client()
    client.hset("key", mapping={f"field{n}": "x" * 50 for n in range(9_000)})
    assert client.object("encoding", "key") == b"listpack"
    async with connected(target_of(redis70)) as connection:
        (shown,) = await found_in(connection, Find(b"9"))
    assert known(shown.refusal).reason is Reason.TOO_LARGE


async def test_only_listed_commands_look_inside_and_nothing_is_written(server: Server) -> None:
    client = server.client()
    client.hset("hash", mapping={f"f{n}": n for n in range(700)})
    client.sadd("set", *(f"m{n}" for n in range(700)))
    client.zadd("zset", {f"m{n}": n for n in range(700)})
    client.rpush("list", *range(700))
    client.xadd("stream", {"a": "b"})
    client.set("string", "abc" * 1_000)
    if not escapes_quotes(server):
        pytest.skip("MONITOR of this version can't be read back")
    before: Any = client.info("persistence")["rdb_changes_since_last_save"]
    with Recorder(server) as recorder:
        async with connected(target_of(server)) as connection:
            for key in (b"hash", b"set", b"zset", b"list", b"stream", b"string"):
                for text in (b"7", b"m7", b"*9*", b"nothing"):
                    assert await found_in(connection, Find(text), key)
    sent = [one for one in recorder.commands if one.name not in ("ECHO", "CLIENT")]
    assert {one.name for one in sent} >= {"HSCAN", "SSCAN", "ZSCAN", "ZRANK", "SISMEMBER", "LRANGE", "XREVRANGE"}
    assert not [one.argv for one in sent if find_spec(one.argv) is None]
    after: Any = client.info("persistence")["rdb_changes_since_last_save"]
    assert after == before


async def test_a_key_that_vanishes_or_changes_its_type_says_so(valkey: Server) -> None:
    client = valkey.client()
    client.sadd("key", "a", "b")
    async with connected(target_of(valkey)) as connection:
        facts = await key_facts(connection, b"key", Capabilities())
        client.delete("key")
        gone = await key_preview(connection, facts, Page(find=Find(b"a")))
        client.set("key", "now a string")
        changed = await key_preview(connection, facts, Page(find=Find(b"a")))
    assert gone.refusal is not None
    assert "string" in known(changed.refusal).detail


async def test_a_denied_search_is_a_refusal(valkey: Server) -> None:
    valkey.client().sadd("key", "a", "b")
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-sscan", "-sismember")
    async with connected(target_of(valkey)) as connection:
        (shown,) = await found_in(connection, Find(b"a"))
    assert known(shown.refusal).reason is Reason.DENIED


@pytest.mark.parametrize("text", [b"*" * 17, b"x" * 511])
def test_patterns_beyond_the_bounds_are_refused(text: bytes) -> None:
    with pytest.raises(PatternError):
        _ = Find(text).pattern


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
    assert known(shown.page.span).length == len(inside)
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
