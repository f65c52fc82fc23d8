"""What the user has chosen in each panel and how each table is looked at, with the tables of one report made once."""

from __future__ import annotations

from dataclasses import dataclass, field

from rtui.analysis.report import Report
from rtui.analysis.tables.table import Table
from rtui.tui.panel import Choices, Listing, Panel
from rtui.tui.table_rows import Look


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
