"""The interface as terminals of few colours show it: each colour is what Rich makes of it, given back as a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.color import Color, ColorSystem
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme
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

SYSTEMS: Final = {Palette.XTERM: ColorSystem.EIGHT_BIT, Palette.ANSI: ColorSystem.STANDARD}


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
