"""A session that was recorded on a real server shows the same screens ever after."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from rtui.server.recording.document import read_recording
from rtui.tui.replay import frames

TOUR = Path(__file__).parent / "recordings" / "tour.jsonl.gz"

MOMENTS_S = {"a key": 6.0, "found": 12.0, "big keys": 15.2, "memory": 17.2}


async def shown_at_moments() -> dict[str, list[str]]:
    """What stands on the screen, without title and status, which tell what the moment costs."""
    found = {}
    async with frames(read_recording(TOUR)) as replay:
        for name, at_s in MOMENTS_S.items():
            await replay.play(1000 * at_s)
            found[name] = replay.text().splitlines()[1:-2]
    return found


def test_a_recorded_tour(snapshot: SnapshotAssertion) -> None:
    assert asyncio.run(shown_at_moments()) == snapshot


@pytest.mark.slow
def test_an_analysis_is_played_by_a_process_that_may_do_nothing_but_show() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POLARS_")}
    line = [sys.executable, "-m", "rtui", "replay", str(TOUR), "--to", "-", "--at", "17.2"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert "37.0 KiB" in done.stdout
    assert "complete  246 keys" in done.stdout
