"""All commands of the interface, in the order of the help screen."""

from __future__ import annotations

from typing import Final

from rtui.tui.analyse.commands import ANALYSE_COMMANDS
from rtui.tui.browse.commands import BROWSE_COMMANDS
from rtui.tui.connect.screen import CONNECT_COMMANDS
from rtui.tui.kit.command import APP_COMMANDS

COMMANDS: Final = (*BROWSE_COMMANDS, *ANALYSE_COMMANDS, *CONNECT_COMMANDS, *APP_COMMANDS)
