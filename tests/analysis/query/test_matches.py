"""Matches are counted all, and kept as far as they are wanted."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from rtui.analysis.query.matches import FIELD_OF, Matches, Order
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.natural import natural

RECORD = st.builds(
    KeyRecord,
    key=st.binary(max_size=3),
    key_type=st.none() | st.sampled_from([b"hash", b"set", b"\xff"]),
    ttl_ms=st.none() | st.integers(-1, 50),
    memory_bytes=st.none() | st.integers(0, 50),
)


@given(st.lists(st.lists(RECORD, max_size=9), max_size=6), st.integers(1, 9), st.sampled_from(Fact), st.booleans())
@example([[KeyRecord(key=b"2"), KeyRecord(key=b"10")]], 1, Fact.NAME, False)
def test_the_top_ones_are_kept(pages: list[list[KeyRecord]], limit: int, fact: Fact, is_descending: bool) -> None:
    matches = Matches(limit, Order(fact, is_descending))
    for page in pages:
        matches.add_count(len(page))
        matches.add(page)
    every = [record for page in pages for record in page]
    known = [one for one in every if getattr(one, FIELD_OF[fact]) is not None]

    def value(record: KeyRecord) -> tuple[bool, bytes | int]:
        found: bytes | int = getattr(record, FIELD_OF[fact])
        return fact is Fact.TTL and found == -1, natural(found) if isinstance(
            found, bytes
        ) and fact is Fact.NAME else found

    known.sort(key=value, reverse=is_descending)
    wanted = [*known, *(one for one in every if one not in known)][:limit]
    assert [value(one) for one in matches.kept if one in known] == [value(one) for one in wanted if one in known]
    assert len(matches.kept) == min(limit, len(every))
    assert matches.count == len(every)


@given(st.lists(st.lists(RECORD, max_size=9), max_size=6), st.integers(0, 9))
def test_the_first_ones_are_kept(pages: list[list[KeyRecord]], limit: int) -> None:
    matches, drained = Matches(limit), Matches(limit)
    taken: list[KeyRecord] = []
    for page in pages:
        matches.add(page)
        drained.add(page)
        taken += drained.drain()
    every = [record for page in pages for record in page]
    assert list(matches.kept) == taken == every[:limit]
    assert matches.is_full is drained.is_full is (len(every) >= limit)
    assert all(matches.knows(one.key) for one in matches.kept)


def test_what_is_searched_anew_is_forgotten() -> None:
    matches = Matches(1)
    matches.add_count(3)
    matches.add([KeyRecord(b"a")])
    matches.clear()
    assert (matches.count, list(matches.kept), matches.is_full, matches.knows(b"a")) == (0, [], False, False)
