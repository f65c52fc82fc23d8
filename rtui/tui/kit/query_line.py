"""The line in which queries are typed, and the two lines above it with the syntax of the term at the cursor.

Terms are coloured as they are recognised, wrong ones underlined in place. Tab inserts the candidates at the cursor one
after the other. Text that is no query, such as a part of a name, is up to the screen.

The language is not needed for the first paint, so it is imported a little later, in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from rich.highlighter import Highlighter
from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Input

from rtui.server.wire.target import Target
from rtui.tui.kit.bars import FilterInput, InputLine
from rtui.tui.kit.command_screen import FocusScreen
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.settings import SettingsError, SettingsFile, expanded, save_query, saved_queries
from rtui.tui.kit.styled_text import ROLE_CLASS_PREFIX, Line, Role, Span, literal

if TYPE_CHECKING:
    from rtui.analysis.query.hints import Completion, Vocabulary
    from rtui.analysis.query.parsing import LineReading

MAX_QUERY: Final = 4096
"""No longer line can be typed, in characters."""

MOST_KEPT: Final = 100

QUERY_HINT: Final[Line] = (
    Span(literal(" enter"), Role.ACCENT),
    Span(literal(" finds the keys"), Role.MUTED),
    Span(literal("  tab"), Role.ACCENT),
    Span(literal(" completes"), Role.MUTED),
    Span(literal("  ^s"), Role.ACCENT),
    Span(literal(" saves it as @name"), Role.MUTED),
    Span(literal("  esc"), Role.ACCENT),
    Span(literal(" goes back"), Role.MUTED),
)

WRONG_HINT: Final[Line] = QUERY_HINT[2:4] + QUERY_HINT[6:]
"""Stands there while the line can't be read."""


class NameScreen(ModalScreen[str | None], FocusScreen[str | None]):
    """Asks for the name of a query; returns it, or None if the user changed their mind."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Close", show=False)]

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names`: saved queries; saving under one of them replaces it."""
        super().__init__()
        known = f", or one of {', '.join(names)} to replace it" if names else ""
        self.line = InputLine(placeholder=f"a name{known}", id="query-name", max_length=40)
        self.line.cursor_blink = False
        self.line.border_title, self.line.border_subtitle = "Save the query as @", "enter saves · esc closes"

    @property
    def focus_home(self) -> Input:
        return self.line

    def compose(self) -> ComposeResult:
        yield self.line

    @on(Input.Submitted)
    def _named(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip().removeprefix("@") or None)


class QueryHighlighter(Highlighter):
    """Colours the names of terms, and underlines problems."""

    def __init__(self, line: QueryLine) -> None:
        self._line = line

    def highlight(self, text: Text) -> None:
        if not text.plain or text.plain != self._line.value or self._line.text != text.plain:
            return
        from rtui.tui.kit.query_hints import styled_parts  # noqa: PLC0415 - not for the first paint

        for start, end, role in styled_parts(self._line.reading, text.plain):
            style = self._line.screen.get_component_rich_style(f"{ROLE_CLASS_PREFIX}{role}", partial=True)
            text.stylize(style + Style(underline=True) if role is not Role.ACCENT else style, start, end)


@dataclass(slots=True)
class _Tried:
    """The candidates that Tab inserts one after the other."""

    before: str
    after: str
    texts: tuple[str, ...]
    at: int
    value: str
    """The line with the candidate in it."""


