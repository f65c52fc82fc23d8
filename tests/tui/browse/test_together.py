"""Marked keys, references, long values as rows, and patterns of held names."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.report.document import CoverageKind, Scope
from rtui.keyspace.slices import Slicer, finish
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import HOSTILE, SafeText
from rtui.keyspace.text.segments import Separators
from rtui.registry.load import read_registry
from rtui.server.browsing.status import BrowsingStatus, NodeStatus
from rtui.server.facts.references import KeyReferences, Link
from rtui.table.aggregates import Aggregates
from rtui.tui.browse import document as module
from rtui.tui.browse import value_view
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.browse.document import (
    MOST_HEX_BYTES,
    MOST_TEXT_BYTES,
    MOST_TEXT_LINES,
    TEXT_LINES,
    DecodedDocument,
    document_rows,
    open_document,
    text_rows,
)
from rtui.tui.browse.fact_lines import ONE_KEY, together_lines
from rtui.tui.browse.key_tree import MOST_MARKED
from rtui.tui.browse.registry_lines import RegistryLines
from rtui.tui.browse.schema import NamePatterns
from rtui.tui.browse.shown_value import Trail
from rtui.tui.browse.tree_lines import MARKED
from rtui.tui.browse.value_view import ItemKind, ValueView
from rtui.tui.kit.choice import TextCard
from rtui.tui.kit.command_screen import TreePlace
from rtui.tui.kit.layout import MARGIN, value_pieces
from rtui.tui.kit.styled_text import line_width, wrap_pieces
from rtui.values import Choices, decode
from rtui.values.tree import DEFAULT
from tests.conftest import known
from tests.tui.browse.test_ageing import row_text
from tests.tui.browse.test_panes import status
from tests.tui.browse.test_value import text_of
from tests.tui.browsing import browsing
from tests.tui.fixed_session import COMPLETE, FixedSession, key_facts

KEYS = [b"user:42:profile", b"cart:42"]
CLUSTER = replace(
    COMPLETE,
    server=replace(COMPLETE.server, cluster_enabled=True),
    nodes=(
        NodeStatus("a" * 40, SafeText("10.0.0.1:6379"), ((0, 10_000),), None, 1),
        NodeStatus("b" * 40, SafeText("10.0.0.2:6379"), ((10_001, 16_000),), None, 1),
    ),
)


def said(keys: list[bytes], status: BrowsingStatus = CLUSTER, width: int = 84) -> str:
    """The text of the card on one line."""
    lines = together_lines(keys, status, Separators(), width)
    assert max(map(line_width, lines)) <= width
    return " ".join(" ".join("".join(span.text for span in line) for line in lines).split())


def test_keys_of_two_nodes_have_their_places_and_the_tag_that_would_allow_it() -> None:
    text = said(KEYS)
    assert text.startswith("Together: no. They lie in 2 slots of 2 nodes, and a cluster refuses")
    assert "9133 10.0.0.1:6379 user:42:profile 15749 10.0.0.2:6379 cart:42" in text
    assert "The hash tag {42} would put them into slot 8000: user:{42}:profile cart:{42}" in text


def test_keys_of_one_slot_may_be_used_together() -> None:
    text = said([b"{42}:a", b"{42}:b"])
    assert text.startswith("Together: yes. All lie in slot 8000")
    assert "hash tag" not in text


def test_without_a_common_identifier_that_is_said() -> None:
    assert "No identifier is in all of these names" in said([b"user:1", b"cart:2"])


def test_a_slot_that_nobody_serves_is_said_to_be_nobodys() -> None:
    key = next(b"key:%d" % at for at in range(10_000) if key_slot(b"key:%d" % at) > 16_000)
    text = said([*KEYS, key])
    assert f"{key_slot(key)} nobody {key.decode()}" in text
    assert "They lie in 3 slots, and" in text


def test_one_key_is_asked_for_others() -> None:
    assert said(KEYS[:1]) == f"{ONE_KEY} 9133 10.0.0.1:6379 user:42:profile"


def test_on_one_server_it_is_about_a_cluster_that_might_be() -> None:
    text = said(KEYS, replace(COMPLETE, server=replace(COMPLETE.server, cluster_enabled=False)))
    assert text.startswith(
        "This server is not a cluster, so any keys can be used together. In a cluster: Together: no."
    )
    assert "10.0.0" not in text


@pytest.mark.parametrize("width", [20, 40, 84])
def test_hostile_names_stay_safe_in_any_width(width: int) -> None:
    assert not HOSTILE.search(said([b"\x1b[2J:42", b"\xe2\x80\xae:42:\xff" * 20, b""], width=width))


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
async def test_space_marks_keys_and_escape_takes_the_marks_away(size: tuple[int, int]) -> None:
    session = FixedSession(CLUSTER, [*KEYS, b"lock"])
    async with browsing(session, size=size) as user:
        assert "Use together" not in user.footer
        await user.go(KEYS[0])
        await user.press("space")
        await user.go(KEYS[1])
        await user.press("space")
        assert "2 marked" in status(user)
        assert MARKED.strip() in row_text(user, KEYS[1])
        assert "Use together" in user.footer
        await user.pilot.press("U")
        await user.until(lambda: isinstance(user.pilot.app.screen, TextCard))
        card = user.pilot.app.screen
        assert isinstance(card, TextCard)
        await user.until(lambda: bool(card.body.lines))
        assert "The hash tag {42}" in "".join(span.text for line in card.body.lines for span in line)
        await user.press("escape", "space")
        assert "1 marked" in status(user)
        await user.press("escape")
        assert "marked" not in status(user)
        assert MARKED.strip() not in row_text(user, KEYS[0])


async def test_no_more_can_be_marked_than_can_be_shown() -> None:
    async with browsing(FixedSession(CLUSTER, [b"key%03d" % at for at in range(MOST_MARKED + 1)])) as user:
        tree = user.screen.tree_pane.key_tree
        for _ in range(MOST_MARKED + 1):
            tree.action_open_close()
            tree.action_cursor_down()
        await user.settled()
        assert len(tree.marked) == MOST_MARKED


REGISTRY = read_registry(
    """
