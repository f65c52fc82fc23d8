"""The Server screen on real servers: what a rule has found stands in the overview, and which rights are lacking."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.targets import target_of
from tests.server.test_denied import POOR, let_in
from tests.servers import Server
from tests.tui.visiting import visiting


@pytest.mark.slow
async def test_what_no_figure_is_about_stands_in_the_overview(valkey: Server, tmp_path: Path) -> None:
    with valkey.client(client_name="nightly") as client:
        for _ in range(12):
            client.keys("*")
        async with visiting(target_of(valkey), tmp_path) as visitor:
            await visitor.connected()
            await visitor.press("exclamation_mark")
            await visitor.until_shown("1 to watch", "commands in use that should not be", "KEYS was called 12 times")
            await visitor.press("6")
            await visitor.until_shown("largest query buffer", "Who sends KEYS 1")
            await visitor.press("left_square_bracket")
            await visitor.until_shown("nightly")
            await visitor.press("4")
            await visitor.until_shown("slow log from")


@pytest.mark.slow
async def test_a_user_who_may_nothing_is_told_which_rights_are_lacking(valkey: Server, tmp_path: Path) -> None:
    let_in(valkey, "+scan", "+ping", "+hello")
    async with visiting(target_of(valkey, **POOR), tmp_path) as visitor:
        await visitor.connected()
        await visitor.press("exclamation_mark")
        await visitor.until_shown("rtui acl --with health", "--with settings", "not known")
        assert "nothing wrong" not in visitor.text()
        for key, source in (("2", "INFO memory"), ("4", "SLOWLOG GET"), ("6", "INFO clients"), ("7", "CONFIG GET")):
            await visitor.press(key)
            await visitor.until_shown(f"denied: {source}" if key == "7" else source, "rtui acl --with ")
