"""Where a scan was broken off, written down and read back."""

from __future__ import annotations

import itertools
import json
import stat
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.server.scan.cursor import POSITION_END, Dialect, equal_ranges
from rtui.server.scan.ranges import CursorSpan, Ranges
from rtui.server.scan.savepoint import (
    KEPT_SPANS,
    MAX_FILE_BYTES,
    SaveFile,
    Savepoint,
    filter_digest,
    joined,
    savepoint_of,
)

RUN = "0123abcd"


@st.composite
def spans(draw: st.DrawFn) -> tuple[CursorSpan, ...]:
    bounds = draw(st.sets(st.integers(0, POSITION_END), min_size=2, max_size=16))
    ordered = sorted(bounds)
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
        saved = file.load()
        assert saved is not None
        assert len(saved.remaining) <= KEPT_SPANS
        assert all(any(kept.start <= one.start <= one.end <= kept.end for kept in saved.remaining) for one in remaining)
        assert tiles(saved.spans())
        ranges = Ranges(Dialect.STANDALONE, saved.spans())


def tiles(spans: tuple[CursorSpan, ...]) -> bool:
    """Whether these cover the keyspace without a gap and without an overlap."""
    ordered = sorted(spans, key=lambda span: span.start)
    ends = [0, *(span.end for span in ordered)]
    return [*(span.start for span in ordered), POSITION_END] == ends


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
