"""The details of the row under the cursor of the tree: facts, and below them tabs with the value and the slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import NO_TTL, RowFacts, Unknown, ttl_at
from rtui.analysis.humanize import Mark, counted, noun
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.scan.progress import ScanState
from rtui.tui.browse.detail_fetcher import Detail, DetailFetcher
from rtui.tui.browse.document import ChosenDecoders
from rtui.tui.browse.fact_lines import UNCHANGED, FactChanges, age_line, fact_lines, loading_lines
from rtui.tui.browse.namespace_lines import namespace_lines
from rtui.tui.browse.preview_lines import page_note
from rtui.tui.browse.row_facts import AFTER_EXPIRY_S
from rtui.tui.browse.shown_value import ShownValue, Tab
from rtui.tui.browse.tree_lines import TreeTotals, count_text, known_count
from rtui.tui.browse.value_pane import ValuePane
from rtui.tui.browse.value_writer import Run
from rtui.tui.kit.bars import LinkedBar, TabBar
from rtui.tui.kit.command import Condition
from rtui.tui.kit.layout import BETWEEN, LinePart, display, fitted, tab_line
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, line_width, literal, type_role

if TYPE_CHECKING:
    from rtui.registry.registry import Registry
    from rtui.tui.browse.registry_lines import RegistryLines


class DetailPane(Vertical):
    """Shows the facts of one thing, with tabs; in one line, `summary`, where the terminal has no room for the pane."""

    DEFAULT_CSS = """
    DetailPane {
        & > #detail-head { height: 6; }
        &.-registry > #detail-head { height: 9; }
        &.-cluster > #detail-head { height: 7; }
        &.-cluster.-registry > #detail-head { height: 10; }
        & > #detail-tabs { height: 2; }
    }
    """

    class Wanted(Message):
        """A tab was chosen while the pane is hidden."""

    @dataclass
    class Changed(Message):
        """The details are of something else, or more of them has arrived."""

        detail: Detail

    def __init__(
        self,
        session: BrowsingSession,
        run: Run,
        totals: Callable[[], TreeTotals],
        row_facts: Callable[[bytes], RowFacts | None],
        decoders: ChosenDecoders,
        *,
        registry: Registry | None,
    ) -> None:
        """`run` starts workers; `totals` returns the bases of shares, `row_facts` the facts in the row of a key."""
        super().__init__(id="detail")
        self._registry: RegistryLines | None = None
        if registry is not None:
            from rtui.tui.browse.registry_lines import RegistryLines  # noqa: PLC0415 - most keyspaces have no registry

            self._registry = RegistryLines(registry)
        self.fetcher = DetailFetcher(session, lambda work: run(work, "details"), self._show, row_facts, decoders)
        self.value = ValuePane(
            *(session, run, self.fetcher, totals, decoders), registry=self._registry, on_change=self._value_changed
        )
        self.body = self.value.body
        self.summary = LinkedBar(lambda span: "browse.focus_next_pane", id="summary")
        self.tab = Tab.VALUE
        self.shown: Detail | None = None
        self.changes: FactChanges = UNCHANGED
        self._head = LinePanel(id="detail-head")
        self._tabs = TabBar(self.action_show_tab, note_action, id="detail-tabs")
        self._clock = session.clock
        self._totals = totals

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._tabs
        yield self.value

    @property
    def detail(self) -> Detail:
        return self.fetcher.detail

    @property
    def has_registry(self) -> bool:
        return self._registry is not None

    @property
    def is_among_references(self) -> bool:
        return self.tab is Tab.REFERENCES and self.detail.key is not None and self.value.has_keyboard

    def _show(self, detail: Detail) -> None:
        if not self.is_attached:
            return
        if detail.refused_place is not None and detail is not self.shown:
            self.app.notify(detail.refused_place, title="Go to", severity="warning", markup=False)
        self.value.show(detail, self.tab)
        self.shown = detail
        if self.tab is Tab.REFERENCES and self._registry is not None and detail.failure is None:
            self.fetcher.ask_references(self._registry.registry)
        self._show_facts(detail)
        self.post_message(self.Changed(detail))

    def _value_changed(self) -> None:
        if self.shown is not None:
            self._show_facts(self.shown)
            self.post_message(self.Changed(self.shown))

    def _show_facts(self, detail: Detail) -> None:
        """Show all but the body: ages, times to live and shares change as time goes by."""
        totals, now_s = self._totals(), self._clock()
        self.set_class(self._registry is not None and detail.key is not None, "-registry")
        self.set_class(totals.is_cluster and detail.key is not None, "-cluster")
        value = self.value.value
        has_age = value.read_apart_at_s is not None
        head = partial(head_lines, changes=self.changes, registry=self._registry, has_age=has_age)
        self._head.set_content(partial(head, detail, totals, now_s))
        self._tabs.set_content(partial(tab_lines, value, now_s, has_registry=self.has_registry))
        self.summary.set_line(partial(summary_line, detail, totals, now_s))

    def tick(self) -> None:
        """Show how far the time to live has run down and how old the facts are."""
        if self.shown is not None and self.shown.facts is not None:
            self._show_facts(self.shown)

    def refresh_expired(self) -> None:
        """Fetch the facts of a key again whose time to live has run out: it is gone, or its life was prolonged."""
        facts = self.detail.facts
        expires_at_s = None if facts is None else facts.expires_at_s
        if expires_at_s is not None and self._clock() >= expires_at_s + AFTER_EXPIRY_S:
            self.fetcher.refresh()

    def update_namespace(self, *, complete: bool) -> None:
        detail = self.detail
        if detail.row is not None and detail.key is None:
            self._show(detail)
            self.fetcher.recount(complete=complete)

    def action_show_tab(self, index: int) -> None:
        self.tab = Tab(index % (len(Tab) if self._registry is not None else Tab.REFERENCES))
        self.shown = None
        self._show(self.detail)
        if not self.display:
            self.post_message(self.Wanted())

    def action_next_tab(self) -> None:
        self.action_show_tab(self.tab + 1)

    def action_previous_tab(self) -> None:
        self.action_show_tab(self.tab - 1)

    def action_next_page(self) -> None:
        """Fetch the next page of the value, or go to the next match in the rows that are shown."""
        if self.value.find_next():
            return
        preview = self.fetcher.readable.preview
        if preview is None or preview.next_page is None:
            return
        if self.value.value.is_paged:
            self.fetcher.turn(preview.next_page)
        else:
            text = "Decoded values have no pages: d shows raw bytes in pages, P the whole value."
            self.app.notify(text, markup=False)

    def action_previous_page(self) -> None:
        preview = self.fetcher.readable.preview
        if preview is not None and preview.page.before is not None:
            self.fetcher.turn(preview.page.before)

    def action_reload(self) -> None:
        if self.detail.key is not None:
            self.fetcher.reload()


HEAD_LINES: Final = 6
"""Lines of the facts of a key on a single server; in a cluster its node takes one more."""

NAME_CELLS = 36
"""A longer name is cut in the middle."""


def summary_line(detail: Detail, totals: TreeTotals, now_s: float | None, width: int) -> Line:
    """Return the line in exactly `width` cells; the age of the facts is that at `now_s`, in seconds since the epoch."""
    shown = clip((gap(1), *fitted(_pieces(detail, totals, now_s), width - 2)), width)
    return (*shown, gap(width - line_width(shown)))


def _pieces(detail: Detail, totals: TreeTotals, now_s: float | None) -> list[LinePart]:
    if detail.level is not None:
        return detail.level.summary()
    if detail.key is None:
        if detail.row is None:
            return []
        node = detail.row.namespace
        known = known_count(node, totals.complete)
        pieces = [
            LinePart(0, (Span(cut_middle(display(node.path(), limit=NAME_CELLS * 2), NAME_CELLS), Role.STRONG),)),
            LinePart(0, (Span(count_text(known)), Span(SafeText(f" {noun(known.value, 'key')}"), Role.MUTED))),
        ]
        found = None if totals.figures is None else totals.figures.figures(node, known).memory_bytes
        return pieces if found is None else [*pieces, LinePart(1, (Span(fmt.size(found.value, found.mark)),))]
    name = display(detail.key, limit=NAME_CELLS * 2) if detail.key else literal("(empty name)")
    pieces = [LinePart(1, (Span(cut_middle(name, NAME_CELLS), Role.STRONG),))]
    facts = detail.facts
    if facts is None:
        why = detail.failure if detail.failure is not None else literal("…")
        return [*pieces, LinePart(0, (Span(why, Role.FAINT),))]
    if facts.is_gone:
        return [*pieces, LinePart(0, (Span(literal("gone"), Role.WARN),))]
    if not isinstance(facts.type, Unknown):
        pieces.append(LinePart(0, (Span(display(facts.type, limit=16), type_role(facts.type)),)))
    if not isinstance(facts.length, Unknown):
        kind = facts.redis_type
        pieces.append(LinePart(2, (Span(counted(facts.length, kind.unit, plural=kind.units)),)))
    if not isinstance(facts.memory_bytes, Unknown):
        pieces.append(LinePart(3, (Span(fmt.size(facts.memory_bytes, Mark.ABOUT)),)))
    left = facts.ttl_ms if now_s is None else ttl_at(facts.ttl_ms, facts.asked_at_s, now_s)
    if left is NO_TTL:
        pieces.append(LinePart(4, (Span(literal("no TTL"), Role.MUTED),)))
    elif left == 0:
        pieces.append(LinePart(0, (Span(literal("expired"), Role.WARN),)))
    elif isinstance(left, int):
        pieces.append(LinePart(2, (Span(literal("TTL "), Role.MUTED), Span(fmt.duration(left)))))
    age = age_line(facts.asked_at_s, now_s)
    if age:
        pieces.append(LinePart(3, age))
    return [*pieces, LinePart(5, (Span(literal("Enter shows the details"), Role.FAINT),))]


def head_lines(
    detail: Detail,
    totals: TreeTotals,
    now_s: float | None,
    width: int,
    *,
    changes: FactChanges = UNCHANGED,
    registry: RegistryLines | None = None,
    has_age: bool = False,
) -> Sequence[Line]:
    """Return the facts of a key or a namespace; `now_s`, in seconds since the epoch, is the time for their ages.

    `has_age` adds the age of the facts, for a tab whose content was asked for at another time. The registry's lines for
    a key follow, if there is a registry.
    """
    if detail.level is not None:
        return detail.level.head(width)
    if detail.key is None:
        return [] if detail.row is None else namespace_lines(detail.row.namespace, totals, width)
    said = () if registry is None else registry.lines(detail.key, detail.facts, width)
    if detail.facts is None:
        return [*loading_lines(detail.key, width), *([()] * totals.is_cluster), *said]
    lines = fact_lines(detail.facts, width, now_s=now_s, changes=changes, has_age=has_age)
    return [*lines, *([()] * (HEAD_LINES + totals.is_cluster - len(lines))), *said]


def tab_lines(value: ShownValue, now_s: float | None, width: int, *, has_registry: bool = False) -> Sequence[Line]:
    """Return the titles of the tabs below a blank line; beside them the position in the value and how old it is."""
    detail, preview = value.detail, value.preview
    if detail.level is not None:
        return [(), tab_line([literal("Pattern")], 0, [], width)]
    if detail.key is None:
        return [(), tab_line([] if detail.row is None else [literal("Inside")], 0, [], width)]
    page: Line = ()
    short: Line = ()
    bare: Line = ()
    if preview is not None and not value.opened:
        page = page_note(preview, value.order, value.decoded)
        short = page_note(preview, value.order, value.decoded, is_short=True)
        bare = tuple(span for span in short[:1] if span.role is Role.MUTED)
    decoders = () if preview is None else _decoder_note(value)
    asked_at_s = value.read_apart_at_s or (None if detail.facts is None else detail.facts.asked_at_s)
    age = () if asked_at_s is None else age_line(asked_at_s, now_s)
    if detail.is_fetching_page:
        is_finding = detail.preview is not None and detail.preview.page.find is not None
        page = (*page, BETWEEN, _FETCHING) if page and is_finding else (_FETCHING,)
        short, bare = (_FETCHING,), ()
    parts = [part for part in (decoders, page, age) if part]
    notes = [_with_separators(parts[:count]) for count in range(len(parts), 0, -1)]
    if decoders and short:
        notes.insert(-1, _with_separators([decoders, short]))
    titles = [literal("Value"), literal("Slot"), *([literal("References")] if has_registry else [])]
    bare_age = () if asked_at_s is None else age_line(asked_at_s, now_s, is_short=True)
    return [(), tab_line(titles, value.tab, [*notes, page, short, bare, age, bare_age], width)]


def note_action(span: Span) -> str | None:
    """Return the action of a piece of the notes beside the tabs: it turns the page or decodes otherwise."""
    if span.role is not Role.ACCENT:
        return "value.decode" if span.role is Role.JSON else None
    return {"n ›": "detail.next_page", "‹ b": "detail.previous_page", "d": "value.decode"}.get(span.text.strip())


_FETCHING: Final = Span(literal("fetching…"), Role.FAINT)


def _with_separators(parts: Sequence[Line]) -> Line:
    line: list[Span] = []
    for part in parts:
        line += [*([BETWEEN] if line else []), *part]
    return tuple(line)


def _decoder_note(value: ShownValue) -> Line:
    document = value.decoded
    if document is None:
        said = "decoded" if value.are_rows_decoded else "as stored"
        return (Span(SafeText(said), Role.JSON), Span(literal(" d"), Role.ACCENT)) if value.can_decode_rows else ()
    by_hand = (Span(literal(" by hand"), Role.MUTED),) if document.choice is not None else ()
    return Span(document.title, Role.JSON), *by_hand, Span(literal(" d"), Role.ACCENT)


def browse_conditions(status: BrowsingStatus, detail: Detail, cursor: Row | None) -> dict[Condition, bool]:
    state, preview = status.progress.state, detail.preview
    return {
        Condition.LIVE: True,
        Condition.SCANNING: not state.is_over and state is not ScanState.PAUSED,
        Condition.PAUSED: state is ScanState.PAUSED,
        Condition.ON_KEY: detail.key is not None,
        Condition.ON_ROW: cursor is not None or detail.key is not None,
        Condition.ON_NAMESPACE: cursor is not None and cursor.kind is RowKind.NAMESPACE,
        Condition.NEXT_PAGE: preview is not None and preview.next_page is not None,
        Condition.PAGE_BEFORE: preview is not None and preview.page.before is not None,
    }
