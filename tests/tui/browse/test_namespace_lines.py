from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.slices import finish
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import HOSTILE, SafeText
from rtui.tui.browse.namespace_lines import ChildCounts, count_children, inside_rows, namespace_lines
from rtui.tui.browse.tree_figures import TreeFigures
from rtui.tui.browse.tree_lines import Totals
from rtui.tui.kit.styled_text import Line, line_width
from tests.tui.analysed_session import report_of
from tests.tui.fixed_session import keys

SOME_KEYS = [name for name in keys() if name not in (b"gone", b"huge")]
REPORT = report_of(SOME_KEYS)
PARTIAL = report_of(SOME_KEYS, CoverageKind.PARTIAL)


def store_of(names: list[bytes]) -> NamespaceStore:
    store = NamespaceStore()
    store.add(names)
    store.complete = True
    return store


def said(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in line) for line in lines)


def inside_lines(node: Namespace, inside: ChildCounts | None, totals: Totals, width: int) -> list[Line]:
    return [row.line for row in inside_rows(node, inside, None, totals, width)]


def shown(node: Namespace, figures: TreeFigures | None, width: int = 80, note: str = "analysed 12m ago") -> str:
    totals = Totals(complete=True, figures=figures, analysis_note=SafeText(note))
    inside = finish(count_children(node, NamespaceStore().separators))
    return said([*namespace_lines(node, totals, width), *inside_lines(node, inside, totals, width)])


STORE = store_of(SOME_KEYS)
NODES = [STORE.root.child(label) for label in STORE.root.labels]


@given(st.sampled_from(STORE.root.labels), st.integers(40, 240), st.sampled_from(["whole", "part", ""]), st.booleans())
def test_lines_fit_and_are_safe(label: bytes, width: int, report: str, is_current: bool) -> None:
    node = STORE.root.child(label)
    figures = TreeFigures(REPORT if report == "whole" else PARTIAL, is_current=is_current) if report else None
    totals = Totals(complete=True, figures=figures)
    inside = finish(count_children(node, STORE.separators))
    lines = [*namespace_lines(node, totals, width), *inside_lines(node, inside, totals, width)]
    assert max(map(line_width, lines)) <= width
    assert not HOSTILE.search(said(lines).replace("\n", ""))


def test_the_head_has_as_many_lines_with_figures_as_without() -> None:
    for figures in (None, TreeFigures(REPORT)):
        assert len(namespace_lines(NODES[0], Totals(complete=True, figures=figures), 60)) == 6


def test_without_an_analysis_it_says_how_to_get_one() -> None:
    assert "press a" in shown(NODES[0], None)
    assert "press a" not in shown(NODES[0], TreeFigures(REPORT))


@pytest.mark.parametrize(("complete", "mark"), [(True, ""), (False, "≥ ")])
def test_what_was_not_seen_yet_is_not_denied(complete: bool, mark: str) -> None:
    node = STORE.root.child(b"shop:")
    inside = finish(count_children(node, STORE.separators))
    text = said(inside_lines(node, inside, Totals(complete=complete), 80))
    assert inside is not None
    assert not inside.keys
    assert f" {mark}{inside.namespaces} namespaces and {mark}0 keys directly below" in text


def test_biggest_keys_and_patterns_stand_above_what_is_directly_below() -> None:
    text = shown(STORE.root.child(b"shop:"), TreeFigures(REPORT))
    assert text.index("Biggest keys") < text.index("Patterns") < text.index("directly below")
    assert "cache:product:107  " in text
    assert "user:{id}:profile" in text
    assert "Exact, analysed 12m ago." in text


def test_where_no_big_key_is_it_says_how_big_its_keys_can_be() -> None:
    text = shown(STORE.root.child(b"lock:"), TreeFigures(REPORT))
    assert "None of the biggest is here: each of its keys has 272 B at most." in text
    assert "at most" not in shown(STORE.root.child(b"lock:"), TreeFigures(PARTIAL))
    assert "None of the biggest keys that were found is here." in shown(
        STORE.root.child(b"lock:"), TreeFigures(PARTIAL)
    )


def test_one_of_a_pattern_says_whose_mean_it_is() -> None:
    node = STORE.root.child(b"{user:7}:")
    assert "≈ by the mean of {user:{id}}:, analysed 12m ago." in shown(node, TreeFigures(REPORT))


@pytest.mark.parametrize("more", [b"jobs:more", b"new:1"])
def test_what_changed_since_is_said(more: bytes) -> None:
    store = store_of([*SOME_KEYS, more])
    node = store.root.child(more[: more.index(b":") + 1])
    text = shown(node, TreeFigures(REPORT))
    assert ("has changed since" in text) == (more == b"jobs:more")
    assert ("has no figures of it" in text) == (more == b"new:1")


def test_part_of_the_names_does_not_ask_for_an_analysis() -> None:
    totals = replace(Totals(complete=True), is_part=True)
    assert "press a" not in said(inside_lines(NODES[0], None, totals, 80))
