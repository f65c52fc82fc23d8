"""What is said when rtui itself fails: where, but nothing of what it was working on, which may be secret or hostile."""

from __future__ import annotations

import traceback
from pathlib import Path

from rtui.keyspace.display import SafeText, display_text

MOST_FRAMES = 12
"""The innermost frames are told, so many of them."""


def failure_text(error: BaseException) -> SafeText:
    """Return the kind of the error and where it came from; neither its message nor any value."""
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    places = [f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames]
    lines = ["rtui has failed, the server is unharmed.", f"{type(error).__name__} at", *places]
    return SafeText("\n".join(display_text(line) for line in lines))
