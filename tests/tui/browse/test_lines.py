from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_TTL, Frequency, KeyFacts, LfuSettings, Reason, Unknown, gone_key
from rtui.analysis.humanize import Mark
from rtui.keyspace.rows.rows import VisibleRows
from rtui.keyspace.slices import finish
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import HOSTILE, SafeText
from rtui.keyspace.text.segments import Segment
from rtui.registry.load import read_registry
from rtui.server.browsing.status import BrowsingStatus, NodeStatus
from rtui.server.facts.preview.page import FIRST, Meaning, Preview, PreviewColumn, PreviewKind, StringWindow, Unread
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.wire.connection import Closed, Lost, Online
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.identity import NoTouch, Outdated
from rtui.tui.browse.columns import lay_out_row
from rtui.tui.browse.fact_lines import explanations, fact_lines, loading_lines, moment, node_lines, slot_lines
from rtui.tui.browse.namespace_lines import namespace_lines
from rtui.tui.browse.preview_lines import cell_text, preview_rows
from rtui.tui.browse.registry_lines import RegistryLines
from rtui.tui.browse.tree_lines import TreeTotals, known_count, notice_lines, row_line, share_of
from rtui.tui.kit.status_lines import browse_banner, over_title, server_figures, status_line, title_line
from rtui.tui.kit.styled_text import Line, Role, line_width
from tests.conftest import known
from tests.tui.browsing import browsing
from tests.tui.fixed_session import ASKED_AT_S, COMPLETE, key_facts, keys, preview

RUNNING = replace(
    COMPLETE, complete=False, progress=Progress(state=ScanState.RUNNING, fraction=0.5, keys_per_s=2e5, eta_s=9.0)
)
STATUSES = [
    COMPLETE,
    RUNNING,
    replace(RUNNING, link=Lost(None, 3, 12.0)),
    replace(RUNNING, link=Closed(RtuiError("A fault of rtui itself", "KeyError: 'a'"))),
    replace(RUNNING, match=b"a*\x1b[31m", key_type=b"hash"),
]
WIDTHS = st.integers(40, 240)


def said(line: Line) -> str:
    return "".join(span.text for span in line)


NODES = tuple(NodeStatus(str(port), SafeText(f"10.0.0.1:{port}"), (), Online(), 10) for port in (7000, 7001, 7002))
STATUSES.append(replace(RUNNING, nodes=NODES))


@given(st.sampled_from(STATUSES), WIDTHS, st.booleans())
def test_bars_fill_their_width_exactly(status: BrowsingStatus, width: int, shows_cost: bool) -> None:
    assert line_width(title_line(status, width)) == width
    assert line_width(status_line(status, 0.0, width, shows_cost=shows_cost)) == width


def test_the_title_says_how_many_nodes_a_cluster_has_and_how_many_of_them_are_lost() -> None:
    assert "cluster of 3 nodes" in said(title_line(replace(COMPLETE, nodes=NODES), 200))
    lost = replace(NODES[1], link=Lost(RtuiError("Connection refused", "Nothing listens there."), 1, 12.0))
    some = (NODES[0], lost, replace(NODES[2], link=None))
    assert "1 of 3 nodes can't be reached" in said(title_line(replace(COMPLETE, nodes=some), 200))


@given(st.sampled_from([None, *STATUSES]), WIDTHS)
def test_the_figures_of_the_server_stand_where_a_title_leaves_room(status: BrowsingStatus | None, width: int) -> None:
    without = over_title(SafeText("10.0.0.1:7000"), 0, SafeText("server"), width, None)
    line = over_title(SafeText("10.0.0.1:7000"), 0, SafeText("server"), width, status)
    assert set(without) <= set(line)
    assert line_width(line) == line_width(without) or line_width(line) == width - 1
    if status is COMPLETE and width >= 120:
        assert f"{status.server.version_text} · {status.server.role} · db0 · READ-ONLY" in said(line)
    figures = server_figures(status, width)
    assert not figures or said(figures) in said(over_title(SafeText("a"), None, SafeText("b"), width + 60, status))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_title_always_says_read_only_and_a_missing_no_touch(width: int) -> None:
    denied = replace(COMPLETE, no_touch=NoTouch.DENIED)
    assert "READ-ONLY" in said(title_line(denied, width))
    assert "NO-TOUCH denied" in said(title_line(replace(denied, server=type(denied.server)()), max(width, 80)))


