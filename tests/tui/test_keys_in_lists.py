"""Keys that come one after the other into a list act in that order."""

from __future__ import annotations

import pytest
from textual import events
from textual.keys import _character_to_key

from rtui.keyspace.rows.ordering import Sort
from tests.tui.browsing import browsing, until


@pytest.mark.parametrize(
    ("keys", "sort"), [("sj\r", Sort.NAME), ("sjj\r", Sort.MEMORY), ("sGk\r", Sort.IDLE), ("sGg\r", Sort.COUNT)]
)
async def test_keys_that_are_typed_without_a_pause_choose_what_they_say(keys: str, sort: Sort) -> None:
    async with browsing() as user:
        for key in keys:
            name = "enter" if key == "\r" else _character_to_key(key)
            user.pilot.app.post_message(events.Key(name, None if key == "\r" else key))
        await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
        await user.until(lambda: user.screen.tree_pane.names.rows.sort_order is sort)
