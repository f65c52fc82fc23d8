"""The engine of a scan without a socket: the same results as in Python, whatever a server answers."""

from __future__ import annotations

from array import array
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from rtui.analysis.columns import ALL_COLUMNS, EVERYTHING, SAMPLED_COLUMNS, Asked, Columns
from rtui.keyspace.slices import finish
from rtui.keyspace.slots import SLOTS, key_slot
from rtui.server.engine._slot_filter import SlotFilter
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.scan.cursor import POSITION_END, Dialect, equal_ranges
from rtui.server.scan.ranges import CursorSpan, Ranges
from rtui.server.scan.slot_ledger import ACCEPT, ACCEPT_NEW, DROP, fingerprint
from rtui.server.wire.identity import NoTouch, ServerIdentity
from tests.conftest import examples
from tests.server.engine.model_server import (
    FACTS,
    REGISTRY,
    STARTED_S,
    Answers,
    CompiledRun,
    ModelServer,
    Setting,
    ask,
    findings_of,
    identity,
    inspect_in_python,
)
from tests.server.scan.table import Table

SERVERS = (
    identity("valkey", (9, 1, 0)),
    identity("redis", (8, 10, 0)),
    identity("redis", (7, 0, 15)),
    identity("redis", (6, 2, 0), "allkeys-lfu"),
    identity("valkey", (8, 1, 0), "volatile-lfu"),
)

SPECIAL_NAMES = (b"", b"\r\n", b"$3\r\n", b"*2\r\n", b"none", b"{}", b"{", b":::", b"x" * 300, bytes(range(256)))

COLUMNS = (
    EVERYTHING,
    replace(SAMPLED_COLUMNS, encoding=Asked.NONE),
    replace(ALL_COLUMNS, encoding=Asked.NONE),
    Columns(Asked.NONE, Asked.ALL, Asked.NONE, Asked.SAMPLED, Asked.NONE),
    Columns(Asked.ALL, Asked.NONE, Asked.SAMPLED, Asked.NONE, Asked.ALL),
)
FAULTS = ("gone", "odd", "denied keys", "large")


def name(rng: Random) -> bytes:
    """A name of a key, some of them often."""
    match rng.randrange(5):
        case 0:
            return rng.choice(SPECIAL_NAMES)
        case 1:
            return b"{tag%d}:%d" % (rng.randrange(3), rng.randrange(10))
        case 2:
            return rng.randbytes(rng.randrange(12))
    return b"user:%d:cart" % rng.randrange(300)


def case_of(rng: Random) -> tuple[Setting, list[list[bytes]], Answers]:
    """An inspection, the pages of SCAN, and what is said of the keys."""
    columns = rng.choice(COLUMNS)
    setting = Setting(
        columns=columns,
        identity=rng.choice(SERVERS),
        no_touch=rng.choice(list(NoTouch)),
        first_sampled=rng.randrange(8) if columns.is_sampling else 0,
        top=rng.choice((1, 3, 100))
        if columns.length is not Asked.SAMPLED
        else 100,  # with fewer it is a matter of order
        count=rng.choice((1, 7, 100)),
        depth=rng.randint(1, 5),
    )
    pages = [[name(rng) for _ in range(rng.randrange(30))] for _ in range(rng.randint(1, 8))]
    if columns.is_sampling:  # whether a key that comes twice is sampled is a matter of order
        pages = [[one + b":%d.%d" % (at, index) for index, one in enumerate(page)] for at, page in enumerate(pages)]
    faults = frozenset(fault for fault in FAULTS if rng.random() < 0.4)
    answers = Answers(rng.randrange(2**32), faults, rng.choice((2, 3)))
    return replace(setting, registry=rng.choice((None, REGISTRY, REGISTRY))), pages, answers


def told(pipeline: InspectionPipeline) -> dict[str, Any]:
    """What came of an inspection apart from the summary."""
    findings = findings_of(pipeline)
    return {
        "keys": findings.keys,
        "vanished": findings.vanished_keys,
        "names only": findings.unread_keys,
        "own reads": pipeline.own_read_keys,
        "waiting": pipeline.waiting,
    }


def delivered(run: CompiledRun) -> int:
    """How many keys the engine has delivered, of which some may be gone."""
    return run.engine.progress()[4]


def compare(pure: InspectionPipeline, compiled: InspectionPipeline) -> None:
    """Fail unless both have found the same."""
    assert told(pure) == told(compiled)
    assert findings_of(pure).rows() == findings_of(compiled).rows()
    assert finish(findings_of(pure).summary()) == finish(findings_of(compiled).summary())


SEEDS = st.integers(0, 2**64)

any_seed = settings(max_examples=examples(60), derandomize=True, phases=[Phase.explicit, Phase.generate])