[[pattern]]
pattern = "shop:user:{userId}:orders"
references = [{ from = "member", to = "shop:user:{member}:orders" }, { from = "member", to = "jobs:{member}" }]
[[pattern]]
pattern = "jobs:failed"
"""
)
KEY = b"shop:user:42:orders"
LINKS = KeyReferences(
    outgoing=(
        Link(b"order:17", "member", b"17", True),
        Link(b"order:19", "member", b"19", False),
        Link(b"order:20", "member", b"20", Unknown(Reason.DENIED, "")),
    ),
    twins=(Link(b"order:index:user:42", "twin", None, True),),
    incoming=(Link(b"user:list", "member", b"42", True),),
    notes=("the value is too long",),
    is_declared=True,
)


def details(detail: Detail, width: int = 80, way: tuple[bytes, ...] = ()) -> list[str]:
    rows = RegistryLines(REGISTRY).reference_rows(detail, way, width)
    assert all(line_width(row.line) <= width for row in rows)
    return [" ".join("".join(span.text for span in row.line).split()) for row in rows if row.line]


def detail(found: KeyReferences | None, key: bytes = KEY) -> Detail:
    return Detail(key=key, facts=key_facts(key), references=found)


def test_each_link_says_whether_it_is_there() -> None:
    assert details(detail(LINKS), way=(b"a", b"b")) == [
        "a › b › shop:user:42:orders", "Points to 1 dangling", "✓ order:17 member", "✗ order:19 missing, member",
        "? order:20 denied, member", "Kept twice, also in", "✓ order:index:user:42 twin", "Should point here",
        "✓ user:list member 42", "The value is too long.",
    ]  # fmt: skip


def test_what_is_not_known_is_said() -> None:
    assert details(detail(None)) == ["asking…"]
    assert details(detail(None, b"gone")) == ["The key no longer exists."]
    assert "has no pattern" in details(detail(KeyReferences(), b"plain"))[0]
    assert "declares no references for jobs:failed." in details(detail(KeyReferences(), b"jobs:failed"))[0]
    assert details(detail(replace(LINKS, outgoing=(), twins=(), incoming=(), notes=()))) == [
        "The value contains no reference to a key."
    ]


@given(st.lists(st.binary(max_size=60), max_size=4), st.binary(max_size=30), st.integers(20, 200))
def test_any_names_stay_within_the_width(names: list[bytes], value: bytes, width: int) -> None:
    links = tuple(Link(name, "member", value, True) for name in names)
    details(detail(replace(LINKS, outgoing=links)), width, tuple(names))


def test_a_trail_holds_as_long_as_it_is_followed() -> None:
    trail = Trail()
    trail.follow(TreePlace(b"a"), b"b")
    trail.follow(TreePlace(b"b"), b"c")
    assert trail.before(b"c") == [b"a", b"b"]
    assert trail.back(b"x") is None
    assert trail.back(b"c") == TreePlace(b"b")
    assert trail.before(b"b") == [b"a"]
    trail.follow(TreePlace(b"elsewhere"), b"d")
    assert trail.before(b"d") == [b"elsewhere"]


async def test_enter_follows_and_escape_comes_back() -> None:
    async with browsing(registry=REGISTRY) as user:
        await user.go(KEY)
        assert not any(one.startswith("references") for one in user.session.asked)
        await user.press("tab", "3")
        pane = user.screen.detail_pane
        await user.until(lambda: pane.detail.references is not None)
        assert "✓ shop:user:17:orders" in user.body
        assert "✗ jobs:17" in user.body
        assert "3 dangling" in user.body
        item = known(pane.body.item)
        assert (item.kind, item.data) == (ItemKind.KEY, b"shop:user:17:orders")
        await user.press("enter")
        await user.until(lambda: pane.detail.references is not None and pane.detail.key == b"shop:user:17:orders")
        assert "shop:user:42:orders › shop:user:17:orders" in user.body
        assert pane.body.has_focus
        await user.press("down", "enter")
        await user.until(lambda: pane.detail.references is not None and pane.detail.key == b"shop:user:23:orders")
        assert "… › shop:user:17:orders › shop:user:23:orders" in user.body
        for expected in (b"shop:user:17:orders", KEY):
            await user.press("escape")
            await user.until(lambda key=expected: pane.detail.references is not None and pane.detail.key == key)  # type: ignore[misc]
            assert pane.body.has_focus
        await user.press("escape")
        assert user.screen.tree_pane.key_tree.has_focus
        assert user.name == KEY


async def test_without_a_registry_there_is_no_such_tab() -> None:
    async with browsing(size=(80, 24)) as user:
        await user.go(KEY)
        await user.press("3")
        tabs = user.screen.detail_pane
        assert "References" not in "".join(span.text for line in tabs._tabs.lines for span in line)
        await user.press("right_square_bracket", "right_square_bracket")
        assert tabs.tab == 0


@given(st.lists(st.binary(max_size=60) | st.text(max_size=400).map(str.encode), max_size=5), st.integers(1, 90))
def test_lines_are_known_to_be_as_many_as_they_are_broken_into(lines: list[bytes], width: int) -> None:
    room = max(1, width - 2 * MARGIN)
    data = b"\n".join(lines)
    expected = [
        "".join(piece.text for piece in part)
        for raw in data.split(b"\n")
        for part in wrap_pieces(value_pieces(raw, limit=room * TEXT_LINES), room, TEXT_LINES)
    ]
    assert ["".join(span.text for span in row.line[1:]) for row in text_rows(data, width)] == expected


def test_what_was_packed_small_is_shown_as_far_as_it_can_be_read() -> None:
    rows = document_rows(open_document(gzip.compress(bytes(1_000_000))), 80)
    assert sum(row.item is not None for row in rows) == MOST_HEX_BYTES / 16
    assert "the first 16.0 KiB of 977 KiB are shown: P shows all, w writes it" in text_of(rows)
    text = "żółć 1 and more\n" * 20_000
    rows = document_rows(open_document(gzip.compress(text.encode())), 80)
    shown = [row for row in rows if row.item is not None]
    assert len(shown) == MOST_TEXT_BYTES // len("żółć 1 and more\n".encode()) + 1
    assert "\\x" not in text_of(shown)
    assert "the first 64.0 KiB" in text_of(rows)


LONG = json.dumps({"version": 12, "users": [{"id": 1000 + at, "name": "żółć " * at} for at in range(40)]}).encode()


@given(st.integers(1, len(LONG) - 1))
def test_a_beginning_holds_whole_elements_and_says_once_that_it_goes_on(cut: int) -> None:
    rows = document_rows(open_document(LONG[:cut], is_whole=False, total_bytes=len(LONG)), 80)
    shown = text_of(rows)
    whole = {text_of([row]) for row in document_rows(open_document(LONG), 80)}
    others = [text_of([row]) for row in rows if row.item is not None and text_of([row]) not in whole]
    # beside the maps and lists that were not read to their end, only a text shows what there is of it
    assert all("≥" in one or one.endswith(" … goes on") for one in others)
    assert sum("goes on" in one for one in others) <= 1
    assert shown.count("The value goes on: ") == 1


def test_the_beginning_of_a_long_text_fits_with_what_is_said_of_it() -> None:
    rows = document_rows(open_document(b'{"a": {"b": "' + b"x" * 5_000, is_whole=False), 60)
    (line,) = [text_of([row]) for row in rows if '"b"' in text_of([row])]
    assert line.endswith("… goes on")
    assert len(line) < 60


def test_of_a_text_of_many_lines_the_first_are_shown() -> None:
    rows = document_rows(open_document(gzip.compress(b"\n" * 60_000)), 80)
    assert sum(row.is_item for row in rows) == MOST_TEXT_LINES + 1
    assert "the first 4.88 KiB of 58.6 KiB are shown" in text_of(rows)


def test_a_long_value_is_searched_in_slices() -> None:
    view = ValueView()
    view.rows = tuple(document_rows(open_document(json.dumps(list(range(500))).encode()), 80))
    with patch.object(value_view, "Slicer", partial(Slicer, slice_s=0.0)):
        assert sum(1 for _ in view.find_text("none")) == len(view.rows)


def test_rows_that_nobody_looks_at_are_not_drawn() -> None:
    data = b"[" + b",".join(b'{"id": %d}' % number for number in range(1_000)) + b"]"
    found = DecodedDocument(data, decode(data, limits=replace(DEFAULT, seconds=60)), choices=Choices(("JSON",), ()))
    never = AssertionError
    with patch.object(module, "_node_line", side_effect=never), patch.object(module, "_node_item", side_effect=never):
        rows = document_rows(found, 80)
    assert len(rows) == 2_001
    assert '"id": 999' in text_of(document_rows(found, 80)[-1:])


SEGMENTS = st.one_of(
    st.sampled_from([b"user", b"shop", b"", b"orders", b"{user:7}"]),
    st.integers(0, 9).map(lambda number: b"%d" % number),
    st.integers(0, 99).map(lambda number: b"page_%d" % number),
    st.binary(max_size=4),
)
NAMES = st.lists(st.lists(SEGMENTS, min_size=1, max_size=4).map(b":".join), unique=True, max_size=60)


def store_of(names: list[bytes], budget_bytes: int | None = None) -> NamespaceStore:
    store = NamespaceStore() if budget_bytes is None else NamespaceStore(budget_bytes=budget_bytes)
    store.add(names)
    return store


@settings(max_examples=30, deadline=None)
@given(NAMES, st.booleans())
def test_they_are_those_of_an_analysis(names: list[bytes], is_opened: bool) -> None:
    store = store_of(names)
    if is_opened:
        for label in list(store.root.labels):
            finish(store.open(store.root.child(label)))
    counted = Aggregates(Separators(), scope=Scope(), started_at_s=0.0)
    if names:
        counted.add_unread(names)
    patterns = NamePatterns(store, is_complete=True)
    report = finish(patterns.work())
    assert report.summary.root == finish(counted.summary()).root
    assert patterns.read == report.head.coverage.unread == len(names)
    assert report.head.coverage.kind is CoverageKind.EXACT
    assert patterns.fraction == (1.0 if names else 0.0)


def test_names_beyond_the_memory_budget_are_known_to_be_missing() -> None:
    store = store_of([b"user:%d:%064d" % (number % 7, number) for number in range(20_000)], budget_bytes=200_000)
    coverage = finish(NamePatterns(store, is_complete=True).work()).head.coverage
    assert coverage.kind is CoverageKind.PARTIAL
    assert coverage.total_keys == store.keys == 20_000
    assert coverage.unread < 20_000


def test_more_names_are_read_when_it_is_worth_it() -> None:
    store = store_of([b"user:%d" % number for number in range(100)])
    patterns = NamePatterns(store, is_complete=False)
    finish(patterns.work())
    assert not patterns.is_due(store, is_complete=False)
    store.add([b"user:%d" % number for number in range(100, 150)])
    assert not patterns.is_due(store, is_complete=False)
    store.add([b"user:150"])
    assert patterns.is_due(store, is_complete=False)
    assert patterns.is_due(store, is_complete=True)
    assert patterns.is_of(store)
    store.reset()
    assert not patterns.is_of(store)
    assert patterns.is_due(store, is_complete=False)


def test_after_a_scan_any_change_is_worth_it() -> None:
    store = store_of([b"a", b"b"])
    patterns = NamePatterns(store, is_complete=True)
    finish(patterns.work())
    assert not patterns.is_due(store, is_complete=True)
    store.add([b"c"])
    assert patterns.is_due(store, is_complete=True)
    assert patterns.is_due(store_of([b"a", b"b"]), is_complete=True)
