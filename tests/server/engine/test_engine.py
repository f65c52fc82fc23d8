"""The compiled counters come to the same results as the pure ones."""

from __future__ import annotations

import os
import string
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.pattern_counts import PatternCounts
from rtui.analysis.aggregate.pattern_tree import Limits
from rtui.analysis.aggregate.slot_counts import SlotCounts
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.report.document import Scope
from rtui.keyspace.slices import Slicer, finish
from rtui.keyspace.text.identifiers import Identifiers
from rtui.keyspace.text.java_names import HEADER, raw_java_name
from rtui.keyspace.text.segments import Separators
from rtui.server.engine import ENVIRONMENT, engine_name, is_built, is_outdated
from rtui.server.engine.counters import CompiledPatternCounts, CompiledSlotCounts, new_counters
from tests.examples import examples
from tests.grammar import CONVENTIONS, WORDS, Grammar
from tests.server.engine.comparing import STARTED_S, Batches, batches_of, compare, counted, lines, told

if os.environ.get("RTUI_REQUIRE_ENGINE") == "1":
    assert is_built(), "the compiled engine was not built"
elif not is_built():
    pytest.skip("the compiled engine was not built", allow_module_level=True)

from rtui.server.engine import _core

SMALL = Limits(
    children=5, names=12, numbered_keys=3, numbered=8, nodes=60, expiry_bins=150, keys_between_coarsening=100
)

IDENTIFIERS = (
    *(b"42", b"0", b"2026-09-21", b"2026/09.21", b"2026-09", b"2026-09-21T10", b"2026-09-21 10-11-12.345Z"),
    *(b"2026-09-21_101112Z", b"20260921T1011", b"20260921-101112Z", b"10.0.0.1", b"255.255.255.255", b"2020.10.10"),
    *(b"550e8400-e29b-41d4-a716-446655440000", b"abcdefab-abcd-abcd-abcd-abcdefabcdef", b"d41d8cd98f00b204"),
    *(b"DEADBEEF01", b"R20260000000001", b"abc-123456", b"id_1234567", b"cus_ab12cd34", b"wxyz-0123abcd"),
    *(b"01ARZ3NDEKTSV4RRFFQ69G5FAV", b"01arz3ndektsv4rrffq69g5fav", b"V1StGXR8_Z5jdHi6B-myT", b"aB3" * 9),
    *(b"page_7", b"v1.user.42", b"img/7.png", b"user42", b"a1.b22_c333-4", b"shard3_user_4", b"R123456_7"),
    *(b"x_10.0.0.1.5", b"1.2.3.4.5", b"task-550e8400-e29b-41d4-a716-446655440000", b"GET.d41d8cd98f00b204.en"),
    *(b"2001:db8::1a2b", b"fe80::1:2:3", b"1:2:3:4:5:6:7:8a", b"2001:db8:0:0:0:0:0:1", b"ff02::1:ff00:42"),
    *(b"dGhlIHNhbXBsZSBub25jZQ==", b"AAAAAAAAAAAAAAAAAAA=", b"sess_" + b"aB3" * 9, b"x-01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    *(b"a@b.cc", b"first.last@mail.example.org", b"{42}", b"{user:42}", b"{{1}", b"}a@b.cc{x", b"user-42", b"v2"),
    *(b"search" + b"6b86b273" * 8, b"a.cache" + b"9dd4e461" * 4 + b":x", b"zz" + b"1" * 31 + b"a", b"G" + b"ab1c" * 10),
    *(b"a/7", b"7/a.8", b"{page_7}", b"{user42}.x", b"{2001:db8::7:x}", b"a@b.xn--p1ai", b"a@b.xn--", b"{10.0.0.1-x}"),
    *(b"createPreLoanStageHandlerV2", b"0ujsswThIGTUYm2K8FjOOfXtY1K", b"My-Order-Service-V2-Ab", b"maxRetryCountV2="),
    *(b"Zk1+x8Qf2/LmR7tVb0Yc", b"i18n/Messages/EnglishUK23", b"MFRGGZDFMZTWQ2LK", b"2fVzZmNmkQVvUAbWlqVQmb", b"en-US"),
    *(
        b"{550e8400-e29b-41d4-a716-446655440000}-x",
        b"10.0.0.1.5.x",
        b"ce-02-dc-34-3e-bb",
        b"aa:bb:cc:dd:ee:f0",
        b"SearchResults" + b"9dd4e461" * 4,
    ),
)
TINY = Limits(children=2, names=3, numbered_keys=2, numbered=3, nodes=12, expiry_bins=4, keys_between_coarsening=5)
ALPHABET = b"0129aAfFgGiIlLoOuUzZTx-_./@ :{}*\n\t\0\xff"


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """An identifier with up to three bytes replaced, removed or inserted."""
    found = bytearray(draw(st.sampled_from(IDENTIFIERS)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(found)))
        byte = draw(st.sampled_from(ALPHABET))
        found[at : at + draw(st.integers(0, 1))] = [byte] * draw(st.integers(0, 2))
    return bytes(found)


SEGMENTS = mutated() | st.binary(max_size=40) | st.lists(st.sampled_from(ALPHABET), max_size=70).map(bytes)


@pytest.mark.slow
@settings(max_examples=examples(2_000))
@given(SEGMENTS, st.sampled_from(((b":",), (b"1", b"-"), (b"{", b"."), ())))
@example(b"{" * 256, (b":",))
@example(b"1{" * 128, (b"1",))
@example(b"1" * 256, (b":",))
def test_the_forms_are_those_of_the_pure_path(segment: bytes, separators: tuple[bytes, ...]) -> None:
    wanted = Identifiers(separators).form(segment)
    assert _core.pattern(segment, separators) == (wanted.pattern, wanted.numbered)


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(IDENTIFIERS), max_size=30).map(b":".join).map(lambda one: one[:256]))
def test_the_forms_of_long_segments_are_those_of_the_pure_path(segment: bytes) -> None:
    for separators in ((b":",), (b"4",), (b"/",)):
        for one in (segment, b"{" + segment[:254] + b"}"):
            wanted = Identifiers(separators).form(one)
            assert _core.pattern(one, separators) == (wanted.pattern, wanted.numbered)


