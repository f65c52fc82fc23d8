"""All style sheets that a theme's values go into: a theme is tried against them before it may be chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Final

CSS_FILE: Final = Path(__file__).parent / "rtui.tcss"
"""The application's own sheet."""


def all_css() -> str:
    """Return the application's sheet and those of every widget it uses, one after the other."""
    from textual import app, containers, screen, scroll_view, widget, widgets  # noqa: PLC0415 - for user themes only
    from textual.command import CommandPalette  # noqa: PLC0415
    from textual.scrollbar import ScrollBar  # noqa: PLC0415
    from textual.widgets._toast import Toast  # noqa: PLC0415

    from rtui.tui.widgets import (  # noqa: PLC0415
        bars,
        chart,
        detail_pane,
        key_tree,
        line_panel,
        panel_view,
        report_table,
        rows_view,
        tab_bar,
        table_body,
    )  # fmt: skip

    sources: tuple[type, ...] = (
        app.App, screen.Screen, screen.ModalScreen, widget.Widget, scroll_view.ScrollView, containers.Vertical,
        containers.Horizontal, widgets.Input, widgets.OptionList, widgets.SelectionList, Toast, ScrollBar,
        CommandPalette, line_panel.LinePanel, bars.Bar, key_tree.KeyTree, rows_view.RowsView, detail_pane.DetailPane,
        detail_pane.DetailBody, tab_bar.TabBar, chart.Chart, panel_view.PanelView,
        table_body.TableBody, report_table.ReportTable,
    )  # fmt: skip
    return "\n".join([*(str(getattr(source, "DEFAULT_CSS", "")) for source in sources), CSS_FILE.read_text("utf-8")])