def test_a_lost_connection_counts_down_and_hides_no_number() -> None:
    lost = replace(RUNNING, link=Lost(None, 2, 107.4))
    assert "connection lost · try 3 in 7 s" in said(status_line(lost, 100.0, 120))
    assert "try 3 now" in said(status_line(lost, 200.0, 120))


@pytest.mark.parametrize(("silent_s", "said_so"), [(0.0, False), (1.9, False), (4.2, True), (65.0, True)])
def test_a_server_that_owes_an_answer_is_said_to_from_the_second_second_on(silent_s: float, said_so: bool) -> None:
    text = said(status_line(replace(RUNNING, link=Online(silent_s)), 0.0, 120))
    assert ("no answer for 4s" in text or "no answer for 1m 5s" in text) is said_so


def test_a_connection_that_a_fault_has_ended_says_so() -> None:
    ended = replace(RUNNING, link=Closed(RtuiError("A fault of rtui itself", "KeyError: 'a'")))
    assert "connection ended · A fault of rtui itself" in said(status_line(ended, 100.0, 120))


@pytest.mark.parametrize("width", [80, 120])
def test_the_figures_of_a_lost_server_are_told_as_the_last_that_are_known(width: int) -> None:
    lost = replace(COMPLETE, progress=Progress(ScanState.DONE, 1.0, 5_260), link=Lost(None, 2, 107.4))
    assert "last known" in said(title_line(lost, width))
    assert "5,260 keys" in said(title_line(lost, width))
    assert "ops/s" not in said(title_line(lost, width))
    assert "last known" not in said(title_line(replace(lost, link=COMPLETE.link), width))


@pytest.mark.parametrize("width", [80, 120])
def test_the_cost_that_was_asked_for_is_told_as_far_as_it_fits(width: int) -> None:
    text = said(status_line(RUNNING, 0.0, width, shows_cost=True))
    assert "312 commands" in text
    assert ("8ms of server CPU" in text) == (width == 120)


@pytest.mark.parametrize("width", [80, 120])
def test_what_does_not_hold_any_more_is_neither_complete_nor_exact(width: int) -> None:
    outdated = replace(COMPLETE, outdated=Outdated.RESTARTED, seen_age_s=125.0)
    text = said(status_line(outdated, 0.0, width))
    assert "outdated" in text
    assert "seen 2m ago" in text
    assert "complete" not in text
    make = known(browse_banner(outdated))
    assert said(make(width)).strip() == "The server was restarted. This list is from 2m ago. Press R to rescan."
    assert browse_banner(COMPLETE) is None
    store = NamespaceStore()
    store.add([b"a:1", b"a:2"])
    node, whole = store.root.child(b"a:"), TreeTotals(complete=True, is_outdated=True)
    assert "exact" not in "".join(said(line) for line in namespace_lines(node, whole, width))
    (row,) = VisibleRows(store).window(0, 1)
    roles = {span.role for span in row_line(row, lay_out_row(60), whole, is_open=False) if span.text.strip()}
    assert Role.TEXT not in roles


@pytest.mark.parametrize("why", Outdated)
@given(WIDTHS)
def test_a_banner_fits_its_line_and_begins_with_the_reason(why: Outdated, width: int) -> None:
    make = known(browse_banner(replace(COMPLETE, outdated=why, seen_age_s=4.0)))
    assert line_width(make(width)) <= width
    assert said(make(width)).strip().startswith(why.value[:20])


