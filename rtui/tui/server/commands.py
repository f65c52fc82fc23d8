"""The commands of the Server screen, in the order of the help screen."""

from __future__ import annotations

from functools import partial
from typing import Final

from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand
from rtui.tui.kit.table import MOVE_COMMANDS, SORT_COMMANDS
from rtui.tui.server.panels import NODES, PANELS

_server = partial(ScreenCommand, group=Group.SERVER, owner=Owner.SERVER)

SERVER_COMMANDS: Final = (
    *(
        _server(
            panel.id, (panel.key,), panel.short, panel.help, call=f"show_panel('{panel.id}')",
            when=(Condition.CLUSTER,) if panel.id == NODES else (),
        )
        for panel in PANELS
    ),
    _server("next_panel", ("tab",), "Next panel", "Show the next panel."),
    _server(
        "previous_panel", ("shift+tab",), "Panel before", "Show the panel before.", label="⇧tab", call="next_panel(-1)",
    ),
    *(command for command in MOVE_COMMANDS if command.id != "open"),
    _server(
        "open", ("enter", "right", "l"), "Open",
        "Go to the key, the keys of the pattern, the panel or the node that the row is about, else show the whole row.",
        when=(Condition.HAS_ROWS,), footer=1,
    ),
    _server(
        "whole_row", (), "Whole row", "Show everything that is known of the row.", when=(Condition.HAS_ROWS,),
    ),
    _server(
        "next_list", ("right_square_bracket",), "Next list", "Show the next list of the panel.",
        when=(Condition.SEVERAL_LISTS,), footer=3,
    ),
    _server(
        "previous_list", ("left_square_bracket",), "List before", "Show the list before.",
        when=(Condition.SEVERAL_LISTS,), call="next_list(-1)",
    ),
    *SORT_COMMANDS,
    _server("filter", ("slash",), "Filter", "Show the rows with a text in them.", when=(Condition.HAS_ROWS,), footer=8),
    _server(
        "copy_row", ("y",), "Copy", "Copy the name of the row, or the whole row where it has none.",
        when=(Condition.HAS_ROWS,),
    ),
    _server("copy_menu", ("Y",), "Copy as…", "Choose what to copy of the row.", when=(Condition.HAS_ROWS,)),
    _server(
        "write", ("w",), "Write", "Write the list to a .csv, .md or .json file, or all samples to a .jsonl file.",
        when=(Condition.HAS_ROWS,), footer=9, call="export",
    ),
    _server(
        "ask", ("r",), "Ask again", "Ask the server again now; it is asked every few seconds anyway.",
        when=(Condition.LIVE,), footer=10,
    ),
    _server("back", ("escape",), "Back", "Go back one step: end the filter, show all nodes, or leave.", footer=11),
)  # fmt: skip
