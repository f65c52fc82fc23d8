"""Themes come from TOML files: those that ship with rtui, then the user's; a bad file costs only itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, Final

from platformdirs import user_config_path
from rich.console import Console
from textual.color import ColorParseError
from textual.css.errors import StylesheetError
from textual.css.stylesheet import Stylesheet, StylesheetParseError
from textual.css.tokenizer import TokenError
from textual.theme import Theme

import rtui
from rtui.keyspace.text.display import SafeText, display_text

DEFAULT_THEME: Final = "rtui-dark"
"""The theme of a first start."""

ANSI_THEME: Final = "rtui-ansi16"
"""The theme of a first start in a terminal of sixteen colours: each other one would turn grey there."""

FEW_COLOURS_TABLE: Final = "palette-256"
"""The table of a theme file with what it sets otherwise in a terminal of 256 colours."""


class Palette(Enum):
    """How many colours the terminal shows."""

    TRUE = "truecolor"
    XTERM = "256"
    """The 6 × 6 × 6 cube and the grey ramp of xterm: what SSH usually passes on."""
    ANSI = "standard"
    """Sixteen, such as the Linux console has."""


def palette_of(console: Console) -> Palette:
    """Return what the terminal of a console shows, as Rich reads it from TERM and COLORTERM."""
    system = console.color_system
    return Palette(system) if system in ("truecolor", "256") else Palette.ANSI


def first_theme(palette: Palette) -> str:
    """Return the name of the theme that a terminal starts with."""
    return ANSI_THEME if palette is Palette.ANSI else DEFAULT_THEME


VARIABLE_DEFAULTS: Final[Mapping[str, str]] = {
    "ink-muted": "#8b95a5", "ink-faint": "#566070", "ink-strong": "#f2f5f9", "bar": "#4f8fd0",
    "bar-track": "#222b38", "rule": "#2b3546", "cursor": "#24344d", "cursor-blurred": "#1d2532",
    "cursor-ink": "transparent", "hover": "#19212d", "badge": "#8fd3a0", "type-string": "#9ecb8b",
    "type-hash": "#7fb4ee", "type-list": "#dcae74", "type-set": "#c79be0", "type-zset": "#e594ad",
    "type-stream": "#72c8c0", "type-json": "#d8cb7c", "type-other": "#a7b0bd", "heat-1": "#1a2432",
    "heat-2": "#1f3147", "heat-3": "#254160", "heat-4": "#2c527c", "heat-5": "#356499", "heat-ink": "#f2f5f9",
    "heat-hot-ink": "#f2f5f9", "heat-on": "#6cb2f5", "heat-on-ink": "#10141b",
}  # fmt: skip
"""The variables that rtui adds to a theme; a theme file may set each of them in its `[variables]`."""

_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)

_FIELDS: Final = frozenset(field.name for field in fields(Theme))

_COLOURS: Final = frozenset({
    "primary", "secondary", "warning", "error", "success", "accent",
    "foreground", "background", "surface", "panel", "boost",
})  # fmt: skip
"""The fields of a theme that are colours."""


_VALUES: Final[Mapping[str, tuple[Any, str]]] = {
    "dark": (bool, "true or false"),
    "ansi": (bool, "true or false"),
    "luminosity_spread": (int | float, "a number"),
    "text_alpha": (int | float, "a number"),
}
"""The types of the settings that are no texts, and how they are called."""


class ThemeError(ValueError):
    """A theme file that cannot be used; the text says where and why, safe to show."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason: SafeText = display_text(reason)
        super().__init__(f"{display_text(path.name)}: {self.reason}")


@dataclass(frozen=True, slots=True)
class ThemeSet:
    """The themes found, by name in order of finding, and what was wrong with the rest."""

    themes: tuple[Theme, ...]
    errors: tuple[ThemeError, ...]


def shipped_folder() -> Path:
    """Return the folder of the themes that ship with rtui: inside the wheel, or beside the package in a checkout."""
    package = Path(rtui.__file__).parent
    packed = package / "_themes"
    return packed if packed.is_dir() else package.parent / "themes"


def user_folder() -> Path:
    """Return the folder where users put their own themes."""
    return user_config_path("rtui", appauthor=False) / "themes"


def load_themes(css: Callable[[], str], user: Path | None = None, palette: Palette = Palette.TRUE) -> ThemeSet:
    """Read the themes that ship with rtui and the user's; one of the user's is tried against `css` before it counts.

    Each comes as it is meant for a terminal of this palette.
    """
    found: dict[str, Theme] = {}
    errors: list[ThemeError] = []
    for path in sorted(shipped_folder().glob("*.toml")):
        theme = read_theme(path, palette)
        found[theme.name] = theme
    for path in sorted((user_folder() if user is None else user).glob("*.toml")):
        try:
            theme = read_theme(path, palette)
            try_theme(path, theme, css())
        except ThemeError as error:
            errors.append(error)
        else:
            found[theme.name] = theme
    return ThemeSet(tuple(found.values()), tuple(errors))


def read_theme(path: Path, palette: Palette = Palette.TRUE) -> Theme:
    """Return the theme of a file for a terminal of a palette; raises ThemeError for anything that is not one."""
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ThemeError(path, str(error)) from None
    record.setdefault("name", path.stem)
    few_colours = _texts(path, FEW_COLOURS_TABLE, record.pop(FEW_COLOURS_TABLE, {}))
    record["variables"] = _texts(path, "variables", record.get("variables", {}))
    unknown = sorted(set(record) - _FIELDS)
    if unknown:
        raise ThemeError(path, f"unknown setting {', '.join(unknown)}")
    if not _NAME.fullmatch(str(record["name"])):
        raise ThemeError(path, "name must be letters, digits, - and _")
    if "primary" not in record:
        raise ThemeError(path, "no primary colour")
    for name in record.keys() - {"variables"}:
        wanted, words = _VALUES.get(name, (str, "a text"))
        if not isinstance(record[name], wanted):
            raise ThemeError(path, f"{name} must be {words}")
    if palette is Palette.XTERM:
        record |= {name: few_colours.pop(name) for name in _COLOURS & few_colours.keys()}
        record["variables"] |= few_colours
    return Theme(**record)


def _texts(path: Path, name: str, table: object) -> dict[str, str]:
    """Return a copy of a table of a theme file; raises ThemeError unless all its values are texts."""
    if not isinstance(table, dict):
        raise ThemeError(path, f"{name} must be a table")
    if not all(isinstance(item, str) for item in table.values()):
        raise ThemeError(path, f"[{name}] holds texts only")
    return dict(table)


def try_theme(path: Path, theme: Theme, css: str) -> None:
    """Parse all of `css` with the theme's variables; Textual itself would only fail, fatally, when the theme is set."""
    try:
        variables = {**VARIABLE_DEFAULTS, **theme.to_color_system().generate(), **theme.variables}
        sheet = Stylesheet(variables=variables)
        sheet.add_source(css, read_from=("rtui", ""))
        sheet.parse()
    except (StylesheetError, TokenError, ColorParseError, ValueError, TypeError, AttributeError) as error:
        raise ThemeError(path, _reason(error)) from None


def _reason(error: Exception) -> str:
    """Return one line of what a failed parse says."""
    if isinstance(error, StylesheetParseError):
        for rule in error.errors.rules:
            for _token, message in rule.errors:
                return str(getattr(message, "summary", message))
        return "a value does not parse"
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