def test_a_count_says_what_it_is() -> None:
    store = NamespaceStore()
    store.add([b"a:%d" % number for number in range(5)])
    node = store.root.child(b"a:")
    assert known_count(node, complete=False).mark is Mark.AT_LEAST
    store.expect([Segment(b"a", b":")], Estimate(80, 100, 120))
    assert known_count(node, complete=False).mark is Mark.ABOUT
    assert known_count(node, complete=False).value == 100
    assert share_of(node, TreeTotals(complete=False, expected_keys=200.0)) == 0.5


def test_shares_of_a_moment_are_of_what_is_counted_then() -> None:
    store, totals = NamespaceStore(), TreeTotals(complete=False)
    for batch in range(3):
        store.add([b"%s:%d" % (name, batch * 9 + at) for name in (b"a", b"b", b"c") for at in range(9)])
        shares = [share_of(store.root.child(name + b":"), totals) for name in (b"a", b"b", b"c")]
        assert shares == [pytest.approx(1 / 3)] * 3


@given(st.integers(24, 200))
def test_rows_fill_their_plan_whatever_they_are_called(width: int) -> None:
    store = NamespaceStore()
    store.add(keys())
    rows = VisibleRows(store)
    finish(rows.expand_all(store.root, most_rows=200))
    found = lay_out_row(width)
    for row in rows.window(0, 40):
        line = row_line(row, found, TreeTotals(complete=True), is_open=False)
        assert line_width(line) == width
        assert not HOSTILE.search(said(line))


def preview_lines(preview: Preview, width: int) -> list[Line]:
    return [row.line for row in preview_rows(preview, width)]


@given(
    st.sampled_from(keys()[-24:]), st.integers(30, 120), st.sampled_from(["", "10.0.0.1:7000", "redis-7." + "x" * 90])
)
def test_details_fit_their_panel_and_are_safe(key: bytes, width: int, node: str) -> None:
    facts = replace(key_facts(key), node=node)
    lines = [
        *fact_lines(facts, width),
        *loading_lines(key, width),
        *preview_lines(preview(facts, FIRST), width),
        *slot_lines(key, width),
    ]
    assert all(line_width(line) <= width + 2 for line in lines)
    assert not HOSTILE.search("".join(said(line) for line in lines))


def test_the_head_has_the_same_shape_for_everything() -> None:
    heads = [fact_lines(key_facts(key), 60) for key in (b"plain", b"gone", b"secret", b"")]
    assert {len(head) for head in [*heads, loading_lines(b"x", 60)]} == {6}


@given(st.from_regex(r"[a-z0-9.-]{1,120}:[0-9]{2,5}", fullmatch=True), st.integers(40, 140))
def test_the_slot_names_its_node_in_full_with_the_role(node: str, width: int) -> None:
    facts = replace(key_facts(b"plain"), node=node, node_role="replica")
    head = fact_lines(facts, width)
    assert len(head) == 7
    assert f"slot {key_slot(b'plain')}" in " ".join(said(head[5]).split())
    for lines in (node_lines(facts, width), slot_lines(b"plain", width, facts)):
        assert f"node{node}·replica" in "".join(said(line).replace(" ", "") for line in lines)
    assert node_lines(key_facts(b"plain"), width) == []


def test_a_missing_fact_is_never_a_zero_and_says_why_below() -> None:
    facts = key_facts(b"secret")
    assert "denied" in "".join(said(line) for line in fact_lines(facts, 80))
    assert any("NOPERM" in sentence for sentence in explanations(facts))


def test_expiry_is_a_moment_and_its_absence_is_said() -> None:
    facts = replace(key_facts(b"plain"), ttl_ms=90_000)
    assert "2027-01-01 00:01:30 UTC" in "".join(said(line) for line in fact_lines(facts, 80))
    assert "never" in "".join(said(line) for line in fact_lines(replace(facts, ttl_ms=NO_TTL), 80))
    far = replace(facts, ttl_ms=1 << 62)
    assert "after the year 9999" in "".join(said(line) for line in fact_lines(far, 80))


