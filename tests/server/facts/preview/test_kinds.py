"""Each kind of value beside its rows; keys that vanish or change, denied commands, connections that end."""

from __future__ import annotations

import gzip
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import Reason, Unknown
from rtui.server.facts.answers import summary_of
from rtui.server.facts.key_facts import key_facts, key_preview
from rtui.server.facts.preview.collections import previous_id
from rtui.server.facts.preview.page import Meaning, Preview, PreviewKind, Unread
from rtui.server.facts.preview.strings import (
    is_text,
    may_be_bitmap,
    read_hyperloglog,
    set_bits,
    signature_of,
    starts_like_json,
)
from rtui.server.facts.preview.value_reader import Refused, cell, element_page, integer, items, mapping, pairs, score
from rtui.server.guard.command import Secret
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.errors import ConnectionLost, Reply
from rtui.values import decode
from rtui.values.server_encodings import DENSE_BYTES
from tests.conftest import known
from tests.monitor import Recorder
from tests.proxy import DelayProxy
from tests.server.every_type import FIELD_TTLS, NO_TOUCH, VECTOR_SETS, fill, has_no_touch
from tests.server.facts.preview.test_bounds import all_pages, looked_at
from tests.server.targets import Watched, connected, target_of
from tests.servers import Server

KINDS = {
    b"string:int": PreviewKind.TEXT, b"string:embstr": PreviewKind.TEXT, b"string:raw": PreviewKind.TEXT,
    b"string:empty": PreviewKind.TEXT, b"string:binary": PreviewKind.BINARY, b"string:bitmap": PreviewKind.BITMAP,
    b"string:hll:sparse": PreviewKind.HYPERLOGLOG, b"string:hll:dense": PreviewKind.HYPERLOGLOG,
    b"vectors": PreviewKind.DESCRIPTION,
}  # fmt: skip
"""What these keys are shown as, where that is not their type."""


async def first_page(server: Server, key: bytes) -> Preview:
    async with connected(target_of(server)) as connection:
        return await looked_at(connection, key)


async def test_everything_there_is_has_a_preview(server: Server) -> None:
    types = fill(server, server.client())
    async with connected(target_of(server)) as connection:
        for key, kind in types.items():
            shown = await looked_at(connection, key)
            assert shown.refusal is None, (key, shown.refusal)
            assert shown.kind == KINDS.get(key, PreviewKind.TEXT if kind == b"string" else kind.decode())
            assert shown.type == kind
            assert shown.touched is not has_no_touch(server)
            assert all(len(row) == len(shown.columns) for row in shown.rows)


