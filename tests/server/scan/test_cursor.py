"""Cursors as positions, and where a scan was broken off, written down and read back."""

from __future__ import annotations

import itertools
import json
import stat
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.scan.cursor import (
    POSITION_END,
    BeginningWatch,
    Dialect,
    bitreverse64,
    covered_share,
    dialect_of,
    equal_ranges,
)
from rtui.server.scan.node_scan import ABOVE_BUCKETS, PROVED_FROM, are_positions, known_dialect, places, prove_cursors
from rtui.server.scan.ranges import CursorSpan, Ranges
from rtui.server.scan.sampling import KeySample
from rtui.server.scan.savepoint import (
    KEPT_SPANS,
    MAX_FILE_BYTES,
    SaveFile,
    Savepoint,
    filter_digest,
    joined,
    savepoint_of,
)
from rtui.server.wire.errors import Reply, ServerBusyError, ServerError
from rtui.server.wire.identity import Product, ServerIdentity
from tests.conftest import known
from tests.fakes.servers import ElastiCacheServerless, FakeKey, FakeServer, HuaweiProxy, RedisEnterprise, TencentProxy
from tests.proxy import DelayProxy
from tests.server.scan.table import Dict
from tests.server.targets import connected, numbered, plant, target_of, until
from tests.servers import Server

cursors = st.integers(min_value=0, max_value=POSITION_END - 1)
ordered = st.sampled_from([Dialect.STANDALONE, Dialect.SLOTTED])


@given(cursors)
def test_reverses_like_a_string_of_bits(value: int) -> None:
    assert bitreverse64(value) == int(f"{value:064b}"[::-1], 2)


@given(cursors, ordered)
def test_position_and_cursor_are_opposites(cursor: int, dialect: Dialect) -> None:
    assert dialect.cursor(dialect.position(cursor)) == cursor


@given(st.integers(min_value=1, max_value=20))
def test_walks_a_table_in_ascending_positions(bits: int) -> None:
    """The successor of a cursor as dict.c computes it has the next position."""
    mask = (1 << bits) - 1
    cursor, seen = 0, []
    for _ in range(min(1 << bits, 300)):
        seen.append(Dialect.STANDALONE.position(cursor))
        counted = bitreverse64(cursor | ~mask & (POSITION_END - 1)) + 1
        cursor = bitreverse64(counted % POSITION_END)
    assert seen == sorted(set(seen))
    assert seen[1:2] in ([], [POSITION_END >> bits])


def test_slotted_cursor_counts_slots_first() -> None:
    position = Dialect.SLOTTED.position
    in_slot = [position(table << 14 | 5) for table in (0, 2, 1, 3)]
    assert in_slot == sorted(in_slot)
    assert in_slot[-1] < position(6)


@pytest.mark.parametrize("dialect", [Dialect.STANDALONE, Dialect.SLOTTED])
def test_zero_ends_a_scan(dialect: Dialect) -> None:
    assert dialect.reached(0) == POSITION_END
    assert dialect.reached(1) < POSITION_END


