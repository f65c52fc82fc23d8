"""Ranges side by side: every key once, whatever the order of replies and the shape of the table."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText
from rtui.server.engine import _ranges
from rtui.server.scan.cluster_scan import UncoveredByNode
from rtui.server.scan.cursor import POSITION_END, Dialect, bitreverse64, equal_ranges
from rtui.server.scan.parted_scan import PartedScan, ScanPart
from rtui.server.scan.progress import Cost, NodeProgress, Progress, ScanNote, ScanState
from rtui.server.scan.ranges import HEAD_BYTES, LARGE_HEADS, PATIENCE, CursorOrderError, CursorSpan, Range, Ranges
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.savepoint import savepoint_of
from tests.server.scan.table import Table

STANDALONE = Dialect.STANDALONE


def make_table(rng: Random) -> Table:
    """Up to 200 keys, spread as a hash spreads them, in a table too small, right or too large for them."""
    return Table(
        {b"key:%d" % index: rng.randrange(POSITION_END) for index in range(rng.randrange(200))}, rng.randint(1, 9)
    )


rngs = st.integers(0, 1 << 32).map(Random)
positions = st.integers(0, POSITION_END - 1)
ORDERED = (STANDALONE, Dialect.SLOTTED)


def step(ranges: Ranges, table: Table, one: Range, count: int, seen: Counter[bytes]) -> None:
    """One round trip: ask, and take up the page at once."""
    one.is_started = True
    cursor, keys = table.scan(one.cursor, count)
    seen.update(ranges.advance(one, cursor, keys))


@given(rngs, st.integers(0, 3), st.integers(1, 60))
def test_every_key_once_in_any_order(rng: Random, power: int, count: int) -> None:
    table = make_table(rng)
    ranges = Ranges(STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(1 << power)])
    seen: Counter[bytes] = Counter()
    while not ranges.is_done:
        step(ranges, table, rng.choice(ranges.under_way(8)), count, seen)
    assert set(seen) == table.keys
    assert ranges.repeats_possible or max(seen.values(), default=1) == 1


@given(rngs, st.integers(1, 60))
def test_seams_of_a_large_table_never_need_an_excuse(rng: Random, count: int) -> None:
    """Where a page is short against a range, the names at the seams settle everything."""
    full = Table({b"key:%d" % index: rng.randrange(POSITION_END) for index in range(1000)}, 10)
    ranges = Ranges(STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(8)])
    seen: Counter[bytes] = Counter()
    while not ranges.is_done:
        step(ranges, full, rng.choice(ranges.under_way(4)), count, seen)
    assert seen == Counter(full.keys)
    assert not ranges.repeats_possible


@given(rngs, st.integers(1, 40))
def test_pages_asked_for_early_and_taken_up_late(rng: Random, count: int) -> None:
    """Several requests are under way at once, as on a lane: replies come in the order of the requests."""
    table = make_table(rng)
    ranges = Ranges(STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(4)])
    seen: Counter[bytes] = Counter()
    under_way: list[tuple[Range, int, list[bytes]]] = []
    while not ranges.is_done:
        busy = {one for one, _, _ in under_way}
        idle = [one for one in ranges.under_way(4) if one not in busy]
        if idle and (not under_way or rng.random() < 0.5):
            one = rng.choice(idle)
            one.is_started = True
            under_way.append((one, *table.scan(one.cursor, count)))
        elif under_way:
            one, cursor, keys = under_way.pop(0)
            seen.update(ranges.advance(one, cursor, keys))
    assert set(seen) == table.keys
    assert ranges.repeats_possible or max(seen.values(), default=1) == 1


@given(rngs, st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), max_size=30))
def test_nothing_is_missing_while_the_table_changes(rng: Random, changes: list[tuple[int, int]]) -> None:
    """Keys that stay are delivered though the table grows and shrinks and others come and go."""
    table = make_table(rng)
    stable = set(rng.sample(sorted(table.keys), len(table.keys) // 2))
    ranges = Ranges(STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(4)])
    seen: Counter[bytes] = Counter()
    while not ranges.is_done:
        step(ranges, table, rng.choice(ranges.under_way(4)), 5, seen)
        if changes:
            bits, removed = changes.pop()
            table.resize(bits)
            table.remove(set(sorted(table.keys - stable)[:removed]))
            table.put(b"new:%d" % len(changes), rng.randrange(POSITION_END))
    assert stable <= set(seen)


@given(rngs, st.integers(1, 20), st.integers(0, 12))
def test_a_later_run_sees_everything_once(rng: Random, count: int, steps: int) -> None:
    """Broken off anywhere, taken up from what was saved, wrapped round: the second run alone has it all."""
    table = make_table(rng)
    ranges = Ranges(STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(4)])
    for _ in range(steps):
        if not ranges.is_done:
            step(ranges, table, rng.choice(ranges.under_way(4)), count, Counter())
    if ranges.is_done:
        return
    again = Ranges(STANDALONE, savepoint_of("run", 0, None, None, ranges.remaining()).spans())
    seen: Counter[bytes] = Counter()
    while not again.is_done:
        step(again, table, rng.choice(again.under_way(4)), count, seen)
    assert set(seen) == table.keys
    assert again.repeats_possible or max(seen.values(), default=1) == 1


def test_fraction_is_what_was_gone_through() -> None:
    ranges = Ranges(STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(4)])
    assert ranges.fraction() == 0.0
    first = ranges.under_way(1)[0]
    ranges.advance(first, STANDALONE.cursor(first.end), [])
    assert ranges.fraction() == pytest.approx(0.25)
    for one in ranges.under_way(4):
        ranges.advance(one, STANDALONE.cursor(one.end) if one.end < POSITION_END else 0, [])
    assert ranges.fraction() == 1.0
    assert ranges.is_done


def test_a_cursor_that_goes_backwards_is_an_error() -> None:
    ranges = Ranges(STANDALONE)
    one = ranges.under_way(1)[0]
    ranges.advance(one, 1, [])
    with pytest.raises(CursorOrderError):
        ranges.advance(one, 2, [])


@pytest.mark.parametrize("dialect", [Dialect.STANDALONE, Dialect.SLOTTED])
def test_a_cursor_of_more_than_64_bits_is_an_error(dialect: Dialect) -> None:
    ranges = Ranges(dialect)
    with pytest.raises(CursorOrderError):
        ranges.advance(ranges.under_way(1)[0], 1 << 70, [])


@pytest.mark.parametrize("length", [1, 99, 101, 70_000])
def test_a_page_from_before_its_cursor_is_compared_with_the_last_ones(length: int) -> None:
    """The cursor that a page brings is shorter than the one that was sent: its table may have had fewer buckets."""
    names = [b"%d" % number * length for number in range(6)]
    for page, is_repeat in ((names[4:], False), (names[3:], True)):
        ranges = Ranges(STANDALONE)
        one = ranges.under_way(1)[0]
        ranges.advance(one, 0b100, names[:2])
        ranges.advance(one, 0b110, names[2:4])
        assert ranges.advance(one, 0b1, page) == page
        assert ranges.repeats_possible is is_repeat


def test_an_opaque_scan_ends_with_cursor_zero_only() -> None:
    ranges = Ranges(Dialect.OPAQUE, first_cursor=9)
    one = ranges.under_way(1)[0]
    assert one.cursor == 9
    assert ranges.advance(one, 7, [b"a"]) == [b"a"]
    assert ranges.advance(one, 3, [b"a"]) == [b"a"]
    assert ranges.fraction() is None
    ranges.advance(one, 0, [])
    assert ranges.is_done


def test_an_opaque_scan_is_not_cut() -> None:
    with pytest.raises(ValueError, match="cut"):
        Ranges(Dialect.OPAQUE, [CursorSpan(0, 5)])


def resident_bytes() -> int:
    """The memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_long_names_are_not_held() -> None:
    """Ranges whose first pages have names of 256 KiB, 200 MB in all: what is remembered of them is bounded in bytes."""
    width = 64
    ranges = Ranges(STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(width)])
    before = resident_bytes()
    for number in range(6):
        for index, one in enumerate(ranges.under_way(width)):
            page = [b"%d %d %d " % (number, index, turn) + bytes(1 << 18) for turn in range(2)]
            ranges.advance(one, STANDALONE.cursor(one.start + (number + 1 << 50)), page)
    del page
    assert resident_bytes() - before < 2 * LARGE_HEADS * HEAD_BYTES


