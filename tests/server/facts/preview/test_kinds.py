"""What each kind of value shows beside its rows."""

from __future__ import annotations

import gzip
import json

import pytest

from rtui.analysis.facts import Unknown
from rtui.server.facts.preview.page import Meaning, Preview, PreviewKind, Unread
from rtui.values import decode
from tests.monitor import Recorder
from tests.server.every_type import FIELD_TTLS, NO_TOUCH, VECTOR_SETS, fill, has_no_touch
from tests.server.facts.preview.pages import all_pages, looked_at
from tests.server.targets import connected, target_of
from tests.servers import Server

KINDS = {
    b"string:int": PreviewKind.TEXT,
    b"string:embstr": PreviewKind.TEXT,
    b"string:raw": PreviewKind.TEXT,
    b"string:empty": PreviewKind.TEXT,
    b"string:binary": PreviewKind.BINARY,
    b"string:bitmap": PreviewKind.BITMAP,
    b"string:hll:sparse": PreviewKind.HYPERLOGLOG,
    b"string:hll:dense": PreviewKind.HYPERLOGLOG,
    b"vectors": PreviewKind.DESCRIPTION,
}
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
            assert shown.window is not None
            assert decode(shown.window.data).chain == chain
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
        assert shown.window is not None
        assert shown.window.data == small
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
