"""The biggest and the hottest keys of a report, beside redis-cli and beside the whole keyspace in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest

from rtui.analysis.report.document import KeyRecord, Report
from tests.oracles.counted import Fact, by_type, facts, report_on
from tests.oracles.keyspaces import grown
from tests.oracles.redis_cli import told
from tests.server import every_type
from tests.server.targets import target_of
from tests.servers import Server

KEYS = 1_200

TOP = 25


async def test_as_memkeys_and_bigkeys_find_them(server: Server) -> None:
    client = server.client()
    grown(client, keys=KEYS, seed=server.version[1])
    report = await report_on(target_of(server), top=TOP)
    by_memory, by_length = told(server, "--memkeys"), told(server, "--bigkeys")
    big, types = report.summary.big, {one.name: one for one in report.summary.types}
    assert report.head.coverage.keys == by_memory.keys == by_length.keys == KEYS
    assert by_memory.biggest.keys() == types.keys()
    sizes = {kind: (one.stats.keys, one.stats.memory_bytes) for kind, one in types.items()}
    assert sizes == by_memory.totals
    for kind, (key, size) in by_memory.biggest.items():
        is_first(key, size, [(one.key, one.memory_bytes) for one in big.by_type_memory[kind]])
    assert big.by_memory[0].memory_bytes == max(size for _, size in by_memory.biggest.values())
    if not every_type.has_no_touch(server):
        return
    for kind, (key, size) in by_length.biggest.items():
        is_first(key, size, [(one.key, one.length) for one in big.by_type_length[kind]])
    for kind, (keys, total) in by_length.totals.items():
        length = types[kind].length
        assert length is not None
        assert types[kind].stats.keys == keys
        assert length.mean == pytest.approx(total / keys)


def is_first(key: bytes, size: int, records: list[tuple[bytes, int | None]]) -> None:
    """Hold the head of a list against a key and its size; it may be any of those that are as large."""
    equals = [name for name, one in records if one == size]
    assert records[0][1] == size
    assert key in equals or len(equals) == TOP


async def test_the_lists_are_the_head_of_all_keys_in_order(server: Server) -> None:
    client = server.client()
    grown(client, keys=KEYS, seed=100 + server.version[1])
    report = await report_on(target_of(server), top=TOP)
    found = facts(client)
    big = report.summary.big
    is_head(big.by_memory, found.values(), lambda fact: fact.memory_bytes, lambda record: record.memory_bytes)
    for kind, total in by_type(found.values()).items():
        ofs = [fact for fact in found.values() if fact.kind == kind]
        is_head(big.by_type_memory[kind], ofs, lambda fact: fact.memory_bytes, lambda record: record.memory_bytes)
        if every_type.has_no_touch(server) and total.lengths:
            is_head(big.by_type_length[kind], ofs, lambda fact: fact.length or 0, lambda record: record.length)
    if every_type.has_no_touch(server):
        elements = [fact for fact in found.values() if fact.kind != b"string"]
        is_head(big.by_length, elements, lambda fact: fact.length or 0, lambda record: record.length)
    records_are_true(report, found)


def is_head(
    records: tuple[KeyRecord, ...],
    found: Iterable[Fact],
    size: Callable[[Fact], int],
    said: Callable[[KeyRecord], int | None],
) -> None:
    """Hold a list against all keys in order of size; among equals any is as good as another, but none comes twice."""
    ordered = sorted(map(size, found), reverse=True)
    assert [said(record) for record in records] == ordered[:TOP]
    assert len({record.key for record in records}) == len(records)


def records_are_true(report: Report, found: dict[bytes, Fact]) -> None:
    """Everything that a list says of a key is what the server says of it."""
    assert all(record.length is not None and record.encoding for record in report.summary.big.by_memory)
    big = report.summary.big
    for records in (big.by_memory, big.by_length, *big.by_type_memory.values(), *big.by_type_length.values()):
        for record in records:
            fact = found[record.key]
            assert (record.key_type, record.memory_bytes) == (fact.kind, fact.memory_bytes)
            assert record.length in (fact.length, None)
            assert record.encoding in (fact.encoding, None)
            assert record.ttl_ms is not None
            assert (record.ttl_ms < 0) is (fact.ttl_ms < 0)


async def test_as_hotkeys_finds_them(lfu_server: Server) -> None:
    client = lfu_server.client()
    client.config_set("lfu-decay-time", 0)
    random = Random(7)
    keys = list(grown(client, keys=400, seed=7))
    for key in keys:
        for _ in range(int(random.random() ** 4 * 120)):
            client.execute_command("TYPE" if random.random() < 0.1 else "TOUCH", key)
    report = await report_on(target_of(lfu_server), top=TOP)
    hot = told(lfu_server, "--hotkeys").hot
    hottest = {record.key: record.frequency for record in report.summary.hottest}
    assert len(hot) == 16
    assert list(hottest.values())[:16] == [counter for _, counter in hot]
    least = hot[-1][1]
    assert {key for key, counter in hot if counter > least} <= hottest.keys()
    assert all(hottest.get(key, least) == counter for key, counter in hot)
