from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from inspect import signature
from itertools import combinations

import pytest
from textual.actions import parse
from textual.binding import Binding

from rtui.analysis.query.terms import TERMS
from rtui.keyspace.text.help_pages import help_blocks
from rtui.registry.registry import SHIPPED
from rtui.registry.rules import RULES
from rtui.server.wire.command_log import Purpose
from rtui.tui.analyse.hot_panel import CHOICES, HotSessionScreen
from rtui.tui.analyse.report_panel import ANALYSE_COMMANDS, ReportPanel
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.app import RtuiApp
from rtui.tui.browse.commands import BROWSE_COMMANDS, SHARED, VALUE_COMMANDS
from rtui.tui.browse.detail_pane import DetailPane
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.panes import StatusBar
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.browse.value_pane import ValuePane
from rtui.tui.browse.value_view import ValueView
from rtui.tui.connect import ConnectScreen
from rtui.tui.find import FindScreen
from rtui.tui.fleet import FLEET_COMMANDS, FleetScreen
from rtui.tui.found_view import FIND_COMMANDS, FoundBody
from rtui.tui.goto import NARROWING
from rtui.tui.help import HelpScreen, found_lines, groups_for, keys_page, page_lines
from rtui.tui.kit.choice import CardScreen, ChoiceList, ListScreen, QuitScreen, TextCard
from rtui.tui.kit.clipboard import SelectScreen
from rtui.tui.kit.command import (
    APP_COMMANDS,
    RULES_PAGE,
    Condition,
    Group,
    HelpSubject,
    Owner,
    ScreenCommand,
    bindings,
    footer_commands,
)
from rtui.tui.kit.command_screen import CommandScreen
from rtui.tui.kit.line_view import ScrollingPanel
from rtui.tui.kit.styled_text import Line, line_width
from rtui.tui.kit.table import TableBody
from rtui.tui.log import LOG_COMMANDS, LogScreen, LogView
from rtui.tui.navigation import all_commands, command_sets, help_topics
from rtui.tui.server import ServerScreen
from rtui.tui.server_panels import SERVER_COMMANDS
from rtui.tui.sql import SQL_COMMANDS, SqlScreen
from rtui.values.chain import BUILT_IN
from tests.registry.test_shipped import CONVENTIONS
from tests.tui.analyse.analysing import analysed_session
from tests.tui.browsing import BrowseUser, browsing, until

SCREENS = {
    "browse": (*BROWSE_COMMANDS, *APP_COMMANDS), "analyse": (*ANALYSE_COMMANDS, *APP_COMMANDS),
    "log": (*LOG_COMMANDS, *APP_COMMANDS), "find": (*FIND_COMMANDS, *APP_COMMANDS),
    "server": (*SERVER_COMMANDS, *APP_COMMANDS), "fleet": (*FLEET_COMMANDS, *APP_COMMANDS),
    "sql": (*SQL_COMMANDS, *APP_COMMANDS),
}  # fmt: skip
OWNERS = {
    Owner.APP: RtuiApp, Owner.CONNECT: ConnectScreen, Owner.BROWSE: BrowseScreen, Owner.TREE: KeyTree,
    Owner.DETAIL: DetailPane, Owner.SCAN: StatusBar, Owner.ANALYSE: AnalyseScreen, Owner.PANEL: ReportPanel,
    Owner.TABLE: TableBody, Owner.LOG: LogScreen, Owner.ENTRIES: LogView,
    Owner.VALUE: ValuePane, Owner.ROWS: ValueView, Owner.FIND: FindScreen, Owner.FOUND: FoundBody,
    Owner.SERVER: ServerScreen, Owner.FLEET: FleetScreen, Owner.SQL: SqlScreen,
}  # fmt: skip


@pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.action)
def test_every_command_is_an_action_of_its_owner(command: ScreenCommand) -> None:
    namespace, name, parameters = parse(command.action)
    assert namespace == command.owner
    signature(getattr(OWNERS[command.owner], f"action_{name}")).bind(None, *parameters)