@pytest.mark.parametrize(
    ("counter", "settings", "text"),
    [
        (0, LfuSettings(), "0 (< 1/min)"),
        (5, LfuSettings(), "5 (< 1/min)"),
        (5, LfuSettings(decay_minutes=10), "5 (< 6/h)"),
        (5, LfuSettings(decay_minutes=100_000), "5 (< 1/d)"),
        (10, LfuSettings(), "10 (≈ 51/min)"),
        (100, LfuSettings(), "100 (≈ 16/s)"),
        (255, LfuSettings(), "255 (≥ 41/s)"),
        (7, LfuSettings(decay_minutes=0), "7"),
    ],
)
def test_a_counter_at_its_floor_tells_no_rate_but_a_bound(counter: int, settings: LfuSettings, text: str) -> None:
    facts = replace(key_facts(b"plain"), frequency=Frequency(counter, settings))
    assert f"frequency {text}" in " ".join(said(fact_lines(facts, 120)[5]).split())


_NEW_YEARS_EVE_S = 1_798_761_599.0
"""2026-12-31 23:59:59 UTC."""


@pytest.mark.parametrize(
    ("left_s", "cells", "text"),
    [
        (0, 40, "2026-12-31 23:59:59 UTC"), (0, 22, "2026-12-31 23:59 UTC"), (0, 18, "31 Dec 23:59 UTC"),
        (0, 12, "23:59:59 UTC"), (-90_000, 18, "30 Dec 22:59 UTC"), (-90_000, 12, "30 Dec UTC"),
        (1, 40, "2027-01-01 00:00:00 UTC"), (1, 18, "00:00:00 UTC"), (1, 9, "00:00 UTC"), (1, 3, "00:00"),
        (90_000, 18, "2027-01-02 UTC"), (90_000, 12, "2027-01-02"), (100_000_000_000, 18, "5195-11-16 UTC"),
        (1e13, 40, "after the year 9999"),
    ],
)  # fmt: skip
def test_a_moment_has_its_zone_and_a_year_that_is_not_this_one(left_s: float, cells: int, text: str) -> None:
    assert moment(_NEW_YEARS_EVE_S + left_s, _NEW_YEARS_EVE_S, cells) == text


def test_frequency_stands_for_idle_time_where_the_server_counts() -> None:
    facts = replace(key_facts(b"plain"), frequency=Frequency(255), idle_s=Unknown(Reason.UNSUPPORTED))
    text = "".join(said(line) for line in fact_lines(facts, 80))
    assert "255" in text
    assert "≥" in text


@pytest.mark.parametrize(
    ("value", "meaning", "text"),
    [
        (None, Meaning.VALUE, ""),
        (b"", Meaning.VALUE, '""'),
        (b"a\nb", Meaning.VALUE, "a⏎b"),
        (1234, Meaning.COUNT, "1,234"),
        (1234, Meaning.INDEX, "1234"),
        (1.5, Meaning.SCORE, "1.5"),
        (120.0, Meaning.SCORE, "120"),
        (float("inf"), Meaning.SCORE, "inf"),
        (3e30, Meaning.SCORE, "3e+30"),
        (90_000, Meaning.DURATION_MS, "1m 30s"),
        (Unread(12 << 10), Meaning.VALUE, "(12.0 KiB, not read)"),
        (Unread(None), Meaning.VALUE, "(not read)"),
    ],
)
def test_cells_are_written_by_what_they_mean(value: object, meaning: Meaning, text: str) -> None:
    assert cell_text(value, meaning) == text  # type: ignore[arg-type]


@given(st.binary(max_size=300), st.integers(40, 120), st.sampled_from([PreviewKind.TEXT, PreviewKind.BINARY]))
def test_any_bytes_of_a_string_can_be_shown(data: bytes, width: int, kind: PreviewKind) -> None:
    lines = preview_lines(Preview(b"k", b"string", kind, window=StringWindow(0, data)), width)
    assert all(line_width(line) <= width for line in lines)
    assert not HOSTILE.search("".join(said(line) for line in lines))