def test_a_seam_whose_names_are_too_long_to_be_remembered_may_have_repeats() -> None:
    ranges = Ranges(STANDALONE, [CursorSpan(0, 1 << 63), CursorSpan(1 << 63, POSITION_END)])
    first, second = ranges.under_way(2)
    page = [b"%d" % number + bytes(1 << 20) for number in range(6)]
    ranges.advance(second, STANDALONE.cursor(3 << 62), page)
    assert not ranges.repeats_possible
    ranges.advance(first, STANDALONE.cursor((1 << 63) + (1 << 60)), page)
    assert ranges.repeats_possible


@given(positions, st.sampled_from(ORDERED))
def test_positions_and_cursors(position: int, dialect: Dialect) -> None:
    """A range begins with the cursor of its position, and goes on to the position of the cursor that came."""
    assert Ranges(dialect, [CursorSpan(position)]).under_way(1)[0].cursor == dialect.cursor(position)
    if position:
        whole = Ranges(dialect)
        (one,) = whole.under_way(1)
        whole.advance(one, dialect.cursor(position), [])
        assert one.position == position


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(0, 7))
def test_the_next_range_is_that_with_most_left_of_those_that_rest(steps: list[int], width: int) -> None:
    ranges = Ranges(Dialect.STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(4)])
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
        Ranges(Dialect.STANDALONE, [CursorSpan(start, end)])


