from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.guard.command import (
    MAX_BATCH_BYTES,
    MAX_BATCH_COMMANDS,
    MAX_BATCH_KEYS,
    MAX_BULK_KEY_BYTES,
    GuardError,
    KeyCommand,
    KeyTemplate,
    build_batch,
    find_spec,
    key_template,
    scan_template,
    split_keys,
)
from rtui.server.guard.evidence import EntryEvidence, Evidence, GroupEvidence, TypeEvidence
from tests.wire import Requests

EVERY = [value for value in vars(guard).values() if isinstance(value, KeyCommand)]
BULK = [build for build in EVERY if build.spec.in_bulk]
ENOUGH: dict[type[Evidence], Evidence] = {
    TypeEvidence: TypeEvidence(b"hash", "redis", (7, 0)),
    EntryEvidence: EntryEvidence(1.0),
    GroupEvidence: GroupEvidence(1),
}
"""By what a command needs, evidence that permits it."""
HASHES = ENOUGH[TypeEvidence]
KEYS = st.lists(
    st.one_of(st.binary(max_size=40), st.sampled_from([b"k" * size for size in (511, 512, 513, 65_536)])),
    min_size=1,
    max_size=12,
)


@given(st.lists(st.sampled_from(BULK), min_size=1, max_size=MAX_BATCH_COMMANDS), KEYS)
def test_a_batch_is_its_commands_one_after_another(builds: list[KeyCommand], keys: list[bytes]) -> None:
    batch = build_batch(builds, keys, HASHES)
    slow = [build(key, HASHES) for key in keys for build in builds]
    assert batch.packed == b"".join(command.packed for command in slow)
    assert batch.replies == len(slow)
    assert type(batch.packed) is bytes


def test_only_the_guard_makes_templates() -> None:
    forged: Any
    for forged in (
        lambda: KeyTemplate(object(), "PTTL", b""),
        lambda: key_template(guard.memory_usage),
        lambda: key_template(guard.memory_usage, TypeEvidence(b"stream", "redis", (7, 0))),
    ):
        with pytest.raises(GuardError):
            forged()


@given(st.sampled_from(BULK), KEYS)
def test_a_batch_reads_back_as_lines_of_the_list(build: KeyCommand, keys: list[bytes]) -> None:
    requests = Requests()
    requests.feed(build_batch(build, keys, HASHES).packed)
    assert not requests.incomplete
    assert [line[-1] for line in requests.commands] == keys
    assert all(find_spec(line) is build.spec for line in requests.commands)


@pytest.mark.parametrize(
    "build", [build for build in EVERY if not build.spec.in_bulk], ids=lambda build: build.spec.name
)
def test_what_is_not_constant_in_time_is_not_sent_in_bulk(build: KeyCommand) -> None:
    known = None if build.spec.evidence is None else ENOUGH[build.spec.evidence]
    assert build(b"key", known).replies == 1
    with pytest.raises(GuardError):
        build_batch(build, [b"key"])
    with pytest.raises(GuardError):
        build_batch([guard.key_type, build], [b"key"])


@pytest.mark.parametrize(
    ("known", "most"),
    [
        (TypeEvidence(b"stream", "redis", (8, 4)), 2_000),
        (TypeEvidence(b"stream", "valkey", (8, 0)), 2_000),
        (TypeEvidence(b"vectorset", None, None), 2_000),
        (TypeEvidence(b"stream", "redis", (8, 2, 9)), 1),
        (TypeEvidence(b"stream", "other", (99, 0)), 1),
        (TypeEvidence(b"stream", None, None, proved=1), 2),
        (TypeEvidence(b"stream", "redis", (7, 0), proved=20), 40),
        (TypeEvidence(b"stream", "redis", (7, 0), proved=10**9), 64),
        (TypeEvidence(b"ReJSON-RL", "redis", (8, 6), proved=64), 0),
        (TypeEvidence(None, "valkey", (9, 1), proved=64), 0),
        (None, 0),
    ],
)
def test_how_many_keys_one_write_may_ask_for_their_memory(known: TypeEvidence | None, most: int) -> None:
    if most:
        assert build_batch([guard.memory_usage, guard.xlen], [b"key"] * most, known).replies == 2 * most
    with pytest.raises(GuardError):
        build_batch([guard.xlen, guard.memory_usage], [b"key"] * (most + 1), known)


