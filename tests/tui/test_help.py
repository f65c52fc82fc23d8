"""The help begins with what has the keyboard."""

from __future__ import annotations

import pytest

from rtui.tui.contents import all_commands
from rtui.tui.help.screen import HelpScreen, groups_for, help_lines
from rtui.tui.kit.command import Group, Owner
from tests.tui.browsing import browsing, until


@pytest.mark.parametrize(
    ("keys", "title", "heading"),
    [
        ((), "Help: tree", Group.MOVE),
        (("end", "enter"), "Help: value", Group.VALUE),
        (("a",), "Help: tables of an analysis", Group.TABLE),
        (("L",), "Help: command log", Group.LOG),
    ],
    ids=["tree", "value", "analysis", "log"],
)
async def test_it_begins_with_what_has_the_keyboard(keys: tuple[str, ...], title: str, heading: Group) -> None:
    async with browsing() as user:
        app = user.pilot.app
        await user.pilot.press(*keys)
        await user.pilot.press("question_mark")
        await until(user.pilot, lambda: isinstance(app.screen, HelpScreen))
        screen = app.screen
        assert isinstance(screen, HelpScreen)
        assert str(screen._card.border_title) == title
        lines = ["".join(span.text for span in line).strip() for line in screen.body.lines]
        assert lines[1] == heading.value
        await user.pilot.press("escape")


def test_no_group_is_lost_or_listed_twice() -> None:
    for owner in Owner:
        groups = groups_for(all_commands(), [owner])
        assert sorted(groups) == sorted(Group)
        assert groups[-1] is Group.APP


@pytest.mark.parametrize("width", [40, 76, 100])
def test_decoders_and_terms_are_explained_where_they_are_used(width: int) -> None:
    text = " ".join("".join(span.text for span in line).strip() for line in help_lines(all_commands(), width))
    assert text.index(Group.VALUE) < text.index("never run") < text.index(Group.SCAN)
    assert text.index(Group.FIND) < text.index("turns it round") < text.index(Group.LOG)
