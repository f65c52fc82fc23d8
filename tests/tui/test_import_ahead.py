"""What the first keys need is imported while no key is pressed, and not before the first screen."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rtui.tui.terminal_app import AHEAD, REST_S, import_ahead
from tests.servers import Server

FIRST_SCREEN = """
import json, sys
import rtui.tui.run, rtui.server.browsing.session, rtui.tui.browse.screen
json.dump([*sys.modules], sys.stdout)
"""

KEYS = """
import asyncio, json, sys
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import parse_target
from rtui.tui import terminal_app
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.settings import SettingsFile

async def main():
    terminal_app.REST_S = 0.0
    app, more = RtuiApp(BrowseOptions(target=parse_target(sys.argv[1]))), {}
    async with app.run_test(size=(120, 36)) as pilot:
        while not isinstance(app.screen, BrowseScreen) or not app._session.status.complete:
            await pilot.pause(0.01)
        await app._importing
        for key in ("colon", "a", "L", "slash", "question_mark"):
            before = {*sys.modules}
            await pilot.press(key)
            await pilot.pause()
            more[key] = sorted(name for name in {*sys.modules} - before if name.startswith("rtui."))
            await pilot.press("escape")
            await pilot.pause()
    json.dump(more, sys.stdout)

asyncio.run(main())
"""


def run(program: str, *arguments: str) -> object:
    command = [sys.executable, "-c", program, *arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_the_first_screen_does_without() -> None:
    loaded = run(FIRST_SCREEN)
    assert isinstance(loaded, list)
    assert {*AHEAD} & {*loaded} == set()


@pytest.mark.slow
def test_the_first_keys_import_nothing_more(valkey: Server) -> None:
    valkey.admin.set("a:b", 1)
    more = run(KEYS, valkey.url)
    assert more == {key: [] for key in ("colon", "a", "L", "slash", "question_mark")}


async def test_nothing_is_imported_while_keys_are_pressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_ahead.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    loop = asyncio.get_running_loop()
    asked: list[bool] = []

    def last_key_s() -> float:
        asked.append("imported_ahead" in sys.modules)
        return loop.time() - REST_S + (0.001 if len(asked) < 5 else -0.001)

    await import_ahead(last_key_s, ["imported_ahead"])
    assert asked == [False] * 5
    assert "imported_ahead" in sys.modules
    monkeypatch.delitem(sys.modules, "imported_ahead")
