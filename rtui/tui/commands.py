"""Every command of the interface, declared once: bindings, footer, palette and help all follow from here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.binding import Binding

from rtui.tui.analyse.commands import ANALYSE_COMMANDS
from rtui.tui.browse.commands import BROWSE_COMMANDS
from rtui.tui.kit.command import ANALYSE_SCOPES, BROWSE_SCOPES, Command, Group, Scope, When

__all__ = [
    "ANALYSE_SCOPES", "BROWSE_SCOPES", "BY_BINDING_ID", "COMMANDS", "Command", "Group", "Scope", "When", "bindings",
    "commands_of", "footer_commands",
]  # fmt: skip

PRIORITY_KEYS: Final = frozenset({"ctrl+c", "ctrl+q"})
"""These keys work wherever the keyboard is, also while text is typed."""


APP_COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "redraw",
        ("ctrl+l",),
        "Redraw",
        "Paint everything again, if something else wrote to the terminal.",
        Group.APP,
        Scope.APP,
    ),
    Command("theme", ("t",), "Theme", "Choose another theme.", Group.APP, Scope.APP),
    Command(
        "help",
        ("question_mark", "f1"),
        "Help",
        "Show every command and its keys.",
        Group.APP,
        Scope.APP,
        footer=90,
        label="?",
    ),
    Command(
        "command_palette", ("ctrl+p",), "Commands", "Search all commands by name.", Group.APP, Scope.APP, footer=91
    ),
    Command(
        "quit",
        ("q", "ctrl+q", "ctrl+c"),
        "Quit",
        "Leave rtui; the server is left as it was.",
        Group.APP,
        Scope.APP,
        footer=92,
    ),
)
"""What can be asked for anywhere."""

COMMANDS: Final = (*BROWSE_COMMANDS, *ANALYSE_COMMANDS, *APP_COMMANDS)
"""All commands, in the order of the help screen."""


BY_BINDING_ID: Final = {command.binding_id: command for command in COMMANDS}
"""Each command by the id of its binding."""


def commands_of(scope: Scope) -> tuple[Command, ...]:
    """Return the commands that a scope carries out."""
    return tuple(command for command in COMMANDS if command.scope is scope)


def bindings(scope: Scope, action: str | None = None) -> list[Binding]:
    """Return Textual's bindings for the commands of a scope; `action` is a form with a place for the binding's id."""
    return [
        Binding(
            key,
            command.id if action is None else action.format(command.binding_id),
            command.title,
            show=False,
            id=command.binding_id,
            key_display=command.key_text,
            priority=key in PRIORITY_KEYS,
        )
        for command in commands_of(scope)
        for key in command.keys
    ]


def footer_commands(scopes: Iterable[Scope], holds: frozenset[When]) -> list[Command]:
    """Return what the footer shows, in its order, for the scopes that can be reached just now."""
    reachable = frozenset(scopes)
    shown = [c for c in COMMANDS if c.footer and c.scope in reachable and c.offered(holds)]
    return sorted(shown, key=lambda command: command.footer)
