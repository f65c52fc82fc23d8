from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from rtui.tui.analyse.analysis_desk import AnalysisDesk
from rtui.tui.analyse.panel_desk import PanelDesk
from rtui.tui.analyse.panels import PANELS
from rtui.tui.analyse.row_desk import RowDesk
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.app import RtuiApp
from rtui.tui.browse.copy_desk import CopyDesk
from rtui.tui.browse.detail_desk import DetailDesk
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.scan_desk import ScanDesk
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.commands import (
    ANALYSE_SCOPES,
    BROWSE_SCOPES,
    COMMANDS,
    Command,
    Scope,
    When,
    bindings,
    footer_commands,
)  # fmt: skip
from rtui.tui.connect.screen import ConnectScreen
from rtui.tui.help.screen import help_lines
from rtui.tui.kit.table import TableBody

SCREENS = {"browse": BROWSE_SCOPES, "analyse": ANALYSE_SCOPES}
CARRIERS = {Scope.APP: RtuiApp, Scope.CONNECT: ConnectScreen, Scope.BROWSE: BrowseScreen, Scope.TREE: KeyTree,
            Scope.ANALYSE: AnalyseScreen, Scope.TABLE: TableBody}  # fmt: skip
DESKS = {Scope.DETAIL: DetailDesk, Scope.SCAN: ScanDesk, Scope.COPY: CopyDesk, Scope.RUN: AnalysisDesk,
         Scope.ROW: RowDesk, Scope.CHOICE: PanelDesk}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.binding_id)
def test_every_command_is_carried_out_by_its_scope(command: Command) -> None:
    if command.scope is Scope.PANEL:
        assert command.id in {panel.id for panel in PANELS}
    elif command.scope in DESKS:
        assert callable(getattr(DESKS[command.scope], command.id))
    else:
        assert callable(getattr(CARRIERS[command.scope], f"action_{command.id}"))


def test_no_key_means_two_things_in_one_place() -> None:
    for scope in Scope:
        keys = Counter(binding.key for binding in bindings(scope))
        assert [key for key, count in keys.items() if count > 1] == []


@pytest.mark.parametrize("scopes", SCREENS.values(), ids=SCREENS)
def test_nothing_hides_a_key_of_the_screen_around_it(scopes: frozenset[Scope]) -> None:
    places = {scope: {binding.key for binding in bindings(scope)} for scope in scopes}
    for one, other in combinations(places, 2):
        assert places[one] & places[other] == set()


def test_ids_are_unique() -> None:
    assert max(Counter(command.binding_id for command in COMMANDS).values()) == 1


def test_the_help_lists_every_command() -> None:
    shown = ["".join(span.text for span in line) for line in help_lines(100)]
    for command in COMMANDS:
        if command.scope is not Scope.CONNECT:
            assert any(command.title in line and command.key_text in line for line in shown), command.id


def test_the_footer_says_what_makes_sense_now() -> None:
    scopes = tuple(Scope)
    scanning = {command.id for command in footer_commands(scopes, frozenset({When.SCANNING, When.ON_ROW}))}
    done = {command.id for command in footer_commands(scopes, frozenset({When.SCAN_ENDED, When.ON_ROW}))}
    assert "pause" in scanning
    assert "pause" not in done
    assert {"help", "quit"} <= scanning & done