def keys_of(commands: Sequence[ScreenCommand], owner: Owner) -> Counter[str]:
    return Counter(binding.key for binding in bindings(commands, owner) if isinstance(binding, Binding))


def test_no_key_means_two_things_in_one_place() -> None:
    for owner in Owner:
        assert [key for key, count in keys_of(all_commands(), owner).items() if count > 1] == []


BESIDE_EACH_OTHER = frozenset({Owner.TREE, Owner.VALUE, Owner.ROWS})
"""Widgets of which one has the keyboard: the rows are in the value, and neither is in the tree."""


@pytest.mark.parametrize("commands", SCREENS.values(), ids=SCREENS)
def test_nothing_hides_a_key_of_the_screen_around_it(commands: Sequence[ScreenCommand]) -> None:
    keys = {owner: set(keys_of(commands, owner)) for owner in Owner}
    shared = {key for command in VALUE_COMMANDS if command.id in SHARED for key in command.keys} & keys[Owner.VALUE]
    for one, other in combinations(Owner, 2):
        if not {one, other} <= BESIDE_EACH_OTHER:
            assert keys[one] & keys[other] == (shared if {one, other} == {Owner.VALUE, Owner.BROWSE} else set())
    assert keys[Owner.VALUE] & keys[Owner.ROWS] == set()


MEANINGS = {
    "go in": "tree.enter tree.expand tree.open_close value.open value.unfold value.fold_or_unfold table.open find.open "
    "entries.open connect.retry server.open fleet.open",
    "go out": "tree.parent tree.collapse value.fold panel.zoom_out",
    "go between tree and analysis": "app.analyse analyse.leave",
    "find among what is shown": "browse.filter value.find analyse.filter find.edit log.filter server.filter "
    "fleet.filter sql.edit",
    "go to the next part of the screen": "browse.focus_next_pane analyse.next_panel server.next_panel fleet.next_panel",
    "show the title of this number": "detail.value_tab detail.slot_tab detail.references_tab analyse.findings "
    "analyse.memory analyse.big analyse.hot analyse.expiry analyse.slots analyse.types "
    "server.overview server.memory server.load server.slow server.persistence server.clients server.configuration "
    "fleet.servers fleet.findings fleet.groups",
    "show the next title": "detail.next_tab panel.next_list server.next_list fleet.next_list",
    "show the title before": "detail.previous_tab panel.previous_list server.previous_list fleet.previous_list",
    "go to the part before": "analyse.previous_panel server.previous_panel fleet.previous_panel",
    "ask the server again about what is shown": "detail.reload analyse.begin connect.retry server.ask fleet.ask",
    "scan again": "browse.rescan find.again",
    "copy": "browse.copy_name value.copy analyse.copy_row find.copy_name log.copy server.copy_row fleet.copy_row "
    "sql.copy_row",
    "write to a file": "value.write analyse.export find.export server.write fleet.write sql.export",
}
"""Commands of different names that do the same to what each screen shows."""


def test_a_key_does_the_same_on_every_screen() -> None:
    commands = [command for commands in command_sets() for command in commands]
    meanings: dict[str, set[str]] = {command.name: {command.id} for command in commands}
    for meaning, names in MEANINGS.items():
        for name in names.split():
            meanings[name].add(meaning)
    by_key: dict[str, dict[str, set[str]]] = {}
    for command in commands:
        for key in command.keys:
            by_key.setdefault(key, {})[command.name] = meanings[command.name]
    assert {key: sorted(same) for key, same in by_key.items() if not set.intersection(*same.values())} == {}


DIALOGS = (
    ListScreen, ChoiceList, QuitScreen, CardScreen, ScrollingPanel, TextCard, SelectScreen, HotSessionScreen,
)  # fmt: skip
SAME_IN_DIALOGS = {
    "dismiss": "back", "dismiss(False)": "back", "scroll_up": "cursor_up", "scroll_down": "cursor_down",
    "scroll_home": "first", "scroll_end": "last",
}  # fmt: skip
"""What an action of a dialog is called among the commands."""

