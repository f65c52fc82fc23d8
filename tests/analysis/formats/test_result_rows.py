"""Files of found keys: every format has the same columns and values, whatever the names are."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from rtui.analysis.formats.result_rows import FIELD_NAMES, FOUND_FORMATS, FoundKeys
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.display import SafeText, unescape
from tests.tui.visiting import check_text

NUMBERS = ("ttl_ms", "memory_bytes", "length", "idle_s", "frequency", "slot")
COUNTS = st.none() | st.integers(0, 1 << 50)
RECORDS = st.lists(
    st.builds(
        KeyRecord,
        key=st.binary(max_size=20) | st.sampled_from([b"=1", b"a|b", b"`", b"\n", "é".encode(), b"-1", b""]),
        key_type=st.none() | st.sampled_from([b"hash", b"=odd", b"ReJSON-RL"]),
        memory_bytes=COUNTS,
        length=COUNTS,
        ttl_ms=st.none() | st.integers(-1, 1 << 40),
        idle_s=COUNTS,
        frequency=st.none() | st.integers(0, 255),
        encoding=st.none() | st.sampled_from([b"listpack", b"@x"]),
    ),
    max_size=8,
)


def written(form: str, records: list[KeyRecord], count: int | None = None) -> str:
    parts: list[str | bytes] = []
    output = FoundKeys(parts.append, form, "a b", list(FIELD_NAMES))
    for start in range(0, len(records), 3):
        output.write(records[start : start + 3])
    is_exact = count is None
    output.end(len(records) if count is None else count, is_exact=is_exact, notes=[SafeText("A note.")])
    return b"".join(part if isinstance(part, bytes) else part.encode() for part in parts).decode("utf-8", "replace")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text, newline="")))


@given(RECORDS)
def test_every_format_has_the_same_columns_and_values(records: list[KeyRecord]) -> None:
    document = json.loads(written("json", records))
    *lines, said = map(json.loads, written("jsonl", records).splitlines())
    assert lines == document["keys"]
    assert said == {name: document[name] for name in ("listed", "count", "at_least", "complete", "notes")}
    *rows, last = rows_of(written("csv", records))
    names = ["key", "key_quoted", *FIELD_NAMES.values()]
    assert [*last] == [*names, "coverage", "notes"]
    assert (last["coverage"], last["notes"]) == ("exact", "A note.")
    head, _, *table = written("md", records).split("\n\n", maxsplit=1)[0].splitlines()
    assert head == f"| {' | '.join(names)} |"
    assert len(rows) == len(table) == len(lines) == len(records)
    for record, line, row in zip(records, lines, rows, strict=True):
        assert list(line) == names
        assert unescape(row["key_quoted"].encode()) == unescape(line["key_quoted"].encode()) == record.key
        assert not any(row[name].startswith(("=", "+", "@", "-")) for name in ("key", "type", "encoding"))
        for name in NUMBERS:
            number: Any = line[name]
            assert number is None or isinstance(number, int)
            assert row[name] == ("" if number is None else str(number))
    for line in (head, *table):
        check_text(line)


@given(RECORDS)
@example([KeyRecord(key=b"a\0b"), KeyRecord(key=b"b")])
def test_raw_has_every_name_that_a_nul_can_end_and_text_a_line_each(records: list[KeyRecord]) -> None:
    parts: list[str | bytes] = []
    output = FoundKeys(parts.append, "raw", "", [])
    output.write(records)
    output.end(len(records), is_exact=True, notes=())
    names = b"".join(part for part in parts if isinstance(part, bytes)).split(b"\0")[:-1]
    assert names == [one.key for one in records if b"\0" not in one.key]
    assert output.left_out == len(records) - len(names)
    assert len(written("text", records).splitlines()) == len(records)


def test_a_part_of_the_keys_is_no_count() -> None:
    records = [KeyRecord(key=b"a"), KeyRecord(key=b"b")]
    for document in (
        json.loads(written("json", records, 7)),
        json.loads(written("jsonl", records, 7).splitlines()[-1]),
    ):
        assert (document["listed"], document["count"], document["at_least"], document["complete"]) == (
            2,
            None,
            7,
            False,
        )
    assert rows_of(written("csv", records, 7))[-1]["coverage"] == "partial"
    assert {form for form in FOUND_FORMATS if "A note." in written(form, records)} == {"json", "jsonl", "csv", "md"}