def names_of(seed: int, count: int, patterns: int | None = None) -> list[bytes]:
    names = (write[1] for write in Grammar(seed, patterns).writes(count) if write[0] != "PEXPIRE")
    return [name for name in names if isinstance(name, bytes)]


@pytest.mark.slow
@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(4))
def test_keyspaces_of_real_naming(seed: int) -> None:
    rng = Random(seed)
    scope = Scope(separators=rng.choice(((b":",), (b":", b"/"), (b"-", b".", b":", b"_"))), depth=rng.choice((None, 2)))
    compare(batches_of(names_of(seed, 4_000), rng), scope=scope, budget=rng.choice((4096, 300, 20)))


@pytest.mark.slow
@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(12))
def test_floods_of_names_beyond_small_limits(seed: int) -> None:
    rng = Random(seed)
    names = names_of(seed, 2_000, 40)
    names += [b"user:" + b":".join(rng.choice(WORDS).encode() for _ in range(rng.randint(1, 5))) for _ in range(2_000)]
    tagged = (b"{u:WORD}:x", b"{u:WORD:9}", b"a{u:WORD}:b", b"WORD-{u:9}", b":WORD", b"WORD:", b"WORD::x", b"{WORD}")
    for _ in range(1_000):
        form = rng.choice((*tagged, b"9-{WORD:u}-{id}", b"{id}-9{WORD:u}", b"{9:WORD}-7:x"))
        word = (rng.choice(WORDS) + rng.choice(WORDS)).encode()
        names.append(form.replace(b"WORD", word).replace(b"9", b"%d" % rng.randrange(10**9)))
    rng.shuffle(names)
    compare(batches_of(names, rng, longest_batch=60), limits=SMALL, budget=rng.choice((200, 30, 1)))


@pytest.mark.slow
def test_floods_of_names_beyond_the_limits() -> None:
    rng = Random(5)
    letters = string.ascii_lowercase
    names = [b"flood:%s" % "".join(rng.choices(letters, k=rng.choice((2, 4)))).encode() for _ in range(12_000)]
    names += [b"a:%s:b:%s:c" % (b"".join([w[:2]] * 2), w) for w in map(str.encode, WORDS * 5)]
    rng.shuffle(names)
    compare(batches_of(names, rng, longest_batch=1_000), limits=Limits(nodes=3_000, expiry_bins=2_000), budget=500)


WORDS_OF_KEYS = st.sampled_from(
    (
        *(b"", b"user", b"cart", b"v2", b"42", b"7", b"{a:1}", b"{9}", b"{", b"}", b"{}", b"\xff\0", b"{*}", b"{id}"),
        *(b"2001", b"db8", b"fe80", b"1a2b", b"n1", b"n2", b"n3", b"n4", b"p_1", b"p_2", b"p_3", b"p_1234567", b"ff02"),
        *(one.encode() for one in CONVENTIONS[:10]),
        b"x" * 300,
    )
)
TEXTS = (
    st.lists(WORDS_OF_KEYS | SEGMENTS, max_size=6).map(b":".join)
    | st.binary(max_size=20)
    | st.integers(30, 40).map(lambda levels: b":".join([b"deep"] * levels))
)
KEYS = TEXTS | TEXTS.map(lambda text: raw_java_name(text) or b"") | TEXTS.map(lambda text: HEADER + b"\0\5" + text)
VALUES = st.integers(0, 200) | st.integers(0, 2**40) | st.sampled_from((2**50, 2**53 + 1, 2**60))