@any_seed
@given(SEEDS)
@example(52759941)  # a key of unknown length beside one of which the memory is said to have 63 bits
def test_the_same_results_as_in_python_where_a_server_is_busy_and_connections_end(seed: int) -> None:
    rng = Random(seed)
    setting, pages, answers = case_of(rng)
    pure = inspect_in_python(setting, ModelServer(pages, answers))
    busy = frozenset(rng.sample(range(300), rng.choice((0, rng.randrange(20)))))
    run = CompiledRun(setting, ModelServer(pages, answers, busy), rng)
    compare(pure, run.run(longest_piece=rng.choice((1, 20, 200, 10**6)), losses=rng.choice((0, rng.randrange(5)))))


@any_seed
@given(SEEDS)
def test_keys_that_another_node_has_are_told_once_and_not_counted(seed: int) -> None:
    rng = Random(seed)
    setting, pages, answers = case_of(rng)
    answers = replace(answers, faults=answers.faults | {"elsewhere"})
    busy = frozenset(rng.sample(range(300), rng.randrange(10)))
    of_pure: list[bytes] = []
    of_compiled: list[bytes] = []
    pure = inspect_in_python(setting, ModelServer(pages, answers), elsewhere=of_pure)
    run = CompiledRun(setting, ModelServer(pages, answers, busy), rng, elsewhere=of_compiled)
    compare(pure, run.run(longest_piece=rng.choice((20, 200, 10**6)), losses=rng.randrange(5)))
    assert sorted(of_compiled) == sorted(of_pure)


@any_seed
@given(SEEDS)
def test_keys_are_left_out_by_slot_as_in_python(seed: int) -> None:
    rng = Random(seed)
    setting, pages, answers = case_of(rng)
    names = sorted({one for page in pages for one in page})
    known = array("Q", map(fingerprint, rng.sample(names, rng.randrange(len(names) + 1))))
    most = rng.choice((0, 30, 10_000))
    filters = SlotFilter(most), SlotFilter(most)
    of_slots = {slot: rng.choice((DROP, ACCEPT, ACCEPT_NEW)) for slot in {key_slot(one) for one in names}}
    for one in filters:
        for slot, what in of_slots.items():
            one.set_slots([slot], what)
        one.know(known)
    in_python, in_engine = filters
    pure = inspect_in_python(setting, ModelServer(pages, answers), in_python)
    run = CompiledRun(setting, ModelServer(pages, answers), rng, key_filter=in_engine)
    compare(pure, run.run(longest_piece=rng.choice((20, 200, 10**6)), losses=rng.randrange(5)))
    assert in_engine.unknown(range(SLOTS)) == in_python.unknown(range(SLOTS))
    assert sorted(in_engine.take(range(SLOTS))) == sorted(in_python.take(range(SLOTS)))


def test_other_ranges_while_the_engine_lives() -> None:
    """A second pass delivers what the first has not, once nothing is under way any more."""
    names = [b"user:%d" % number for number in range(400)]
    server, key_filter = ModelServer([names[:100], names[100:150]], Answers(7)), SlotFilter(1_000)
    key_filter.set_slots(range(SLOTS), ACCEPT)
    run = CompiledRun(Setting(), server, Random(7), key_filter=key_filter)
    run.queries.prepare()
    run.engine.set_pace(count=10, portion=10, most_under_way=100, width=1, key_gap_us=0, idle_us=0)
    assert run.engine.next_write()
    with pytest.raises(RuntimeError):
        run.engine.use_ranges(Ranges(Dialect.OPAQUE))
    run.engine.drop()
    run.run()
    assert delivered(run) == 150
    key_filter.set_slots(range(SLOTS), ACCEPT_NEW)
    key_filter.know(key_filter.take(range(SLOTS)))
    server.pages = [names[50:300], names[300:], names[:200]]
    run.ranges = Ranges(Dialect.OPAQUE)
    run.engine.use_ranges(run.ranges)
    run.run(longest_piece=5_000, losses=3)
    assert delivered(run) == 400
    assert run.ranges.is_done


def test_keys_that_wait_are_taken_with_those_that_a_lost_write_was_about() -> None:
    names = [b"user:%d" % number for number in range(60)]
    run = CompiledRun(Setting(count=20), ModelServer([names], Answers(7)), Random(7))
    run.queries.prepare()
    run.engine.set_pace(count=20, portion=20, most_under_way=40, width=1, key_gap_us=0, idle_us=0)
    run.engine.feed(ask(run.server, run.engine.next_write())[0])
    assert run.engine.waiting == 60
    assert run.engine.next_write()
    assert run.engine.waiting == 60
    with pytest.raises(RuntimeError):
        run.engine.take_waiting()
    run.engine.drop()
    assert sorted(run.engine.take_waiting()) == sorted(names)
    assert not run.engine.waiting


