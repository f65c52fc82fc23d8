"""Files of keys: what is written is read, by other programs, too; what is damaged is refused; two are compared."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rtui.analysis.formats.comparison import KeyFate
from rtui.analysis.report.document import CoverageKind, Report
from rtui.keyspace.text.display import quoted
from rtui.table.keys_file import COLUMNS, FIELDS, METADATA, SLICE, KeysFile, KeysFileError, KeysWriter, compare_keys
from rtui.table.schema import LATEST_MS, NEVER, keys_of, names_of
from tests.made_report import made_report
from tests.table.test_rows import tables

REPORT: Report = made_report()


def written(path: Path, *parts: pl.DataFrame, form: str = "parquet") -> Path:
    with path.open("wb") as file:
        writer = KeysWriter(file, form, 1.5)
        for part in parts:
            writer.append(part)
        writer.end(REPORT)
    return path


def rows_of(*keys: bytes, **facts: Any) -> pl.DataFrame:
    """Rows with these names, and the same facts each."""
    name, raw = names_of(keys)
    rest = [pl.lit(facts.get(one), kind).alias(one) for one, kind in COLUMNS.items() if one not in ("name", "raw")]
    return pl.DataFrame({"name": name, "raw": raw}).with_columns(rest)


@given(parts=st.lists(tables(), min_size=1, max_size=3), moment=st.none() | st.integers(0, 1 << 50))
def test_what_is_written_is_read(parts: list[pl.DataFrame], moment: int | None) -> None:
    """Also names that are no UTF-8, and what is not known; the head of the pass is that of its report."""
    parts = [
        one.with_columns(pl.lit(moment, pl.Int64).alias("asked_ms"), pl.col("length") % (1 << 30)) for one in parts
    ]
    with TemporaryDirectory() as folder:
        file = KeysFile.open(written(Path(folder) / "keys.parquet", *parts))
        found, wanted = [*file.tables()], pl.concat(parts)
        assert file.head is not None
        assert (file.head.head, file.head.hot, file.head.cluster) == (REPORT.head, REPORT.hot, REPORT.cluster)
        assert (file.head.rows, file.head.began_at_s, file.height) == (wanted.height, 1.5, wanted.height)
    assert pl.concat([pl.DataFrame(schema=COLUMNS), *found]).equals(wanted)
    assert [key for one in found for key in keys_of(one)] == keys_of(wanted)


def test_a_folder_has_a_part_for_each_node(tmp_path: Path) -> None:
    nodes = ("10.0.0.1:7000", "../escape", "")
    writer = KeysWriter(tmp_path, "parquet", 0.0)
    for node in nodes:
        writer.append(rows_of(b"a", b"b", node=node))
    writer.end(REPORT)
    file = KeysFile.open(tmp_path)
    assert len(file.parts) == len(nodes) == len([*tmp_path.iterdir()])
    assert sorted(pl.concat(file.tables())["node"].to_list()) == sorted(2 * nodes)
    assert file.head is not None
    assert file.head.rows == file.height == 2 * len(nodes)


def test_texts_have_the_columns_of_results_and_every_byte_of_a_key(tmp_path: Path) -> None:
    keys = [b"user:1", b"=cmd|' /C calc'!A0", b"\xff\xfe", "é\u202e".encode(), b'a"\n,b', b"\x1b[2J", b"a\\b", b""]
    facts = {
        "memory_bytes": 7,
        "asked_ms": 1_000,
        "expires_ms": pl.Series([NEVER, 3_500, LATEST_MS, 0, None] + 3 * [9]),
    }
    rows = rows_of(*keys, **facts)
    ttl_ms = [-1, 2_500, LATEST_MS - 1_000, 0, None, 0, 0, 0]
    moments = [None, "1970-01-01T00:00:03.500Z", "9999-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", None]
    lines = written(tmp_path / "keys.jsonl", rows, form="jsonl").read_text()
    found = [json.loads(line) for line in lines.splitlines()]
    assert [one["key"] for one in found] == [None if key == b"\xff\xfe" else key.decode() for key in keys]
    assert ([one["ttl_ms"] for one in found], [one["expires_at"] for one in found][:5]) == (ttl_ms, moments)
    text = written(tmp_path / "keys.csv", rows, form="csv").read_text()
    table = [*csv.DictReader(text.splitlines(keepends=True))]
    for some in (found, table):
        assert [one["key_quoted"] for one in some] == [quoted(key) for key in keys]
    assert not any(ord(character) < 32 or character == "\u202e" for one in table for character in one["key"])
    assert [*table[0]] == [*found[0]] == ["key", "key_quoted", *FIELDS.names()[2:]]
    assert {one["memory_bytes"] for one in table} == {"7"}


def test_other_programs_read_the_same(tmp_path: Path) -> None:
    table = pl.concat(
        [
            rows_of(b"a:1", b"\xff", type="string", memory_bytes=(1 << 40) + 1, expires_ms=NEVER),
            rows_of(b"a:2", type="hash", expires_ms=5),
        ]
    )
    path = written(tmp_path / "keys.parquet", table)
    arrow = pq.read_table(path)
    assert arrow.column_names == FIELDS.names()
    assert sum(filter(None, arrow["memory_bytes"].to_pylist())) == table["memory_bytes"].sum()
    assert arrow["raw"].to_pylist() == [None, b"\xff", None]
    assert json.loads(pq.read_metadata(path).metadata[METADATA.encode()])["rows"] == 3
    sums = "count(*), sum(memory_bytes), count(*) FILTER (ttl_ms = -1)"
    query = f"SELECT type, {sums} FROM read_parquet(?) GROUP BY 1 ORDER BY 1"  # noqa: S608
    assert duckdb.execute(query, [str(path)]).fetchall() == [
        ("hash", 1, None, 0),
        ("string", 2, 2 * ((1 << 40) + 1), 2),
    ]


def test_a_file_of_another_program(tmp_path: Path) -> None:
    """Few columns, other whole numbers, texts and moments, and some that are nobody's business."""
    path = tmp_path / "keys.parquet"
    duckdb.execute(
        f"COPY (SELECT 'k:' || i AS key, 'string'::ENUM('string', 'hash') AS type, i::UTINYINT AS memory_bytes, "  # noqa: S608
        f"make_timestamptz(i * 1000000) AS expires_at, {{'a': i}} AS owner FROM range(200) t(i)) TO '{path}'"
    )
    file = KeysFile.open(path)
    (found,) = file.tables()
    assert found.schema == COLUMNS
    assert (file.head, file.height, found["memory_bytes"].sum()) == (None, 200, sum(range(200)))
    assert file.columns == {"name", "type", "memory_bytes", "expires_ms"}
    assert (found["length"].null_count(), found["expires_ms"].to_list()) == (200, [*range(0, 200_000, 1_000)])
    assert file.lazy().select(pl.col("name").n_unique()).collect().item() == 200