async def test_a_look_at_everything_writes_nothing(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    dirty = client.info("persistence")["rdb_changes_since_last_save"]
    dumps = {key: client.dump(key) for key in types}
    with Recorder(server) as recorder:
        async with connected(target_of(server)) as connection:
            for key in types:
                await looked_at(connection, key)
    assert "PFCOUNT" not in {recorded.name for recorded in recorder.named("rtui")}
    assert client.info("persistence")["rdb_changes_since_last_save"] == dirty
    assert {key: client.dump(key) for key in types} == dumps


@NO_TOUCH
async def test_idle_times_and_frequencies_survive_looking(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    client.config_set("maxmemory-policy", "allkeys-lfu")
    client.config_set("lfu-log-factor", 0)
    for key, kind in types.items():
        if kind != b"vectorset":
            client.execute_command("RESTORE", key, 0, client.dump(key), "REPLACE", "FREQ", 77)
    before = {key: client.object("freq", key) for key in types}
    async with connected(target_of(server)) as connection:
        for key in types:
            await looked_at(connection, key)
    assert {key: client.object("freq", key) for key in types} == before


@pytest.mark.parametrize("elements", [1, 10, 700, 5_000])
async def test_a_hyperloglog_whose_count_is_stale_is_counted_from_its_registers(server: Server, elements: int) -> None:
    client = server.client()
    client.pfadd("key", *range(elements))
    stored = client.get("key")
    (label, count), (_, registers) = (await first_page(server, b"key")).summary
    assert label == "distinct elements, from its registers"
    assert client.get("key") == stored
    client.set("copy", stored)  # type: ignore[arg-type]
    assert count == client.pfcount("copy")
    counted = client.pfcount("key")
    shown = await first_page(server, b"key")
    assert shown.summary[0] == ("distinct elements, as last counted", counted)
    assert shown.summary[1][1] == registers == (b"sparse" if elements < 1_000 else b"dense")


async def test_a_hyperloglog_of_damaged_registers_has_no_count(valkey: Server) -> None:
    valkey.client().set("key", b"HYLL\1" + bytes(10) + b"\x80" + b"\x00")
    (_, count), _ = (await first_page(valkey, b"key")).summary
    assert isinstance(count, Unknown)
    assert "would write" in count.detail


async def test_bits_are_counted_as_the_server_counts_them(server: Server) -> None:
    client = server.client()
    bits = [0, 7, 8, 1_001, 30_000, 50_000]
    for bit in bits:
        client.setbit("key", bit, 1)
    shown = await first_page(server, b"key")
    assert shown.kind is PreviewKind.BITMAP
    assert any("may be a bitmap" in note for note in shown.notes)
    assert dict(shown.summary)["bits set in this window"] == client.bitcount("key", 0, 4095)
    (section,) = shown.sections
    assert [row[0] for row in section.rows] == [bit for bit in bits if bit < 4096 * 8]


async def test_known_formats_are_no_bitmap_and_named_where_no_decoder_names_them(valkey: Server) -> None:
    client = valkey.client()
    client.set("compressed", gzip.compress(b"x" * 3_000, mtime=0))
    client.set("serialised", b"\xac\xed\x00\x05" + bytes(100))
    client.set("archive", b"PK\x03\x04" + bytes(100))
    async with connected(target_of(valkey)) as connection:
        for key, chain in ((b"compressed", ("gzip", "text")), (b"serialised", ("Java serialisation",))):
            shown = await looked_at(connection, key)
            assert shown.kind is PreviewKind.BINARY
            assert shown.notes == ()
            assert decode(known(shown.window).data).chain == chain
        shown = await looked_at(connection, b"archive")
        assert shown.kind is PreviewKind.BINARY
        assert shown.notes == ("it begins like a ZIP archive",)


async def test_json_larger_than_a_window_is_read_whole_up_to_the_widest_window(valkey: Server) -> None:
    client = valkey.client()
    small = b"[" + b",".join(b'"item %d"' % index for index in range(4_000)) + b"]"
    client.set("small", small)
    client.set("large", b"[" + b"1," * 40_000 + b"1]")
    async with connected(target_of(valkey)) as connection:
        shown = await looked_at(connection, b"small")
        assert (shown.kind, shown.next_page) == (PreviewKind.TEXT, None)
        assert known(shown.window).data == small
        shown = await looked_at(connection, b"large")
        assert shown.kind is PreviewKind.TEXT
        assert shown.next_page is not None


@FIELD_TTLS
async def test_field_times_to_live_are_shown_where_fields_expire(server: Server) -> None:
    client = server.client()
    for key, many in (("small", 3), ("large", 900)):
        client.hset(key, mapping={f"field{index}": index for index in range(many)})
        client.execute_command("HPEXPIRE", key, 1_000_000, "FIELDS", 1, "field1")
    small = await first_page(server, b"small")
    assert small.columns[-1].meaning is Meaning.DURATION_MS
    left = {row[0]: row[2] for row in small.rows}
    assert left[b"field0"] is left[b"field2"] is None
    assert isinstance(left[b"field1"], int)
    assert 900_000 < left[b"field1"] <= 1_000_000
    async with connected(target_of(server)) as connection:
        rows = [row for page in await all_pages(connection, b"large") for row in page.rows if len(row) == 3]
    assert [row[0] for row in rows if row[2] is not None] == [b"field1"]


async def test_a_hash_without_field_ttls_has_no_such_column(server: Server) -> None:
    server.client().hset("key", mapping={f"field{index}": index for index in range(700)})
    assert len((await first_page(server, b"key")).columns) == 2


async def test_groups_consumers_and_pending_of_a_stream(server: Server) -> None:
    client = server.client()
    for index in range(1, 6):
        client.xadd("key", {"n": index}, id=f"{index}-0")
    client.xgroup_create("key", "busy", "0")
    client.xgroup_create("key", "new", "$")
    client.xreadgroup("busy", "one", {"key": ">"}, count=2)
    client.xreadgroup("busy", "two", {"key": ">"}, count=1)
    shown = await first_page(server, b"key")
    groups, consumers = shown.sections
    titles = [column.title for column in groups.columns]
    rows = {row[0]: dict(zip(titles, row, strict=True)) for row in groups.rows}
    assert rows[b"busy"]["pending"] == 3
    assert rows[b"busy"]["consumers"] == 2
    assert (rows[b"busy"]["oldest pending"], rows[b"busy"]["newest pending"]) == (b"1-0", b"3-0")
    assert (rows[b"new"]["pending"], rows[b"new"]["oldest pending"]) == (0, None)
    assert consumers.subject == b"busy"
    assert {(row[0], row[1]) for row in consumers.rows} == {(b"one", 2), (b"two", 1)}
    assert dict(shown.summary)["length"] == 5
    assert dict(shown.summary)["last-generated-id"] == b"5-0"


async def test_a_stream_without_entries_or_groups_is_empty_not_gone(server: Server) -> None:
    client = server.client()
    client.xgroup_create("key", "group", "0", mkstream=True)
    shown = await first_page(server, b"key")
    assert (shown.refusal, shown.rows, shown.total) == (None, (), 0)


async def test_too_many_groups_are_counted_not_listed(valkey: Server) -> None:
    client = valkey.client()
    client.xadd("key", {"a": 1})
    for index in range(101):
        client.xgroup_create("key", f"group{index}", "0")
    with Recorder(valkey) as recorder:
        shown = await first_page(valkey, b"key")
    assert shown.sections == ()
    assert any("101 groups" in note for note in shown.notes)
    assert not [recorded for recorded in recorder.named("rtui") if recorded.argv[:2] == (b"XINFO", b"GROUPS")]


@VECTOR_SETS
async def test_what_a_vector_set_is(server: Server) -> None:
    client = server.client()
    for index in range(3):
        client.execute_command("VADD", "key", "VALUES", 2, index, 1, f"element{index}")
    shown = await first_page(server, b"key")
    assert (shown.kind, shown.total) == (PreviewKind.DESCRIPTION, 3)
    assert dict(shown.summary)["vector-dim"] == 2
    assert dict(shown.summary)["size"] == 3


@VECTOR_SETS
async def test_elements_of_a_vector_set_with_attributes_and_vectors(server: Server) -> None:
    client = server.client()
    dimensions, elements = 400, 90
    for index in range(elements):
        numbers = [str(index / 8 + at) for at in range(dimensions)]
        attributes = ["SETATTR", f'{{"n": {index}}}'] if index % 3 else []
        client.execute_command("VADD", "key", "VALUES", dimensions, *numbers, f"element{index}", "NOQUANT", *attributes)
    async with connected(target_of(server)) as connection:
        pages = await all_pages(connection, b"key")
    lists = server.version >= (8, 4)
    assert [page.elements for page in pages] == ([40, 40, 10] if lists else [40])
    assert any("random sample" in note for note in pages[0].notes) is not lists
    seen: list[bytes] = []
    for page in pages:
        for name, part, value in page.rows:
            if part == b"attributes":
                assert value == client.execute_command("VGETATTR", "key", seen[-1])
                continue
            assert isinstance(name, bytes)
            assert isinstance(value, bytes)
            seen.append(name)
            expected = client.execute_command("VEMB", "key", name)
            assert json.loads(value) == pytest.approx([float(number) for number in expected])
    assert sum(row[1] == b"attributes" for page in pages for row in page.rows) == sum(
        int(name.removeprefix(b"element")) % 3 > 0 for name in seen
    )
    if lists:
        assert sorted(seen) == seen == sorted(b"element%d" % index for index in range(elements))


@VECTOR_SETS
async def test_vectors_of_very_many_numbers_are_left_out(server: Server) -> None:
    client = server.client()
    client.execute_command("VADD", "key", "VALUES", 5_000, *["1"] * 5_000, "element")
    shown = await first_page(server, b"key")
    assert [row[:2] for row in shown.rows] == [(b"element", b"vector")]
    assert shown.rows[0][2] == Unread(None)
    assert any("5,000 numbers" in note for note in shown.notes)


@given(st.binary())
def test_only_objects_and_arrays_start_like_json(data: bytes) -> None:
    assert starts_like_json(data) == (data.lstrip(b" \t\r\n")[:1] in (b"{", b"["))


@given(st.text(st.characters(exclude_categories=["C"])), st.integers(0, 300), st.integers(0, 300))
def test_a_window_of_text_is_text_wherever_it_is_cut(text: str, start: int, size: int) -> None:
    assert is_text(text.encode()[start : start + size], cut_before=start > 0, cut_after=True)


def test_a_character_cut_without_a_mark_is_not_text() -> None:
    assert not is_text("é".encode()[:1])
    assert not is_text("é".encode()[1:])


@pytest.mark.parametrize("data", [b"\0\0\0\1", b"\x80abc", b"\xff" * 8, bytes(range(256)), b"\x1f\x8b\x08\0"])
def test_bytes_are_not_text(data: bytes) -> None:
    assert not is_text(data, cut_after=True)


def test_logs_with_colours_and_line_breaks_are_text() -> None:
    assert is_text(b"\x1b[31mred\x1b[0m\r\n\tnext")


def test_the_header_of_a_hyperloglog_tells_its_count() -> None:
    head = b"HYLL\1\0\0\0" + (1234).to_bytes(8, "little")
    assert read_hyperloglog(head, 100) == (b"sparse", 1234)


def test_a_stale_count_is_none() -> None:
    head = b"HYLL\0\0\0\0" + (1234).to_bytes(7, "little") + b"\x80"
    assert read_hyperloglog(head, DENSE_BYTES) == (b"dense", None)


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"", 0), (b"HYLL", 4), (b"HYLL\2" + bytes(11), 100), (b"HYLL\0" + bytes(11), 100),
        (b"HYLX\1" + bytes(11), 100), (b"HYLL likes you!!", 16),
    ],
)  # fmt: skip
def test_what_only_begins_alike_is_no_hyperloglog(head: bytes, size: int) -> None:
    assert read_hyperloglog(head, size) is None


