"""What a panel of the Analyse screen is: tables made from a report, one at a time, and maybe a chart over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.table import Path, Subject, Table
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.time_axis import Horizon
from rtui.tui.kit.styled_text import Line, own
from rtui.tui.kit.table_rows import Look, Order

NOTHING: Final = own("")

NOTHING_TO_LIST: Final = own("Nothing to list")
"""What an empty table means where there is nothing better to say."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user has chosen in a panel; the panel's functions take it together with the report."""

    list_id: str = ""
    """Which of the panel's tables; the first one where this names none."""
    subject: Subject = None
    """What the row under the cursor is about."""
    path: Path = ()
    """The namespace that is zoomed into."""
    by_length: bool = False
    preset: str | None = None
    """The thresholds that rows are marked by, None for those of the report."""
    nodes: int = 6
    """How many nodes a cluster is imagined to have."""
    by_bytes: bool = False
    """Whether slots are drawn by their bytes instead of their keys."""
    pointed: tuple[Subject, int] | None = None
    """A slot that was chosen in the chart, and the subject at that time: it holds until the table's cursor moves on."""
    horizon: Horizon = Horizon.HOUR
    """How far ahead expiries are drawn."""
    since_s: float = 0.0
    """No choice but a fact of the moment: seconds that have passed since what the chart shows was asked for."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One table of a panel."""

    id: str
    """Names the table among all that the panel could ever show, so that it can be kept and found again."""
    title: SafeText
    make: Callable[[], Table]
    """Makes the table; called once for each report."""
    is_marked: Callable[[Table, int], bool] | None = None
    """Whether a row of the table, by its place in it, stands out."""
    note: Line = ()
    """What stands beside the titles of the tables."""
    order: Order | None = None
    """By which column the table is made in order, None where it is by none."""
    needs: tuple[str, ...] = ()
    """The facts, by their names in the head of a report, without which it has no rows."""
    among: SafeText = NOTHING
    """What its rows are the first of, such as `largest`, where it lists only so many; empty where it lists all."""
    nothing: SafeText = NOTHING_TO_LIST
    """What it means that it has no rows though these facts are known."""


class Area(NamedTuple):
    """The cells that a chart has."""

    width: int
    height: int


Listings = Callable[[Report, Choices], tuple[Listing, ...]]
Chart = Callable[[Report, Choices, Area], list[Line]]
ChartHeight = Callable[[Report, Choices, Area], int]
Step = Callable[[Report, Choices], Choices | None]
Hit = Callable[[Report, Choices, Area, int, int], Choices | None]
Move = Callable[[Report, Choices, Area, int, int], Choices]


def nowhere(_report: Report, _choices: Choices) -> None:
    """Say that there is no such step."""


def no_lines(_report: Report, _choices: Choices, _room: Area) -> int:
    """Take no room for a chart."""
    return 0


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel, as it is declared."""

    id: str
    title: SafeText
    key: str
    """The key that shows it."""
    help: str
    """One sentence, for the help screen."""
    listings: Listings
    """The tables to choose from; cheap, since nothing is made yet."""
    chart: Chart | None = None
    """Lines of exactly the area's width, at most of its height."""
    chart_height: ChartHeight = no_lines
    """How many lines the chart wants of an area that it shares with the table."""
    step_in: Step = nowhere
    """Where Enter on the row under the cursor leads within the panel; None: nowhere."""
    step_out: Step = nowhere
    """Where Escape leads within the panel; None: out of it."""
    hit: Hit | None = None
    """What a click on a cell of the chart chooses."""
    move: Move | None = None
    """Where the cursor of the chart gets by so many columns and lines."""
    grows_old: bool = False
    """Whether the chart says how old its figures are."""
    switches: frozenset[str] = frozenset()
    """Names of the fields of `Choices` that commands change here."""

    def listing(self, report: Report, choices: Choices) -> Listing:
        """Return the chosen table."""
        found = self.listings(report, choices)
        return next((one for one in found if one.id == choices.list_id), found[0])

    def turned(self, report: Report, choices: Choices, step: int) -> Choices:
        """Return the choices with the table so many places further."""
        found = self.listings(report, choices)
        at = next((at for at, one in enumerate(found) if one.id == choices.list_id), 0)
        return self.listed(choices, found[(at + step) % len(found)])

    def listed(self, choices: Choices, listing: Listing) -> Choices:
        """Return the choices with another table."""
        return replace(choices, list_id=listing.id, subject=None)


BY_LENGTH: Final = "by_length"
PRESET: Final = "preset"
NODES: Final = "nodes"
HORIZON: Final = "horizon"
HOT_SESSION: Final = "hot_session"


@dataclass(slots=True)
class PanelBook:
    """Keeps choices for as long as the screen lives, and tables for as long as their report."""

    panel_id: str = "memory"
    """The panel that is shown."""
    choices: dict[str, Choices] = field(default_factory=dict)
    """By the id of a panel."""
    _looks: dict[str, Look] = field(default_factory=dict)
    _tables: dict[str, Table] = field(default_factory=dict)
    _report: Report | None = None

    def choices_of(self, panel: Panel) -> Choices:
        """Return what is chosen in a panel."""
        return self.choices.setdefault(panel.id, Choices())

    def choose(self, panel: Panel, choices: Choices) -> None:
        """Take up what was chosen in a panel."""
        self.choices[panel.id] = choices

    def look(self, panel: Panel, listing: Listing) -> Look:
        """Return how a table of a panel is looked at."""
        return self._looks.setdefault(f"{panel.id} {listing.id}", Look())

    def table(self, report: Report, panel: Panel, listing: Listing) -> Table:
        """Return a table of a panel, made when it is asked for the first time."""
        if report is not self._report:
            self._report = report
            self._tables.clear()
        name = f"{panel.id} {listing.id}"
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = listing.make()
        return table