@pytest.mark.parametrize("cursor", [POSITION_END, 1 << 70, 10**4000, -1])
def test_what_is_no_cursor_has_no_position(cursor: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        bitreverse64(cursor)
    if cursor > 0:
        with pytest.raises(ValueError, match="64 bits"):
            Dialect.SLOTTED.reached(cursor)


def test_opaque_has_no_positions() -> None:
    with pytest.raises(ValueError, match="opaque"):
        Dialect.OPAQUE.position(1)
    with pytest.raises(ValueError, match="opaque"):
        Dialect.OPAQUE.cursor(1)


@pytest.mark.parametrize(
    ("product", "version", "cluster", "expected"),
    [
        ("redis", (7, 0, 15), False, Dialect.STANDALONE), ("redis", (8, 10, 2), False, Dialect.STANDALONE),
        ("redis", None, False, Dialect.STANDALONE), ("redis", (7, 2, 6), True, Dialect.STANDALONE),
        ("redis", (7, 4, 0), True, Dialect.SLOTTED), ("valkey", (7, 2, 5), True, Dialect.STANDALONE),
        ("valkey", (8, 0, 1), True, Dialect.SLOTTED), ("valkey", None, True, Dialect.OPAQUE),
        ("valkey", (9, 1, 2), None, Dialect.OPAQUE), ("other", (7, 4, 0), False, Dialect.OPAQUE),
    ],
)  # fmt: skip
def test_dialect_follows_product_and_version(
    product: Product, version: tuple[int, ...] | None, cluster: bool | None, expected: Dialect
) -> None:
    assert dialect_of(ServerIdentity(product, version=version, cluster_enabled=cluster)) is expected


@given(st.integers(min_value=0, max_value=6))
def test_pieces_tile_the_keyspace(power: int) -> None:
    cut = equal_ranges(1 << power)
    assert cut[0][0] == 0
    assert cut[-1][1] == POSITION_END
    assert all(left[1] == right[0] for left, right in itertools.pairwise(cut))


def test_pieces_are_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="power of two"):
        equal_ranges(6)