@st.composite
def some_batches(draw: st.DrawFn) -> Batches:
    """Batches of keys of some types, of which some facts are known; a few with values that no server has."""
    made = []
    for _ in range(draw(st.integers(1, 6))):
        keys = draw(st.lists(KEYS, max_size=30))
        size = len(keys)

        def column(values: st.SearchStrategy[int], size: int = size) -> list[int] | None:
            return draw(st.none() | st.lists(values, min_size=size, max_size=size))

        batch = InspectedBatch(
            draw(st.sampled_from((b"string", b"hash", b"", b"\xffnew", None))),
            keys,
            ttl_ms=column(st.sampled_from((-1, -2, 0, 2**63 - 1)) | VALUES),
            memory_bytes=column(VALUES),
            idle_s=column(VALUES),
            frequency=column(st.integers(0, 255)),
            lengths=column(VALUES),
        )
        made.append((batch, STARTED_S + draw(st.integers(-1_000, 1_000))))
    return made


@settings(deadline=None)
@given(
    some_batches(),
    st.sampled_from((SMALL, TINY, None)),
    st.sampled_from(((b":",), (b":", b"-"), (b"{",), (b"}", b":"), (b"4", b":"), ())),
    st.sampled_from((None, 0, 1, 3, 100)),
    st.sampled_from((4096, 10, 1)),
)
def test_any_batches(
    batches: Batches, limits: Limits | None, separators: tuple[bytes, ...], depth: int | None, budget: int
) -> None:
    compare(batches, limits=limits, scope=Scope(separators=separators, depth=depth), budget=budget)


@pytest.mark.slow
def test_a_thousand_types_and_equal_densities() -> None:
    rng = Random(1)
    batches = [
        (InspectedBatch(b"type%d" % rng.randrange(1_000), [b"k:%d" % n], [60_000 * n], [n]), STARTED_S)
        for n in range(3_000)
    ]
    compare(batches, limits=SMALL)


def test_what_is_not_a_batch_is_refused_and_changes_nothing() -> None:
    patterns = CompiledPatternCounts(Separators(), ExpiryScale(int(STARTED_S) // 60))
    keys: list[bytes] = [b"a:1", b"a:2"]
    with pytest.raises(ValueError, match="not as long"):
        patterns.add(InspectedBatch(b"string", keys, memory_bytes=[1]), STARTED_S)
    with pytest.raises(OverflowError):
        patterns.add(InspectedBatch(b"string", keys, memory_bytes=[1, 2**63]), STARTED_S)
    for wrong in ("text", None, 3):
        with pytest.raises(TypeError):
            patterns.add(InspectedBatch(b"string", [b"a", wrong]), STARTED_S)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="separator"):
        CompiledPatternCounts(Separators((b"::",)), ExpiryScale(0))
    root = counted(patterns, 10).root
    assert (root.keys, root.below, root.types) == (0, [], {})


def test_a_batch_that_changes_while_it_is_read_is_refused() -> None:
    keys = [b"user:%d" % n for n in range(1_000)]

    class Sizes(tuple[int, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[int]:
            keys.clear()
            return super().__iter__()

    sizes = Sizes([7] * 1_000)
    with pytest.raises(ValueError, match="changed"):
        CompiledPatternCounts(Separators(), ExpiryScale(0)).add(
            InspectedBatch(b"string", keys, memory_bytes=sizes), STARTED_S
        )
    keys[:] = [b"user:1"] * 1_000
    with pytest.raises(ValueError, match="changed"):
        CompiledSlotCounts().add(keys, sizes)


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 9), st.sampled_from([-1, 0, 90_000])), max_size=40))
def test_slots_are_counted_as_the_pure_counter_counts_them(keys: list[tuple[bytes, int, int]]) -> None:
    compiled, pure = CompiledSlotCounts(), SlotCounts()
    names = [key for key, _, _ in keys]
    for columns in (([size for _, size, _ in keys], [ttl for _, _, ttl in keys]), (None, None)):
        for counts in (compiled, pure):
            counts.add(names, *columns)
    assert compiled.report() == pure.report()
    assert [list(one) for one in compiled.ttl_counts()] == [list(one) for one in pure.ttl_counts()]


