"""Record the session of `test_replay.py`: `python -m tests.snapshots.recordings.make`, on a real server of its own."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from random import Random

from rtui.server.options import BrowseOptions
from rtui.server.recording.recorder import Recorder
from rtui.server.wall_clock import seeded
from rtui.server.wire.target import Target
from rtui.tui.app import RtuiApp
from tests.servers import Server, binaries, running
from tests.tui.visiting import visiting

FILE = Path(__file__).parent / "tour.jsonl.gz"

STEPS = ("right", "down", "right", "down", "down", "slash", *"shop", "enter", "a", "r", "3", "5", "2", "escape")
"""Keys, a second apart."""


def plant(server: Server) -> None:
    rng = Random(1)
    with server.client() as client:
        pipeline = client.pipeline(transaction=False)
        for number in range(120):
            pipeline.set(f"session:{rng.getrandbits(64):016x}", "x" * rng.randrange(20, 200), ex=3600 + number)
            pipeline.hset(f"shop:{{user{number}}}:cart", mapping={"item": number, "amount": rng.randrange(9)})
            pipeline.rpush(f"shop:orders:{2020 + number % 6}", number)
        pipeline.execute()


async def take(server: Server, folder: Path) -> None:
    recorder = Recorder(FILE)
    app = RtuiApp(BrowseOptions(target=Target(port=server.port), resume=False), recorder=recorder)
    with seeded(recorder.seed):
        async with visiting(Target(port=server.port), folder, size=(100, 30), app=app) as visitor:
            await visitor.whole()
            for key in STEPS:
                await asyncio.sleep(1)
                await visitor.press(key)
            await asyncio.sleep(1)
            await visitor.press("q")
            await visitor.until(lambda: not app.is_running, "the end")
    recorder.close()


def main() -> None:
    FILE.unlink(missing_ok=True)
    with running(binaries()["redis-7.0"]) as server, tempfile.TemporaryDirectory() as folder:
        plant(server)
        asyncio.run(take(server, Path(folder)))


if __name__ == "__main__":
    main()