def test_covered_counts_owned_slots_only() -> None:
    assert covered_share(0, Dialect.SLOTTED.position(10), [(0, 9), (100, 109)]) == pytest.approx(0.5)
    assert covered_share(0, POSITION_END, [(0, 9)]) == pytest.approx(1.0)
    assert covered_share(0, POSITION_END // 4) == pytest.approx(0.25)
    assert covered_share(0, 1, []) == 1.0


SEEDS = st.integers(0, 1 << 32)
KEYS = {b"a:%d" % number: FakeKey() for number in range(600)}


def pages(scan: Callable[[int], tuple[int, list[bytes]]], cursors: list[int]) -> list[Reply]:
    """What SCAN answers to each of the cursors, and to each with the bit changed."""
    found = [scan(one) for cursor in cursors for one in (cursor, cursor ^ ABOVE_BUCKETS)]
    return [[b"%d" % after, [*keys]] for after, keys in found]


@given(SEEDS, st.integers(PROVED_FROM, 2000), st.integers(-2, 2), st.integers(0, 3000))
def test_every_table_passes_also_one_that_is_rehashed(seed: int, keys: int, bits: int, rehashed: int) -> None:
    rng = Random(seed)
    hashes = {b"%d" % index: rng.randrange(POSITION_END) for index in range(keys)}
    table = Dict(hashes, keys.bit_length() + bits)
    table.resize(keys.bit_length() + 1)
    table.rehash(rehashed)
    cursors = places(Dialect.STANDALONE, rng)
    assert are_positions(Dialect.STANDALONE, cursors, pages(lambda cursor: table.scan(cursor, 1), cursors))


@given(SEEDS)
def test_cursors_that_count_pages_do_not(seed: int) -> None:
    cursors = places(Dialect.STANDALONE, Random(seed))
    assert not are_positions(Dialect.STANDALONE, cursors, pages(lambda cursor: (cursor + 1, [b"a"]), cursors))


@given(SEEDS)
def test_a_server_where_made_up_cursors_end_the_scan_does_not(seed: int) -> None:
    cursors = places(Dialect.STANDALONE, Random(seed))
    replies = pages(lambda cursor: (0 if cursor else 8, [b"a"]), cursors)
    assert not are_positions(Dialect.STANDALONE, cursors, replies)


def test_errors_and_nonsense_do_not_and_a_busy_server_proves_nothing() -> None:
    wrong: list[Reply] = [ServerError("ERR invalid cursor"), b"no page", None, [b"1", [7]]]
    for reply in wrong:
        assert not are_positions(Dialect.STANDALONE, [0], [reply, reply])
    busy = ServerError("BUSY Redis is busy running a script")
    with pytest.raises(ServerBusyError):
        are_positions(Dialect.STANDALONE, [0], [busy, busy])


@pytest.mark.parametrize("count", [0, 1, 3, 40, 600])
async def test_every_server_passes_however_many_keys_it_has(server: Server, count: int) -> None:
    plant(server, numbered(count))
    async with connected(target_of(server)) as connection:
        for _ in range(5):
            connection.cursors_are_positions = None
            await prove_cursors(connection, None)
            assert known_dialect(connection) is Dialect.STANDALONE
            if count > PROVED_FROM:
                assert connection.cursors_are_positions


async def test_a_node_of_a_cluster_passes(cluster_node: Server) -> None:
    pipeline = cluster_node.admin.pipeline(transaction=False)
    for number in range(600):
        pipeline.set(f"{{{number % 7}}}:{number}", "x")
    pipeline.execute()
    async with connected(target_of(cluster_node)) as connection:
        before = known_dialect(connection)
        assert await prove_cursors(connection, 600) > 0
        assert connection.cursors_are_positions
        assert known_dialect(connection) is before
        assert before.is_ordered


@pytest.mark.parametrize(
    "kind", [RedisEnterprise, TencentProxy, HuaweiProxy, ElastiCacheServerless], ids=lambda kind: kind.__name__
)
async def test_what_only_says_that_it_is_redis_fails(kind: type[FakeServer]) -> None:
    async with kind(KEYS) as server, connected(server.target) as connection:
        assert await prove_cursors(connection, len(KEYS)) > 0
        assert known_dialect(connection) is Dialect.OPAQUE


async def test_it_is_asked_once_a_connection(server: Server) -> None:
    plant(server, numbered(600))
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        assert await prove_cursors(connection, 600) > 0
        assert await prove_cursors(connection, 600) == 0
        generation = connection.generation
        proxy.cut()
        await until(connection, lambda: connection.generation > generation and connection.is_online)
        assert connection.cursors_are_positions is None
        assert await prove_cursors(connection, 600) > 0


async def test_small_keyspaces_are_not_asked(server: Server) -> None:
    plant(server, numbered(10))
    async with connected(target_of(server)) as connection:
        assert await prove_cursors(connection, 10) == 0


async def test_it_takes_one_round_trip(server: Server) -> None:
    plant(server, numbered(600))
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        before = proxy.round_trips[0].count
        await prove_cursors(connection, 600)
        assert proxy.round_trips[0].count == before + 1


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 40))
def test_a_scan_that_begins_again_is_noticed_and_no_other(first: int, count: int, later: int) -> None:
    names = numbered(300)
    watch = BeginningWatch(names[:first])
    for start in range(first, 300, count):
        assert not watch.observe(names[start : start + count])
    again = [watch.observe(names[start : start + count]) for start in range(0, 300, count)]
    assert any(again)
    assert again.index(True) * count <= max(first, 70)
    assert not BeginningWatch(names[:10]).observe(names[later + 10 : later + 20])


def test_a_key_that_comes_twice_is_no_new_beginning() -> None:
    names = numbered(100)
    watch = BeginningWatch(names[:20])
    assert not any(watch.observe([names[at], names[20 + at]]) for at in range(9))


@given(SEEDS, st.integers(2, 6))
def test_a_sample_of_one_shard_of_several_is_noticed(seed: int, shards: int) -> None:
    rng = Random(seed)
    table = Dict({b"%d" % index: rng.randrange(POSITION_END) for index in range(20_000)}, 15)
    taken = KeySample()
    for _ in range(200):
        start = rng.randrange(POSITION_END)
        cursor, keys = table.scan(Dialect.STANDALONE.cursor(start), 10)
        taken.add([start], [[b"%d" % cursor, [*keys]]])
    assert taken.contradiction(20_000) is None
    assert taken.contradiction(None) is None
    assert taken.contradiction(100, 4_000_000) is None  # it grows
    assert "DBSIZE" in str(taken.contradiction(20_000 * shards))