ONLY_IN_DIALOGS: dict[str, str] = {
    "q": "leaves what is on top: a dialog, or rtui",
    "enter": "closes a text, of which nothing can be opened",
    "left": "goes out, of an entry",
    "h": "goes out, of an entry",
    "space": "pages through a text, as in any pager",
    "y": "answers a question",
    "n": "answers a question",
    **{choice.key: "takes the next option of a question" for choice in CHOICES},
}
"""Keys with a meaning of their own there, and why."""


def test_a_key_does_in_dialogs_what_it_does_on_screens() -> None:
    commands = [command for commands in command_sets() for command in commands]
    ids: dict[str, set[str]] = {
        key: {command.id for command in commands if key in command.keys} for key in set(commands_keys(commands))
    }
    for dialog in DIALOGS:
        for binding in dialog.__dict__.get("BINDINGS", ()):
            assert isinstance(binding, Binding)
            for key in binding.key.split(","):
                meaning = SAME_IN_DIALOGS.get(binding.action, binding.action)
                assert key in ONLY_IN_DIALOGS or meaning in ids[key], f"{key} of {dialog.__name__} is {binding.action}"


def commands_keys(commands: Sequence[ScreenCommand]) -> list[str]:
    return [key for command in commands for key in command.keys]


def test_the_keys_of_rows_move_in_every_list_to_choose_from() -> None:
    keys = {key: binding.action for binding in ChoiceList.BINDINGS if isinstance(binding, Binding)
            for key in binding.key.split(",")}  # fmt: skip
    for command in LOG_COMMANDS:
        if command.owner is Owner.ENTRIES and command.id != "open":
            assert {key for key in command.keys if len(key) == 1 or key.startswith("ctrl")} <= {
                key for key, action in keys.items() if action == command.id
            }


def test_a_key_that_the_value_shares_with_the_screen_does_the_same_there() -> None:
    keys = {command.name: command.keys for command in all_commands()}
    for inside, outside in SHARED.items():
        assert keys[f"{Owner.VALUE}.{inside}"] == keys[f"{Owner.BROWSE}.{outside}"]


def test_actions_are_unique() -> None:
    assert max(Counter(command.action for command in all_commands()).values()) == 1


def test_the_help_lists_every_command() -> None:
    shown = ["".join(span.text for span in line) for line in page_lines(keys_page(all_commands()), 100)]
    for command in all_commands():
        if command.owner is not Owner.CONNECT and command.group is not Group.MOVE:
            assert any(command.title in line and command.key_text in line for line in shown), command.id
    assert [line.strip() for line in shown if line.strip() in set(Group)][-1] == Group.MOVE
    tasks = {command.title for command in all_commands() if command.words}
    for first in (at for at, line in enumerate(shown) if line.strip() in {Group.TREE, Group.FIND, Group.SERVER}):
        assert any(title in shown[first + 1] for title in tasks)


def test_the_footer_says_what_makes_sense_now() -> None:
    def footer(*conditions: Condition) -> set[str]:
        offered = [command for command in all_commands() if command.is_offered(frozenset(conditions))]
        return {command.id for command in footer_commands(offered)}

    scanning, done = footer(Condition.SCANNING, Condition.ON_ROW), footer(Condition.ON_ROW)
    assert "pause" in scanning
    assert "pause" not in done
    assert {"help", "quit"} <= scanning & done


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=["wide", "narrow"])
async def test_footers_show_what_the_screen_is_for(size: tuple[int, int]) -> None:
    async with browsing(analysed_session(), size) as user:

        def footer() -> str:
            screen = user.pilot.app.screen
            assert isinstance(screen, CommandScreen)
            return "".join(span.text for span in screen.footer_bar.lines[0])

        ways = (": Go to", "? Help", "q Quit")
        assert not [one for one in ("a Analyse", "/ Find", "! Server", *ways) if one not in footer()]
        for panel in ("1", "2", "3", "7"):
            await user.pilot.press(*["a"] * (panel == "1"), panel)
            await user.settled()
            assert not [one for one in ("! Server", "D Compare", "y Copy", *ways) if one not in footer()], panel


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
    head = (SHIPPED / f"{name}.toml").read_text().partition("\ntitle")[0]
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
     ("no such word", "The help does not mention it.")],
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