class QueryLine(FilterInput):
    """A line for queries, hidden until it is wanted; the screen shows `hint` above it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete(1)", show=False),
        Binding("shift+tab", "complete(-1)", show=False),
        Binding("down", "screen.leave_filter", show=False),
        Binding("up", "recall", show=False),
        Binding("ctrl+s", "save", show=False),
    ]

    def __init__(
        self,
        placeholder: str,
        vocabulary: Callable[[], Vocabulary],
        settings: SettingsFile,
        target: Target,
        *,
        id: str = "filter",
    ) -> None:
        """`settings` have the queries that were saved for the server `target`."""
        super().__init__(placeholder, id=id)
        self.max_length = MAX_QUERY
        self.highlighter = QueryHighlighter(self)
        self.hint = LinePanel(id=f"{id}-hint", classes="query-hint")
        self._vocabulary, self._settings, self._target = vocabulary, settings, target
        self._tried: _Tried | None = None
        self._read: tuple[str, LineReading] | None = None
        self._earlier: list[str] = []
        """The lines that are left to recall, the latest last."""
        self._refused: str | None = None
        """The line that was entered though something is wrong in it."""

    @property
    def saved(self) -> Mapping[str, str]:
        return saved_queries(self._settings.settings, self._target)

    @property
    def text(self) -> str:
        """The typed line, with saved queries in place of their names."""
        return expanded(self.value, self.saved) if "@" in self.value else self.value

    @property
    def reading(self) -> LineReading:
        text = self.text
        if self._read is None or self._read[0] != text:
            from rtui.analysis.query.hints import read_with_hints  # noqa: PLC0415 - not for the first paint

            self._read = text, read_with_hints(text)
        return self._read[1]

    @property
    def keys_hint(self) -> Line:
        return WRONG_HINT if self.reading.problems else QUERY_HINT

    @property
    def is_query(self) -> bool:
        """Whether it has terms, and not just a text or a glob that names may have."""
        from rtui.tui.kit.query_hints import is_query  # noqa: PLC0415 - not for the first paint

        return self.text != self.value or is_query(self.reading, self.value)

    def open(self, value: str = "") -> None:
        super().open(value)
        self._earlier = self._settings.typed.copy()
        self.hint.add_class("-open")
        self.show_hint()

    def close(self) -> None:
        super().close()
        self.hint.remove_class("-open")
        self._tried = None

    def show_hint(self) -> None:
        """Show the syntax of the term at the cursor, or a problem; to be called when the text has changed."""
        from rtui.tui.kit.query_hints import hint_lines  # noqa: PLC0415 - not for the first paint

        reading = self.reading
        if self._tried is not None and self._tried.value != self.value:
            self._tried = None
        tried = None if self._tried is None else (self._tried.texts, self._tried.at)
        completion, is_refused = self._completion(), self._refused == self.value
        self.hint.set_content(lambda width: hint_lines(reading, completion, tried, width, is_refused=is_refused))

    def refuse(self) -> None:
        self._refused = self.value
        self.cursor_position = min(self.reading.problems[0].span.end, len(self.value))
        self.show_hint()

    def watch_cursor_position(self) -> None:
        if self.is_open and self.hint.is_attached:
            self.show_hint()

    def _completion(self) -> Completion:
        from rtui.analysis.query.hints import complete  # noqa: PLC0415 - not for the first paint
        from rtui.tui.kit.query_hints import meant_completion, saved_completion  # noqa: PLC0415

        found = saved_completion(self.value, self.cursor_position, self.saved)
        found = found or complete(self.value, self.cursor_position, self._vocabulary())
        if found.candidates or self.text != self.value:
            return found
        return meant_completion(self.reading) or found

    def action_save(self) -> None:
        text = self.text
        if not text or self.reading.problems:
            self.app.notify("There is no query to save yet.", markup=False, timeout=3)
            return

        def named(name: str | None) -> None:
            if name is None:
                return
            try:
                save_query(self._settings, self._target, name, text)
            except SettingsError as error:
                self.app.notify(error.happened, title="Not saved", severity="error", markup=False)
            else:
                saved = display_text(f"@{name} stands for {text}", limit=300)
                self.app.notify(saved, title="Saved", markup=False, timeout=4)
            self.screen.set_focus(self)

        self.app.push_screen(NameScreen(self.saved), named)

    @on(Input.Submitted)
    def _remember(self) -> None:
        typed, text = self._settings.typed, self.value.strip()
        if text:
            typed[:] = [*(one for one in typed if one != text), text][-MOST_KEPT:]

    def action_recall(self) -> None:
        """Put in the line that was entered before, on any screen."""
        while self._earlier:
            earlier = self._earlier.pop()
            if earlier != self.value:
                self.value = earlier
                self.cursor_position = len(earlier)
                return

    def action_complete(self, step: int) -> None:
        """Put in a completion at the cursor; again, the next candidate."""
        tried = self._tried
        if tried is None or tried.value != self.value:
            found = self._completion()
            if not found.candidates:
                return
            texts = tuple(str(one.text) for one in found.candidates)
            before, after = self.value[: found.span.start], self.value[found.span.end :]
            tried = _Tried(before, after, texts, 0 if step > 0 else len(texts) - 1, "")
        else:
            tried.at = (tried.at + step) % len(tried.texts)
        tried.value = tried.before + tried.texts[tried.at] + tried.after
        self._tried = tried
        self.value = tried.value
        self.cursor_position = len(tried.before) + len(tried.texts[tried.at])
        self.show_hint()
