"""The colours that text has where it is painted, as terminals show them, and how far they stand apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.color import Color as RichColor
from rich.color import ColorSystem, ColorType
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.app import App

from rtui.tui.kit.themes import Palette
from tests.tui.palettes import LINUX_CONSOLE

XTERM: Final = TerminalTheme(
    (0, 0, 0),
    (229, 229, 229),
    [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)],
    [(127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255),
     (255, 255, 255)],
)  # fmt: skip
"""The sixteen colours of xterm."""

SYSTEMS: Final = {Palette.TRUE: ColorSystem.TRUECOLOR, Palette.XTERM: ColorSystem.EIGHT_BIT,
                  Palette.ANSI: ColorSystem.STANDARD}  # fmt: skip

TERMINALS: Final = {Palette.TRUE: (LINUX_CONSOLE,), Palette.XTERM: (LINUX_CONSOLE,),
                    Palette.ANSI: (LINUX_CONSOLE, XTERM)}  # fmt: skip
"""Whose sixteen colours to look at."""

GRAPHICS: Final = frozenset("█▉▊▋▌▍▎▏▐▀▄▁▂▃▅▆▇░▒▓│┃║─━═┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛▔▕╸╺╶╴┈┄· ")
"""Characters that draw something, for which 3:1 is enough."""

Rgb = tuple[int, int, int]


def luminance(colour: Rgb) -> float:
    """The relative luminance of WCAG 2."""
    channels = [value / 255 for value in colour]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Rgb, other: Rgb) -> float:
    """The contrast ratio of WCAG 2."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def shown_as(colour: RichColor | None, palette: Palette, terminal: TerminalTheme, *, is_ground: bool) -> Rgb:
    """What a terminal makes of a colour; the Linux console has no bright grounds."""
    found = (colour or RichColor.default()).downgrade(SYSTEMS[palette])
    if is_ground and terminal is LINUX_CONSOLE and found.type is ColorType.STANDARD and found.number is not None:
        found = RichColor.from_ansi(found.number % 8)
    red, green, blue = found.get_truecolor(terminal, foreground=not is_ground)
    return red, green, blue


def contrast_of(style: Style, palette: Palette) -> float:
    """The least contrast that a style has in any terminal of the palette."""
    found = []
    for terminal in TERMINALS[palette]:
        ink = shown_as(style.color, palette, terminal, is_ground=False)
        ground = shown_as(style.bgcolor, palette, terminal, is_ground=True)
        found.append(contrast(ink, ground))
    return min(found)


def painted(app: App[int]) -> Iterator[tuple[str, Style]]:
    """The texts of the screen on top as they are painted, with their styles; blanks are left out."""
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            if segment.text.strip() and segment.style is not None:
                yield segment.text, segment.style
