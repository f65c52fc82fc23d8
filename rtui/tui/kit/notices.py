"""What is said when rtui itself fails: where, but nothing of what it was working on, which may be secret or hostile."""

from __future__ import annotations

import traceback
from pathlib import Path

from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import PatternError
from rtui.server.guard.command import GuardError
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.tasks import as_rtui_error
from rtui.tui.kit.format import display_text

MOST_FRAMES = 12
"""The innermost frames are told, so many of them."""


def failure_text(error: BaseException) -> SafeText:
    """Return the kind of the error and where it came from; neither its message nor any value."""
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    places = [f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames]
    lines = ["rtui has failed, the server is unharmed.", f"{type(error).__name__} at", *places]
    return SafeText("\n".join(display_text(line) for line in lines))


def failure_notice(error: BaseException) -> SafeText:
    """Return one line for a failure that costs only what was asked for: its words where they are meant to be read.

    What nobody foresaw is logged, and the line says where in rtui it was.
    """
    if isinstance(error, RtuiError):
        return error.happened
    if isinstance(error, PatternError | GuardError):
        return display_text(str(error))
    return as_rtui_error(error, "a worker of the interface").happened
