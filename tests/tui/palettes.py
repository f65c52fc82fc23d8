"""Terminals of few colours: the interface as they show it, and how far its texts stand out there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.color import Color, ColorSystem, ColorType
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.app import App
from textual.color import Color as TextualColor
from textual.filter import LineFilter

from rtui.tui.app import RtuiApp
from rtui.tui.kit.themes import Palette

LINUX_CONSOLE: Final = TerminalTheme(
    (0, 0, 0),
    (170, 170, 170),
    [(0, 0, 0), (170, 0, 0), (0, 170, 0), (170, 85, 0), (0, 0, 170), (170, 0, 170), (0, 170, 170), (170, 170, 170)],
    [(85, 85, 85), (255, 85, 85), (85, 255, 85), (255, 255, 85), (85, 85, 255), (255, 85, 255), (85, 255, 255),
     (255, 255, 255)],
)  # fmt: skip
"""The sixteen colours of the Linux console."""


class AsShown(LineFilter):
    """Gives every colour the value that it has in a terminal of this palette."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._system = SYSTEMS[palette]

    def apply(self, segments: list[Segment], background: TextualColor) -> list[Segment]:
        return [Segment(text, self._shown(style), control) for text, style, control in segments]

    def _shown(self, style: Style | None) -> Style:
        style = style or Style()
        return style + Style(
            color=self._colour(style.color, is_ground=False), bgcolor=self._colour(style.bgcolor, is_ground=True)
        )

    def _colour(self, colour: Color | None, *, is_ground: bool) -> Color:
        shown = (colour or Color.default()).downgrade(self._system)
        return Color.from_triplet(shown.get_truecolor(LINUX_CONSOLE, foreground=not is_ground))


class PaletteApp(RtuiApp):
    """The application in such a terminal, as a picture can show it."""

    shown_in: Palette

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), AsShown(self.shown_in)]


class XtermApp(PaletteApp):
    """What SSH usually passes on."""

    shown_in = Palette.XTERM


class ConsoleApp(PaletteApp):
    """The Linux console."""

    shown_in = Palette.ANSI


PALETTE_APPS: Final = {"256-colours": XtermApp, "16-colours": ConsoleApp}


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


def shown_as(colour: Color | None, palette: Palette, terminal: TerminalTheme, *, is_ground: bool) -> Rgb:
    """What a terminal makes of a colour; the Linux console has no bright grounds."""
    found = (colour or Color.default()).downgrade(SYSTEMS[palette])
    if is_ground and terminal is LINUX_CONSOLE and found.type is ColorType.STANDARD and found.number is not None:
        found = Color.from_ansi(found.number % 8)
    red, green, blue = found.get_truecolor(terminal, foreground=not is_ground)
    return red, green, blue


def contrast_of(style: Style, palette: Palette) -> float:
    """The least contrast that a style has in any terminal of the palette."""
    found = []
    for terminal in TERMINALS[palette]:
        ink = shown_as(style.color, palette, terminal, is_ground=False)
        found.append(contrast(ink, shown_as(style.bgcolor, palette, terminal, is_ground=True)))
    return min(found)


def painted(app: App[int]) -> Iterator[tuple[str, Style]]:
    """The texts of the screen on top as they are painted, with their styles; blanks are left out."""
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            if segment.text.strip() and segment.style is not None:
                yield segment.text, segment.style
