"""The screen that shows texts in full, to be selected with the mouse and copied by the terminal itself.

Each text begins in the first column of a line of its own, without a frame, so that nothing else is selected with it,
and the terminal gets its mouse back while the screen is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widget import Widget

from rtui.analysis.humanize import counted
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.command_screen import FocusScreen, is_reachable
from rtui.tui.kit.layout import TERMINAL, prose
from rtui.tui.kit.line_view import ScrollingPanel
from rtui.tui.kit.styled_text import ROLE_CLASSES, Line, Role, Span, literal, wrap
from rtui.tui.kit.terminal import report_mouse

MOST_BYTES: Final = 16_384
"""Bytes of a text that are shown: a few screens, since nobody selects more by hand."""

LONGEST_TOKEN: Final = 10
"""The most characters that one character is shown as: `\\U0001f600`."""


class Selectable(NamedTuple):
    """A text to select."""

    title: SafeText
    data: bytes


class SelectScreen(ModalScreen[None], FocusScreen[None]):
    """Shows texts as they are, each below its title; Escape closes it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*ROLE_CLASSES}
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Close", show=False)]

    def __init__(self, texts: Sequence[Selectable], reasons: Sequence[SafeText] = ()) -> None:
        """`reasons` are sentences on why the texts could not be copied."""
        super().__init__()
        self.body = ScrollingPanel(id="selectable-body")
        self._texts, self._reasons = tuple(texts), tuple(reasons)

    @property
    def focus_home(self) -> Widget:
        """The texts."""
        return self.body

    def compose(self) -> ComposeResult:
        """Show the texts."""
        yield self.body

    def on_mount(self) -> None:
        """Show the texts and leave the mouse to the terminal."""
        self.body.set_content(lambda width: selectable_lines(self._texts, self._reasons, width))
        self.set_focus(self.body)
        report_mouse(self.app._driver, is_wanted=False)

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Leave the screen and take the mouse back."""
        if is_reachable(self):
            report_mouse(self.app._driver, is_wanted=True)
        return super().dismiss(result)


def selectable_lines(texts: Sequence[Selectable], reasons: Sequence[SafeText], width: int) -> list[Line]:
    """Return what the screen shows: why it does, how to select, and the texts from the first column on."""
    lines: list[Line] = []
    for reason in reasons:
        lines += prose(reason, width, Role.WARN)
    lines += prose(literal("Select with the mouse and copy as your terminal does; esc closes."), width, Role.TEXT)
    for text in texts:
        shown, notes = _shown(text.data, width)
        title = SafeText(" · ".join([text.title, counted(len(text.data), "byte"), *notes]))
        lines += [(), *prose(title, width, Role.MUTED), *((Span(line),) for line in shown)]
    return lines


def _shown(data: bytes, width: int) -> tuple[list[SafeText], list[SafeText]]:
    """Return the lines of a text, broken at the width, and in what they differ from it."""
    text = data[:MOST_BYTES].decode("utf-8", "surrogateescape")
    notes = [SafeText(f"the first {MOST_BYTES:,} bytes")] if len(data) > MOST_BYTES else []
    lines: list[SafeText] = []
    is_exact, is_broken = True, False
    for line in text.split("\n"):
        safe = TERMINAL.text(line, limit=LONGEST_TOKEN * (len(line) + 1))
        is_exact = is_exact and safe == line
        rows = wrap(safe, width, len(safe) + 1)
        is_broken = is_broken or len(rows) > 1
        lines += rows
    if is_broken:
        notes.append(literal("broken at the width of the terminal: join the lines"))
    if not is_exact:
        notes.append(literal("escapes stand for what can't be shown: copy it as escaped bytes instead"))
    return lines, notes