def test_a_name_that_contradicts_its_bytes_is_that_of_the_bytes(tmp_path: Path) -> None:
    lie = rows_of(b"a", b"b", b"c").with_columns(raw=pl.Series([b"\xfe", None, b"plain"]))
    (found,) = KeysFile.open(written(tmp_path / "keys.parquet", lie)).tables()
    assert keys_of(found) == [b"\xfe", b"b", b"plain"]
    assert (found["name"].to_list(), found["raw"].to_list()) == (["\\xfe", "b", "plain"], [b"\xfe", None, None])


WRONG: dict[str, tuple[pl.DataFrame, str]] = {
    "no key": (pl.DataFrame({"name": ["a"]}), "no column key"),
    "no names": (pl.DataFrame({"key": ["a", None]}), "has no name"),
    "a number as name": (pl.DataFrame({"key": [1]}), "key is Int64"),
    "nested": (pl.DataFrame({"key": ["a"], "type": [{"a": 1}]}), "type is Struct"),
    "a list": (pl.DataFrame({"key": ["a"], "memory_bytes": [[1]]}), "memory_bytes is List"),
    "a number as moment": (pl.DataFrame({"key": ["a"], "expires_at": [5]}), "expires_at is Int64"),
    "text as number": (pl.DataFrame({"key": ["a"], "slot": ["5"]}), "slot is String"),
    "a fraction": (pl.DataFrame({"key": ["a"], "memory_bytes": [0.5]}), "memory_bytes is Float64"),
    "below 0": (pl.DataFrame({"key": ["a", "b"], "memory_bytes": [1, -5]}), "memory_bytes has -5"),
    "no such slot": (pl.DataFrame({"key": ["a"], "slot": [16_384]}), "slot has 16,384"),
    "too large": (pl.DataFrame({"key": ["a"], "length": pl.Series([1 << 63], dtype=pl.UInt64)}), "damaged"),
    "sums": (pl.DataFrame({"key": ["a"] * SLICE}).with_columns(length=1 << 45, memory_bytes=1 << 45), "add up"),
    "many types": (pl.DataFrame({"key": ["a"] * 30_000, "type": [str(one) for one in range(30_000)]}), "values"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_makes_no_sense_is_refused(wrong: str, tmp_path: Path) -> None:
    table, why = WRONG[wrong]
    table.write_parquet(tmp_path / "keys.parquet")
    with pytest.raises(KeysFileError, match=why):
        [*KeysFile.open(tmp_path / "keys.parquet").tables()]


@pytest.mark.parametrize(
    "metadata", ["", "[]", '{"format": "rtui keys"}', '{"format": "rtui report", "schema": 1}', "[" * 99_999]
)
def test_metadata_are_not_trusted(metadata: str, tmp_path: Path) -> None:
    pl.DataFrame({"key": ["a"]}).write_parquet(tmp_path / "keys.parquet", metadata={METADATA: metadata})
    with pytest.raises(KeysFileError, match="Its metadata are damaged"):
        KeysFile.open(tmp_path / "keys.parquet")


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + 4 * b"\xff" + b"PAR1", b"PARE" * 4, b"name,type\n"]
)
def test_no_parquet_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "keys.parquet").write_bytes(content)
    for path in (tmp_path / "keys.parquet", tmp_path, tmp_path / "missing"):
        with pytest.raises(KeysFileError):
            KeysFile.open(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    names = [f"user:{number}:cart".encode() for number in range(3_000)]
    facts = {"type": "hash", "memory_bytes": 80, "expires_ms": NEVER, "node": "a:1", "asked_ms": 1}
    return written(tmp_path_factory.mktemp("keys") / "keys.parquet", rows_of(*names, **facts)).read_bytes()


@given(data=st.data())
@pytest.mark.slow
def test_a_damaged_file_is_refused_or_has_rows_within_bounds(whole: bytes, data: st.DataObject) -> None:
    """Bytes of the footer, of a page head, or of anything else are others, missing, or there twice."""
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(footer, len(whole) - 1) | st.integers(4, 60) | st.integers(0, len(whole) - 1))
        damaged[min(at, len(damaged) - 1)] = data.draw(st.integers(0, 255))
    first, last = sorted(data.draw(st.tuples(st.integers(0, len(whole)), st.integers(0, len(whole)))))
    match data.draw(st.sampled_from(["flipped", "flipped", "flipped", "cut", "grown"])):
        case "cut":
            del damaged[first:last]
        case "grown":
            damaged[first:first] = damaged[first:last]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "keys.parquet"
        path.write_bytes(damaged)
        try:
            found = [*KeysFile.open(path).tables()]
        except KeysFileError as error:
            assert str(error) and "\n" not in str(error)
        else:
            assert all(one.schema == COLUMNS for one in found)


