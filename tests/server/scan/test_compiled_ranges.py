"""The compiled ranges do what the pure ones do, page by page, whatever a server answers."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.server.scan import ranges as pure
from rtui.server.scan.cursor import POSITION_END, Dialect, equal_ranges
from rtui.server.scan.ranges import CursorOrderError, CursorSpan, Range, Ranges
from tests.examples import examples
from tests.server.scan.kinds import IS_BUILT
from tests.server.scan.table import Dict

if not IS_BUILT:
    pytest.skip("the compiled engine was not built", allow_module_level=True)

from rtui.server.engine import _ranges
from rtui.server.scan import compiled_ranges
from rtui.server.scan.compiled_ranges import CompiledRanges

SMALL = {"HEAD_KEYS": 12, "HEAD_BYTES": 300, "EARLY_KEYS": 30, "RECENT_KEYS": 15, "SHORT_BYTES": 9}
ORDERED = (Dialect.STANDALONE, Dialect.SLOTTED)

rngs = st.integers(0, 1 << 32).map(Random)
positions = st.integers(0, POSITION_END - 1)


class Both:
    """Pure and compiled ranges that are given the same; what they say is compared after each page."""

    def __init__(self, dialect: Dialect, spans: Sequence[CursorSpan], **more: Any) -> None:
        self.pure = Ranges(dialect, spans, **more)
        self.compiled = CompiledRanges(dialect, spans, **more)
        self.compare()

    def advance(self, index: int, cursor: int, keys: list[bytes]) -> bool:
        """Give a page to one of the ranges under way; return False where its cursor is out of order."""
        one, other = self.pure.under_way(8)[index], self.compiled.under_way(8)[index]
        try:
            fresh = self.pure.advance(one, cursor, keys)
        except CursorOrderError:
            with pytest.raises(CursorOrderError):
                self.compiled.advance(other, cursor, keys)
            return False
        assert self.compiled.advance(other, cursor, keys) == fresh
        assert state(one) == state(other)
        self.compare()
        return True

    def send(self, index: int) -> None:
        """Have a page of one of the ranges under way be asked for."""
        self.pure.under_way(8)[index].is_started = True
        self.compiled.under_way(8)[index].is_started = True

    def compare(self) -> None:
        """Fail unless both say the same of all that can be asked."""
        assert list(map(state, self.pure.under_way(99))) == list(map(state, self.compiled.under_way(99)))
        for name in ("is_done", "is_untouched", "repeats_possible", "dialect", "slots"):
            assert getattr(self.pure, name) == getattr(self.compiled, name)
        assert self.pure.fraction() == self.compiled.fraction()
        assert self.pure.remaining() == self.compiled.remaining()
        for name in ("bits", "has_shrunk", "is_sure"):
            assert getattr(self.pure.table, name) == getattr(self.compiled.table, name)


def state(one: Range | _ranges.CompiledRange) -> object:
    return one.start, one.end, one.position, one.cursor, one.is_started, one.is_done


@contextmanager
def limits(values: dict[str, int]) -> Iterator[None]:
    """Have both remember less."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (pure, compiled_ranges):
            for name, value in values.items():
                patch.setattr(module, name, value, raising=module is pure)
        yield


def spans_of(rng: Random) -> list[CursorSpan]:
    """Equal ranges or any others, in any order, some of them missing."""
    if rng.random() < 0.4:
        spans = [CursorSpan(*piece) for piece in equal_ranges(1 << rng.choice((0, 1, 2, 3, 6)))]
    else:
        bits = rng.choice((3, 11, 40, 64))
        cuts = sorted({rng.randrange(1, 1 << bits) << (64 - bits) for _ in range(rng.randrange(9))})
        spans = [CursorSpan(start, end) for start, end in zip([0, *cuts], [*cuts, POSITION_END], strict=True)]
    if rng.random() < 0.3:
        rng.shuffle(spans)
    if rng.random() < 0.3:
        del spans[rng.randrange(len(spans))]
    return spans


def cursor_for(rng: Random, dialect: Dialect, one: Range) -> int:
    """A cursor that goes on from where a range is, mostly within it, mostly of as many bits as a table has."""
    chance = rng.random()
    if chance < 0.04:
        return 0
    if not dialect.is_ordered:
        return rng.randrange(POSITION_END)
    if chance < 0.05:
        return rng.choice((one.cursor, rng.randrange(POSITION_END), POSITION_END, 1 << 70))
    farthest = one.end if rng.random() < 0.8 else POSITION_END
    step = max(1, (farthest - one.position) >> rng.randrange(12))
    position = one.position + rng.randint(1, step)
    bits = rng.choice((2, 5, 8, 64))
    position = min(-(-position >> (64 - bits)) << (64 - bits), POSITION_END) if rng.random() < 0.9 else position
    return 0 if position >= POSITION_END else dialect.cursor(position)


