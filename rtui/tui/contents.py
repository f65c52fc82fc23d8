"""What all screens have together: their commands, for help, keys and settings, and their style sheets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.command import CommandPalette

from rtui.keyspace.text.display import SafeText
from rtui.tui.connect.screen import CONNECT_COMMANDS
from rtui.tui.kit.command import APP_COMMANDS, ScreenCommand

if TYPE_CHECKING:
    from rtui.tui.help.pages import HelpPage

CSS_FILE: Final = Path(__file__).parent / "rtui.tcss"
"""The application's own style sheet."""


def all_css() -> str:
    """Return the application's sheet and those of every widget it uses, one after the other."""
    from textual import app, containers, screen, scroll_view, widget, widgets  # noqa: PLC0415 - for user themes only
    from textual.scrollbar import ScrollBar  # noqa: PLC0415

    from rtui.tui.browse import detail_pane, key_tree, value_pane, value_view  # noqa: PLC0415
    from rtui.tui.find import found_view  # noqa: PLC0415
    from rtui.tui.kit import bars, line_view, panel_view, table  # noqa: PLC0415
    from rtui.tui.kit.textual_private import Toast  # noqa: PLC0415
    from rtui.tui.log import screen as log_screen  # noqa: PLC0415

    sources: tuple[type, ...] = (
        app.App, screen.Screen, screen.ModalScreen, widget.Widget, scroll_view.ScrollView, containers.Vertical,
        containers.Horizontal, widgets.Input, widgets.OptionList, widgets.SelectionList, Toast, ScrollBar,
        CommandPalette, line_view.LinePanel, bars.Bar, key_tree.KeyTree, line_view.RowsView, detail_pane.DetailPane,
        value_pane.ValuePane, value_view.ValuePrompt, value_view.ValueView,
        line_view.ScrollingPanel, bars.TabBar, panel_view.PanelView,
        table.TableBody, table.ReportTable, log_screen.LogView,
        found_view.FoundBody,
    )  # fmt: skip
    return "\n".join([*(str(getattr(source, "DEFAULT_CSS", "")) for source in sources), CSS_FILE.read_text("utf-8")])


def help_topics() -> tuple[HelpPage, ...]:
    """Return the pages of the help about what rtui does."""
    from rtui.tui.goto.screen import NARROWING  # noqa: PLC0415 - for the help
    from rtui.tui.help.pages import (  # noqa: PLC0415
        conventions_page,
        rules_page,
        topics,
    )
    from rtui.tui.server.panels import PANELS  # noqa: PLC0415

    places = [(SafeText(f"{word} …"), text) for word, (_, text) in NARROWING.items()]
    panels = [(SafeText(f"{panel.key} {panel.short}"), SafeText(panel.help)) for panel in PANELS]
    return (*topics(places, panels), rules_page(), conventions_page())


def command_sets() -> tuple[tuple[ScreenCommand, ...], ...]:
    """Return the commands that each screen has, in the order of the help screen, with those of the application."""
    from rtui.tui.analyse.report_panel import ANALYSE_COMMANDS  # noqa: PLC0415 - for the help
    from rtui.tui.browse.commands import BROWSE_COMMANDS  # noqa: PLC0415
    from rtui.tui.find.found_view import FIND_COMMANDS  # noqa: PLC0415
    from rtui.tui.log.screen import LOG_COMMANDS  # noqa: PLC0415
    from rtui.tui.server.panels import SERVER_COMMANDS  # noqa: PLC0415

    sets = (BROWSE_COMMANDS, ANALYSE_COMMANDS, FIND_COMMANDS, LOG_COMMANDS, SERVER_COMMANDS, CONNECT_COMMANDS)
    return tuple((*commands, *APP_COMMANDS) for commands in sets)


def all_commands() -> tuple[ScreenCommand, ...]:
    """Return all commands of the interface, in the order of the help screen."""
    own = {one.action: one for commands in reversed(command_sets()) for one in reversed(commands)}
    shared = {command.action for command in APP_COMMANDS}
    return (*(one for one in reversed(own.values()) if one.action not in shared), *APP_COMMANDS)
