"""Cursors as positions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.scan.cursor import POSITION_END, Dialect, bitreverse64, covered_share, dialect_of, equal_ranges
from rtui.server.wire.identity import Product, ServerIdentity

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
        ("redis", (7, 0, 15), False, Dialect.STANDALONE),
        ("redis", (8, 10, 2), False, Dialect.STANDALONE),
        ("redis", None, False, Dialect.STANDALONE),
        ("redis", (7, 2, 6), True, Dialect.STANDALONE),
        ("redis", (7, 4, 0), True, Dialect.SLOTTED),
        ("valkey", (7, 2, 5), True, Dialect.STANDALONE),
        ("valkey", (8, 0, 1), True, Dialect.SLOTTED),
        ("valkey", None, True, Dialect.OPAQUE),
        ("valkey", (9, 1, 2), None, Dialect.OPAQUE),
        ("other", (7, 4, 0), False, Dialect.OPAQUE),
    ],
)
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
    end_of_slot_9 = Dialect.SLOTTED.position(10)
    assert covered_share(0, end_of_slot_9, [(0, 9), (100, 109)]) == pytest.approx(0.5)
    assert covered_share(0, POSITION_END, [(0, 9)]) == pytest.approx(1.0)
    assert covered_share(0, POSITION_END // 4) == pytest.approx(0.25)
    assert covered_share(0, 1, []) == 1.0
