"""One line for something that was asked for and failed, while everything else goes on."""

from __future__ import annotations

from rtui.keyspace.display import SafeText
from rtui.keyspace.glob import PatternError
from rtui.server.errors import RtuiError
from rtui.server.guard import GuardError
from rtui.server.tasks import foreseen
from rtui.tui.shown import display_text


def failure_notice(error: BaseException) -> SafeText:
    """Return one line for a failure that costs only what was asked for: its words where they are meant to be read.

    What nobody foresaw is logged, and the line says where in rtui it was.
    """
    if isinstance(error, RtuiError):
        return error.happened
    if isinstance(error, PatternError | GuardError):
        return display_text(str(error))
    return foreseen(error, "a worker of the interface").happened
