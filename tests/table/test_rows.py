"""Rows that are kept, facts that one key in eight was asked, and questions to them, against brute force."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.columns import ALL_COLUMNS, SAMPLED_COLUMNS, Columns
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.report.document import Scope, Stats, Summary
from rtui.analysis.report.members import IDLE_EDGES_S
from rtui.analysis.report.thresholds import preset, preset_names
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.keyspace.types import UNKNOWN_LENGTH
from rtui.server.inspection.tables import InspectedBatch
from rtui.table import rows
from rtui.table.aggregates import Aggregates
from rtui.table.kept_rows import By, RowCondition, find
from rtui.table.private_folder import PrivateFolder, remove_left
from rtui.table.rows import KeptRows, free_memory
from rtui.table.schema import NEVER, SCHEMA, keys_of, names_of
from tests.table.naive import add_batch

NOW_MS = 1_000_000
PLENTY = 1 << 40
NAME = st.lists(
    st.sampled_from([b"a", b"b", b":", b"::", b"/", b"{", b"}", b"{a:b}", "é".encode(), b"\xff", b"42"]), max_size=6
).map(b"".join)
FACTS = {
    "type": st.sampled_from(["string", "hash", "a-module"]),
    "encoding": st.sampled_from(["raw", "listpack"]),
    "node": st.just("127.0.0.1:7000"),
    "expires_ms": st.sampled_from([NEVER, NOW_MS - 1, NOW_MS, NOW_MS + 5, 1 << 50]),
    "memory_bytes": st.sampled_from([0, 1, 127, 128, 70_000, 1 << 40]),
    "length": st.integers(0, (1 << 63) - 1),
    "idle_s": st.integers(0, 9),
    "frequency": st.integers(0, 255),
    "database": st.integers(0, 1),
    "slot": st.integers(0, 16_383),
    "sampled": st.booleans(),
}


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    """Draw a table as a pass finds it, of which some columns are not known, and others the same in all rows."""
    names = draw(st.lists(NAME, max_size=8))
    name, raw = names_of(names)
    columns = {}
    for column, values in FACTS.items():
        way = draw(st.sampled_from(["unknown", "same", "any"]))
        one = draw(values)
        drawn = [draw(st.none() | values) if way == "any" else one if way == "same" else None for _ in names]
        columns[column] = pl.Series(column, drawn, dtype=SCHEMA[column])
    return pl.DataFrame({"name": name, "raw": raw, **columns})


TABLES = st.lists(tables(), max_size=5)


def whole(found: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=SCHEMA), *found])


def kept(found: list[pl.DataFrame], chunk_rows: int = 5, folder: Path | None = None, most: int = 1 << 40) -> KeptRows:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rows, "CHUNK_ROWS", chunk_rows)
        made = KeptRows(PLENTY, most, folder=folder)
        for table in found:
            made.append(table)
        made.finish(2.0, is_all=True)
    return made


@given(TABLES, st.integers(1, 12), st.just(0) | st.integers(0, 30), st.booleans())
def test_rows_come_back_as_they_were_but_for_those_seen(
    found: list[pl.DataFrame], chunk_rows: int, seen: int, is_ended: bool
) -> None:
    made = kept(found, chunk_rows) if is_ended else KeptRows(PLENTY, PLENTY)
    if not is_ended:
        for table in found:
            made.append(table)
    rest = [pl.DataFrame(schema=SCHEMA), *(chunk.columns(SCHEMA).cast(SCHEMA) for chunk in made.chunks(seen))]
    table = whole(found)
    assert pl.concat(rest).equals(table[seen:], null_equal=True)
    assert made.height == table.height
    assert made.is_whole is is_ended
    assert made.known == {column.name for column in table if column.null_count() < table.height}


@given(TABLES, st.integers(1, 12), st.integers(0, 9))
def test_rows_come_back_from_files_as_they_were(found: list[pl.DataFrame], chunk_rows: int, most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = kept(found, chunk_rows, Path(folder), most)
        back = pl.concat([pl.DataFrame(schema=SCHEMA), *(one.columns(SCHEMA).cast(SCHEMA) for one in made.chunks())])
        assert back.equals(whole(found), null_equal=True)
        assert made.is_whole
        assert made.is_spilled is (back.height > most)
        made.close()
        assert not list(Path(folder).iterdir())


CONDITIONS = st.sampled_from(
    [
        RowCondition(),
        RowCondition((pl.col("name").str.starts_with("a"),)),
        RowCondition((), pl.col("memory_bytes") > 100, ("memory_bytes",)),
        RowCondition((pl.col("name") != "",), (pl.col("idle_s") < 5) & (pl.col("type") == "hash"), ("type", "idle_s")),
        RowCondition((), pl.col("expires_ms") < NOW_MS + 2, ("expires_ms",)),
    ]
)


def passing_by(condition: RowCondition) -> pl.Expr:
    """All of a condition as one expression."""
    return pl.all_horizontal(pl.lit(True), *condition.names, *([] if condition.facts is None else [condition.facts]))


ORDERS = st.sampled_from(["memory_bytes", "length", "idle_s", "name", "expires_ms", "frequency"])


ORDERED = st.builds(lambda column, is_descending: By(pl.col(column), is_descending), ORDERS, st.booleans())


@given(TABLES, CONDITIONS, ORDERED | st.none(), st.integers(0, 9), st.integers(1, 12))
def test_what_is_found(
    found: list[pl.DataFrame], condition: RowCondition, by: By | None, limit: int, chunk: int
) -> None:
    result, work = find(kept(found, chunk).chunks(), condition, NOW_MS, limit, by)
    finish(work)
    table = whole(found)
    passes = table.with_row_index("at").select("at", passing_by(condition).alias("passes"), "expires_ms").rows()
    gone = [expires is not None and expires != NEVER and expires < NOW_MS for *_, expires in passes]
    at = [at for (at, passing, _), is_gone in zip(passes, gone, strict=True) if passing and not is_gone]
    assert result.count == len(at)
    unknown = sum(passing is None and not is_gone for (_, passing, _), is_gone in zip(passes, gone, strict=True))
    assert result.undecided.total() == unknown
    assert result.expired == sum(
        passing is not False and is_gone for (_, passing, _), is_gone in zip(passes, gone, strict=True)
    )
    assert result.looked_at == table.height
    if by is not None:
        values = table.select(by.value).to_series()
        known = [one for one in at if values[one] is not None]
        known.sort(key=lambda one: values[one], reverse=by.is_descending)
        at = [*known, *(one for one in at if values[one] is None)]
    assert result.rows.equals(table[at[:limit]] if at else table.clear(), null_equal=True)
    assert result.keys == keys_of(result.rows)


def test_a_question_can_be_left_off() -> None:
    found = [numbered(1, start) for start in range(4)]
    result, work = find(kept(found, 1).chunks(), RowCondition(), NOW_MS, 9)
    next(work)()  # type: ignore[misc]
    next(work)()  # type: ignore[misc]
    work.close()
    assert (result.looked_at, result.count, result.keys) == (2, 2, [b"key:0", b"key:1"])


@given(
    tables=st.lists(tables().filter(lambda table: table.height > 0), min_size=1, max_size=5), most=st.integers(0, 10)
)
def test_of_more_rows_than_the_budget_none_are_kept_and_that_is_said(tables: list[pl.DataFrame], most: int) -> None:
    made = kept(tables, most=most)
    total = sum(table.height for table in tables)
    assert made.height == (total if total <= most else 0)
    assert sum(chunk.height for chunk in made.chunks()) == made.height
    assert made.is_whole is (total <= most)
    assert bool(made.why_none) is (total > most)


def numbered(count: int, start: int = 0) -> pl.DataFrame:
    names = pl.Series("name", [f"key:{start + number}" for number in range(count)])
    facts = (pl.lit(None, SCHEMA[column]).alias(column) for column in SCHEMA if column not in ("name", "memory_bytes"))
    memory = pl.Series("memory_bytes", range(start, start + count), dtype=pl.Int64)
    return names.to_frame().with_columns(memory, *facts).select(*SCHEMA)


def test_the_budget_is_kept_in_bytes() -> None:
    made = KeptRows(100 * (rows.ROW_BYTES + 10), PLENTY)
    heights = []
    for start in range(0, 1_000, 10):
        made.append(numbered(10, start))
        heights.append(made.height)
    made.finish(2.0, is_all=True)
    assert 90 <= max(heights) <= 110
    assert not made.height
    assert not made.is_whole


def test_what_another_thread_sees_are_rows_as_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CHUNK_ROWS", 30)
    made, seen = KeptRows(PLENTY, PLENTY), []
    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(lambda: [*map(made.append, map(partial(numbered, 10), range(0, 5_000, 10)))])
        while not adding.done():
            seen.append([name for chunk in made.chunks() for name in chunk.columns(["name"])["name"]])
    adding.result()
    for names in seen:
        assert names == [f"key:{number}" for number in range(len(names))]


def test_rows_that_come_after_all_were_dropped_are_not_kept(folder: Path) -> None:
    made = kept([numbered(10, start) for start in range(0, 100, 10)], 20, folder, most=35)
    made.close()
    made.append(numbered(10))
    assert (made.height, [*made.chunks()]) == (0, [])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    found = tmp_path / "kept"
    yield found
    assert not list(found.glob("*"))


def test_rows_beyond_the_budget_go_into_private_files(folder: Path) -> None:
    made = kept([numbered(10, start) for start in range(0, 100, 10)], 20, folder, most=35)
    assert made.is_whole
    assert made.is_spilled
    (inner,) = folder.iterdir()
    assert stat.S_IMODE(inner.stat().st_mode) == 0o700
    files = list(inner.iterdir())
    assert len(files) >= 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    result, work = find(
        made.chunks(),
        RowCondition((), pl.col("memory_bytes") >= 30, ("memory_bytes",)),
        NOW_MS,
        3,
        By(pl.col("memory_bytes"), True),
    )
    finish(work)
    assert (result.count, result.keys) == (70, [b"key:99", b"key:98", b"key:97"])
    remove_left(folder)
    assert inner.exists()
    made.close()
    assert not inner.exists()


def test_where_rows_cannot_be_written_none_are_kept(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    made = kept([numbered(10, start) for start in range(0, 100, 10)], 20, blocked, most=35)
    assert not made.is_whole
    assert not made.height
    assert made.why_none.startswith("they can't be written: ")


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "pass", "sys.exit(3)"])
def test_files_are_gone_at_the_end_or_at_the_next_start(folder: Path, end: str) -> None:
    program = f"""
