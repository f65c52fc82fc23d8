"""The help begins with what has the keyboard, has a page for each thing that rtui does, and finds words in all."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from rtui.analysis.query.terms import TERMS
from rtui.keyspace.text.help_pages import help_blocks
from rtui.registry.registry import SHIPPED
from rtui.registry.rules import RULES
from rtui.server.wire.command_log import Purpose
from rtui.tui.goto import NARROWING
from rtui.tui.help import HelpScreen, found_lines, groups_for, keys_page, page_lines
from rtui.tui.kit.command import RULES_PAGE, Group, HelpSubject, Owner
from rtui.tui.kit.styled_text import Line, line_width
from rtui.tui.navigation import all_commands, help_topics
from rtui.values.chain import BUILT_IN
from tests.registry.test_shipped import CONVENTIONS
from tests.tui.browsing import BrowseUser, browsing, until


def text_of(lines: Sequence[Line]) -> str:
    return " ".join("".join(span.text for span in line).strip() for line in lines)


async def opened(user: BrowseUser) -> HelpScreen:
    app = user.pilot.app
    await user.pilot.press("question_mark")
    await until(user.pilot, lambda: isinstance(app.screen, HelpScreen))
    assert isinstance(app.screen, HelpScreen)
    return app.screen


@pytest.mark.parametrize(
    ("keys", "title", "heading"),
    [
        ((), "Help: tree", Group.TREE),
        (("end", "enter"), "Help: value", Group.VALUE),
        (("a", "2"), "Help: tables of an analysis", Group.TABLE),
        (("L",), "Help: command log", Group.LOG),
    ],
    ids=["tree", "value", "analysis", "log"],
)
async def test_it_begins_with_what_has_the_keyboard(keys: tuple[str, ...], title: str, heading: Group) -> None:
    async with browsing() as user:
        await user.pilot.press(*keys)
        screen = await opened(user)
        assert str(screen._card.border_title).startswith(title)
        lines = ["".join(span.text for span in line).strip() for line in screen.body.lines]
        assert lines[1] == heading.value
        await user.pilot.press("escape")


async def test_pages_are_turned_and_searched() -> None:
    async with browsing() as user:
        screen = await opened(user)
        await user.pilot.press("tab")
        assert screen.pages[screen.page].title == "Queries"
        await user.pilot.press("shift+tab", "shift+tab")
        assert screen.pages[screen.page].title == "Conventions"
        await user.pilot.press("slash", *"OSC", "space", *"52")
        assert "Clipboard" in text_of(screen.body.lines)
        assert "namespace" not in text_of(screen.body.lines)
        await user.pilot.press("enter", "escape")
        assert user.pilot.app.screen is screen
        assert screen.search_input.value == ""
        await user.pilot.press("escape")
        await until(user.pilot, lambda: user.pilot.app.screen is not screen)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_registries_of_conventions_say_how_to_try_them(name: str) -> None:
    text = (SHIPPED / f"{name}.toml").read_text()
    head = text.partition("\ntitle")[0]
    assert f"# Try it: rtui --demo --registry {name}" in head
    caught = re.findall(r"^#   ([a-z]+-[a-z-]+) ", head, re.MULTILINE)
    assert len(caught) >= 3
    assert set(caught) <= set(RULES)


async def test_it_begins_with_what_is_asked_for() -> None:
    async with browsing() as user:
        app = user.pilot.app
        subject = HelpSubject(RULES_PAGE, "lock-long")
        screen = HelpScreen(all_commands(), (), help_topics(), subject)
        app.push_screen(screen)
        await until(user.pilot, lambda: app.screen is screen and screen.body.scroll_offset.y > 0)
        assert str(screen._card.border_title).startswith("Rules · ")
        assert text_of(screen.body.lines[screen.body.scroll_offset.y :]).startswith("lock-long (warn)")
        await user.pilot.press("tab")
        assert screen.body.scroll_offset.y == 0


def test_no_group_is_lost_or_listed_twice() -> None:
    for owner in Owner:
        groups = groups_for(all_commands(), [owner])
        assert sorted(groups) == sorted(Group)
        assert groups[-1] is Group.MOVE


@pytest.mark.parametrize("width", [40, 76, 100])
def test_pages_tell_all_that_is_declared_and_fit(width: int) -> None:
    pages = {page.title: page_lines(page, width) for page in help_topics()}
    said = {
        "Queries": [spec.examples[0] for spec in TERMS.values()],
        "Decoders": [one.name for one in BUILT_IN],
        "Going to anything": list(NARROWING),
        "Command log": [purpose.value for purpose in Purpose],
        "Rules": [word for rule in RULES.values() for word in (rule.id, *rule.title.split(), *rule.parameters)],
        "Conventions": [*CONVENTIONS],
    }
    for title, words in said.items():
        text = text_of(pages[next(one for one in pages if one == title)])
        assert not [word for word in words if word not in text]
    for lines in pages.values():
        assert max(map(line_width, lines)) <= width


@pytest.mark.parametrize(
    ("text", "found"),
    [("bigkeys", "Show the biggest keys"), ("dbsize", "Browse another database"),
     ("escape", "Escape always goes one step back"), ("MIB kib", "are 1,024 bytes"), ("every client", "MONITOR"),
     ("no such word", "The help says nothing of it.")],
)  # fmt: skip
def test_a_search_finds_words_in_any_order_and_case(text: str, found: str) -> None:
    assert found in text_of(found_lines((keys_page(all_commands()), *help_topics()), text, 200))


def test_pages_of_the_command_line_are_there_too() -> None:
    pages = {str(page.title): text_of(page_lines(page, 100)) for page in help_topics()}
    for name in ("connection", "formats", "thresholds", "exit-codes", "how-it-works"):
        (title, *_), *blocks = (block.lines for block in help_blocks(name))
        said = " ".join(pages[title].split())
        for lines in blocks:
            assert not [word for line in lines for word in line.split() if word not in said]