@given(st.binary(), st.integers(0, 1000))
def test_set_bits_are_those_of_the_number(window: bytes, offset: int) -> None:
    bits = list(set_bits(window, offset))
    assert len(bits) == sum(byte.bit_count() for byte in window)
    for bit in bits:
        assert window[bit // 8 - offset] >> (7 - bit % 8) & 1


def test_sparse_and_nearly_full_bits_may_be_a_bitmap() -> None:
    assert may_be_bitmap(b"\x00\x40\x00\x00\x01\x00")
    assert may_be_bitmap(b"\xff\xfe\xff\xff")
    assert not may_be_bitmap(b"")
    assert not may_be_bitmap(b"plain text")
    assert not may_be_bitmap(bytes(range(256)))


ID = st.integers(0, (1 << 64) - 1)


@given(st.dictionaries(st.binary(), st.binary()))
def test_a_map_is_read_in_every_shape(named: dict[bytes, bytes]) -> None:
    flat = [part for pair in named.items() for part in pair]
    assert dict(pairs(flat)) == named  # type: ignore[arg-type]
    assert dict(pairs([list(pair) for pair in named.items()])) == named
    assert dict(pairs(dict(named))) == named  # type: ignore[arg-type]


def test_what_is_not_a_map_has_nothing() -> None:
    assert mapping(None) == mapping(b"text") == mapping(7) == {}
    assert mapping([1, 2, b"name", 3]) == {b"name": 3}
    assert items(b"text") == []
    assert element_page([b"17", [b"a"]]) == (17, [b"a"])


@pytest.mark.parametrize(
    "reply",
    [None, b"text", 7, [], [b"0"], [b"0", b"a"], [b"-1", []], [b"7" * 5000, []], [b"%d" % (1 << 64), []], [None, []]],
)
def test_what_is_no_page_is_refused_and_not_an_empty_one(reply: Reply) -> None:
    with pytest.raises(Refused):
        element_page(reply)


@given(st.floats(allow_nan=False))
def test_scores_are_exact_as_text_and_as_numbers(number: float) -> None:
    for text in (b"%.17g" % number, repr(number).encode()):
        assert score(text) == number
    assert score(number) == number


def test_odd_scores() -> None:
    assert score(b"-inf") == -math.inf
    assert score(b"not a number") is None
    assert score(None) is None


def test_numbers_beyond_64_bits_with_a_sign_come_as_text() -> None:
    assert integer(b"18446744073709551614") == (1 << 64) - 2
    assert integer(7) == 7
    assert integer(b"x") is integer(None) is None


def test_cells_are_bytes_and_numbers_only() -> None:
    replies: list[Reply] = [b"a", 1, 1.5, None, [b"a"]]
    assert [cell(reply) for reply in replies] == [b"a", 1, 1.5, None, None]


def test_a_description_keeps_its_single_values_in_order() -> None:
    reply = [b"totalSamples", 100, b"labels", [[b"sensor", b"2"]], b"sourceKey", None, b"chunkType", b"compressed"]
    assert summary_of(reply) == (("totalSamples", 100), ("chunkType", b"compressed"))  # type: ignore[arg-type]


@given(ID, ID)
def test_the_id_before_is_the_next_smaller_one(time: int, sequence: int) -> None:
    milliseconds, _, number = previous_id(b"%d-%d" % (time, sequence)).partition(b"-")
    value = (time << 64) + sequence
    assert (int(milliseconds) << 64) + int(number) == max(value - 1, 0)


def test_known_beginnings_have_names() -> None:
    assert signature_of(b"\x1f\x8b\x08\x00rest") == "gzip"
    assert signature_of(b"\x80\x04\x95\x00") == "a Python pickle"
    assert signature_of(b"plain") is signature_of(b"") is None


async def test_a_key_that_vanishes_before_its_preview_is_gone(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    async with connected(target_of(server)) as connection:
        facts = [await key_facts(connection, key) for key in types]
        client.flushall()
        for one in facts:
            shown = await key_preview(connection, one)
            assert shown.kind is PreviewKind.NOTHING
            assert known(shown.refusal).reason is Reason.GONE


async def test_a_key_that_was_gone_already_says_so_without_asking(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        facts = await key_facts(watched, b"absent")
        watched.runs.clear()
        shown = await key_preview(watched, facts)
    assert known(shown.refusal).reason is Reason.GONE
    assert watched.runs == []


async def test_a_key_whose_name_another_one_has_taken_is_gone_and_says_so(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    async with connected(target_of(server)) as connection:
        facts = [await key_facts(connection, key) for key in types]
        client.flushall()
        for key, kind in types.items():
            client.execute_command(*(("SET", key, 1) if kind != b"string" else ("RPUSH", key, 1)))
        for one in facts:
            shown = await key_preview(connection, one)
            assert shown.refusal is not None, one.key
            assert shown.refusal.reason is Reason.GONE
            assert "the name now belongs to another key" in shown.refusal.detail


async def test_a_key_that_vanishes_within_a_preview_is_no_error(valkey: Server) -> None:
    client = valkey.client()
    for write in (1, 2):
        client.hset("key", mapping={f"field{index}": "x" * 100 for index in range(30)})
        async with connected(target_of(valkey)) as connection:
            watched = Watched(connection)
            facts = await key_facts(watched, b"key")
            watched.before[2 + write] = lambda: client.delete("key")
            shown = await key_preview(watched, facts)
        assert not watched.before
        assert shown.kind is PreviewKind.HASH
        assert len(shown.rows) == 30
        assert b"x" not in b"".join(row[1] for row in shown.rows if isinstance(row[1], bytes))


@pytest.mark.parametrize("kind", ["string", "list"])
async def test_a_page_behind_the_end_of_a_value_that_shrank_says_so(valkey: Server, kind: str) -> None:
    client = valkey.client()
    client.execute_command(*(["SET", "key", "x" * 9_000] if kind == "string" else ["RPUSH", "key", *range(300)]))
    async with connected(target_of(valkey)) as connection:
        facts = await key_facts(connection, b"key")
        following = known((await key_preview(connection, facts)).next_page)
        client.delete("key")
        client.execute_command(*(["SET", "key", "x"] if kind == "string" else ["RPUSH", "key", 1]))
        shown = await key_preview(connection, facts, following)
    assert shown.refusal is None
    assert any("shorter" in note for note in shown.notes)
    assert shown.page.previous is not None


READS = {
    b"string:raw": "getrange", b"hash:table": "hscan", b"list:long": "lrange", b"set:table": "sscan",
    b"zset:skiplist": "zrange", b"stream:plain": "xrevrange",
}  # fmt: skip


@pytest.mark.parametrize("key", READS)
async def test_a_denied_read_is_a_refusal_of_the_value_alone(valkey: Server, key: bytes) -> None:
    client = valkey.client()
    fill(valkey, client)
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "~*", "+@all", f"-{READS[key]}")
    async with connected(target_of(valkey, user="some", password=Secret("word"))) as connection:
        capabilities = Capabilities()
        shown = await looked_at(connection, key, capabilities)
        assert shown.refusal is not None
        assert shown.refusal.reason is Reason.DENIED
        watched = Watched(connection)
        again = await looked_at(watched, key, capabilities)
        assert again.refusal == shown.refusal
        assert not any(READS[key].upper() in run for run in watched.runs)


DETAILS = ("hstrlen", "hmget", "hpttl", "xinfo|stream", "xinfo|groups", "xinfo|consumers", "xpending")
"""Commands that only add something to a preview."""


@pytest.mark.parametrize("rule", DETAILS)
async def test_a_denied_detail_costs_that_detail(valkey: Server, rule: str) -> None:
    client = valkey.client()
    fill(valkey, client)
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "~*", "+@all", f"-{rule}")
    async with connected(target_of(valkey, user="some", password=Secret("word"))) as connection:
        for key in (b"hash:table", b"stream:groups"):
            shown = await looked_at(connection, key)
            assert shown.refusal is None
            assert shown.rows


@VECTOR_SETS
async def test_a_vector_set_needs_a_right_of_its_own(server: Server) -> None:
    client = server.client()
    client.execute_command("VADD", "key", "VALUES", 2, 1, 1, "element")
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "%R~*", "+@all")
    async with connected(target_of(server, user="some", password=Secret("word"))) as connection:
        shown = await looked_at(connection, b"key")
    assert shown.kind is PreviewKind.DESCRIPTION
    assert known(shown.refusal).reason is Reason.DENIED


async def test_a_connection_cut_within_a_reply_is_lost_and_comes_back(server: Server) -> None:
    server.client().set("key", b"x" * 60_000)
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        facts = await key_facts(connection, b"key")
        proxy.cut_after(10_000)
        with pytest.raises(ConnectionLost):
            await key_preview(connection, facts, window_bytes=65_536)
        connection.retry_now()
        await connection.online()
        shown = await key_preview(connection, facts, window_bytes=65_536)
        assert len(known(shown.window).data) == 60_000