@given(
    st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=400)), min_size=1, max_size=5), st.integers(40, 120)
)
def test_any_table_fits(rows: list[tuple[bytes, bytes]], width: int) -> None:
    columns = (PreviewColumn("field", Meaning.NAME), PreviewColumn("value", Meaning.VALUE))
    lines = preview_lines(Preview(b"k", b"hash", PreviewKind.HASH, columns=columns, rows=tuple(rows)), width)
    assert all(line_width(line) <= width + 2 for line in lines)


def test_hex_has_as_many_bytes_a_line_as_fit() -> None:
    shown = Preview(b"k", b"string", PreviewKind.BINARY, window=StringWindow(0, bytes(range(32))))
    assert "00000010  10 11" in "\n".join(said(line) for line in preview_lines(shown, 100))
    assert "00000008  08 09" in "\n".join(said(line) for line in preview_lines(shown, 50))


@given(WIDTHS)
def test_facts_about_a_value_are_broken_between_words(width: int) -> None:
    label, why = "distinct elements, as last counted", "cached count is stale (PFCOUNT would write)"
    shown = Preview(
        key=b"visitors",
        type=b"string",
        kind=PreviewKind.HYPERLOGLOG,
        page=FIRST,
        summary=((label, Unknown(Reason.NOT_ASKED, why)), ("registers", b"dense")),
    )
    lines = preview_lines(shown, width)
    assert all(line_width(line) <= width for line in lines)
    words = [word for line in lines for word in said(line).split()]
    assert words == [*label.split(), *why.split(), "registers", "dense"]


def test_a_filter_without_matches_says_what_it_could_not_search() -> None:
    everything = " ".join(map(said, notice_lines(COMPLETE, b"cart", 80)))
    assert "No key name contains cart" in everything
    assert "could not be searched" not in everything
    kept = " ".join(map(said, notice_lines(COMPLETE, b"cart", 80, not_searched=9_000)))
    assert "No kept key name contains cart" in kept
    assert "9,000 keys could not be searched" in kept


def test_a_scan_that_waits_for_an_analysis_says_so() -> None:
    progress = Progress(ScanState.PAUSED, 0.5, 100)
    waiting = replace(COMPLETE, progress=progress, analysis=Progress(ScanState.RUNNING, 0.43, 50))
    line = said(status_line(waiting, 0.0, 120)).strip()
    assert line.startswith("scan waits")
    assert line.endswith("analysis 43%"), "behind the figures of the scan, so that its bar is not taken for this"
    assert "paused" in said(status_line(replace(waiting, analysis=None), 0.0, 120))
    paused = replace(waiting, analysis=Progress(ScanState.PAUSED, None, 50))
    assert "analysis paused" in said(status_line(paused, 0.0, 120))


REGISTRY = read_registry(
    """
[rules]
type-wrong = "warn"

[[pattern]]
pattern = "shop:user:<userId>:profile"
type = "hash"
ttl = "30m"
size = "<=1M"
purpose = "Name, e-mail and role of a user"
owner = "accounts"
scene = "login"

[[pattern]]
pattern = "shop:session:<id>"
purpose = "Session"
deprecated = "use auth:session:…"

[[pattern]]
pattern = "lock:<**>"
type = "list"
length = "<=2"
"""
)
KEY = b"shop:user:42:profile"


def said_of(line: Line) -> str:
    return " ".join("".join(span.text for span in line).split())


def lines(key: bytes, facts: KeyFacts | None, width: int = 100) -> list[str]:
    return [said_of(line) for line in RegistryLines(REGISTRY).lines(key, facts, width)]


def facts_of(key: bytes = KEY, key_type: bytes = b"hash", length: int = 3) -> KeyFacts:
    return replace(key_facts(key), type=key_type, length=length, memory_bytes=128, ttl_ms=NO_TTL)


