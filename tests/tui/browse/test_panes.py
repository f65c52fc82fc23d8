"""The width of the tree: keys, the mouse, what is remembered, and terminals without room for both panes."""

from __future__ import annotations

from rtui.tui.kit.settings import NARROWEST_TREE, WIDEST_TREE, SettingsFile
from tests.tui.browsing import BrowseUser, browsing


def widths(user: BrowseUser) -> tuple[int, int]:
    return user.screen.tree_pane.outer_size.width, user.screen.detail_pane.outer_size.width


async def test_keys_move_the_border_and_it_is_remembered() -> None:
    settings = SettingsFile()
    async with browsing(settings=settings) as user:
        before = widths(user)
        await user.press("right_parenthesis", "right_parenthesis")
        wider = widths(user)
        assert wider[0] > before[0]
        assert sum(wider) == sum(before) == 120
        await user.press("left_parenthesis")
        assert before[0] < widths(user)[0] < wider[0]
    assert settings.settings.tree.width is not None
    async with browsing(settings=settings) as user:
        assert before[0] < widths(user)[0] < wider[0]


async def test_neither_pane_is_lost() -> None:
    async with browsing(settings=SettingsFile()) as user:
        await user.press(*["right_parenthesis"] * 30)
        assert widths(user)[0] == 120 * WIDEST_TREE // 100
        await user.press(*["left_parenthesis"] * 30)
        assert widths(user)[0] == 120 * NARROWEST_TREE // 100


async def test_the_border_is_dragged() -> None:
    settings = SettingsFile()
    async with browsing(settings=settings) as user:
        border = user.screen.detail_pane.region.x
        await user.pilot.mouse_down(offset=(border, 10))
        await user.pilot.hover(offset=(80, 12))
        await user.pilot.mouse_up(offset=(80, 12))
        await user.settled()
        assert abs(widths(user)[0] - 80) <= 1
        assert settings.settings.tree.width == round(100 * 80 / 120)
        cursor = user.cursor
        await user.pilot.hover(offset=(40, 12))
        await user.settled()
        assert abs(widths(user)[0] - 80) <= 1
        assert user.cursor == cursor


async def test_a_narrow_terminal_keeps_one_pane_over_the_whole_width() -> None:
    settings = SettingsFile()
    settings.choose("tree.width", 30)
    async with browsing(size=(80, 24), settings=settings) as user:
        assert widths(user)[0] == 80
        await user.press("right_parenthesis")
        assert widths(user)[0] == 80
        assert settings.settings.tree.width == 30
        await user.pilot.resize_terminal(120, 36)
        await user.until(lambda: widths(user)[0] == 36)
        await user.pilot.resize_terminal(80, 24)
        await user.until(lambda: widths(user)[0] == 80)
