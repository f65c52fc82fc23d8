"""Playing a recording in the terminal, or making a picture of it."""

from __future__ import annotations

from rtui.server.chance import seeded
from rtui.server.recording.clock import ReplayClock
from rtui.server.recording.document import Recording
from rtui.server.recording.player import Player
from rtui.server.wire.dial import dialled_by
from rtui.tui.kit.themes import terminal_palette
from rtui.tui.replay.app import ReplayApp
from rtui.tui.replay.frames import frames


def run_replay(recording: Recording, *, speed: float = 1.0, is_paused: bool = False) -> int:
    """Play until whoever watches leaves; returns the exit code."""
    clock = ReplayClock(speed=speed, is_paused=is_paused)
    player = Player(recording, clock.now_ms, clock.wait_until)
    app = ReplayApp(recording, clock=clock, player=player, palette=terminal_palette())
    with dialled_by(player.dial), seeded(recording.header.seed):
        return app.run(size=recording.size) or 0


async def picture_of(recording: Recording, until_ms: float, *, is_svg: bool) -> str:
    """Return what stood on the screen at a time, as a picture or as text."""
    async with frames(recording) as shown:
        await shown.play(until_ms)
        return shown.svg() if is_svg else shown.text()