def test_a_key_says_what_it_is_for_and_what_is_broken_first() -> None:
    assert lines(KEY, facts_of()) == [
        "pattern shop:user:<userId>:profile · owner accounts",
        "for Name, e-mail and role of a user · login",
        "rules ✗ TTL: expected 30m, has none · ✓ hash · ✓ size <=1M",
    ]


def test_everything_that_is_met_has_a_mark() -> None:
    assert lines(KEY, replace(facts_of(), ttl_ms=60_000))[2] == "rules ✓ hash · ✓ TTL 30m · ✓ size <=1M"


def test_what_is_found_instead_is_said() -> None:
    far = replace(facts_of(key_type=b"set"), ttl_ms=7_200_000, memory_bytes=3 << 20)
    assert lines(KEY, far, 200)[2] == (
        "rules ✗ type: expected hash, is set · ✗ TTL: expected 30m, 2h left · ✗ size: expected <=1M, has ≈ 3.00 MiB"
    )
    assert lines(b"lock:x:y", facts_of(b"lock:x:y", b"list", 9))[2] == "rules ✗ length: expected <=2, has 9 · ✓ list"


def test_colours_follow_the_severity() -> None:
    rules = RegistryLines(REGISTRY).lines(KEY, facts_of(key_type=b"set"), 200)[2]
    roles = dict[str, Role]((span.text, span.role) for span in rules)
    assert roles["TTL: expected 30m, has none"] is Role.BAD
    assert roles["type: expected hash, is set"] is Role.WARN


def test_what_is_not_known_is_neither_met_nor_broken() -> None:
    denied = Unknown(Reason.DENIED, "")
    unknown = replace(facts_of(), type=denied, ttl_ms=denied, memory_bytes=denied, length=denied)
    assert lines(KEY, unknown)[2] == "rules ? hash · ? TTL 30m · ? size <=1M"
    assert lines(KEY, None)[2] == lines(KEY, gone_key(KEY, ASKED_AT_S))[2] == "rules –"


def test_a_key_without_a_pattern() -> None:
    assert lines(b"a:b:c:d", facts_of(b"a:b:c:d")) == [
        "pattern none registered",
        "for –",
        "rules ✗ too short to understand",
    ]


def test_what_is_deprecated_says_so_first() -> None:
    assert lines(b"shop:session:1", None)[1] == "for deprecated: use auth:session:… · Session"


@given(st.binary(max_size=40), st.integers(40, 200), st.sampled_from([None, facts_of(), gone_key(KEY, ASKED_AT_S)]))
def test_any_key_has_its_lines_within_the_width(key: bytes, width: int, facts: KeyFacts | None) -> None:
    found = RegistryLines(REGISTRY).lines(key, facts, width)
    assert len(found) == 3
    assert all(line_width(line) <= width for line in found)
    assert not HOSTILE.search("".join(span.text for line in found for span in line))


def test_texts_of_a_registry_are_not_trusted() -> None:
    hostile = read_registry('[[pattern]]\npattern = "a:<b>"\npurpose = "\\u001b[31m"\nowner = "\\u202e"\n')
    found = RegistryLines(hostile).lines(b"a:1", None, 80)
    assert not HOSTILE.search("".join(span.text for line in found for span in line))


@pytest.mark.parametrize("size", [(120, 36), (200, 50)])
async def test_they_are_below_the_facts(size: tuple[int, int]) -> None:
    async with browsing(size=size, registry=REGISTRY) as user:
        await user.go(KEY)
        head = [said_of(line) for line in user.screen.detail_pane._head.lines]
        assert head[6].startswith("pattern shop:user:<userId>:profile")
        assert head[8].startswith("rules ")
        assert user.screen.detail_pane._head.size.height == 9


async def test_without_a_registry_there_is_no_room_for_them() -> None:
    async with browsing() as user:
        await user.go(KEY)
        assert user.screen.detail_pane._head.size.height == 6