def test_a_range_keeps_what_it_belongs_to() -> None:
    """It is a view into memory of the ranges, and no other ranges take it."""
    (one,) = Ranges(Dialect.STANDALONE).under_way(1)
    gc.collect()
    assert one.end == POSITION_END
    ranges = Ranges(Dialect.STANDALONE)
    with pytest.raises(ValueError, match="another"):
        ranges.advance(one, 1, [])
    assert ranges.under_way(1) == ranges.under_way(1)
    assert {*ranges.under_way(1), one} == {one, ranges.under_way(1)[0]}
    assert one != ranges.under_way(1)[0]


def test_nothing_is_set_up_twice_or_from_outside() -> None:
    ranges = Ranges(Dialect.STANDALONE)
    with pytest.raises(ValueError, match="already"):
        ranges.__init__(Dialect.STANDALONE)  # type: ignore[misc]
    for kind in (_ranges.CompiledRange, _ranges.CompiledTable):
        with pytest.raises(TypeError):
            kind()


def test_names_are_bytes() -> None:
    ranges = Ranges(Dialect.STANDALONE)
    with pytest.raises(TypeError):
        ranges.advance(ranges.under_way(1)[0], 1, [b"a", None])  # type: ignore[list-item]


def cursors(rng: Random, bits: int, count: int) -> list[int]:
    """Cursors of a table of 2^bits buckets, from random places."""
    width = POSITION_END >> bits
    return [bitreverse64(rng.randrange(1 << bits) * width) for _ in range(count)]


@given(st.integers(0, 1 << 32).map(Random), st.integers(2, 30))
def test_a_table_that_keeps_its_size_did_not_shrink(rng: Random, bits: int) -> None:
    watch = Ranges(Dialect.STANDALONE).table
    for cursor in cursors(rng, bits, 300):
        watch.observe(cursor)
    assert not watch.has_shrunk
    assert watch.bits == bits


@given(st.integers(0, 1 << 32).map(Random), st.integers(2, 20), st.integers(1, 8))
def test_growth_is_no_shrinking(rng: Random, bits: int, more: int) -> None:
    watch = Ranges(Dialect.STANDALONE).table
    for cursor in cursors(rng, bits, 50) + cursors(rng, bits + more, 50):
        watch.observe(cursor)
    assert not watch.has_shrunk


@given(st.integers(0, 1 << 32).map(Random), st.integers(3, 20), st.integers(1, 8))
def test_a_smaller_table_is_noticed(rng: Random, bits: int, less: int) -> None:
    watch = Ranges(Dialect.STANDALONE).table
    for cursor in cursors(rng, bits + less, 50) + cursors(rng, bits, PATIENCE + 60):
        watch.observe(cursor)
    assert watch.has_shrunk
    assert watch.bits == bits


@pytest.mark.parametrize(("now", "shrunk"), [([1, 2, 3], True), ([1, 9], False), ([], False)])
def test_a_last_look_at_the_table_settles_it(now: list[int], shrunk: bool) -> None:
    watch = Ranges(Dialect.STANDALONE).table
    watch.observe(8)
    watch.observe(2)
    assert not watch.is_sure
    watch.observe_random(now)
    assert watch.has_shrunk is shrunk


