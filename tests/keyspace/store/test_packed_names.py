from __future__ import annotations

from array import array

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rtui.keyspace.store.packed_names import (
    CHUNK_BYTES,
    CHUNK_NAMES,
    MAX_INLINE_BYTES,
    MAX_INLINE_NAMES,
    Chunk,
    PackedNames,
    count_inline,
    pack_inline,
    unpack_inline,
)

NAMES = st.lists(st.binary(max_size=6) | st.sampled_from([b"", b"a", b"aa", b"A", b"x" * 50]), max_size=20)

in_tiny_chunks = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.usefixtures("tiny")
@in_tiny_chunks
@given(st.lists(NAMES, max_size=6))
def test_names_come_back_in_order(batches: list[list[bytes]]) -> None:
    packed = PackedNames()
    for batch in batches:
        packed.extend(batch)
    names = [name for batch in batches for name in batch]
    assert len(packed) == len(names)
    assert list(packed) == names
    assert [packed[ordinal] for ordinal in range(len(names))] == names
    assert packed.names_at(range(len(names) - 1, -1, -1)) == names[::-1]
    for start in range(len(names)):
        first, chunk = next(packed.chunks(start))
        assert first <= start < first + len(chunk)
        assert chunk[start - first] == names[start]


@pytest.mark.usefixtures("tiny")
@in_tiny_chunks
@given(NAMES, NAMES, NAMES)
def test_whole_chunks_are_adopted(before: list[bytes], adopted: list[bytes], after: list[bytes]) -> None:
    packed = PackedNames(before)
    given_away = PackedNames(adopted)
    for chunk in given_away.release():
        packed.adopt(chunk)
    packed.extend(after)
    assert list(packed) == before + adopted + after
    assert len(given_away) == 0
    assert given_away.size_bytes == 0


@pytest.mark.usefixtures("tiny")
@in_tiny_chunks
@given(st.lists(NAMES, max_size=6), NAMES)
def test_appending_chunks_is_the_same_as_extending(batches: list[list[bytes]], before: list[bytes]) -> None:
    appended, extended = PackedNames(before), PackedNames(before)
    for batch in batches:
        for chunk in PackedNames(batch).release():
            appended.append(chunk)
        extended.extend(batch)
        assert appended.size_bytes == extended.size_bytes
        assert chunks_of(appended) == chunks_of(extended)


def chunks_of(packed: PackedNames) -> list[tuple[int, bytes, array[int]]]:
    return [(first, chunk.blob, chunk.bounds) for first, chunk in packed.chunks()]


@pytest.mark.parametrize("base", [0, 1, 20, 21])
def test_offsets_move_up_to_the_end_of_a_chunk(base: int) -> None:
    names = [b"x" * 32] * (CHUNK_NAMES - 1 - base)
    appended, extended = PackedNames([b"y"] * base), PackedNames([b"y"] * base)
    (chunk,) = PackedNames(names).release()
    appended.append(chunk)
    extended.extend(names)
    assert chunks_of(appended) == chunks_of(extended)
    assert list(appended) == [b"y"] * base + names


@given(NAMES, st.binary(max_size=3) | st.sampled_from([b"", b"a", b"aa"]))
@example([b"a", b"a", b"", b"baab"], b"aa")
def test_searching_a_chunk(names: list[bytes], needle: bytes) -> None:
    chunk = Chunk.of(names)
    assert chunk.names() == names
    assert chunk.containing(needle) == [place for place, name in enumerate(names) if needle in name]
    assert chunk.starting(needle) == [place for place, name in enumerate(names) if name.startswith(needle)]
    assert chunk.lowered().names() == [name.lower() for name in names]
    assert chunk.index(needle) == (names.index(needle) if needle in names else -1)


@given(st.lists(st.binary(max_size=MAX_INLINE_BYTES), min_size=1, max_size=MAX_INLINE_NAMES))
def test_an_inline_pack_comes_back(names: list[bytes]) -> None:
    packed = pack_inline(names)
    assert packed is not None
    assert unpack_inline(packed) == names
    assert count_inline(packed) == len(names)


def test_an_inline_pack_is_small() -> None:
    assert pack_inline([b""] * (MAX_INLINE_NAMES + 1)) is None
    assert pack_inline([b"x" * (MAX_INLINE_BYTES + 1)]) is None
    assert pack_inline([b"a", b"x" * (MAX_INLINE_BYTES + 1)]) is None


def test_names_of_any_length_side_by_side() -> None:
    names = [b"a", b"x" * (CHUNK_BYTES + 1), b"", b"y" * CHUNK_BYTES, b"z" * 5_000_000, b"b"]
    packed = PackedNames(names)
    assert list(packed) == names
    assert [packed[ordinal] for ordinal in range(len(names))] == names


def test_two_bytes_a_name_besides_the_name() -> None:
    packed = PackedNames()
    for start in range(0, 100_000, 1000):
        packed.extend([b"%026d" % number for number in range(start, start + 1000)])
    assert packed.size_bytes == 100_000 * 28
    assert packed.full_chunks >= 100_000 // CHUNK_NAMES


def test_a_negative_ordinal_is_refused() -> None:
    with pytest.raises(IndexError):
        PackedNames([b"a"])[-1]
