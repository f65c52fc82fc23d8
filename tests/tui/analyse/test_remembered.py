"""What is remembered of an analysis' panels: the order of tables, and the colours of the chart."""

from __future__ import annotations

from pathlib import Path

from rtui.tui.analyse.memory_panel import Colouring
from rtui.tui.kit.settings import SettingsFile
from tests.made_report import made_report
from tests.tui.analyse.analysing import analysing
from tests.tui.analyse.fixed_analysis import FixedAnalysis


def at_memory(path: Path | None = None) -> SettingsFile:
    """Settings of a user who has left the analysis at the Memory panel."""
    settings = SettingsFile(path)
    settings.choose("panel", "memory")
    return settings


async def test_the_order_of_a_table_is_remembered_by_panel_and_kind_of_table(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    settings = at_memory(path)
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        made = user.rows
        await user.press("greater_than_sign", "S")
        await user.until(lambda: settings.settings.tables == {"memory.namespaces": "-namespace"})
        chosen = user.rows
        assert chosen != made
        await user.press("enter")
        await user.until(lambda: user.screen.view.order == "-namespace")
    await settings.close()
    again = SettingsFile(path)
    async with analysing(FixedAnalysis(made_report()), settings=again) as user:
        assert user.rows == chosen
        for _ in range(len(user.screen.view.table.rows.table.columns)):
            await user.press("greater_than_sign")
        await user.until(lambda: again.settings.tables == {})
        assert user.rows == made


async def test_an_order_by_a_column_that_is_not_there_leaves_the_rows_as_they_come() -> None:
    settings = at_memory()
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        made = user.rows
    settings.choose("tables.memory.namespaces", "nothing")
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        assert user.rows == made


async def test_what_the_colours_stand_for_is_remembered() -> None:
    settings = at_memory()
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        await user.press("v")
        await user.until(lambda: settings.settings.colouring == "idle")
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        assert user.screen.view.state.colouring is Colouring.IDLE