def test_the_bit_that_is_changed_is_above_every_table() -> None:
    assert guard.scan(ABOVE_BUCKETS | ((1 << 40) - 1), count=1)


RUN = "0123abcd"


@st.composite
def spans(draw: st.DrawFn) -> tuple[CursorSpan, ...]:
    ordered = sorted(draw(st.sets(st.integers(0, POSITION_END), min_size=2, max_size=16)))
    pairs = list(zip(ordered[::2], ordered[1::2], strict=False))
    return tuple(CursorSpan(*pair) for pair in draw(st.permutations(pairs)))


@given(spans())
def test_what_remained_comes_first_and_then_the_rest(remaining: tuple[CursorSpan, ...]) -> None:
    found = savepoint_of(RUN, 0, None, None, remaining).spans()
    assert found[: len(remaining)] == remaining
    ordered = sorted(found, key=lambda span: span.start)
    assert ordered[0].start == 0
    assert ordered[-1].end == POSITION_END
    assert all(one.end == other.start for one, other in itertools.pairwise(ordered))


def test_round_trip(tmp_path: Path) -> None:
    file = SaveFile("prod:6379", 3, tmp_path)
    point = savepoint_of(RUN, 3, b"user:*", b"hash", [CursorSpan(5, 9), CursorSpan(1 << 63, POSITION_END)])
    file.save(point)
    assert SaveFile("prod:6379", 3, tmp_path).load() == point
    file.save(savepoint_of(RUN, 3, None, None, [CursorSpan(7, 9)]))
    assert len(list(tmp_path.iterdir())) == 1
    file.remove()
    assert file.load() is None
    file.remove()


def test_another_target_or_database_has_another_file(tmp_path: Path) -> None:
    paths = {SaveFile(label, db, tmp_path).path for label in ("a:1", "a:2") for db in (0, 1)}
    assert len(paths) == 4


def test_neither_names_nor_places_are_in_it(tmp_path: Path) -> None:
    file = SaveFile("prod.example.com:6379", 0, tmp_path / "scans")
    file.save(savepoint_of(RUN, 0, b"secret:customer:*", b"hash", [CursorSpan(1, 2)]))
    told = file.path.name + file.path.read_text()
    assert not any(word in told for word in ("secret", "customer", "hash", "example", "6379"))
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"format": 2}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["0", "zz"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["5", "1"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["0", "5"], ["4", "9"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["0", "10000000000000001"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["0"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["0", "5"]], "saved_at": null}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["0", "5"]], "saved_at": NaN}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["0", "5"]], "saved_at": 1'
        + "0" * 400
        + "}",
        '{"format": 1, "run_id": "x", "db": Infinity, "filter": "", "remaining": [["0", "5"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": true, "filter": "", "remaining": [["0", "5"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 1'
        + "0" * 5000
        + ', "filter": "", "remaining": [["0", "5"]], "saved_at": 0}',
        '{"format": 1, "run_id": 5, "db": 0, "filter": "", "remaining": [["0", "5"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": [], "remaining": [["0", "5"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": ["05"], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": {"05": 1}, "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["-5", "1"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["5", "5"]], "saved_at": 0}',
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["0", "'
        + "f" * 900_000
        + '"]], "saved_at": 0}',
        "[" * 200_000,
        '{"a":' * 100_000,
        '{"format": 1, "run_id": "x", "db": 0, "filter": "", "remaining": [["0", "5"]], "saved_at": 0}'
        + " " * MAX_FILE_BYTES,
    ],
    ids=len,
)
def test_a_broken_file_is_no_savepoint(tmp_path: Path, content: str) -> None:
    file = SaveFile("a:1", 0, tmp_path)
    file.path.write_text(content)
    assert file.load() is None


def test_a_file_that_is_not_text_is_no_savepoint(tmp_path: Path) -> None:
    file = SaveFile("a:1", 0, tmp_path)
    file.path.write_bytes(b"\xff\xfe")
    assert file.load() is None


