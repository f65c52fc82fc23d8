"""The schema: which keys its levels stand for, in which order they are, and what the screen shows of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.analysis.humanize import Mark
from rtui.analysis.query.deciding import NameFilter
from rtui.analysis.query.patterns import PatternMatcher, read_pattern
from rtui.analysis.report.document import CoverageKind, NodeKind
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.slices import finish
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server.analysis.table_import import NOT_THIS_PROCESSOR
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.search.search import Stage
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import parse_target
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse import schema
from rtui.tui.browse.columns import ALL_COLUMNS
from rtui.tui.browse.level_lines import LevelDetail, lay_out_levels, level_line, schema_title
from rtui.tui.browse.schema import Level, NamePatterns, Schema
from rtui.tui.browse.schema_view import SchemaRows
from rtui.tui.find import FindScreen
from rtui.tui.kit.styled_text import line_width
from tests.conftest import known
from tests.servers import Server
from tests.tui.analyse.analysing import report_of, with_report
from tests.tui.browse.test_lines import REGISTRY
from tests.tui.browse.test_together import NAMES, store_of
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import COMPLETE, FixedSession, keys
from tests.tui.visiting import Visitor, check_text, visiting

SORTS = st.sampled_from(Sort)


def schema_of(names: list[bytes]) -> Schema:
    return Schema(finish(NamePatterns(store_of(names), is_complete=True).work()), is_of_names=True)


def opened(schema: Schema, sort: Sort = Sort.COUNT, *, is_reversed: bool = False) -> SchemaRows:
    """All levels."""
    rows = SchemaRows(sort, is_reversed=is_reversed)
    rows.show(schema, room=0)
    rows.open(schema.root, below=True)
    return rows


def written(rows: SchemaRows) -> list[str]:
    """The levels, each with what is before it."""
    return ["".join(f"{step.name.decode()}{step.separator.decode()}" for step in level.path) for level in rows.rows]


@settings(max_examples=25, deadline=None)
@given(NAMES)
def test_levels_add_up_and_stand_for_the_keys_that_their_queries_find(names: list[bytes]) -> None:
    schema = schema_of(names)
    rows = opened(schema)
    assert sum(schema.keys(level).value for level in schema.root.below) == len(names)
    for above, one in pairwise(rows.rows):
        assert one.depth <= above.depth + 1
    for at, level in enumerate(rows.rows):
        assert rows.index_of(level) == at
        below = sum(schema.keys(one).value for one in level.below)
        assert below == (schema.keys(level).value if level.below else 0)
        assert all(one.depth == level.depth + 1 and one.parent is level for one in level.below)
        behind = schema.behind(level)
        if behind.is_exact:
            found = NameFilter(behind.query, Separators()).keep(list(names))
            assert len(found) == schema.keys(level).value
            is_key, prefix = schema.prefix(level)
            assert all(name.startswith(prefix) for name in found)
            assert not is_key or found == [prefix]
    for name in names:
        found_level = rows.reveal(schema.path_of(name, is_key=True))
        assert found_level in rows.rows
        assert found_level is not None
        pattern = read_pattern(LevelDetail(schema, found_level).pattern, Separators())
        assert PatternMatcher([pattern], Separators())(name)
        assert rows.reveal(found_level.path) is found_level


@settings(max_examples=15, deadline=None)
@given(NAMES, SORTS, st.booleans())
def test_siblings_are_in_order_and_stay_the_same(names: list[bytes], sort: Sort, is_reversed: bool) -> None:
    schema = schema_of(names)
    rows = opened(schema)
    before = Counter(rows.rows)
    rows.sort(sort, is_reversed=is_reversed)
    assert Counter(rows.rows) == before
    assert written_paths(opened(schema_of(names), sort, is_reversed=is_reversed)) == written_paths(rows)
    if sort is Sort.COUNT:
        for level in (schema.root, *rows.rows):
            counts = [schema.keys(one).value for one in level.below if one.node.kind is not NodeKind.OTHER]
            assert counts == sorted(counts, reverse=not is_reversed)


def written_paths(rows: SchemaRows) -> list[object]:
    return [level.path for level in rows.rows]


@settings(max_examples=15, deadline=None)
@given(NAMES, NAMES, st.data())
def test_another_report_keeps_what_is_open_and_rows_in_their_places(
    names: list[bytes], more: list[bytes], data: st.DataObject
) -> None:
    rows = SchemaRows(Sort.COUNT)
    rows.show(schema_of(names), room=data.draw(st.integers(0, 30)))
    for _ in range(data.draw(st.integers(0, 3))):
        if rows.rows:
            level = data.draw(st.sampled_from(rows.rows))
            (rows.close if level.is_open else rows.open)(level)
    before = written_paths(rows)
    rows.show(schema_of(list({*names, *more})), keeps_places=True)
    after = written_paths(rows)
    kept = {*before} & {*after}
    assert [path for path in before if path in kept] == [path for path in after if path in kept]
    rows.show(None)
    assert rows.rows == []


WIDTHS = st.integers(12, 200)


@settings(max_examples=15, deadline=None)
@given(NAMES, WIDTHS, st.booleans())
def test_every_line_has_its_width_and_is_safe(names: list[bytes], width: int, is_analysed: bool) -> None:
    schema = Schema(report_of(names)) if is_analysed and names else schema_of(names)
    layout = lay_out_levels(width, ALL_COLUMNS, 30, is_analysed=not schema.is_of_names, sort=Sort.COUNT)
    for level in opened(schema).rows:
        line = level_line(level, schema, layout)
        assert line_width(line) == width or width < 22
        check_text("".join(span.text for span in line))
        detail = LevelDetail(schema, level)
        shown = [*detail.head(width), *(row.line for row in detail.rows(None, SafeText(""), width))]
        check_text("".join(span.text for one in shown for span in one))
        check_text(schema_title(level, None, SafeText("by names"), width))


def test_levels_stand_for_all_that_is_folded_before_them() -> None:
    names = [b"user:%d:%s" % (n, what) for n in range(200) for what in (b"profile", b"orders")]
    names = names[:-40:2] + names[1:-80:2]
    names += [b"rank_daily_%d" % n for n in range(300)]
    schema = schema_of(names)
    rows = opened(schema)
    assert written(rows) == ["user:", "user:<id>:", "user:<id>:profile", "user:<id>:orders", "rank_daily_<n>"]
    layout = lay_out_levels(80, ALL_COLUMNS, 30, is_analysed=False, sort=Sort.COUNT)
    shown = ["".join(span.text for span in level_line(level, schema, layout)) for level in rows.rows]
    assert shown[1].startswith("   ▾ <id> ×180 ")
    assert shown[3].split()[:2] == ["orders", "160"]
    assert shown[4].startswith("   rank_daily_<n> ×300 ")
    assert schema_title(rows.rows[3], None, SafeText("by names"), 60) == "Schema › user › <id> · by names"
    assert schema_title(rows.rows[3], None, SafeText("by names"), 20) == "Schema · by names"
    assert schema_title(rows.rows[3], None, SafeText("by names"), 10) == "Schema"


def test_what_was_not_all_seen_is_a_lower_bound_and_a_sample_an_estimate() -> None:
    for kind, mark in ((CoverageKind.PARTIAL, Mark.AT_LEAST), (CoverageKind.ESTIMATE, Mark.ABOUT)):
        schema = Schema(report_of([b"user:%d" % n for n in range(50)], kind))
        (user, number) = opened(schema).rows
        assert schema.keys(user).mark is mark
        assert known(schema.distinct(number)).mark is mark
        assert schema.distinct(user) is None


def test_five_thousand_patterns_are_rows_of_a_list() -> None:
    names = [b"%s:%s" % (word(number // 50), word(1 + number % 50)) for number in range(5_000)]
    schema = schema_of(names)
    rows = opened(schema)
    assert len(rows.rows) > 4_000
    assert sum(schema.keys(level).value for level in schema.root.below) == 5_000
    rest = [level for level in rows.rows if level.node.kind is NodeKind.OTHER]
    assert rest
    for is_reversed in (True, False):
        rows.sort(Sort.COUNT, is_reversed=is_reversed)
        assert all(level.parent is not None and level.parent.below[-1] is level for level in rest)


def word(number: int) -> bytes:
    """A name without digits, different for each number."""
    return b"".join(b"%c" % (97 + number // 26**place % 26) for place in range(3))


# on the screen


def lines(user: BrowseUser) -> list[str]:
    return ["".join(span.text for span in line).rstrip() for line in user.screen.tree_pane.schema.lines_in_view]


def header(user: BrowseUser) -> str:
    return "".join(span.text for line in user.screen.tree_pane.header.lines for span in line)


def notice(user: BrowseUser) -> str:
    return "".join(span.text for line in user.screen.tree_pane._notice.lines for span in line)


def cursor(user: BrowseUser) -> Level:
    return known(user.screen.tree_pane.schema.cursor)


def pattern(user: BrowseUser) -> bytes:
    return known(user.screen.places.level).pattern


async def test_the_schema_takes_the_place_of_the_names_and_goes_back_to_where_its_keys_are() -> None:
    async with browsing(registry=REGISTRY) as user:
        await user.go(b"shop:user:7:profile")
        await user.press("F")
        assert header(user).startswith(" Schema · by names")
        assert pattern(user) == b"shop:user:<id>:profile"
        assert any("<id> ×" in line for line in lines(user))
        assert user.screen.tree_pane.has_class("-schema")
        assert user.has_keyboard(user.screen.tree_pane.schema)
        assert "Keys" in user.footer
        assert "F Names" in user.footer
        assert "Exact, from the names." in user.body
        assert "shop:user:<userId>:profile" in user.body
        assert "owner accounts" in user.body
        await user.press("left", "left")
        assert pattern(user) == b"shop:user:<id>:"
        assert not cursor(user).is_open
        await user.press("space", "right", "right", "backspace", "backspace", "right_curly_bracket")
        assert known(cursor(user).parent).below[-1] is cursor(user)
        await user.press("left_curly_bracket", "f", *"ca", "escape")
        assert pattern(user) == b"shop:cache:"
        await user.press("y")
        assert user.pilot.app.clipboard == "shop:cache:"
        await user.press("escape")
        assert user.screen.tree_pane.key_tree.display
        assert user.name == b"shop:cache:"
        assert user.has_keyboard(user.screen.tree_pane.key_tree)
        await user.press("F", "up", "F")
        assert user.name == b"shop:session:"
        await user.press("F", "home")
        before = len(lines(user))
        await user.pilot.click("#schema", offset=(1, 0))
        await user.settled()
        assert len(lines(user)) < before
        await user.pilot.click("#schema", offset=(10, 1))
        await user.settled()
        assert cursor(user) is user.screen.tree_pane.schema.rows.row(1)


async def test_where_names_cannot_be_counted_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RtuiError("No analysis", NOT_THIS_PROCESSOR)

    monkeypatch.setattr(schema, "import_counting", fail)
    async with browsing() as user:
        await user.pilot.press("F")
        await until(user.pilot, lambda: bool(user.pilot.app._notifications))
        (said,) = user.pilot.app._notifications
        assert (said.title, said.message) == ("No schema", NOT_THIS_PROCESSOR)
        assert user.screen.tree_pane.schema.rows.rows == []
        await user.press("F")
        assert user.screen.tree_pane.key_tree.display


async def test_enter_lists_the_keys_of_a_level_or_of_those_that_a_filter_leaves_and_escape_comes_back() -> None:
    async with browsing() as user:
        await user.press("F", "f", *"lock", "escape", "asterisk", "down", "down")
        assert pattern(user) == b"lock:order:<id>"
        await user.pilot.press("enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, FindScreen))
        (search,) = user.session.searches
        assert str(search.query) == "pattern:lock:order:<id>"
        assert search.count == 300
        await user.pilot.press("escape")
        await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
        await user.settled()
        assert pattern(user) == b"lock:order:<id>"
        place = user.screen.place
        await user.press("F")
        user.screen.show_place(place)
        await user.until(lambda: user.screen.tree_pane.is_schema and pattern(user) == b"lock:order:<id>")
        await user.press("tab", "down", "enter")  # an example
        await user.until(lambda: not user.screen.tree_pane.is_schema and user.name.startswith(b"lock:order:"))
        await user.press("escape")
        await user.until(lambda: user.screen.tree_pane.is_schema)
        assert user.has_keyboard(user.screen.detail_pane.body)
        await user.press("tab", "slash", *"orders", "down")
        await user.until(lambda: bool(lines(user)))
        assert header(user).startswith(" Schema of keys matching orders")
        assert [line.split()[1] for line in lines(user)[:2]] == ["shop", "user"]
        assert "1,200" in lines(user)[0]
        await user.press("home")
        await user.pilot.press("enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, FindScreen))
        assert user.session.searches[-1].count == 1_200
        await user.pilot.press("escape")
        await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
        await user.press("escape", "escape")
        assert user.screen.search.needle is None
        assert not user.screen.tree_pane.is_schema


async def test_an_analysis_fills_the_columns_and_rows_are_sorted_by_them() -> None:
    session = FixedSession()
    with_report(session, report_of(keys()[:4_000], CoverageKind.PARTIAL))
    async with browsing(session, (200, 50)) as user:
        await user.press("F")
        assert "by names" in header(user)  # which tell of more keys than a part of an analysis
        assert "≥" not in "".join(lines(user))
        assert "memory" not in header(user)
        with_report(session, report_of(keys(), CoverageKind.PARTIAL))
        await user.until(lambda: "analysis running" in header(user))
        assert "≥ 4,900" in lines(user)[0]
        await user.press("f", *"shop", "escape")
        level = cursor(user)
        with_report(session, report_of([name for name in keys() if name != b"gone"]), age_s=725.0)
        await user.until(lambda: "Schema · analysed 12m ago" in header(user))
        assert "memory" in header(user)
        assert cursor(user).path == level.path
        assert cursor(user) is not level
        assert "1.18 MiB" in lines(user)[0]
        await user.until(lambda: "Exact, analysed 12m ago." in user.body)
        for section in ("Types", "TTL", "Sizes", "Examples"):
            assert section in user.body
        await user.press("greater_than_sign", "greater_than_sign")
        assert "memory ↓" in header(user)
        await user.press("home")
        assert pattern(user) == b"huge"
        await user.press("S")
        await user.press("home")
        assert pattern(user) == b"<>"
        await user.press("F")
        assert "memory ↑" in header(user)


async def test_without_rows_it_says_why_and_while_a_scan_goes_on_more_names_come() -> None:
    refused = Progress(state=ScanState.FAILED, reason=SafeText("NOPERM no SCAN"))
    session = FixedSession(replace(COMPLETE, complete=False, progress=refused), names=())
    async with browsing(session) as user:
        await user.press("F", "enter", "right", "left", "down", "y", "K", "space", "asterisk", "end")
        assert "NOPERM no SCAN" in notice(user)
        assert lines(user) == []
        session.status = replace(COMPLETE, db=7)
        session.revision += 1
        await user.until(lambda: "db7 is empty" in notice(user))
        assert lines(user) == []
        await user.press("F")
        assert not user.screen.tree_pane.is_schema
        session.status = replace(session.status, complete=False, progress=Progress(ScanState.RUNNING, 0.5))
        session.revision += 1
        await user.press("F")
        await user.until(lambda: "Looking for the first keys" in notice(user))
        session.store.add([b"user:%d:cart" % number for number in range(100)])
        session.revision += 1
        await user.until(lambda: bool(lines(user)))
        await user.press("end")
        assert pattern(user) == b"user:<id>:cart"
        assert "≥ 100" in lines(user)[0]
        assert "At least, from the known names." in user.body
        session.store.add([b"user:%d:name" % number for number in range(100)])
        session.revision += 1
        await user.until(lambda: "≥ 200" in lines(user)[0])
        assert pattern(user) == b"user:<id>:cart"
        session.store.complete = True
        session.status = replace(session.status, complete=True, progress=Progress(state=ScanState.DONE, fraction=1.0))
        session.revision += 1
        await user.until(lambda: " 200 " in lines(user)[0] and "≥" not in lines(user)[0])


def plant(server: Server) -> None:
    pipeline = server.client().pipeline(transaction=False)
    for number in range(200):
        pipeline.hset(f"user:{number}:profile", "name", "x")
        if number % 20:
            pipeline.sadd(f"user:{number}:orders", 1, 2)
        pipeline.set(f"rank_daily_{number}", "x", ex=3600)
    pipeline.set(b"odd:\x1b[31m\xff[/]", "x")
    pipeline.execute()


def visited_pattern(visitor: Visitor) -> bytes:
    level = visitor.browse.places.level
    return b"" if level is None else level.pattern


async def test_a_walk_through_the_schema(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    async with visiting(parse_target(valkey.url), tmp_path) as visitor:
        await visitor.whole()
        await visitor.press("F")
        await visitor.until_shown("Schema", "<id> ×200", "rank_daily_<n> ×200", "orders", "390")
        visitor.check_painted()
        for key, wanted in (("down", b"user:<id>:"), ("down", b"user:<id>:profile"), ("down", b"user:<id>:orders")):
            await visitor.press(key)
            await visitor.until(lambda wanted=wanted: visited_pattern(visitor) == wanted, "the next level")  # type: ignore[misc]
        await visitor.press("enter")
        await visitor.until(lambda: isinstance(visitor.app.screen, FindScreen), "the list of keys")
        find = visitor.app.screen
        assert isinstance(find, FindScreen)
        await visitor.until(lambda: find.search.stage is Stage.OVER, "all keys")
        assert find.search.count == 190
        await visitor.press("enter")
        await visitor.until(lambda: visitor.app.screen is visitor.browse, "the key in the tree of names")
        await visitor.until(lambda: (visitor.detail.key or b"").endswith(b":orders"), "its details")
        assert not visitor.browse.tree_pane.is_schema
        await visitor.press("escape")
        await visitor.until(lambda: isinstance(visitor.app.screen, FindScreen), "the list again")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.app.screen is visitor.browse, "the tree")
        await visitor.press("a")
        await visitor.until(lambda: isinstance(visitor.app.screen, AnalyseScreen), "the analysis")
        await visitor.press("r")
        await visitor.until(lambda: visitor.session.analysis.status.age_s is not None, "its end")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.app.screen is visitor.browse, "the tree")
        await visitor.press("F", "end")
        await visitor.until_shown("no TTL", "<id> ×200")
        await visitor.press("home")
        await visitor.until(lambda: visited_pattern(visitor) == b"user:", "the first level")
        await visitor.until_shown("hash", "200", "set", "190", "No key has a TTL.")
        visitor.check_harmless()
        await visitor.press("escape")
        await visitor.until(lambda: visitor.tree.display and visitor.row.key() == b"user:", "the names")
