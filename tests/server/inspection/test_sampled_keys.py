"""Which of the listed keys are sampled, and of which the encoding is asked, whatever the pages are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.columns import EVERYTHING, SAMPLE_EVERY, SAMPLED_COLUMNS
from rtui.server.inspection.pipeline import EveryNth, ListedKeys
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.identity import NoTouch, ServerIdentity

PAGES = st.lists(st.integers(0, 40), max_size=12)


def plan_of(columns: object = SAMPLED_COLUMNS) -> InspectionPlan:
    """A plan that samples one key in eight, or asks everything of all."""
    return InspectionPlan(Capabilities(), ServerIdentity(), NoTouch.ON, columns)  # type: ignore[arg-type]


def pages_of(sizes: list[int]) -> tuple[list[bytes], list[list[bytes]]]:
    """Keys in the order in which they are listed, and pages of them."""
    keys = [b"%d" % index for index in range(sum(sizes))]
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    return keys, [keys[end - size : end] for size, end in zip(sizes, ends, strict=True)]


@given(PAGES, st.integers(0, SAMPLE_EVERY - 1))
def test_every_eighth_key_is_sampled_over_all_pages(sizes: list[int], first: int) -> None:
    keys, pages = pages_of(sizes)
    listed = ListedKeys(plan_of(), first)
    sampled: list[bytes] = []
    for page in pages:
        some, others = listed.divided(page)
        assert sorted([*some, *others]) == sorted(page)
        sampled += some
    assert sampled == keys[first::SAMPLE_EVERY]
    assert listed.skip == (first - len(keys)) % SAMPLE_EVERY


def test_the_first_sampled_key_is_one_of_the_first_eight() -> None:
    firsts = {ListedKeys(plan_of()).skip for _ in range(500)}
    assert firsts == set(range(SAMPLE_EVERY))


def test_all_keys_are_sampled_where_all_is_asked_of_all() -> None:
    page = [b"a", b"b"]
    assert ListedKeys(plan_of(EVERYTHING)).divided(page) == (page, [])


@given(st.integers(0, 100), st.integers(0, 100), st.lists(st.integers(1, 30), max_size=20))
def test_sampled_keys_and_others_run_out_together(sampled: int, others: int, mosts: list[int]) -> None:
    listed = ListedKeys(plan_of(), 0)
    listed.add([b"s%d" % index for index in range(sampled)], is_sampled=True)
    listed.add([b"o%d" % index for index in range(others)], is_sampled=False)
    taken: dict[bool, list[bytes]] = {True: [], False: []}
    for most in mosts:
        before = listed.keys
        for batch in listed.take(most):
            assert batch.keys
            taken[batch.is_sampled] += batch.keys
        assert before - listed.keys == min(most, before)
        if listed.keys:  # their shares of what was taken differ by no more than rounding up a take each
            share = sampled / (sampled + others)
            assert 0 <= len(taken[True]) - share * (len(taken[True]) + len(taken[False])) < len(mosts)
    rest = listed.take_all()
    assert not listed.keys
    assert taken[True] + [key for key in rest if key.startswith(b"s")] == [b"s%d" % index for index in range(sampled)]
    assert taken[False] + [key for key in rest if key.startswith(b"o")] == [b"o%d" % index for index in range(others)]


@given(PAGES, st.integers(1, 16))
def test_every_nth_key_of_a_type_is_chosen_over_all_pages(sizes: list[int], every: int) -> None:
    keys, pages = pages_of(sizes)
    sample = EveryNth()
    hashes: list[bytes] = []
    sets: list[bytes] = []
    for page in pages:
        hashes += [page[index] for index in sample.choose(b"hash", len(page), every)]
        sets += [page[index] for index in sample.choose(b"set", len(page[:1]), every)]
    assert hashes == keys[::every]
    assert sets == [page[0] for page in pages if page][::every]
