"""What is asked before an analysis begins: whether one that was left is to go on, and whether it may cost money."""

from __future__ import annotations

from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.choice import ChoiceScreen
from tests.server.test_saved_analysis import SAVED
from tests.tui.analyse.analysing import analysing
from tests.tui.analyse.fixed_analysis import FixedAnalysis


async def test_the_next_analysis_asks_and_goes_on() -> None:
    source = FixedAnalysis()
    source.left = SAVED
    async with analysing(source) as user:
        for key in ("escape", "enter"):
            assert not source.asked
            await user.press("r")
            await user.until_shown("An analysis of 1 Jan 00:00 UTC stopped at 63%", "Go on from there", "Begin anew")
            await user.press(key)
            await user.until(lambda: not isinstance(user.screen.app.screen, ChoiceScreen))
        await user.until(lambda: source.asked == ["go on"])


async def test_it_may_begin_anew() -> None:
    source = FixedAnalysis()
    source.left = SAVED
    async with analysing(source) as user:
        await user.press("r")
        await user.until_shown("Begin anew")
        await user.press("down", "enter")
        await user.until(lambda: sorted(source.asked) == ["begin", "forget"])


async def test_one_that_can_not_go_on_is_said_and_forgotten() -> None:
    source = FixedAnalysis()
    source.left = SafeText("It can't go on: The server was restarted since.")
    async with analysing(source) as user:
        await user.press("enter")
        await user.until_shown("A new analysis", "The server was restarted since")
        assert source.asked == ["forget", "begin"]


async def test_where_commands_are_billed_the_user_is_asked_first() -> None:
    source = FixedAnalysis()
    source.bill = SafeText("Upstash bills each command: this takes up to 3,000, about 0.01 USD")
    async with analysing(source) as user:
        for keys in (("escape",), ("enter",), ("down", "enter")):
            assert not source.asked
            await user.press("r")
            await user.until_shown("Upstash bills each command", "Ask nothing", "Ask every key")
            await user.press(*keys)
            await user.until(lambda: not isinstance(user.screen.app.screen, ChoiceScreen))
        await user.until(lambda: source.asked == ["begin"])
