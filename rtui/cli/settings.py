"""`rtui settings`: what rtui remembers of what was chosen on screen, and how to change it."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from rtui.cli.help import Command
from rtui.keyspace.text.display import display_text
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.tui.kit.settings import Settings, SettingsError, SettingsFile, current_values, setting_names, settings_path


class UnwritableSettingsError(RtuiError):
    """The file of settings can't be written."""

    exit_code = ExitCode.OUTPUT

    def __init__(self, happened: str) -> None:
        super().__init__("The settings can't be written", happened)


@click.command(
    "settings",
    cls=Command,
    examples=(
        "rtui settings theme rtui-light     --reset forgets it",
        """rtui settings keys.browse.filter '["slash", "ctrl+g"]'""",
    ),
    codes={4: ""},
)
@click.argument("name", required=False)
@click.argument("value", required=False)
@click.option("--reset", is_flag=True, help="Forget NAME, or all but keys and queries.")
@click.option("--path", is_flag=True, help="Print the path of the file.")
@click.help_option("--help")
def command(name: str | None, value: str | None, *, reset: bool, path: bool) -> None:
    """Print the settings with what each is for, or one of them; with VALUE, set it."""
    if path:
        click.echo(settings_path())
        return
    if reset and value is not None:
        raise click.UsageError("Give either a value or --reset.")
    try:
        file = SettingsFile(settings_path())
        if reset:
            _reset(file, name)
        elif name is not None and value is not None:
            given = _read_value(value)
            file.choose(name, given)
            _check_command(name, given)
        else:
            _print(file.settings, name)
            return
    except SettingsError as error:
        raise click.UsageError(error.happened) from None
    file.flush()
    if file.failure is not None:
        raise UnwritableSettingsError(file.failure)


def _check_command(name: str, keys: Any) -> None:
    """Raise SettingsError where keys are given to a command that is not there, or that another one has."""
    if name.startswith("keys."):
        from rtui.tui.kit.command import choose_keys  # noqa: PLC0415
        from rtui.tui.navigation import command_sets  # noqa: PLC0415 - loads the whole interface

        for wrong in choose_keys({name.removeprefix("keys."): keys}, command_sets()):
            raise SettingsError(wrong)


def _reset(file: SettingsFile, name: str | None) -> None:
    if name is not None:
        file.choose(name, None)
        return
    for one, _ in list(current_values(file.settings)):
        if not one.startswith(("keys.", "queries.")):
            file.choose(one, None)


def _read_value(text: str) -> Any:
    """Read a value as TOML; any other is text."""
    try:
        return msgspec.toml.decode(f"value = {text}")["value"]
    except msgspec.DecodeError:
        return text


def _print(settings: Settings, wanted: str | None) -> None:
    defaults, helps = dict(current_values(Settings())), setting_names()
    lines = []
    for name, value in current_values(settings):
        if wanted is None or name == wanted or name.startswith(f"{wanted}."):
            shown = "" if value is None else msgspec.json.encode(value).decode()
            note = "(default)" if name in defaults and value == defaults[name] else ""
            lines.append((name, f"{shown} {note}".strip(), helps.get(name, "")))
    if wanted is not None and not lines:
        if wanted not in helps:
            raise SettingsError(f"There is no setting {wanted}.")
        return
    widths = [max((len(line[column]) for line in lines), default=0) for column in range(2)]
    for name, shown, text in lines:
        click.echo(display_text(f"{name:{widths[0]}}  {shown:{widths[1]}}  {text}".rstrip()))
