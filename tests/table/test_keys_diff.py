"""Two files of keys, key by key, against brute force."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rtui.analysis.formats.comparison import KeyFate
from rtui.analysis.report.document import CoverageKind, Report
from rtui.table import keys_diff
from rtui.table.keys_diff import compare_keys
from rtui.table.keys_file import KeysFile
from rtui.table.keys_writer import KeysWriter
from rtui.table.schema import NEVER
from tests.made_report import made_report
from tests.table.test_keys_file import rows_of


class Fact(NamedTuple):
    memory_bytes: int | None
    expires_ms: int | None


NAMES = st.tuples(st.sampled_from([0, 1, None]), st.sampled_from([b"a", b"b", b"\xff", b"\\xff", b"", "é".encode()]))
FACTS = st.builds(Fact, st.none() | st.integers(0, 9), st.none() | st.sampled_from([NEVER, 5, 1 << 50]))
KEYS = st.dictionaries(NAMES, FACTS)


def written(path: Path, keys: Mapping[tuple[int | None, bytes], Fact], kind: CoverageKind) -> KeysFile:
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
    """In any number of parts; names that look alike, and the same name in another database, are other keys."""
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
        patch.setattr(keys_diff, "PART_ROWS", part_rows)
        old, new = (written(Path(folder) / f"{at}.parquet", one, kind) for at, one in enumerate((before, after)))
        found = compare_keys(old, new, top=3)
    assert found.counts == {fate: len(keys) for fate, keys in wanted.items()}
    assert found.bytes == {fate: sum(filter(None, keys.values())) for fate, keys in wanted.items()}
    for fate, keys in wanted.items():
        listed = [(one.database, one.key) for one in found.listed[fate]]
        weights = sorted((-1 if one is None else one for one in keys.values()), reverse=True)
        assert len(set(listed)) == min(3, len(keys))
        assert [-1 if keys[one] is None else keys[one] for one in listed] == weights[:3]
    assert set(found.doubts) == (set() if kind is CoverageKind.EXACT else {KeyFate.CAME, KeyFate.WENT})
