"""A chart of painted lines that tells where it was clicked."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.table import Subject
from rtui.tui.analyse.panel import Area, Choices, Listing, Panel, PanelBook
from rtui.tui.analyse.table_notes import listing_line, note_line, nothing_lines
from rtui.tui.kit.bars import Bar, TabBar
from rtui.tui.kit.line_view import LinePanel, MakeLines
from rtui.tui.kit.table import ReportTable


class Chart(LinePanel):
    """Lines over a table."""

    class Clicked(Message):
        """A cell of the chart was clicked."""

        def __init__(self, x: int, y: int) -> None:
            super().__init__()
            self.x = x
            self.y = y

    def on_click(self, event: events.Click) -> None:
        """Tell where."""
        self.post_message(self.Clicked(event.x, event.y))


AROUND: Final = 1
"""Lines below chart and table that a note takes."""


class PanelView(Vertical):
    """Shows a panel as its book has it; what is clicked in it comes as other choices."""

    BLANK = True

    class Chosen(Message):
        """The user has chosen something in the panel."""

        def __init__(self, choices: Choices) -> None:
            super().__init__()
            self.choices = choices

    def __init__(self, book: PanelBook, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.chart = Chart(id="chart")
        self.table = ReportTable(id="table")
        self._list_bar = TabBar(id="lists")
        self._offer = LinePanel(id="offer")
        self._note_bar = Bar(id="note")
        self._book = book
        self._shown: tuple[Report, Panel] | None = None
        self._since_s = 0.0

    def compose(self) -> ComposeResult:
        """Put the parts under each other."""
        yield self.chart
        yield self._list_bar
        yield self.table
        yield self._offer
        yield self._note_bar

    @property
    def subject(self) -> Subject:
        """What the row under the cursor is about, None where there is no row."""
        return None if self._shown is None else self.table.body.subject

    @property
    def chart_area(self) -> Area:
        """The cells of the chart."""
        return Area(self.chart.size.width, self.chart.size.height)

    def show(self, report: Report, panel: Panel, *, holds_order: bool = False) -> None:
        """Show a panel of a report; `holds_order` leaves rows in their places that the user has moved among."""
        self._shown = report, panel
        choices = self._book.choices_of(panel)
        listing = panel.listing(report, choices)
        table, look = self._book.table(report, panel, listing), self._book.look(panel, listing)
        self._show_chart(report, panel, choices)
        self.table.show(
            (panel.id, listing.id), table, look, listing.is_marked, made=listing.order, holds_order=holds_order
        )
        self._say(report, panel, listing)

    def show_offer(self, make: MakeLines) -> None:
        """Show these lines in place of a panel."""
        self._shown = None
        self.add_class("-nothing")
        self.chart.display = self._note_bar.display = False
        self._list_bar.tell(lambda _width: ())
        self._offer.say(make)

    def filter(self, needle: str) -> None:
        """Show only the rows with a text in them."""
        if self._shown is not None:
            report, panel = self._shown
            self.table.filter(needle)
            self._say(report, panel, panel.listing(report, self._book.choices_of(panel)))

    def follow(self, choices: Choices) -> None:
        """Have the chart show where the cursor is."""
        if self._shown is not None:
            self._show_chart(*self._shown, choices)

    def age(self, since_s: float) -> None:
        """Have the chart say how old it is: it shows what was asked for `since_s` seconds ago."""
        self._since_s = since_s
        if self._shown is not None and self._shown[1].grows_old:
            report, panel = self._shown
            self._show_chart(report, panel, self._book.choices_of(panel))

    def _say(self, report: Report, panel: Panel, listing: Listing) -> None:
        """Say which table it is, what one has to know of it, and why it has no rows where it has none."""
        listings, rows = panel.listings(report, self._book.choices_of(panel)), self.table.rows
        self._list_bar.tell(lambda width: listing_line(listings, listing, rows, width))
        self._note_bar.tell(lambda width: note_line(listing.note, rows.table.note, width))
        self._note_bar.display = bool(listing.note or rows.table.note)
        self.set_class(not len(rows), "-nothing")
        self._offer.say(lambda width: [] if len(rows) else nothing_lines(report, listing, rows, width))

    def _show_chart(self, report: Report, panel: Panel, choices: Choices) -> None:
        chart = panel.chart
        room = Area(self.size.width, max(0, self.size.height - AROUND))
        height = 0 if chart is None else panel.chart_height(report, choices, room)
        self.chart.display = height > 0
        if chart is not None and height:
            self.chart.styles.height = height
            aged = replace(choices, since_s=self._since_s)
            self.chart.say(lambda width: chart(report, aged, Area(width, height)))

    @on(TabBar.Chosen, "#lists")
    def _list_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        if self._shown is not None:
            report, panel = self._shown
            choices = self._book.choices_of(panel)
            listings = panel.listings(report, choices)
            if event.index < len(listings):
                self.post_message(self.Chosen(panel.listed(choices, listings[event.index])))

    @on(Chart.Clicked)
    def _chart_clicked(self, event: Chart.Clicked) -> None:
        event.stop()
        if self._shown is not None:
            report, panel = self._shown
            found = panel.hit and panel.hit(report, self._book.choices_of(panel), self.chart_area, event.x, event.y)
            if found is not None:
                self.post_message(self.Chosen(found))