def test_a_folder_that_can_not_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(OSError, match="taken"):
        SaveFile("a:1", 0, tmp_path / "taken").save(savepoint_of(RUN, 0, None, None, [CursorSpan(1, 2)]))


def test_only_the_same_run_and_filter_can_go_on() -> None:
    point = Savepoint(RUN, 0, filter_digest(None, None), (CursorSpan(1, 2),), 0.0)
    same = filter_digest(None, None)
    assert point.why_not(RUN, 0, same) is None
    assert "restarted" in str(point.why_not("other", 0, same))
    assert "does not report its run id" in str(point.why_not(None, 0, same))
    assert "database" in str(point.why_not(RUN, 1, same))
    assert "filter" in str(point.why_not(RUN, 0, filter_digest(b"*", None)))


def test_the_layout_on_disk(tmp_path: Path) -> None:
    file = SaveFile("a:1", 0, tmp_path)
    file.save(Savepoint(RUN, 0, "f", (CursorSpan(0, POSITION_END),), 12.5))
    assert json.loads(file.path.read_text()) == {
        "format": 1,
        "run_id": RUN,
        "db": 0,
        "filter": "f",
        "remaining": [["0", "10000000000000000"]],
        "saved_at": 12.5,
    }


@settings(deadline=None)
@given(st.integers(0, 1 << 32).map(Random), st.sampled_from((1, 8, 64)))
def test_any_number_of_interruptions_keeps_the_file_readable(
    tmp_path_factory: pytest.TempPathFactory, rng: Random, width: int
) -> None:
    """Forty runs in a row are broken off anywhere; each saves a file that the next one reads, of the whole keyspace."""
    file = SaveFile("a:1", 0, tmp_path_factory.getbasetemp())
    ranges = Ranges(Dialect.STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(width)])
    for _ in range(40):
        for _ in range(rng.randrange(1, 30)):
            one = rng.choice(ranges.under_way(width) or [None])
            if one is not None:
                step = max(1, (one.end - one.position) // rng.randrange(1, 6)) + rng.randrange(1 << 20)
                reached = one.position + step
                ranges.advance(one, Dialect.STANDALONE.cursor(reached) if reached < POSITION_END else 0, [])
        remaining = ranges.remaining()
        if not remaining:
            return
        file.save(savepoint_of(RUN, 0, None, None, remaining))
        saved = known(file.load())
        assert len(saved.remaining) <= KEPT_SPANS
        assert all(any(kept.start <= one.start <= one.end <= kept.end for kept in saved.remaining) for one in remaining)
        assert tiles(saved.spans())
        ranges = Ranges(Dialect.STANDALONE, saved.spans())


def tiles(spans: tuple[CursorSpan, ...]) -> bool:
    """Whether these cover the keyspace without a gap and without an overlap."""
    ordered = sorted(spans, key=lambda span: span.start)
    return [*(span.start for span in ordered), POSITION_END] == [0, *(span.end for span in ordered)]


def test_ranges_that_touch_are_one() -> None:
    assert joined([CursorSpan(8, 9), CursorSpan(5, 8), CursorSpan(20, 30), CursorSpan(0, 5), CursorSpan(25, 40)]) == (
        CursorSpan(0, 9),
        CursorSpan(20, 40),
    )
    assert joined([CursorSpan(20, 30), CursorSpan(0, 5), CursorSpan(3, 3), CursorSpan(5, 9)]) == (
        CursorSpan(20, 30),
        CursorSpan(0, 9),
    )


def test_a_file_of_many_ranges_is_read() -> None:
    """What an earlier version saved after many interruptions: ranges that touch, more of them than are kept."""
    found = joined([CursorSpan(place, place + 7) for place in range(0, 1600, 10)])
    assert len(found) == KEPT_SPANS
    assert (found[0].start, found[-1].end) == (0, 1597)
