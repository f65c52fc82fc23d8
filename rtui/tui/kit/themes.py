"""Themes come from TOML files: first rtui's own, then the user's; a bad file costs only itself."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypedDict

import msgspec
from rich.console import Console
from textual.color import ColorParseError
from textual.css.errors import StylesheetError
from textual.css.stylesheet import Stylesheet, StylesheetParseError
from textual.css.tokenizer import TokenError
from textual.theme import BUILTIN_THEMES, Theme

import rtui
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.files import config_folder

CSS_FILE: Final = Path(__file__).parent.parent / "rtui.tcss"
"""The application's own style sheet."""

DEFAULT_THEME: Final = "rtui-dark"
"""The theme of a first start, in whatever palette the terminal has."""


class Palette(Enum):
    """The number of colours of the terminal."""

    TRUE = "truecolor"
    XTERM = "256"
    """The 6 × 6 × 6 cube and the grey ramp of xterm: the colours that SSH usually passes on."""
    ANSI = "standard"
    """Sixteen, such as the Linux console has."""


def palette_of(console: Console) -> Palette:
    """Return the palette of a console's terminal, as Rich reads it from TERM and COLORTERM."""
    system = console.color_system
    return Palette(system) if system in ("truecolor", "256") else Palette.ANSI


def terminal_palette() -> Palette:
    return palette_of(Console(force_terminal=True, legacy_windows=False))


VARIABLE_DEFAULTS: Final[Mapping[str, str]] = {
    "ink-muted": "#98a3b5", "ink-faint": "#8290a6", "ink-strong": "#f3f6fa", "bar": "#5088c0",
    "bar-track": "#1f2836", "rule": "#29344a", "cursor": "#263a57", "cursor-blurred": "#1d2838",
    "cursor-ink": "transparent", "cursor-blurred-ink": "transparent", "hover": "#182130", "badge": "#86cf98",
    "type-string": "#a2cf8f", "type-hash": "#82b6f0", "type-list": "#dfb27a", "type-set": "#c9a0e3",
    "type-zset": "#e89ab2", "type-stream": "#74cbc3", "type-json": "#dacd80", "type-other": "#a9b3c1",
    "fill": "#232a35", "heat-1": "#1a2432", "heat-2": "#1f3147", "heat-3": "#254160", "heat-4": "#2c527c",
    "heat-5": "#356499", "heat-ink": "#dfe6ee", "heat-mid-ink": "#dfe6ee", "heat-hot-ink": "#f3f6fa",
    "heat-on": "#6cb2f5", "heat-on-ink": "#10141b", "dev-low-2": "#6cb2f5", "dev-low-1": "#4a7cad",
    "dev-mean": "#626d7d", "dev-high-1": "#b07f3c", "dev-high-2": "#f2ab56",
}  # fmt: skip
"""The variables that rtui adds to a theme; a theme file may set each of them in its `[variables]`."""


_COLOURS: Final = frozenset({
    "primary", "secondary", "warning", "error", "success", "accent",
    "foreground", "background", "surface", "panel", "boost",
})  # fmt: skip
"""The settings that are colours of Textual itself."""

_PaletteTables = TypedDict("_PaletteTables", {"palette-256": dict[str, str], "palette-16": dict[str, str]}, total=False)
"""Other values for terminals of fewer colours; those of sixteen have names, such as `ansi_bright_cyan`."""

_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)


class ThemeError(ValueError):
    """A theme file that cannot be used; the text says where and why, safe to show."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason: SafeText = display_text(reason)
        super().__init__(f"{display_text(path.name)}: {self.reason}")


@dataclass(frozen=True, slots=True)
class ThemeSet:
    """The themes found, by name in order of finding, and the errors of the other files."""

    themes: tuple[Theme, ...]
    errors: tuple[ThemeError, ...]


def shipped_folder() -> Path:
    """Return the folder of the themes that ship with rtui: inside the wheel, or beside the package in a checkout."""
    package = Path(rtui.__file__).parent
    packed = package / "_themes"
    return packed if packed.is_dir() else package.parent / "themes"


def user_folder() -> Path:
    return config_folder() / "themes"


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


def theme_names() -> list[str]:
    """Return the names of all known themes, rtui's first, then the user's, then Textual's."""
    names: list[str] = []
    for path in (*sorted(shipped_folder().glob("*.toml")), *sorted(user_folder().glob("*.toml"))):
        with contextlib.suppress(ThemeError):
            names.append(read_theme(path).name)
    return list(dict.fromkeys((*names, *BUILTIN_THEMES)))


def read_theme(path: Path, palette: Palette = Palette.TRUE) -> Theme:
    """Return the theme of a file for a terminal of a palette; raises ThemeError for anything that is not one."""
    try:
        settings = {"name": path.stem} | msgspec.toml.decode(path.read_bytes(), type=dict[str, Any])
        tables = msgspec.convert(settings, _PaletteTables)
        for name in settings.keys() - tables.keys() - {one.name for one in fields(Theme)}:
            raise ThemeError(path, f"Object contains unknown field `{name}`")
        theme = msgspec.convert(settings, Theme)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise ThemeError(path, str(error)) from None
    if not _NAME.fullmatch(theme.name):
        raise ThemeError(path, "name must be letters, digits, - and _")
    of_palettes = {Palette.XTERM: tables.get("palette-256"), Palette.ANSI: tables.get("palette-16")}
    if own := of_palettes.get(palette):
        own = {name: _as_rich_reads(value) for name, value in own.items()} if palette is Palette.XTERM else own
        colours: dict[str, Any] = {name: own.pop(name) for name in _COLOURS & own.keys()}
        is_ansi = theme.ansi or palette is Palette.ANSI
        theme = replace(theme, **colours, variables=theme.variables | own, ansi=is_ansi)
    return theme


_GREY: Final = re.compile(r"#([0-9a-f]{2})\1\1", re.IGNORECASE)
_GREYS: Final = {8 + 10 * at: round((at + 1) * 10.2) for at in range(24)}
"""The greys of the 256 colours, and the values that Rich takes for them: the light ones are one off."""


def _as_rich_reads(value: str) -> str:
    """Return the value of which Rich makes this colour of the 256."""
    found = _GREY.fullmatch(value)
    grey = None if found is None else _GREYS.get(int(found[1], 16))
    return value if grey is None else "#" + f"{grey:02x}" * 3


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
    if isinstance(error, StylesheetParseError):
        for rule in error.errors.rules:
            for _token, message in rule.errors:
                return str(getattr(message, "summary", message))
        return "a value does not parse"
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