def test_the_end_of_a_scan_says_nothing() -> None:
    watch = Ranges(Dialect.STANDALONE).table
    watch.observe(8)
    for _ in range(2 * PATIENCE):
        watch.observe(0)
    assert watch.is_sure
    assert not watch.has_shrunk


ENDED = (ScanState.DONE, ScanState.STOPPED, ScanState.FAILED)


def node_of(number: int, keys: int, state: ScanState) -> NodeProgress:
    """A node of a part of this number."""
    return NodeProgress(f"node{number}", SafeText(f"h:{number}"), state, 0.5, keys, 0.0, Cost(commands=keys))


@st.composite
def parts(draw: st.DrawFn) -> list[ScanPart]:
    """Parts that have ended, each of one node and of the slots of one remainder."""
    count = draw(st.integers(1, 4))
    found = []
    for number in range(count):
        state, keys = draw(st.sampled_from(ENDED)), draw(st.integers(0, 1 << 40))
        why = UncoveredByNode(((number, number),), f"node{number}", SafeText(f"h:{number}"), SafeText("gone"))
        found.append(
            ScanPart(
                Progress(state, draw(st.floats(0, 1)), keys, notes=draw(st.sampled_from(((), (ScanNote.UNSURE,))))),
                Cost(commands=keys, elapsed_s=float(number)),
                (node_of(number, keys, state),),
                owners=dict.fromkeys(range(number, SLOTS, count), f"node{number}"),
                uncovered=() if state is ScanState.DONE else (why,),
                most_repeated=draw(st.integers(0, 5)),
            )
        )
    return found


async def ended(found: list[ScanPart]) -> PartedScan:
    scan = PartedScan(RunControl(), [1] * len(found))
    scan.begin()
    scan.parts[:] = found
    scan.end()
    return scan


@given(parts())
def test_what_parts_say_adds_up(found: list[ScanPart]) -> None:
    scan = asyncio.run(ended(found))
    states = [part.progress.state for part in found]
    assert (scan.state is ScanState.DONE) == (set(states) == {ScanState.DONE})
    assert (scan.state is ScanState.FAILED) == (set(states) == {ScanState.FAILED})
    assert scan.progress.keys == sum(part.progress.keys for part in found) == scan.cost.commands
    assert [one.slots for one in scan.uncovered] == [one.slots for part in found for one in part.uncovered]
    assert scan.owners == [f"node{slot % len(found)}" for slot in range(SLOTS)]
    assert scan.most_repeated == sum(part.most_repeated for part in found)
    assert {node.id: node.keys for node in scan.nodes} == {
        f"node{at}": one.progress.keys for at, one in enumerate(found)
    }
    assert len(scan.progress.notes) == any(part.progress.notes for part in found)
    fractions = [part.progress.fraction or 0.0 for part in found]
    if scan.state is not ScanState.DONE:
        assert scan.progress.fraction is not None
        assert min(fractions) - 1e-9 <= scan.progress.fraction <= max(fractions) + 1e-9
        assert "were not covered: gone." in (scan.progress.reason or "")


def test_a_node_that_two_parts_have_asked_counts_once() -> None:
    part = ScanPart(Progress(ScanState.DONE, 1.0, 9), nodes=(node_of(0, 7, ScanState.DONE),))
    other = replace(part, nodes=(node_of(0, 2, ScanState.DONE), node_of(1, 5, ScanState.DONE)))
    scan = asyncio.run(ended([part, other]))
    assert [(node.id, node.keys, node.cost.commands) for node in scan.nodes] == [("node0", 9, 9), ("node1", 5, 5)]


def test_a_lost_part_has_none_of_its_slots() -> None:
    before = ScanPart(Progress(ScanState.RUNNING, 0.7, 9), Cost(commands=4), (node_of(0, 9, ScanState.RUNNING),))
    lost = ScanPart.lost(
        before, {"node0": (SafeText("h:0"), {5, 6}), "": (SafeText(""), {9})}, SafeText("It was killed.")
    )
    assert (lost.progress.keys, lost.progress.fraction, lost.cost.commands) == (0, 0.0, 4)
    assert [(one.id, one.keys, one.failure) for one in lost.nodes] == [("node0", 0, "It was killed.")]
    assert [(one.node_id, one.slots) for one in lost.uncovered] == [("node0", ((5, 6),)), (None, ((9, 9),))]
