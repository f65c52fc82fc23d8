from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.tui.browse.columns import ALL_COLUMNS, GAP_CELLS, LONG_NAME_CELLS, MIN_NAME_CELLS, TreeColumn, lay_out_row

columns = st.frozensets(st.sampled_from(list(TreeColumn)))


@given(st.integers(0, 300), columns)
def test_a_plan_fills_the_width_exactly(width: int, enabled: frozenset[TreeColumn]) -> None:
    found = lay_out_row(width, enabled)
    assert found.name_cells + sum(place.cells + GAP_CELLS for place in found.fields) == width


@given(st.integers(MIN_NAME_CELLS, 300), columns)
def test_the_name_keeps_its_room(width: int, enabled: frozenset[TreeColumn]) -> None:
    assert lay_out_row(width, enabled).name_cells >= MIN_NAME_CELLS


@given(st.integers(0, 300), columns)
def test_only_what_is_switched_on_is_shown(width: int, enabled: frozenset[TreeColumn]) -> None:
    shown = {
        column for place in lay_out_row(width, enabled).fields for column in (place.namespace, place.key) if column
    }
    assert shown <= enabled


def test_wide_trees_give_each_column_its_place() -> None:
    assert len(lay_out_row(120).fields) == len(ALL_COLUMNS)
    assert all((place.namespace is None) != (place.key is None) for place in lay_out_row(120).fields)


def test_narrow_trees_share_places_between_namespaces_and_keys() -> None:
    shared = lay_out_row(66).fields
    assert [(place.namespace, place.key) for place in shared] == [
        (TreeColumn.KEYS, TreeColumn.TYPE),
        (TreeColumn.SHARE, TreeColumn.TTL),
        (TreeColumn.BAR, TreeColumn.SIZE),
    ]
    assert [place.title for place in shared] == ["keys / type", "share / TTL", "size"]


def test_very_narrow_trees_have_names_only() -> None:
    assert lay_out_row(24).fields == ()


@given(st.integers(66, 300), columns, st.integers(0, 600))
def test_a_name_that_a_small_terminal_shows_is_not_cut_harder_in_a_larger_one(
    width: int, enabled: frozenset[TreeColumn], longest: int
) -> None:
    assert lay_out_row(width, enabled, longest).name_cells >= min(
        longest, lay_out_row(78, enabled, longest).name_cells, LONG_NAME_CELLS
    )


@given(st.integers(0, 300), columns, st.integers(0, 600))
def test_the_first_place_stays_however_long_names_are(width: int, enabled: frozenset[TreeColumn], longest: int) -> None:
    assert bool(lay_out_row(width, enabled, longest).fields) == bool(lay_out_row(width, enabled).fields)
