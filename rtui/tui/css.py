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

    from rtui.tui.analyse import panel_view  # noqa: PLC0415
    from rtui.tui.browse import key_tree  # noqa: PLC0415
    from rtui.tui.kit import bars, detail_pane, line_view, rows_view, table  # noqa: PLC0415

    sources: tuple[type, ...] = (
        app.App, screen.Screen, screen.ModalScreen, widget.Widget, scroll_view.ScrollView, containers.Vertical,
        containers.Horizontal, widgets.Input, widgets.OptionList, widgets.SelectionList, Toast, ScrollBar,
        CommandPalette, line_view.LinePanel, bars.Bar, key_tree.KeyTree, rows_view.RowsView, detail_pane.DetailPane,
        detail_pane.DetailBody, bars.TabBar, panel_view.Chart, panel_view.PanelView,
        table.TableBody, table.ReportTable,
    )  # fmt: skip
    return "\n".join([*(str(getattr(source, "DEFAULT_CSS", "")) for source in sources), CSS_FILE.read_text("utf-8")])
