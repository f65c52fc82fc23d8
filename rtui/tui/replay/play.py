"""Playing a recording in the terminal, or making a picture of it."""

from __future__ import annotations

from rtui.server.chance import seeded
from rtui.server.recording.clock import ReplayClock
from rtui.server.recording.document import Recording
from rtui.server.recording.player import Player
from rtui.server.wire.dial import dialled_by
from rtui.tui.kit.themes import terminal_palette
from rtui.tui.replay.animation import Frame, animated_svg
from rtui.tui.replay.app import ReplayApp
from rtui.tui.replay.frames import frames
from rtui.tui.replay.replay_line import input_text


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


async def animation_of(recording: Recording, until_ms: float = float("inf"), *, title: str = "rtui") -> str:
    """Return what stood on the screen until a time, as an animated picture with a frame for each thing that was done.

    Without animation it shows the frame in which most was to be read.
    """
    taken: list[Frame] = []
    async with frames(recording) as shown:

        def take() -> None:
            rows = tuple(map(tuple, shown.rows()))
            fed = shown.app.fed
            caption = input_text(recording.inputs[fed - 1]) if fed else ""
            taken.append(Frame(shown.app.clock.now_ms(), caption, rows))

        take()
        await shown.play(until_ms, each=take)
    size = len(taken[0].rows)
    kept = [frame for frame in taken if len(frame.rows) == size]
    most = max(range(len(kept)), key=lambda at: sum(len(one.text.strip()) for row in kept[at].rows for one in row))
    return animated_svg(kept, title=title, still=most)
