"""All screens together: their commands, for help, keys and settings, and their style sheets."""

from __future__ import annotations

from textual import app, containers, screen, scroll_view, widget, widgets
from textual.command import CommandPalette
from textual.scrollbar import ScrollBar

from rtui.tui.analyse.report_panel import ANALYSE_COMMANDS
from rtui.tui.browse import detail_pane, key_tree, value_pane, value_view
from rtui.tui.browse.commands import BROWSE_COMMANDS
from rtui.tui.connect import CONNECT_COMMANDS
from rtui.tui.find.found_view import FIND_COMMANDS, FoundBody
from rtui.tui.kit import bars, line_view, panel_view, table
from rtui.tui.kit.command import APP_COMMANDS, ScreenCommand
from rtui.tui.kit.textual_private import Toast
from rtui.tui.kit.themes import CSS_FILE
from rtui.tui.log.screen import LOG_COMMANDS, LogView
from rtui.tui.server.panels import SERVER_COMMANDS


def all_css() -> str:
    """Return the application's sheet and those of every widget it uses, one after the other."""
    sources: tuple[type, ...] = (
        app.App, screen.Screen, screen.ModalScreen, widget.Widget, scroll_view.ScrollView, containers.Vertical,
        containers.Horizontal, widgets.Input, widgets.OptionList, widgets.SelectionList, Toast, ScrollBar,
        CommandPalette, line_view.LinePanel, bars.Bar, key_tree.KeyTree, line_view.RowsView, detail_pane.DetailPane,
        value_pane.ValuePane, value_view.ValuePrompt, value_view.ValueView,
        line_view.ScrollingPanel, bars.TabBar, panel_view.PanelView,
        table.TableBody, table.ReportTable, LogView, FoundBody,
    )  # fmt: skip
    return "\n".join([*(str(getattr(source, "DEFAULT_CSS", "")) for source in sources), CSS_FILE.read_text("utf-8")])


def command_sets() -> tuple[tuple[ScreenCommand, ...], ...]:
    """Return the commands of each screen, in the order of the help screen, with those of the application."""
    sets = (BROWSE_COMMANDS, ANALYSE_COMMANDS, FIND_COMMANDS, LOG_COMMANDS, SERVER_COMMANDS, CONNECT_COMMANDS)
    return tuple((*commands, *APP_COMMANDS) for commands in sets)


def all_commands() -> tuple[ScreenCommand, ...]:
    """Return all commands of the interface, in the order of the help screen."""
    own = {one.action: one for commands in reversed(command_sets()) for one in reversed(commands)}
    shared = {command.action for command in APP_COMMANDS}
    return (*(one for one in reversed(own.values()) if one.action not in shared), *APP_COMMANDS)
