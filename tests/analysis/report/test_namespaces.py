"""What a report says of the namespaces of a keyspace, against what the keys themselves add up to."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import NOTHING_KNOWN, Known, Mark, NamespaceFigures
from rtui.analysis.report.document import Coverage, CoverageKind, Head, Report, Scope, ServerReport
from rtui.analysis.report.namespaces import Fit, ReportedNamespaces
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.table.drawn_rows import add_batch

SPLIT = Separators()
SEGMENT = st.sampled_from([b"a", b"b", b"user", b"1", b"2", b"42", b"", b"{t}", b"deadbeef1", b"x" * 300])
NAMES = st.lists(st.lists(SEGMENT, min_size=1, max_size=4).map(b":".join), min_size=1, max_size=40, unique=True)


def size_of(key: bytes) -> int:
    return 50 + 7 * len(key) + sum(key) % 11


def reported(
    keys: Sequence[bytes],
    kind: CoverageKind = CoverageKind.EXACT,
    *,
    separators: tuple[bytes, ...] = (b":",),
) -> ReportedNamespaces:
    """The report of these keys, of which those with an even size expire."""
    scope = Scope(separators)
    found = Aggregates(Separators(separators), scope=scope, started_at_s=0.0)
    sizes = [size_of(key) for key in keys]
    lives = [90_000 if size % 2 else -1 for size in sizes]
    add_batch(found, InspectedBatch(b"string", keys, lives, sizes), 1.0)
    coverage = Coverage(kind, len(keys), 1.0, len(keys))
    return ReportedNamespaces(Report(Head(1.0, ServerReport("a:1"), scope, coverage), finish(found.summary())))


def below(keys: Sequence[bytes], prefix: bytes) -> list[bytes]:
    return [key for key in keys if key.startswith(prefix)]


def figures_of(found: ReportedNamespaces, prefix: bytes, keys: int, mark: Mark = Mark.EXACT) -> NamespaceFigures:
    path = list(found.separators.segments(prefix))[:-1]
    return found.figures(found.find(path), Known(keys, mark))


def prefixes(keys: Sequence[bytes], separators: Separators = SPLIT) -> set[bytes]:
    found = set()
    for key in keys:
        prefix = b""
        for name, separator in separators.segments(key):
            if separator:
                prefix += name + separator
                found.add(prefix)
    return found


@given(NAMES)
def test_a_figure_without_a_mark_is_the_truth(keys: list[bytes]) -> None:
    found = reported(keys)
    for prefix in prefixes(keys):
        here = below(keys, prefix)
        figures, sizes = figures_of(found, prefix, len(here)), [size_of(key) for key in here]
        memory, no_ttl = figures.memory_bytes, figures.no_ttl
        assert memory is not None
        assert no_ttl is not None
        if memory.mark is Mark.EXACT:
            assert memory.value == sum(sizes)
            assert figures.mean_bytes == Known(sum(sizes) / len(sizes))
            assert no_ttl == Known(sum(size % 2 == 0 for size in sizes) / len(sizes))
            assert figures.pattern is None
        else:
            assert memory.mark is Mark.ABOUT
            assert figures.pattern is not None
        assert not figures.has_changed


@given(NAMES)
def test_estimates_of_the_namespaces_of_one_pattern_add_up_to_the_pattern(keys: list[bytes]) -> None:
    found = reported(keys)
    total = 0.0
    for prefix in {key[: key.index(b":") + 1] for key in keys if b":" in key}:
        memory = figures_of(found, prefix, len(below(keys, prefix))).memory_bytes
        total += 0 if memory is None else memory.value
    assert abs(total - sum(size_of(key) for key in keys if b":" in key)) < 1


MERGED = [b"user:n%s:x" % bytes([97 + n // 26, 97 + n % 26]) for n in range(150)] + [
    b"user:bot:%d" % n for n in range(300)
]


def test_a_name_that_others_were_merged_beside_is_a_lower_bound_unless_all_its_keys_were_counted() -> None:
    found = reported(MERGED)
    place = found.find(list(SPLIT.segments(b"user:bot:"))[:-1])
    assert place is not None
    assert place.fit is Fit.PART
    whole, more = figures_of(found, b"user:bot:", 300), figures_of(found, b"user:bot:", 310)
    assert whole.memory_bytes is not None
    assert more.memory_bytes is not None
    assert (whole.memory_bytes.mark, more.memory_bytes.mark) == (Mark.EXACT, Mark.AT_LEAST)
    assert whole.memory_bytes.value == more.memory_bytes.value


def test_a_merged_name_is_estimated_by_the_mean_of_those_it_was_merged_with() -> None:
    found = reported(MERGED)
    figures = figures_of(found, b"user:nab:", 1)
    assert figures.memory_bytes is not None
    assert figures.memory_bytes.mark is Mark.ABOUT
    assert figures.pattern == b"user:<*>:"


def test_what_came_after_the_report_has_no_figures() -> None:
    found = reported([b"a:1", b"a:2", b"b:c:1"])
    assert figures_of(found, b"new:", 3) == NOTHING_KNOWN
    assert figures_of(found, b"b:d:", 3) == NOTHING_KNOWN
    assert figures_of(found, b"b:c:new:", 3) == NOTHING_KNOWN


def test_a_namespace_with_other_keys_than_then_says_so() -> None:
    found = reported([b"a:1", b"a:2", b"b:c:1"])
    assert figures_of(found, b"a:", 3).has_changed
    assert figures_of(found, b"a:", 1).has_changed
    assert not figures_of(found, b"a:", 2).has_changed
    assert not figures_of(found, b"a:", 1, Mark.AT_LEAST).has_changed


def test_a_pass_that_was_broken_off_has_lower_bounds() -> None:
    figures = figures_of(reported([b"a:1", b"a:2"], CoverageKind.PARTIAL), b"a:", 2)
    assert figures.memory_bytes is not None
    assert figures.memory_bytes.mark is Mark.AT_LEAST
    assert figures.no_ttl is not None
    assert figures.no_ttl.mark is Mark.ABOUT


def test_figures_of_a_sample_are_estimates() -> None:
    found = reported([b"a:1", b"a:2"], CoverageKind.ESTIMATE)
    node = found.report.summary.root.children[0]
    stats = structs.replace(node.stats, memory_bytes=Estimate(100, 150, 300), no_ttl_share=Estimate(0.1, 0.5, 0.9))
    place = found.find(list(SPLIT.segments(b"a:"))[:-1])
    assert place is not None
    sampled = type(place)(structs.replace(node, stats=stats), place.fit, place.path)
    figures = found.figures(sampled, Known(4, Mark.ABOUT))
    assert figures.memory_bytes == Known(150, Mark.ABOUT)
    assert figures.no_ttl == Known(0.5, Mark.ABOUT)


def test_bytes_that_were_denied_are_unknown_not_nothing() -> None:
    scope = Scope()
    found = Aggregates(SPLIT, scope=scope, started_at_s=0.0)
    add_batch(found, InspectedBatch(b"string", [b"a:1", b"a:2"], [-1, -1]), 1.0)
    coverage = Coverage(CoverageKind.EXACT, 2, 1.0, 2)
    report = Report(Head(1.0, ServerReport("a:1"), scope, coverage), finish(found.summary()))
    figures = figures_of(ReportedNamespaces(report), b"a:", 2)
    assert figures.memory_bytes is figures.share is figures.mean_bytes is figures.idle is None
    assert figures.no_ttl == Known(1.0)


def test_the_biggest_keys_of_a_namespace_with_the_size_from_which_none_is_missing() -> None:
    keys = [b"a:%d" % n for n in range(300)] + [b"b:" + b"x" * 40]
    found = reported(keys)
    records, least = found.biggest(b"b:", 5)
    assert [one.key for one in records] == [keys[-1]]
    every = sorted(map(size_of, keys), reverse=True)
    assert least == every[99]
    assert found.biggest(b"c:", 5) == ([], least)
    assert reported(keys[:50]).biggest(b"a:", 5)[1] == 0
    assert reported(keys, CoverageKind.PARTIAL).biggest(b"b:", 5)[1] is None


@given(NAMES)
def test_the_patterns_below_a_namespace_hold_its_keys(keys: list[bytes]) -> None:
    found = reported(keys)
    patterns, more = found.patterns(found.root, 1_000)
    assert not more
    own = [
        plain(nodes[-1].stats.keys) - sum(plain(child.stats.keys) for child in nodes[-1].children) for nodes in patterns
    ]
    assert sum(own) == len(keys)
    few, left_out = found.patterns(found.root, 2)
    assert few == patterns[:2]
    assert left_out == max(0, len(patterns) - 2)