@pytest.mark.parametrize("values", [{}, SMALL], ids=["limits", "small-limits"])
@settings(max_examples=examples(200))
@given(rngs, st.sampled_from((*ORDERED, Dialect.OPAQUE)))
def test_whatever_a_server_answers(values: dict[str, int], rng: Random, dialect: Dialect) -> None:
    """Cursors of any length, pages of any names with many repeats, in any order of the ranges."""
    spans = spans_of(rng) if dialect.is_ordered else [CursorSpan()]
    names = [b"%d" % index * rng.choice((0, 1, 2, 9, 40)) for index in range(rng.choice((5, 60, 500)))]
    first_keys = rng.sample(names, 4) if rng.random() < 0.3 else ()
    slots = rng.choice((None, [(0, 99), (16000, 16383)]))
    with limits(values):
        both = Both(dialect, spans, slots=slots, first_keys=first_keys)
        for _ in range(60):
            if both.pure.is_done:
                break
            index = rng.randrange(len(both.pure.under_way(8)))
            if rng.random() < 0.3:
                both.send(index)
                continue
            page = [rng.choice(names) for _ in range(rng.choice((0, 0, 1, 3, 20)))]
            if not both.advance(index, cursor_for(rng, dialect, both.pure.under_way(8)[index]), page):
                break


def change(table: Dict, rng: Random, number: int) -> None:
    what = rng.randrange(6)
    if what == 0:
        table.put(b"new:%d" % number, rng.randrange(POSITION_END))
    elif what == 1:
        table.resize(rng.randint(1, 11))
    elif what < 4:
        table.rehash(rng.choice((1, 5, 100, 3000)))


@pytest.mark.slow
@pytest.mark.parametrize("values", [{}, SMALL], ids=["limits", "small-limits"])
@settings(max_examples=examples(200))
@given(rngs)
def test_tables_that_change(values: dict[str, int], rng: Random) -> None:
    size = rng.choice((3, 60, 400))
    table = Dict({b"a:%d" % index: rng.randrange(POSITION_END) for index in range(size)}, rng.randint(1, 11))
    first_keys = table.scan(0, 20)[1] if rng.random() < 0.3 else ()
    with limits(values):
        both = Both(Dialect.STANDALONE, spans_of(rng), first_keys=first_keys)
        for number in range(2000):
            if both.pure.is_done:
                break
            under_way = both.pure.under_way(8)
            index = rng.randrange(len(under_way))
            assert both.advance(index, *table.scan(under_way[index].cursor, rng.choice((1, 5, 40))))
            if number < 200 and rng.random() < 0.5:
                change(table, rng, number)


@given(positions, st.sampled_from(ORDERED))
def test_positions_and_cursors(position: int, dialect: Dialect) -> None:
    """A range begins with the cursor of its position, and goes on to the position of the cursor that came."""
    beginning = CompiledRanges(dialect, [CursorSpan(position)])
    assert beginning.under_way(1)[0].cursor == dialect.cursor(position)
    if position:
        whole = CompiledRanges(dialect)
        (one,) = whole.under_way(1)
        whole.advance(one, dialect.cursor(position), [])
        assert one.position == position


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(0, 7))
def test_the_next_range_is_that_with_most_left_of_those_that_rest(steps: list[int], width: int) -> None:
    ranges = CompiledRanges(Dialect.STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(4)])
    for step in steps:
        under_way = ranges.under_way(width)
        resting = [one for one in under_way if not one.is_under_way]
        wanted = max(resting, key=lambda one: one.end - one.position, default=None)
        assert ranges.next_range(width) == wanted
        if step < len(under_way):
            one = under_way[step]
            if one.is_under_way:
                reached = one.end if step % 2 else (one.position + one.end) // 2
                ranges.advance(one, Dialect.STANDALONE.cursor(reached) if reached < POSITION_END else 0, [])
            one.is_under_way = not one.is_under_way
    assert ranges.is_done == (ranges.next_range(4) is None and not ranges.under_way(4))


@pytest.mark.parametrize(("start", "end"), [(5, 5), (5, 4), (-1, 4), (0, POSITION_END + 1), (POSITION_END, 1 << 65)])
def test_what_is_no_range_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match=r"position|ends"):
        CompiledRanges(Dialect.STANDALONE, [CursorSpan(start, end)])


def test_a_range_keeps_what_it_belongs_to() -> None:
    """It is a view into memory of the ranges, and no other ranges take it."""
    (one,) = CompiledRanges(Dialect.STANDALONE).under_way(1)
    gc.collect()
    assert one.end == POSITION_END
    ranges = CompiledRanges(Dialect.STANDALONE)
    with pytest.raises(ValueError, match="another"):
        ranges.advance(one, 1, [])
    assert ranges.under_way(1) == ranges.under_way(1)
    assert {*ranges.under_way(1), one} == {one, ranges.under_way(1)[0]}
    assert one != ranges.under_way(1)[0]


def test_nothing_is_set_up_twice_or_from_outside() -> None:
    ranges = CompiledRanges(Dialect.STANDALONE)
    with pytest.raises(ValueError, match="already"):
        ranges.__init__(Dialect.STANDALONE)  # type: ignore[misc]
    for kind in (_ranges.CompiledRange, _ranges.CompiledTable):
        with pytest.raises(TypeError):
            kind()


def test_names_are_bytes() -> None:
    ranges = CompiledRanges(Dialect.STANDALONE)
    with pytest.raises(TypeError):
        ranges.advance(ranges.under_way(1)[0], 1, [b"a", None])  # type: ignore[list-item]