def test_what_is_added_while_patterns_are_folded_does_not_change_them() -> None:
    rng = Random(3)
    patterns, same, other = (CompiledPatternCounts(Separators(), ExpiryScale(int(STARTED_S) // 60)) for _ in range(3))
    batches = list(batches_of(names_of(3, 3_000), rng))
    later = list(batches_of(names_of(4, 3_000), rng))
    for batch, asked_at_s in batches:
        patterns.add(batch, asked_at_s)
        same.add(batch, asked_at_s)
    snapshot = finish(patterns.snapshot(50, Slicer()))
    for batch, asked_at_s in [*later, *batches]:
        patterns.add(batch, asked_at_s)
    assert list(told(finish(snapshot.counted()))) == list(lines(same, 50))
    for batch, asked_at_s in [*batches, *later, *batches]:
        other.add(batch, asked_at_s)
    assert list(lines(patterns, 50)) == list(lines(other, 50))


def test_threads_may_add_while_others_fold() -> None:
    patterns, slots = CompiledPatternCounts(Separators(), ExpiryScale(int(STARTED_S) // 60)), CompiledSlotCounts()
    batches = list(batches_of(names_of(5, 4_000), Random(5)))

    def add() -> None:
        for batch, asked_at_s in batches:
            patterns.add(batch, asked_at_s)
            slots.add(batch.keys, batch.memory_bytes)

    def fold() -> None:
        for _ in range(20):
            found = counted(patterns, 100)
            assert found.root.keys == found.root.tally.keys == sum(found.root.types.values())
            slots.report()

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(one) for one in (add, fold, add, fold)]:
            done.result()
    count = 2 * sum(len(batch.keys) for batch, _ in batches)
    assert counted(patterns, 100).root.keys == sum(slots.report().keys) == count


HUNGRY = """
import resource
from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.pattern_tree import Limits
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.keyspace.slices import Slicer, finish
from rtui.keyspace.text.segments import Separators
from rtui.server.engine.counters import CompiledPatternCounts

many = 10**9
patterns = CompiledPatternCounts(Separators(), ExpiryScale(0), None, Limits(*[many] * 7))
letters = bytes.maketrans(b"0123456789", b"ghijklmnop")
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, ((pages * resource.getpagesize()) + (24 << 20),) * 2)
errors = 0
for at in range(400_000):
    name = (b"user:%d:%d" % (at % 1000, at)).translate(letters)
    try:
        patterns.add(InspectedBatch(b"string", [name], [60_000 * at], [at]), 1.0)
    except MemoryError:
        errors += 1
        if errors == 3:
            break
assert errors == 3, "the limit was not reached"
try:
    finish(patterns.snapshot(10, Slicer()))
except MemoryError:
    print("refused")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is read from /proc")
def test_too_little_memory_is_an_error_that_lasts() -> None:
    done = subprocess.run([sys.executable, "-c", HUNGRY], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("refused\n", "", 0)


def test_the_engine_is_chosen_by_the_environment_and_the_separators(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = ExpiryScale(0)
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert engine_name() == "compiled"
    found = new_counters(Separators((b":", b"/")), scale, None)
    assert isinstance(found.patterns, CompiledPatternCounts)
    assert isinstance(found.slots, CompiledSlotCounts)
    assert isinstance(new_counters(Separators((b"::",)), scale, None).patterns, PatternCounts)
    monkeypatch.setenv(ENVIRONMENT, "pure")
    assert engine_name() == "pure"
    assert isinstance(new_counters(Separators(), scale, None).patterns, PatternCounts)


@pytest.mark.parametrize("count", [1, 7, 5_000])
def test_every_name_that_comes_alone(count: int) -> None:
    names = list(islice((name for name in names_of(9, count)), count))
    compare([(InspectedBatch(b"string", [name], [-1], [50]), STARTED_S) for name in names])


def test_extensions_that_are_older_than_their_sources_are_not_used(tmp_path: Path) -> None:
    extensions = [tmp_path / f"{name}.so" for name in ("_core", "_scan")]
    for second, path in enumerate([tmp_path / "_core.pyx", tmp_path / "_tree.pxd", *extensions, tmp_path / "a.py"]):
        path.touch()
        os.utime(path, (second, second))
    assert not is_outdated(extensions, tmp_path)
    os.utime(tmp_path / "_tree.pxd", (9, 9))
    assert is_outdated(extensions, tmp_path)
    os.utime(extensions[1], (10, 10))
    assert not is_outdated(extensions, tmp_path)
