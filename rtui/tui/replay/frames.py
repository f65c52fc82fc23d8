"""Playing a recording: in the terminal, or as frames, which are what stood on the screen at a moment.

Frames are made without a terminal and as fast as they can be. The clock jumps from input to input, and each one is fed
once all replies before it have come and are painted. So the same recording makes the same frames, whatever the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from rich.segment import Segment

from rtui.server.chance import seeded
from rtui.server.recording.clock import ReplayClock
from rtui.server.recording.document import Cursor, Recording
from rtui.server.recording.player import Player
from rtui.server.wire.dial import dialled_by
from rtui.tui.kit.themes import Palette, terminal_palette
from rtui.tui.replay.app import ReplayApp

LOOK_S: Final = 0.02
QUIET_LOOKS: Final = 10
"""So many looks without any change, and the screen is as it will be: ten a second is how often screens look."""

MORE_LOOKS: Final = 100
"""So many while something is under way: a scan rests between its pages the longer, the slower the machine is."""

PATIENCE_S: Final = 30.0
"""How long it may take until nothing changes any more."""


def run_replay(recording: Recording, *, speed: float = 1.0, is_paused: bool = False) -> int:
    """Play until whoever watches leaves; returns the exit code."""
    clock = ReplayClock(speed=speed, is_paused=is_paused)
    player = Player(recording, clock.now_ms, clock.wait_until)
    app = ReplayApp(recording, clock=clock, player=player, palette=terminal_palette())
    with dialled_by(player.dial), seeded(recording.header.seed):
        return app.run(size=recording.size) or 0


class Frames:
    """A replay that stands between two inputs."""

    def __init__(self, app: ReplayApp) -> None:
        self.app = app

    async def play(self, until_ms: float = float("inf")) -> None:
        """Feed all inputs up to a time, and wait until the screen is as it was then."""
        app = self.app
        while (line := app.next_input) is not None and line.at <= until_ms:
            app.clock.jump(line.at)
            await self.settle()
            app.feed()
            if not isinstance(line, Cursor):
                await self.settle()
        app.clock.jump(min(until_ms, app.recording.length_ms))
        await self.settle()

    async def settle(self) -> None:
        """Wait until everything that was asked is answered and painted."""
        before, looks = -1, 0
        async with asyncio.timeout(PATIENCE_S):
            while looks < (MORE_LOOKS if self.app.is_under_way else QUIET_LOOKS):
                if self.app._exception is not None:
                    raise self.app._exception
                await asyncio.sleep(LOOK_S)
                is_painted = bool(self.app.screen_stack) and not self.app.screen._dirty_widgets
                now = self.app.player.answered
                looks = looks + 1 if now == before and is_painted else 0
                before = now

    def rows(self) -> list[list[Segment]]:
        """Return what stands on the screen, the segments of each row."""
        with self.app._context():
            strips = list(self.app.screen._compositor.render_strips())
        return [[segment for segment in strip if not segment.control] for strip in strips]

    def text(self) -> str:
        """Return what stands on the screen, a line a row."""
        lines = ["".join(segment.text for segment in row) for row in self.rows()]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def svg(self) -> str:
        """Return a picture of the screen."""
        return self.app.export_screenshot(title="rtui", simplify=True)


@asynccontextmanager
async def frames(recording: Recording, *, palette: Palette = Palette.TRUE) -> AsyncIterator[Frames]:
    """Give a replay without a terminal that stands at its beginning."""
    clock = ReplayClock(is_paused=True)
    player = Player(recording, clock.now_ms)
    app = ReplayApp(recording, clock=clock, player=player, palette=palette, feeds_itself=False)
    with dialled_by(player.dial), seeded(recording.header.seed):
        async with app.run_test(size=recording.size, notifications=True):
            shown = Frames(app)
            await shown.settle()
            yield shown


async def picture_of(recording: Recording, until_ms: float, *, is_svg: bool) -> str:
    """Return what stood on the screen at a time, as a picture or as text."""
    async with frames(recording) as shown:
        await shown.play(until_ms)
        return shown.svg() if is_svg else shown.text()