@any_seed
@given(SEEDS)
def test_commands_that_are_denied_on_the_way(seed: int) -> None:
    rng = Random(seed)
    setting, pages, answers = case_of(rng)
    denied = rng.sample(("TYPE", "PTTL", "OBJECT IDLETIME", "OBJECT FREQ", "MEMORY USAGE", "HLEN", "LLEN", "STRLEN"), 3)
    answers = replace(answers, faults=answers.faults - {"odd"} | set(denied))
    setting = replace(setting, columns=replace(setting.columns, length=rng.choice((Asked.ALL, Asked.NONE))))
    pure = inspect_in_python(setting, ModelServer(pages, answers))
    compiled = CompiledRun(setting, ModelServer(pages, answers), rng).run(longest_piece=100)
    assert told(pure) == told(compiled)
    verdicts = {command: compiled.plan.capabilities.allows(command) for command in denied}
    assert verdicts == {command: pure.plan.capabilities.allows(command) for command in denied}


@pytest.mark.parametrize("identity", SERVERS, ids=lambda identity: identity.full_name)
def test_what_may_be_asked_again_is_asked_of_keys_that_wait(identity: ServerIdentity) -> None:
    """The connection is lost after the first stage, and comes back with more rights; streams may have to be timed."""
    columns = replace(EVERYTHING, encoding=Asked.NONE)
    setting, answers = Setting(columns=columns, identity=identity, top=100, count=50), Answers(11)
    pages = [[b"key:%d" % (100 * at + number) for number in range(40)] for at in range(3)]
    run = CompiledRun(replace(setting, denied=("MEMORY USAGE",)), model := ModelServer(pages, answers), Random(1))
    run.queries.prepare()
    run.engine.set_pace(count=50, portion=50, most_under_way=10**6, width=8, key_gap_us=0, idle_us=0)
    write = run.engine.next_write()
    while not model.asked["STRLEN"]:
        replies, _ = ask(model, write)
        assert run.engine.feed(replies, at_ms=int(STARTED_S * 1000)) == 0
        write = run.engine.next_write()
        ask(model, write)
    assert not model.asked["MEMORY USAGE"]
    run.engine.drop()
    assert run.engine.waiting > 40
    run.pipeline.plan.capabilities.forget()
    compare(inspect_in_python(setting, ModelServer(pages, answers)), run.run())
    assert findings_of(run.pipeline).keys == 120
    assert model.asked["MEMORY USAGE"] > 50


@pytest.mark.parametrize("sampling", [True, False])
def test_keys_of_which_nothing_may_be_asked_are_counted(sampling: bool) -> None:
    columns = SAMPLED_COLUMNS if sampling else EVERYTHING
    setting = Setting(columns=columns, denied=FACTS, no_touch=NoTouch.DENIED)
    pages = [[b"key:%d" % (100 * at + number) for number in range(25)] for at in range(5)]
    run = CompiledRun(setting, server := ModelServer(pages, Answers(1)), Random(1))
    compare(inspect_in_python(setting, ModelServer(pages, Answers(1))), run.run())
    assert findings_of(run.pipeline).keys == 125
    assert set(server.asked) == {"SCAN"}


def test_names_that_are_too_long_are_not_asked_about() -> None:
    setting = Setting(columns=EVERYTHING)
    pages = [[b"a", b"b" * 65_536, b"c" * 65_537], [b"d" * 100_000], [b"e" * 70_000, b"f"], [b"g" * 60_000] * 5]
    run = CompiledRun(setting, ModelServer(pages, Answers(2)), Random(2))
    compare(inspect_in_python(setting, ModelServer(pages, Answers(2))), run.run(longest_piece=30_000))
    assert findings_of(run.pipeline).unread_keys == 3


def test_ranges_that_are_scanned_side_by_side() -> None:
    rng = Random(3)
    names = [b"user:%d" % number for number in range(2_000)]
    table = Table({one: rng.randrange(POSITION_END) for one in names}, bits=10)
    server = ModelServer([], Answers(3, frozenset({"gone"})), scan=table.scan)
    spans = [CursorSpan(start, end) for start, end in equal_ranges(8)]
    run = CompiledRun(Setting(), server, rng, Ranges(Dialect.STANDALONE, spans))
    compare(inspect_in_python(Setting(), ModelServer([names], server.answers)), run.run(longest_piece=5_000, losses=5))
    assert run.losses
    assert run.ranges.is_done
    assert not run.ranges.repeats_possible


def test_a_connection_may_be_lost_at_any_byte() -> None:
    setting = Setting(columns=EVERYTHING, count=3, depth=2)
    pages, answers = [[b"a", b"b:1", b"{c}:1"], [b"b:2", b"b:3"]], Answers(5, frozenset({"gone"}), protocol=3)
    pure = inspect_in_python(setting, ModelServer(pages, answers))
    run = CompiledRun(setting, ModelServer(pages, answers), Random(0))
    compare(pure, run.run())
    size = run.received
    assert size > 300
    for lost_after in range(1, size):
        run = CompiledRun(setting, ModelServer(pages, answers), Random(0))
        assert told(run.run(longest_piece=1, lose_after=lost_after)) == told(pure)
        assert run.losses == 1
        if lost_after % 10 == 0:
            assert finish(findings_of(run.pipeline).summary()).root.stats.keys == told(pure)["keys"]