import os, signal, sys
from pathlib import Path
from rtui.table.private_folder import PrivateFolder
made = PrivateFolder(Path(sys.argv[1]))
made.create("rows").close()
print(made.path, flush=True)
{end}
"""
    ended = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False)
    left = Path(ended.stdout.strip())
    assert left.parent == folder
    assert left.exists() is (ended.returncode == -signal.SIGKILL)
    mine = PrivateFolder(folder)
    remove_left(folder)
    assert list(folder.iterdir()) == [mine.path]
    mine.close()


def test_links_are_not_followed(tmp_path: Path, folder: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").touch()
    folder.mkdir()
    link = folder / "rows-0123456789abcdef"
    link.symlink_to(other)
    remove_left(folder)
    assert (other / "precious").exists()
    link.unlink()


def test_the_budget_is_a_part_of_what_is_free(tmp_path: Path) -> None:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < free_memory() <= physical
    group = tmp_path / "groups" / "a" / "b"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("5\n")
    (group.parent / "memory.max").write_text("1000\n")
    (group.parent / "memory.current").write_text("400\n")
    of_process = tmp_path / "cgroup"
    of_process.write_text("0::/a/b\n")
    assert min(rows._left_in_groups(of_process, tmp_path / "groups")) == 600


KEYS = st.lists(
    st.one_of(st.binary(max_size=20), st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace")))
)


@given(KEYS)
def test_any_key_comes_back(keys: list[bytes]) -> None:
    name, raw = names_of(keys)
    assert (name.dtype, raw.dtype) == (SCHEMA["name"], SCHEMA["raw"])
    assert keys_of(pl.DataFrame([name, raw])) == keys


@pytest.mark.parametrize("key", [b"\xff", b"\xed\xa0\x80", b"a\xc3"])
def test_only_keys_that_are_not_text_have_their_bytes_beside_them(key: bytes) -> None:
    name, raw = names_of([b"caf\xc3\xa9", key, b"\\xff"])
    assert name.to_list() == ["café", key.decode("utf-8", "backslashreplace"), r"\xff"]
    assert raw.to_list() == [None, key, None]


def test_batches_with_other_types_and_nodes_are_joined() -> None:
    tables = [pl.DataFrame({"type": ["string"]}), pl.DataFrame({"type": ["ReJSON-RL"]})]
    joined = pl.concat([table.cast({"type": SCHEMA["type"]}) for table in tables])
    assert joined["type"].to_list() == ["string", "ReJSON-RL"]


LAWS: dict[str, Callable[[Random], int]] = {
    "even": lambda rng: rng.randrange(100 * 86_400),
    "lognormal": lambda rng: round(rng.lognormvariate(8, 3)),
    "two heaps": lambda rng: rng.choice((5, 40 * 86_400)),
    "rare": lambda rng: 90 * 86_400 if rng.random() < 0.002 else 30,
    "pareto": lambda rng: round(rng.paretovariate(0.4)),
}
NAMES = [(f"n{number}", count) for number, count in enumerate((2_000, 400, 80, 40, 24, 9, 8, 3))]
KEYSPACES = 12
STARTED_S = 1_790_000_000.0


def summary_of(aggregates: Aggregates) -> Summary:
    return finish(aggregates.summary())


def aggregates_for(columns: Columns, top: int = 100) -> Aggregates:
    return Aggregates(Separators(), scope=Scope(columns=columns, top=top), started_at_s=1_790_000_000.0)


def passed(rng: Random, values: dict[bytes, int]) -> Summary:
    """A pass over keys in a random order that asks one in eight for a value, as its idle time and as its length."""
    keys = list(values)
    rng.shuffle(keys)
    start = rng.randrange(8)
    aggregates = aggregates_for(SAMPLED_COLUMNS)
    for is_sampled in (True, False):
        some = [key for index, key in enumerate(keys) if (index % 8 == start) is is_sampled]
        facts = [values[key] for key in some]
        batch = InspectedBatch(b"hash", some, [-1] * len(some), [size + 100 for size in facts], is_sampled=is_sampled)
        if is_sampled:
            batch = InspectedBatch(
                b"hash", some, batch.ttl_ms, batch.memory_bytes, idle_s=facts, lengths=facts, is_sampled=True
            )
        if some:
            add_batch(aggregates, batch, 1_790_000_000.0)
    return summary_of(aggregates)


def held(stats: Stats, truth: list[int]) -> list[bool]:
    """Whether each bin of idle times holds the true number of keys."""
    assert stats.idle is not None
    binned = Counter(bisect_right(IDLE_EDGES_S, value) for value in truth)
    counts = [binned[at] for at in range(len(IDLE_EDGES_S) + 1)]
    return [count in as_estimate(figure) for figure, count in zip(stats.idle, counts, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold_the_truth(law: str) -> None:
    rng = Random(law)
    hits: Counter[str] = Counter()
    tries: Counter[str] = Counter()
    for _ in range(KEYSPACES):
        values = {f"{name}:k{number}x".encode(): LAWS[law](rng) for name, count in NAMES for number in range(count)}
        summary = passed(rng, values)
        found = {node.name: node.stats for node in summary.root.children}
        everything = sorted(values.values())
        seen = {"all": held(summary.root.stats, everything)}
        for name, _ in NAMES:
            of_name = [value for key, value in values.items() if key.startswith(f"{name}:".encode())]
            if found[name.encode()].idle is not None:
                seen[name] = held(found[name.encode()], of_name)
        for name, bins in seen.items():
            what = "all" if name == "all" else "part"
            hits[what] += sum(bins)
            tries[what] += len(bins)
        (kind,) = summary.types
        assert kind.length is not None
        for share, figure in ((0.5, kind.length.p50), (0.9, kind.length.p90)):
            assert isinstance(figure, Estimate)
            true = everything[int(share * len(everything))]
            hits["quantile"] += figure.low * 0.98 <= true <= figure.high * 1.02
            tries["quantile"] += 1
        assert isinstance(kind.length.mean, Estimate)
    for what, count in tries.items():
        assert hits[what] / count >= (0.95 if what != "quantile" else 0.9), (what, hits[what], count)


def test_facts_of_all_keys_stay_exact() -> None:
    root = passed(Random(3), {b"a:%d" % number: number for number in range(1_000)}).root.stats
    assert (root.keys, root.memory_bytes, root.no_ttl_keys) == (1_000, 1_000 * 100 + 999 * 500, 1_000)
    assert root.idle is not None
    assert all(isinstance(figure, Estimate) for figure in root.idle)
    assert sum(figure.value for figure in map(as_estimate, root.idle)) == pytest.approx(1_000)


def test_what_every_key_was_asked_is_exact() -> None:
    aggregates = aggregates_for(ALL_COLUMNS)
    keys = [b"a:%d" % number for number in range(100)]
    add_batch(aggregates, InspectedBatch(b"hash", keys[:40], idle_s=[5] * 40, lengths=[7] * 40), 1_790_000_000.0)
    add_batch(aggregates, InspectedBatch(b"hash", keys[40:]), 1_790_000_000.0)  # refused
    summary = summary_of(aggregates)
    assert summary.root.stats.idle is not None
    assert summary.root.stats.idle[0] == 40
    assert summary.types[0].length is not None
    assert summary.types[0].length.p50 == 7


def test_lengths_of_all_keys_of_a_type_are_exact_however_they_came() -> None:
    aggregates = aggregates_for(SAMPLED_COLUMNS)
    add_batch(aggregates, InspectedBatch(b"list", [b"a"], lengths=[10]), 1_790_000_000.0)
    add_batch(aggregates, InspectedBatch(b"list", [b"b", b"c"], lengths=[20, 30], is_sampled=False), 1_790_000_000.0)
    length = summary_of(aggregates).types[0].length
    assert length is not None
    assert (length.mean, length.p50, length.max) == (20, 20, 30)
    add_batch(aggregates, InspectedBatch(b"list", [b"d"], is_sampled=False), 1_790_000_000.0)
    length = summary_of(aggregates).types[0].length
    assert length is not None
    assert isinstance(length.mean, Estimate)
    assert (length.mean.value, length.max) == (10, 30)


KEYSPACES_OF_LENGTHS = st.dictionaries(
    st.binary(min_size=1, max_size=3), st.tuples(st.integers(0, 12), st.sampled_from(["sampled", "late", "left"])),
    min_size=1, max_size=60,
)  # fmt: skip


@given(KEYSPACES_OF_LENGTHS, st.integers(1, 8), st.integers(0, 3))
def test_a_list_that_lacks_nothing_is_that_of_sorting_all(
    keyspace: dict[bytes, tuple[int, str]], top: int, slack: int
) -> None:
    table = aggregates_for(ALL_COLUMNS, top)
    for how in ("sampled", "late", "left"):
        keys = [key for key, (_, asked) in keyspace.items() if asked == how]
        lengths = [keyspace[key][0] for key in keys]
        if how == "left" and keys:
            table.big.leave_out(b"hash", max(lengths) + slack)
        is_sampled = how == "sampled"
        memory = [length + 100 for length in lengths]
        asked = None if how == "left" else lengths
        add_batch(
            table, InspectedBatch(b"hash", keys, memory_bytes=memory, lengths=asked, is_sampled=is_sampled), STARTED_S
        )
    finish(table.add_held())
    report = table.big.report()
    true = sorted(((length, key) for key, (length, _) in keyspace.items()), key=lambda one: (-one[0], one[1]))[:top]
    listed = [(record.length, record.key) for record in report.by_type_length.get(b"hash", ())]
    if b"hash" not in report.length_not_asked and listed:
        assert listed == true
    else:
        assert any(asked == "left" for _, asked in keyspace.values())


def test_keys_learnt_at_the_end_enter_the_list_and_prove_it() -> None:
    table = aggregates_for(ALL_COLUMNS, 2)
    asked = InspectedBatch(b"hash", [b"a", b"b", b"c"], memory_bytes=[10, 11, 12], lengths=[5, 6, 4])
    add_batch(table, asked, STARTED_S)
    table.big.leave_out(b"hash", 40)
    left_out = InspectedBatch(b"hash", [b"d", b"e"], memory_bytes=[80, 60], is_sampled=False)
    add_batch(table, left_out, STARTED_S)
    finish(table.add_held())
    found = table.big
    assert found.report().length_not_asked == {b"hash": 40}
    found.learn(b"d", length=9)
    found.learn(b"e", length=1)
    found.bound_left_out(b"hash", 5)
    report = found.report()
    assert [record.key for record in report.by_type_length[b"hash"]] == [b"d", b"b"]
    assert report.length_not_asked == {}


def test_what_nobody_knows_may_be_longer() -> None:
    table = aggregates_for(ALL_COLUMNS, 1)
    add_batch(table, InspectedBatch(b"list", [b"a"], lengths=[1_000]), STARTED_S)
    table.big.leave_out(b"list", UNKNOWN_LENGTH)
    finish(table.add_held())
    assert table.big.report().length_not_asked == {b"list": None}


def test_counts_over_the_thresholds_are_exact_where_no_key_that_may_be_was_left_out() -> None:
    limit = preset("rtui").elements or 0
    aggregates = aggregates_for(SAMPLED_COLUMNS)
    others = [b"c%d" % number for number in range(13)]
    for batch in (
        InspectedBatch(b"hash", [b"a", b"b"], lengths=[limit + 1, 3]),
        InspectedBatch(b"hash", others, memory_bytes=[200] * 13, is_sampled=False),
        InspectedBatch(b"hash", [b"d"], lengths=[limit + 9], is_sampled=False),
    ):
        add_batch(aggregates, batch, 1_790_000_000.0)
    aggregates.big.leave_out(b"hash", limit)
    assert summary_of(aggregates).big.over == {b"hash": 2}
    aggregates.big.leave_out(b"hash", limit + 1)
    over = summary_of(aggregates).big.over[b"hash"]
    assert isinstance(over, Estimate)
    assert (over.low, over.value) == (2, 8)
    assert 8 < over.high <= 16


def test_a_string_that_was_left_out_is_not_judged_by_its_memory() -> None:
    limit, now_s = preset("rtui").string_bytes, 1_790_000_000.0
    aggregates = aggregates_for(SAMPLED_COLUMNS)
    aggregates.big.leave_out(b"string", limit + 100)
    add_batch(aggregates, InspectedBatch(b"string", [b"a"], memory_bytes=[limit + 100], lengths=[limit]), now_s)
    others = InspectedBatch(
        b"string", [b"b%d" % number for number in range(7)], memory_bytes=[limit + 100] * 7, is_sampled=False
    )
    add_batch(aggregates, others, now_s)
    over = summary_of(aggregates).big.over[b"string"]
    assert isinstance(over, Estimate)
    assert over.low == 0


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("without", ["nothing", "lengths", "memory"])
def test_counts_over_the_thresholds_are_exact(name: str, without: str) -> None:
    rng, thresholds = Random(5), preset(name)
    found = Aggregates(Separators(), scope=Scope(columns=ALL_COLUMNS, preset=name), started_at_s=0.0)
    expected: Counter[bytes] = Counter()
    for first in range(0, 2_400, 40):
        kind = rng.choice((b"string", b"hash", b"set", b"made-up"))
        keys = [b"%d" % number for number in range(first, first + 40)]
        memory = None if without == "memory" else [int(rng.lognormvariate(11, 4)) for _ in keys]
        lengths = None if without == "lengths" else [int(rng.lognormvariate(8, 4)) for _ in keys]
        add_batch(found, InspectedBatch(kind, keys, memory_bytes=memory, lengths=lengths), 0.0)
        for at in range(40):
            is_big = thresholds.is_big(kind, memory[at] if memory else None, lengths[at] if lengths else None)
            expected[kind] += is_big
    over = summary_of(found).big.over
    assert {kind: over.get(kind, 0) for kind in expected} == expected
    assert expected.total() > 0