def test_a_small_file_with_very_many_rows_is_read_a_slice_at_a_time(tmp_path: Path) -> None:
    """One name of 100 KB in four million rows would take 400 GB if all were handed on at once."""
    path = tmp_path / "keys.parquet"
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(4_000_000, np.int32)), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"key": same}), path, row_group_size=4_000_000, store_schema=False)
    assert path.stat().st_size < 2_000_000
    tables = KeysFile.open(path).tables()
    assert next(tables).height <= 1_000


class Fact(NamedTuple):
    memory_bytes: int | None
    expires_ms: int | None


SAME_NAMES = st.tuples(
    st.sampled_from([0, 1, None]), st.sampled_from([b"a", b"b", b"\xff", b"\\xff", b"", "é".encode()])
)
FACTS = st.builds(Fact, st.none() | st.integers(0, 9), st.none() | st.sampled_from([NEVER, 5, 1 << 50]))
KEYS = st.dictionaries(SAME_NAMES, FACTS)


def keys_file(path: Path, keys: Mapping[tuple[int | None, bytes], Fact], kind: CoverageKind) -> KeysFile:
    report: Report = made_report()
    coverage = structs.replace(report.head.coverage, kind=kind)
    report = structs.replace(report, head=structs.replace(report.head, coverage=coverage))
    with path.open("wb") as file:
        writer = KeysWriter(file, "parquet", 0.0)
        for (database, key), fact in keys.items():
            writer.append(rows_of(key, database=database, **fact._asdict()))
        writer.end(report)
    return KeysFile.open(path)


@given(before=KEYS, after=KEYS, kind=st.sampled_from(CoverageKind), part_rows=st.sampled_from([1, 2, 1_000]))
def test_every_key_has_its_fates(
    before: dict[Any, Fact], after: dict[Any, Fact], kind: CoverageKind, part_rows: int
) -> None:
    """Two files in any number of parts, against brute force.

    Names that look alike, and the same name in another database, are other keys.
    """
    both = {key: (before[key], after[key]) for key in before.keys() & after.keys()}
    sizes = {key: (old.memory_bytes, new.memory_bytes) for key, (old, new) in both.items()}
    grew = {key: new - old for key, (old, new) in sizes.items() if old is not None and new is not None}
    wanted: dict[KeyFate, dict[Any, int | None]] = {
        KeyFate.CAME: {key: after[key].memory_bytes for key in after.keys() - before.keys()},
        KeyFate.WENT: {key: before[key].memory_bytes for key in before.keys() - after.keys()},
        KeyFate.GREW: {key: grown for key, grown in grew.items() if grown > 0},
        KeyFate.LASTING: {
            key: new.memory_bytes
            for key, (old, new) in both.items()
            if old.expires_ms not in (None, NEVER) and new.expires_ms == NEVER
        },
    }
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("rtui.table.keys_file.PART_ROWS", part_rows)
        old, new = (keys_file(Path(folder) / f"{at}.parquet", one, kind) for at, one in enumerate((before, after)))
        found = compare_keys(old, new, top=3)
    assert found.counts == {fate: len(keys) for fate, keys in wanted.items()}
    assert found.bytes == {fate: sum(filter(None, keys.values())) for fate, keys in wanted.items()}
    for fate, keys in wanted.items():
        listed = [(one.database, one.key) for one in found.listed[fate]]
        weights = sorted((-1 if one is None else one for one in keys.values()), reverse=True)
        assert len(set(listed)) == min(3, len(keys))
        assert [-1 if keys[one] is None else keys[one] for one in listed] == weights[:3]
    assert set(found.doubts) == (set() if kind is CoverageKind.EXACT else {KeyFate.CAME, KeyFate.WENT})
