"""The line below a replay: where it is, how fast it runs, what was pressed, and the keys of whoever watches."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, set_cell_size

from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.recording.clock import ReplayClock
from rtui.server.recording.document import Cursor, Input, Key, Mouse, Paste, Recording

REPLAY_KEYS: Final[dict[str, frozenset[str]]] = {
    "pause": frozenset({"space"}),
    "step": frozenset({"full_stop", "right"}),
    "faster": frozenset({"plus", "equals_sign"}),
    "slower": frozenset({"minus"}),
    "leave": frozenset({"q", "ctrl+c", "ctrl+q", "escape"}),
}
"""The keys of a replay."""

HELP: Final = ("space pause · . next key · + - speed · q leave ", "space . + - q ", "")
"""The keys in words, and shorter for narrow terminals."""

LONGEST_PASTE: Final = 20


def replay_line(recording: Recording, clock: ReplayClock, pressed: Input | None, width: int) -> str:
    """Return the line in exactly `width` cells."""
    now_ms, length_ms = min(clock.now_ms(), recording.length_ms), recording.length_ms
    is_over = now_ms >= length_ms
    state = "the end" if is_over else "paused" if clock.is_paused else f"×{clock.speed:g}"
    cut = " (cut off)" if recording.end is None else ""
    left = f" replay  {minutes(now_ms)} / {minutes(length_ms)}{cut}  {state}"
    if pressed is not None:
        left += f"   {input_text(pressed)}"
    room = width - cell_len(left) - 2
    keys = next((one for one in HELP if len(one) <= room), "")
    return set_cell_size(left, max(0, width - len(keys))) + keys


def minutes(at_ms: float) -> str:
    """Return a time as `1:02.5`."""
    tenths = int(at_ms / 100)
    return f"{tenths // 600}:{tenths // 10 % 60:02}.{tenths % 10}"


def input_text(line: Input) -> SafeText:
    """Return what was done, in a few words."""
    if isinstance(line, Key):
        return display_text(f"key {line.key}" if line.character in (None, " ") else f"key {line.character}")
    if isinstance(line, Paste):
        return display_text(f"pasted {line.text[:LONGEST_PASTE]}")
    if isinstance(line, Mouse):
        return display_text(f"mouse {line.what.replace('_', ' ')} at {line.x}, {line.y}")
    if isinstance(line, Cursor):
        return display_text("cursor")
    return display_text(f"terminal {line.width}×{line.height}")
