"""What is found inside a value is what matches in it, on every server, and little is asked for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import Reason
from rtui.keyspace.text.glob import GlobMatcher, PatternError
from rtui.server.facts.key_facts import key_facts, key_preview
from rtui.server.facts.preview.finding import CALLS
from rtui.server.facts.preview.page import Find, Page, Preview, PreviewRow, Unread
from rtui.server.guard.command import find_spec
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
from tests.monitor import Recorder, escapes_quotes
from tests.server.facts.preview.test_whole import BYTES, FEW, on, padded
from tests.server.targets import connected, target_of
from tests.server.watched import Watched
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
    names = [name for run in watched.runs for name in run]
    assert names.count("HSCAN") <= CALLS
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
    assert shown.refusal is not None
    assert shown.refusal.reason is Reason.TOO_LARGE


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
    assert changed.refusal is not None
    assert "string" in changed.refusal.detail


async def test_a_denied_search_is_a_refusal(valkey: Server) -> None:
    valkey.client().sadd("key", "a", "b")
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-sscan", "-sismember")
    async with connected(target_of(valkey)) as connection:
        (shown,) = await found_in(connection, Find(b"a"))
    assert shown.refusal is not None
    assert shown.refusal.reason is Reason.DENIED


@pytest.mark.parametrize("text", [b"*" * 17, b"x" * 511])
def test_patterns_beyond_the_bounds_are_refused(text: bytes) -> None:
    with pytest.raises(PatternError):
        _ = Find(text).pattern
