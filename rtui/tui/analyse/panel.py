"""A panel of the Analyse screen: tables, maybe a chart over them, and commands that change both.

A panel is a module with a subclass of `AnalysePanel` and, where users can choose something in it, one of `PanelState`;
`PANELS` in `commands.py` lists one instance of each. Panels hold no state: all they show follows from the report, the
state and the size of the chart in cells. So lines once drawn are kept while the report stays, and a move of the cursor
draws anew only charts that show where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Generic, LiteralString, TypeAlias, TypeVar

from textual.geometry import Size

from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.cells import so_far
from rtui.analysis.report.tables.changes import ComparedReports, differences
from rtui.analysis.report.tables.table import Subject, Table
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.clipboard import Copy
from rtui.tui.kit.command import Group, Owner, ScreenCommand
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.panel_screen import PanelStates
from rtui.tui.kit.styled_text import Line, Role, Span, literal
from rtui.tui.kit.table_rows import ColumnOrder

if TYPE_CHECKING:
    from rtui.analysis.query.behind import Behind

TABLE_LINES: Final = 12
"""Lines that a chart leaves to the table at least."""

LOW_TABLE_LINES: Final = 9
"""The same on a screen of 24 lines."""

HIGH_ROOM: Final = 26
"""Lines that chart and table share from which on the screen is a larger one."""

KEPT_CHARTS: Final = 16
"""The number of charts cached for a panel: of a few rows under the cursor, each in the sizes that were tried for it."""

NO_TEXT: Final = literal("")

NOTHING_TO_LIST: Final = literal("Nothing to list")
"""The title in place of an empty table that has none of its own."""


def unfound(report: Report, text: LiteralString) -> SafeText:
    """Return a sentence that nothing was found, so far if not all keys were seen; no full stop."""
    return SafeText(f"{text}{so_far(report.head.coverage)}")


@dataclass(frozen=True, slots=True)
class PanelState:
    """The user's choices in a panel; panels with more choices subclass it."""

    table_id: str = ""
    """The id of the chosen table; an unknown id means the panel's first table."""
    subject: Subject = None


@dataclass(frozen=True, slots=True)
class PanelTable:
    """One of the tables of a panel, not yet made."""

    id: str
    """Unique among all tables that the panel can ever show."""
    title: SafeText
    make: Callable[[], Table]
    """Makes the table; called once for each report."""
    is_marked: Callable[[Table, int], bool] | None = None
    """Whether the row at this index of the table is marked."""
    note: Line = ()
    """Shown below the table, before the table's own note."""
    order: ColumnOrder | None = None
    """The sort column of the table as made; None if it is in no column's order."""
    needs: tuple[str, ...] = ()
    """Columns of the inspection (`memory`, `ttl` …) without which the table has no rows."""
    top: SafeText = NO_TEXT
    """The order of a list of the first N only, such as `largest`; empty for a complete list."""
    is_comparison: bool = False
    """Whether it lists differences to the earlier report itself, so that its figures are not compared once more."""
    empty: SafeText = NOTHING_TO_LIST
    """The title in place of a table without rows though everything that it needs is known."""


def sample_note(text: str) -> Line:
    """Return the beginning of a note on the size of the sample that a list is from; empty for an empty text."""
    return (Span(display_text(text), Role.WARN), Span(literal(" · "), Role.MUTED)) if text else ()


S = TypeVar("S", bound=PanelState)
T = TypeVar("T")


Change: TypeAlias = Callable[[Report, S, Size], S | None]
"""Returns the state after a command, given the size of the chart; None if the command does not apply."""


def panel_command(
    change: Change[S], id: str, key: str, title: str, help: str, *, footer: int = 0, label: str = ""
) -> tuple[ScreenCommand, Change[S]]:  # fmt: skip
    """Declare a command of a panel; it is offered wherever `change` returns a state."""
    call = f"change('{id}')"
    return ScreenCommand(id, (key,), title, help, Group.TABLE, Owner.PANEL, (id,), footer, label, call), change


class AnalysePanel(Generic[S]):
    """Base class of panels; only `tables` has to be defined."""

    id: ClassVar[str]
    """Name of the panel on the command line, and of the command that shows it."""
    title: ClassVar[SafeText]
    key: ClassVar[str]
    help: ClassVar[str]
    """One sentence for the help screen."""
    words: ClassVar[str]
    """Redis' words for it, by which it is found."""
    initial: PanelState = PanelState()
    """The state before the user has chosen anything."""
    commands: Sequence[tuple[ScreenCommand, Change[S]]] = ()
    is_ranking: ClassVar[bool] = False
    """Whether its tables begin in the order as made in each session, whatever they were sorted by before."""
    shows_hot_keys: ClassVar[bool] = False
    """Whether the hot keys are read again while the panel is shown, and the server can be asked to find them."""
    max_lines: ClassVar[int | None] = None
    """Lines of the chart at most, None for as many as leave the table enough."""
    lists_differences: ClassVar[bool] = False
    """Whether the differences of two compared reports are one of the tables."""
    is_chart_below: ClassVar[bool] = False
    """Whether the chart stands below the table: it says more about the row under the cursor."""
    keeps_height: ClassVar[bool] = False
    """Whether the chart keeps its height, also with less to draw."""

    def tables(self, report: Report, state: S) -> Sequence[PanelTable]:
        """Return the tables to choose from, at least one."""
        raise NotImplementedError

    def chart_lines(self, space: Size) -> int:
        """Return how many lines the chart takes at most of the space that it shares with the table; 0 for no chart."""
        lines = max(0, space.height - (TABLE_LINES if space.height >= HIGH_ROOM else LOW_TABLE_LINES))
        return lines if self.max_lines is None else min(self.max_lines, lines)

    def chart(self, _report: Report, _state: S, _size: Size) -> list[Line]:
        """Return the chart: at most `size.height` lines, none wider than `size.width`."""
        return []

    def charted(self, _report: Report, state: S) -> S:
        """Return the state without choices that the chart does not show; by default without the cursor's row."""
        return replace(state, subject=None)

    def aged(self, state: S, _seconds: float) -> S:
        """Return the state for drawing a chart whose figures were read `seconds` ago."""
        return state

    def zoomed_in(self, _report: Report, _state: S) -> S | None:
        """Return the state after Enter on the row under the cursor; None if Enter has no effect in the panel."""
        return None

    def zoomed_out(self, _report: Report, _state: S) -> S | None:
        """Return the state one level up; None at the top."""
        return None

    def clicked(self, _report: Report, _state: S, _size: Size, _x: int, _y: int) -> S | None:
        """Return the state after a click on a cell of the chart; None if the click has no effect."""
        return None

    def behind(self, _report: Report, _state: S, _size: Size, _x: int, _y: int) -> Behind | None:
        """Return the query for the keys that a cell of the chart stands for; None if it stands for no keys.

        It is called when a click does not change the state.
        """
        return None

    def behind_row(self, _state: S, _row: int) -> Behind | None:
        """Return the query for the keys of a row of the table; None to derive it from the table."""
        return None

    def copies(self, _state: S) -> Sequence[Copy]:
        """Return the panel's own copies of the row under the cursor, beside its name and the row."""
        return ()


