"""The commands of the clients of a server, in the order of the help screen."""

from __future__ import annotations

from functools import partial
from typing import Final

from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand
from rtui.tui.kit.table import MOVE_COMMANDS, SORT_COMMANDS

_clients = partial(ScreenCommand, group=Group.CLIENTS, owner=Owner.CLIENTS)

CLIENTS_COMMANDS: Final = (
    *(command for command in MOVE_COMMANDS if command.id != "open"),
    _clients(
        "whole_row", ("enter", "right", "l"), "Whole row", "Show everything that is known of the row.",
        when=(Condition.HAS_ROWS,), footer=1,
    ),
    _clients(
        "next_list", ("tab", "right_square_bracket"), "Next list", "Show the next list: KEYS, slow commands, clients.",
        footer=2,
    ),
    _clients(
        "previous_list", ("shift+tab", "left_square_bracket"), "List before", "Show the list before.",
        label="⇧tab [", call="next_list(-1)",
    ),
    _clients("filter", ("slash",), "Filter", "Show the rows with a text in them.", footer=3),
    *SORT_COMMANDS,
    _clients(
        "copy_row", ("y",), "Copy", "Copy the row, its cells apart by tabs.", when=(Condition.HAS_ROWS,), footer=8,
    ),
    _clients("refresh", ("r",), "Ask again", "Ask the server again now; it is asked every few seconds anyway."),
    _clients("back", ("escape",), "Back", "End the filter, or leave.", footer=11),
)  # fmt: skip
