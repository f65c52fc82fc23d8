"""The panels of the Analyse screen, in the order of their tabs, and the commands of the analysis and its tables."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from rtui.server.analysis.run import ESTIMATE_KEYS
from rtui.tui.analyse.expiry_panel import ExpiryPanel
from rtui.tui.analyse.findings_panel import FindingsPanel
from rtui.tui.analyse.hot_panel import HotKeysPanel
from rtui.tui.analyse.memory_panel import MemoryPanel
from rtui.tui.analyse.panel import Panel
from rtui.tui.analyse.size_panels import BigKeysPanel, TypesPanel
from rtui.tui.analyse.slots_panel import SlotsPanel
from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand
from rtui.tui.kit.table import MOVE_COMMANDS, SORT_COMMANDS

PANELS: Final[tuple[Panel[Any], ...]] = (
    FindingsPanel(), MemoryPanel(), BigKeysPanel(), HotKeysPanel(), ExpiryPanel(), SlotsPanel(), TypesPanel(),
)  # fmt: skip
"""All panels, in the order of their tabs; their keys, commands and help follow from this list."""

_run = partial(ScreenCommand, group=Group.ANALYSE, owner=Owner.ANALYSE)
"""A command about the analysis."""

_table = partial(ScreenCommand, group=Group.TABLE, owner=Owner.ANALYSE)
"""A command of the screen about its table."""

_panel = partial(ScreenCommand, group=Group.TABLE, owner=Owner.PANEL)
"""A command of any panel."""

_RUNNING: Final = (Condition.SCANNING, Condition.PAUSED)

ANALYSE_COMMANDS: Final[tuple[ScreenCommand, ...]] = (
    *(
        _run(panel.id, (panel.key,), panel.title, panel.help, call=f"show_panel('{panel.id}')") for panel in PANELS
    ),
    _run("next_panel", ("tab",), "Next panel", "Show the next panel."),
    _run(
        "previous_panel", ("shift+tab",), "Panel before", "Show the panel before.", label="⇧tab", call="next_panel(-1)"
    ),
    _run(
        "begin", ("r",), "Ask every key", "Ask every key, from the beginning; what was known is replaced.",
        when=(Condition.READY,), footer=13,
    ),
    _run(
        "estimate", ("e",), "Estimate",
        f"Ask {ESTIMATE_KEYS:,} random keys: seconds, however many there are; every figure with its interval.",
        when=(Condition.READY,), footer=14,
    ),
    _run(
        "columns", ("c",), "What is asked",
        "Choose what is asked: idle times and lengths of one key in eight, or everything of every key.",
        when=(Condition.READY,),
    ),
    _run("pause", ("p",), "Pause", "Pause the analysis, or go on with it.", when=_RUNNING, footer=2),
    _run(
        "faster", ("plus", "equals_sign"), "Faster", "Ask at a faster pace; the server gives more of its time.",
        when=(Condition.LIVE,), footer=15, label="+",
    ),
    _run("slower", ("minus",), "Slower", "Ask at a gentler pace.", when=(Condition.LIVE,)),
    _run(
        "stop", ("x",), "Stop", "End the analysis; what it has found stays, marked partial.", when=_RUNNING, footer=12
    ),
    _run("cost", ("i",), "Cost", "Show what the analysis has cost the server: commands, bytes, time."),
    _run(
        "watch", ("W",), "Watch",
        "Ask the same again and again, for a hundredth of the server's time, and mark what changes; again ends that.",
        when=(Condition.LIVE,),
    ),
    _run(
        "compare", ("D",), "Changes",
        "Show ▲▼ what has changed since an earlier report of this server, in every panel; again ends that.",
    ),
    _run(
        "back", ("escape",), "Back",
        "Go back one step: end the filter, zoom out, or leave the analysis; it goes on meanwhile.", footer=11,
    ),
    _run("leave", ("a",), "Tree", "Go back to the tree; the analysis goes on.", when=(Condition.LIVE,)),
    *MOVE_COMMANDS,
    _table(
        "keys", ("K",), "Its keys",
        "Show the keys that the row is about, by the query that stands for them; it can be changed there.",
        when=(Condition.ON_ENTRY,), footer=2,
    ),
    _panel(
        "zoom_out", ("left", "h", "backspace"), "Zoom out", "Go back to the namespace above.",
        when=(Condition.ZOOMED,), footer=4,
    ),
    _panel(
        "next_list", ("right_square_bracket",), "Next list", "Show the next table of the panel.",
        when=(Condition.SEVERAL_LISTS,), footer=3,
    ),
    _panel(
        "previous_list", ("left_square_bracket",), "List before", "Show the table before.",
        when=(Condition.SEVERAL_LISTS,), call="next_list(-1)",
    ),
    *(command for panel in PANELS for command, _ in panel.commands),
    _run(
        "hot_session", ("H",), "Hot-key session",
        "Have the server itself find its hottest keys for a while; says what that changes and costs, and asks first.",
        when=(Condition.HOT_SESSION,), footer=4,
    ),
    *SORT_COMMANDS,
    _table("filter", ("slash",), "Filter", "Show the rows with a text in them.", when=(Condition.HAS_ROWS,), footer=8),
    _table(
        "copy_row", ("y",), "Copy", "Copy the name of the row, or the whole row where it has none.",
        when=(Condition.HAS_ROWS,),
    ),
    _table("copy_menu", ("Y",), "Copy as…", "Choose what to copy of the row.", when=(Condition.HAS_ROWS,)),
    _table(
        "export", ("w",), "Write", "Write what the table shows to a .csv, .md or .json file.",
        when=(Condition.HAS_ROWS,), footer=9,
    ),
)  # fmt: skip
"""In the order of the help screen."""