def test_builders_that_are_none_are_refused() -> None:
    forged: Any = lambda key: guard.ping()  # noqa: E731
    with pytest.raises((GuardError, AttributeError)):
        build_batch([forged], [b"key"])


@pytest.mark.parametrize(
    ("builds", "keys"),
    [
        ([], [b"k"]),
        ([guard.pttl], []),
        ([guard.pttl], [b"k"] * (MAX_BATCH_KEYS + 1)),
        ([guard.pttl] * (MAX_BATCH_COMMANDS + 1), [b"k"]),
        ([guard.pttl], [b"k", b"k" * (MAX_BULK_KEY_BYTES + 1)]),
        ([guard.pttl], [b"k" * MAX_BULK_KEY_BYTES] * 300),
        ([guard.pttl, guard.key_type], [b"k" * MAX_BULK_KEY_BYTES] * 200),
    ],
    ids=["no command", "no key", "keys", "commands", "key size", "bytes", "bytes of two"],
)
def test_batches_are_bounded(builds: list[KeyCommand], keys: list[bytes]) -> None:
    with pytest.raises(GuardError):
        build_batch(builds, keys)


def test_the_largest_batch() -> None:
    assert build_batch(guard.pttl, [b"k"] * MAX_BATCH_KEYS).replies == MAX_BATCH_KEYS
    keys = [b"k" * MAX_BULK_KEY_BYTES] * (MAX_BATCH_BYTES // MAX_BULK_KEY_BYTES)
    assert len(build_batch(guard.pttl, keys).packed) >= MAX_BATCH_BYTES


def test_a_key_is_bytes() -> None:
    text: Any = ["key"]
    with pytest.raises(TypeError):
        build_batch(guard.pttl, text)


@given(st.lists(st.tuples(st.integers(0, 65_536), st.integers(1, 900)), max_size=8), st.integers(1, MAX_BATCH_COMMANDS))
def test_portions_hold_every_key_in_order_and_fit_into_a_batch(runs: list[tuple[int, int]], commands: int) -> None:
    keys = [b"k" * size for size, repeat in runs for _ in range(min(repeat, 2_000_000 // (size + 1)))]
    cut = list(split_keys(keys, commands))
    assert [key for part in cut for key in part] == keys
    for part in cut:
        assert 1 <= len(part) <= MAX_BATCH_KEYS
        assert sum(map(len, part)) * commands <= MAX_BATCH_BYTES


def test_portions_are_cut_at_the_bytes_and_each_can_be_sent() -> None:
    keys = [b"k" * MAX_BULK_KEY_BYTES] * 600
    builds = [guard.key_type, guard.pttl]
    cut = list(split_keys(keys, len(builds)))
    assert [len(part) for part in cut] == [128, 128, 128, 128, 88]
    assert sum(build_batch(builds, part).replies for part in cut) == 1200


@given(
    st.integers(-3, 1 << 65) | st.integers(0, 999),
    st.integers(-3, 1_100),
    st.sampled_from([None, b"a*"]),
    st.sampled_from([None, b"hash"]),
)
def test_a_template_of_scan_writes_what_its_builder_does(
    cursor: int, count: int, match: bytes | None, key_type: bytes | None
) -> None:
    template = scan_template(match, key_type)
    try:
        expected = guard.scan(cursor, count=count, match=match, key_type=key_type)
    except GuardError:
        with pytest.raises(GuardError):
            template.command(cursor, count)
    else:
        made = template.command(cursor, count)
        assert (made.name, made.packed, made.replies) == (expected.name, expected.packed, expected.replies)
