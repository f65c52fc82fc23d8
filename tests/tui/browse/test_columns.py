from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.tui.browse.columns import ALL_COLUMNS, GAP_CELLS, LONG_NAME_CELLS, MIN_NAME_CELLS, Column, plan

columns = st.frozensets(st.sampled_from(list(Column)))


@given(st.integers(0, 300), columns)
def test_a_plan_fills_the_width_exactly(width: int, enabled: frozenset[Column]) -> None:
    found = plan(width, enabled)
    assert found.name_cells + sum(place.cells + GAP_CELLS for place in found.places) == width


@given(st.integers(MIN_NAME_CELLS, 300), columns)
def test_the_name_keeps_its_room(width: int, enabled: frozenset[Column]) -> None:
    assert plan(width, enabled).name_cells >= MIN_NAME_CELLS


@given(st.integers(0, 300), columns)
def test_only_what_is_switched_on_is_shown(width: int, enabled: frozenset[Column]) -> None:
    shown = {column for place in plan(width, enabled).places for column in (place.namespace, place.key) if column}
    assert shown <= enabled


def test_wide_trees_give_each_column_its_place() -> None:
    assert len(plan(120).places) == len(ALL_COLUMNS)
    assert all((place.namespace is None) != (place.key is None) for place in plan(120).places)


def test_narrow_trees_share_places_between_namespaces_and_keys() -> None:
    shared = plan(66).places
    assert [(place.namespace, place.key) for place in shared] == [
        (Column.KEYS, Column.TYPE),
        (Column.SHARE, Column.TTL),
        (Column.BAR, Column.SIZE),
    ]
    assert [place.title for place in shared] == ["keys / type", "share / TTL", "size"]


def test_very_narrow_trees_have_names_only() -> None:
    assert plan(24).places == ()


@given(st.integers(66, 300), columns, st.integers(0, 600))
def test_a_name_that_a_small_terminal_shows_is_not_cut_harder_in_a_larger_one(
    width: int, enabled: frozenset[Column], longest: int
) -> None:
    assert plan(width, enabled, longest).name_cells >= min(
        longest, plan(78, enabled, longest).name_cells, LONG_NAME_CELLS
    )


@given(st.integers(0, 300), columns, st.integers(0, 600))
def test_the_first_place_stays_however_long_names_are(width: int, enabled: frozenset[Column], longest: int) -> None:
    assert bool(plan(width, enabled, longest).places) == bool(plan(width, enabled).places)