class Charts:
    """Charts that have been drawn, as long as their report is shown."""

    def __init__(self) -> None:
        self._report: Report | None = None
        self._lines: dict[tuple[str, PanelState, Size], list[Line]] = {}

    def drawn(self, panel: AnalysePanel[S], report: Report, state: S, size: Size) -> list[Line]:
        """Return the chart of a panel, drawn once for a report, a size and the part of the state that it shows."""
        if report is not self._report:
            self._report, self._lines = report, {}
        shown = panel.charted(report, state)
        key = panel.id, shown, size
        lines = self._lines.get(key)
        if lines is None:
            if len(self._lines) >= KEPT_CHARTS:
                self._lines.clear()
            lines = self._lines[key] = panel.chart(report, shown, size)
        return lines

    def height(self, panel: AnalysePanel[S], report: Report, state: S, space: Size) -> int:
        """Return how many lines the chart takes of the space that it shares with the table; 0 for no chart."""
        lines = panel.chart_lines(space)
        if panel.keeps_height:
            return lines
        return min(lines, len(self.drawn(panel, report, state, Size(space.width, lines))))


@dataclass(slots=True)
class ReportStates(PanelStates):
    """The states of all panels, which outlive the screen, and their tables, which last as long as their report."""

    by_panel: dict[str, PanelState] = field(default_factory=dict)
    """By the ids of panels; a panel that has none is in its initial state."""
    orders: dict[str, str] = field(default_factory=dict)
    """The first order of tables, by panel and kind of table: `-keys` is the reverse."""
    tables: dict[str, Table] = field(default_factory=dict)
    """Tables of the last report, by panel and table."""
    report: Report | None = None
    baseline: Report | None = None
    """The earlier report that all tables are compared with."""
    earlier_tables: dict[str, Table] = field(default_factory=dict)
    """Its tables, by panel and table."""
    changes: ComparedReports | None = None
    """The comparison of both, as long as the reports stay."""
    charts: Charts = field(default_factory=Charts)

    def put(self, panel_id: str, state: PanelState | None) -> None:
        self.panel_id = panel_id
        if state is not None:
            self.by_panel[panel_id] = state

    def listed(self, panel: AnalysePanel[S], report: Report, state: S) -> Sequence[PanelTable]:
        """Return the tables of a panel; while two reports are compared, with their differences."""
        tables, before = panel.tables(report, state), self.baseline
        if before is None or not panel.lists_differences:
            return tables
        make, empty = partial(differences, before, report), literal("Nothing differs by 1 % or more")
        return *tables, PanelTable("differences", literal("what differs"), make, is_comparison=True, empty=empty)

    def chosen(self, panel: AnalysePanel[S], report: Report, state: S) -> PanelTable:
        tables = self.listed(panel, report, state)
        return next((one for one in tables if one.id == state.table_id), tables[0])

    def table(self, panel: AnalysePanel[S], report: Report, wanted: PanelTable, state: S) -> Table:
        """Return a table of a panel, cached, with its changes if there is an earlier report."""
        if report is not self.report:
            self.report, self.changes = report, None
            self.tables.clear()
        name = f"{panel.id} {wanted.id}"
        if name not in self.tables:
            table, before = wanted.make(), self.baseline
            if before is not None and not wanted.is_comparison:
                if self.changes is None:
                    self.changes = ComparedReports(before, report)
                if name not in self.earlier_tables:
                    same = next((one for one in panel.tables(before, state) if one.id == wanted.id), None)
                    nothing = replace(table, rows=(), subjects=())
                    self.earlier_tables[name] = nothing if same is None else same.make()
                table = self.changes.table(table, self.earlier_tables[name])
            self.tables[name] = table
        return self.tables[name]

    def forget(self, panel_id: str) -> None:
        """Drop the cached tables of a panel, so that they are made anew."""
        for name in [name for name in self.tables if name.startswith(f"{panel_id} ")]:
            del self.tables[name]

    def compare(self, baseline: Report | None) -> None:
        self.baseline, self.changes = baseline, None
        self.tables.clear()
        self.earlier_tables.clear()
