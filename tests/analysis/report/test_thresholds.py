"""Thresholds: what can be written, what it means, and that what is not known neither passes nor fails."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rtui.analysis.report.comparison import Comparison, compare
from rtui.analysis.report.document import CoverageKind, Node, NodeKind, Report, Scope
from rtui.analysis.report.thresholds import (
    DEFAULT_PRESET,
    KIB,
    MIB,
    FailOn,
    FailOnError,
    Outcome,
    ThresholdMeasure,
    ThresholdUnit,
    judge,
    parse_fail_on,
    preset,
    preset_names,
)
from rtui.keyspace.text.display import HOSTILE
from tests.analysis.report.test_comparison import report
from tests.made_report import denied_report, estimate_report, made_report, node, partial_report

REACHED, NOT_REACHED, UNKNOWN = Outcome.REACHED, Outcome.NOT_REACHED, Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory>+20%", FailOn(None, ThresholdMeasure.MEMORY, ">", Fraction(20), ThresholdUnit.PERCENT)),
        ("shop:session keys>+10000", FailOn("shop:session", ThresholdMeasure.KEYS, ">", Fraction(10_000))),
        ("no-ttl>+5pt", FailOn(None, ThresholdMeasure.NO_TTL, ">", Fraction(5), ThresholdUnit.POINTS)),
        (
            "no-ttl>=50%",
            FailOn(None, ThresholdMeasure.NO_TTL, ">=", Fraction(50), ThresholdUnit.PERCENT, is_change=False),
        ),
        ("keys<-50%", FailOn(None, ThresholdMeasure.KEYS, "<", Fraction(-50), ThresholdUnit.PERCENT)),
        ("new-namespaces>0", FailOn(None, ThresholdMeasure.NEW, ">", Fraction(0), is_change=False)),
        ("a b  gone-namespaces <= 2", FailOn("a b", ThresholdMeasure.GONE, "<=", Fraction(2), is_change=False)),
        ("memory > 1.5GiB", FailOn(None, ThresholdMeasure.MEMORY, ">", Fraction(3 << 29), is_change=False)),
        ("memory>0", FailOn(None, ThresholdMeasure.MEMORY, ">", Fraction(0), is_change=False)),
        ("memory>+64K", FailOn(None, ThresholdMeasure.MEMORY, ">", Fraction(65_536))),
        ("keys>2k", FailOn(None, ThresholdMeasure.KEYS, ">", Fraction(2000), is_change=False)),
        ("keys memory>+0.5%", FailOn("keys", ThresholdMeasure.MEMORY, ">", Fraction(1, 2), ThresholdUnit.PERCENT)),
    ],
)
def test_what_can_be_written(text: str, expected: FailOn) -> None:
    assert parse_fail_on(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write it like"), ("memory", "write it like"), ("memory=5", "write it like"),
        ("memory>+20%%", "write it like"), ("memory>20%", "needs a sign"), ("memory>20", "memory needs a unit"),
        ("memory>20 ", r"'memory>\+20%' with a sign"), ("memory<-0.5", "'memory<-0.5%' with a sign"),
        ("keys>+5pt", "is no share"), ("no-ttl>+5%", "percentage points"), ("no-ttl>+5", "percentage points"),
        ("no-ttl>5", "is a share"), ("new-namespaces>+1", "without sign"), ("new-namespaces>1%", "without sign"),
        ("keys>5KiB", "no unit"), ("no-ttl>5k", "no unit"), ("kees>5", "is not one of"),
        ("ke\x1bys>5", "write it like"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(text: str, said: str) -> None:
    with pytest.raises(FailOnError, match=said) as refused:
        parse_fail_on(text)
    assert not HOSTILE.search(str(refused.value))


numbers = st.integers(0, 10**15).map(lambda number: Fraction(number, 1000))


@st.composite
def thresholds(draw: st.DrawFn) -> FailOn:
    name = draw(st.none() | st.text(min_size=1).filter(lambda text: text == text.strip() != ""))
    measure, unit, is_change = draw(
        st.sampled_from(
            [
                (ThresholdMeasure.KEYS, ThresholdUnit.PLAIN, True),
                (ThresholdMeasure.KEYS, ThresholdUnit.PLAIN, False),
                (ThresholdMeasure.MEMORY, ThresholdUnit.PERCENT, True),
                (ThresholdMeasure.NO_TTL, ThresholdUnit.POINTS, True),
                (ThresholdMeasure.NO_TTL, ThresholdUnit.PERCENT, False),
                (ThresholdMeasure.NEW, ThresholdUnit.PLAIN, False),
            ]
        )
    )
    number = draw(numbers)
    if is_change and draw(st.booleans()):
        number = -number
    return FailOn(name, measure, draw(st.sampled_from([">", ">=", "<", "<="])), number, unit, is_change)


def spelled(threshold: FailOn) -> str:
    where = "" if threshold.namespace is None else f"{threshold.namespace} "
    sign = ("-" if threshold.number < 0 else "+") if threshold.is_change else ""
    digits = f"{int(abs(threshold.number) * 1000):04d}"
    return f"{where}{threshold.measure}{threshold.relation}{sign}{digits[:-3]}.{digits[-3:]}{threshold.unit}"


@given(thresholds())
def test_what_is_written_reads_as_the_same(threshold: FailOn) -> None:
    assert parse_fail_on(spelled(threshold)) == threshold


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_fail_on(text)
    except FailOnError as refused:
        assert str(refused)


def outcome(text: str, diff: Comparison, depth: int | None = None) -> Outcome:
    judged = judge(parse_fail_on(text), diff, depth)
    assert judged.why
    assert not HOSTILE.search(judged.why + judged.expression)
    return judged.outcome


BEFORE = report(node(b"a", (100, 1000, 25)), node(b"gone", (1, 0, 0)))
AFTER = report(node(b"a", (120, 500, 36)), node(b"new", (1, 0, 0), node(b"inner", (1, 0, 0))), node(b"x", (0, 0, 0)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a keys>+20%", NOT_REACHED), ("a keys>=+20%", REACHED), ("a keys>+19.9%", REACHED), ("a keys>+19", REACHED),
        ("a keys>+20", NOT_REACHED), ("a keys<+20", NOT_REACHED), ("a keys>119", REACHED), ("a memory<-49%", REACHED),
        ("a memory<=-50%", REACHED), ("a memory<-50%", NOT_REACHED), ("a memory<-499B", REACHED),
        ("a memory>1K", NOT_REACHED), ("a no-ttl>=+5pt", REACHED), ("a no-ttl>+5pt", NOT_REACHED),
        ("a no-ttl>29%", REACHED), ("a no-ttl>30%", NOT_REACHED), ("new keys>+1000000%", REACHED),
        ("new keys>+0", REACHED), ("gone keys<=-100%", REACHED), ("gone memory>+0%", NOT_REACHED),
        ("new-namespaces>0", REACHED), ("new-namespaces>2", NOT_REACHED), ("gone-namespaces>=1", REACHED),
        ("a new-namespaces>0", NOT_REACHED), ("memory<-1%", REACHED),
    ],
)  # fmt: skip
def test_exact_reports_are_judged_exactly(text: str, expected: Outcome) -> None:
    assert outcome(text, compare(BEFORE, AFTER)) is expected


def test_a_name_that_is_nowhere_does_not_pass() -> None:
    judged = judge(parse_fail_on("shop:sesion keys>+1"), compare(made_report(), made_report()))
    assert judged.outcome is UNKNOWN
    assert "neither report" in judged.why


@pytest.mark.parametrize("pair", [(made_report(), denied_report()), (denied_report(), made_report())])
def test_what_was_denied_does_not_pass(pair: tuple[Report, Report]) -> None:
    diff = compare(*pair)
    judged = judge(parse_fail_on("memory>+1000%"), diff)
    assert judged.outcome is UNKNOWN
    assert "denied: NOPERM" in judged.why
    assert outcome("keys>+1", diff) is NOT_REACHED


def test_the_share_of_a_namespace_that_was_not_there_has_no_change() -> None:
    diff = compare(BEFORE, AFTER)
    judged = judge(parse_fail_on("new no-ttl>+5pt"), diff)
    assert (judged.outcome, judged.why) == (UNKNOWN, "the first report has no such namespace")


def test_an_estimate_is_judged_by_its_interval() -> None:
    diff = compare(made_report(), estimate_report())
    assert outcome("memory>+20%", diff) is NOT_REACHED
    assert outcome("memory>+1%", diff) is UNKNOWN
    assert outcome("memory>-20%", diff) is REACHED
    assert outcome("new-namespaces>0", diff) is UNKNOWN
    assert outcome("gone-namespaces>0", diff) is NOT_REACHED


def test_a_partial_report_is_judged_by_what_it_saw() -> None:
    assert outcome("keys>+20%", compare(made_report(), partial_report())) is UNKNOWN
    assert outcome("keys>+20%", compare(partial_report(), made_report())) is NOT_REACHED
    assert outcome("keys>900000", compare(made_report(), partial_report())) is REACHED
    assert outcome("no-ttl>50%", compare(made_report(), partial_report())) is UNKNOWN


def test_namespaces_beyond_the_budget_may_be_new() -> None:
    other = Node(b"", b"", NodeKind.OTHER, node(b"x", (50, 500, 0)).stats)
    assert outcome("new-namespaces>0", compare(report(node(b"a", (1, 1, 0))), report(other))) is UNKNOWN


def test_other_separators_leave_nothing_to_count() -> None:
    made = made_report()
    slashed = structs.replace(made, head=structs.replace(made.head, scope=Scope(separators=(b"/",))))
    assert outcome("new-namespaces>0", compare(made, slashed)) is UNKNOWN
    assert outcome("keys>+0", compare(made, slashed)) is NOT_REACHED


def test_new_namespaces_count_down_to_a_depth() -> None:
    def two_levels(*names: bytes) -> Report:
        below = [node(name, (1, 1, 0)) for name in names]
        return report(node(b"top", (len(below), len(below), 0), *below))

    diff = compare(two_levels(b"a"), two_levels(b"a", b"b", b"c"))
    assert outcome("new-namespaces>1", diff) is REACHED
    assert outcome("new-namespaces>0", diff, depth=1) is NOT_REACHED
    assert outcome("top new-namespaces>=2", diff) is REACHED


@given(thresholds().filter(lambda one: one.namespace is None), st.integers(0, 9), st.integers(0, 9))
def test_exact_reports_are_always_judged_and_never_both_ways(threshold: FailOn, first: int, second: int) -> None:
    diff = compare(report(node(b"a", (first, first, 0))), report(node(b"a", (second, second, 0))))
    assert diff.after.coverage.kind is CoverageKind.EXACT
    opposite = {">": "<=", "<=": ">", "<": ">=", ">=": "<"}[threshold.relation]
    outcomes = [judge(one, diff).outcome for one in (threshold, replace(threshold, relation=opposite))]
    assert sorted(outcomes) == [NOT_REACHED, REACHED]


@pytest.mark.parametrize("text", ["memory>4GB", "memory > +1.50 GiB", "shop: keys>=+20k", "no-ttl>5%"])
def test_a_threshold_is_repeated_as_it_was_written(text: str) -> None:
    assert parse_fail_on(f" {text} ").written == text


def test_the_default_comes_first_and_names_are_distinct() -> None:
    assert preset_names()[0] == DEFAULT_PRESET
    assert len(set(preset_names())) == len(preset_names())


@pytest.mark.parametrize("name", preset_names())
def test_each_says_who_set_it_and_what(name: str) -> None:
    one = preset(name)
    assert one.name == name
    assert one.title
    assert one.source
    assert one.string_bytes > 0


def test_an_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(KeyError, match="alibaba, alibaba-realtime, tencent"):
        preset("none")


@pytest.mark.parametrize(
    ("name", "kind", "memory_bytes", "length", "big"),
    [
        ("rtui", b"string", 10, 128 * KIB, False),
        ("rtui", b"string", 10, 128 * KIB + 1, True),
        ("rtui", b"hash", MIB, 10_000, False),
        ("rtui", b"hash", MIB + 1, 1, True),
        ("rtui", b"hash", 1, 10_001, True),
        ("rtui", b"hash", None, None, False),
        ("huawei", b"string", None, 10 * KIB + 1, True),
        ("huawei", b"string", 10 * KIB + 1, None, True),
        ("huawei", b"string", 10 * KIB + 50, 10 * KIB, False),
        ("huawei", b"zset", 50 * MIB + 1, None, True),
        ("huawei", b"zset", None, 5_001, True),
        ("redisinsight", b"hash", 10**12, 5_000, False),
        ("redisinsight", b"hash", 0, 5_001, True),
        ("redisinsight", b"set", 0, 1_001, True),
        ("redisinsight", b"zset", 10**12, 10**9, False),
        ("alibaba-realtime", b"made-up-type", None, 2_001, True),
        ("tencent", None, 1_000 * MIB + 1, None, True),
        ("tencent", None, None, 10**9, False),
    ],
)
def test_what_is_big(name: str, kind: bytes | None, memory_bytes: int | None, length: int | None, big: bool) -> None:
    assert preset(name).is_big(kind, memory_bytes, length) is big
