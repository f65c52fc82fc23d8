"""Hot keys on a screen: read again while they are shown, and the dialog before a session.

In a session the server finds its hottest keys itself, which is not only reading.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple

from textual.binding import Binding, BindingType
from textual.screen import Screen

from rtui.analysis import humanize as fmt
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis.session import AnalysisSource, AnalysisStatus
from rtui.server.guard.evidence import Consent
from rtui.server.hot.report import HOT_EVERY_S
from rtui.server.wire.connection import Online
from rtui.server.wire.errors import RtuiError
from rtui.tui.kit.choice import CardScreen
from rtui.tui.kit.layout import prose, tab
from rtui.tui.kit.panel_view import following
from rtui.tui.kit.styled_text import Line, Role, Span, gap, left, literal

DEFAULT: Final = Consent(duration_s=60, sample_ratio=100)
"""What is chosen at first."""


class Choice(NamedTuple):
    """A field of the consent whose value the user chooses."""

    key: SafeText
    """Takes the next option, and after the last one the first."""
    field: str
    label: SafeText
    options: Sequence[Any]
    text: Callable[[Any], SafeText]


CHOICES: Final = (
    Choice(literal("d"), "duration_s", literal("duration"), (10, 60, 300, 1800),
           lambda duration_s: fmt.duration(duration_s * fmt.SECOND_MS)),
    Choice(literal("s"), "sample_ratio", literal("measured"), (1000, 100, 10), lambda one: SafeText(f"1 in {one:,}")),
    Choice(literal("l"), "discards_result", literal("earlier result"), (False, True),
           lambda discards: literal("may be lost") if discards else literal("keep it")),
)  # fmt: skip

_KEY_CELLS: Final = 4
_LABEL_CELLS: Final = 14

_ABOUT: Final = literal(
    "rtui only reads. This is the exception: HOTKEYS START makes the server keep count of CPU time and network bytes "
    "by key until the time is over. It changes no key and no setting, and it ends by itself; rtui does not stop or "
    "reset it."
)
_COST: Final = literal(
    "What it costs: with every command measured Redis 8.6 did 17 % less work under redis-benchmark, with one in 100 "
    "1.6 % less. While it runs, what rtui asks is counted too: do not ask every key before it is over."
)
_KEPT: Final = literal(
    "The server keeps one result. One that an earlier session has left, perhaps another operator's, would be lost; "
    "one that is running is never touched."
)


class HotSessionScreen(CardScreen[Consent | None]):
    """Dismissed with what the user agreed to by pressing `y`, with None for anything else."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "dismiss", show=False),
        *(Binding(choice.key, f"next_option({at})", show=False) for at, choice in enumerate(CHOICES)),
        Binding("y", "agree", show=False),
    ]

    def __init__(self) -> None:
        super().__init__("Start a hot-key session?", "consent")
        self.consent = DEFAULT

    def action_next_option(self, at: int) -> None:
        """Take the next option of a choice."""
        field, options = CHOICES[at].field, CHOICES[at].options
        self.consent = replace(self.consent, **{field: following(options, getattr(self.consent, field))})
        self.body.set_content(self.lines)

    def action_agree(self) -> None:
        """Agree."""
        self.dismiss(self.consent)

    def lines(self, width: int) -> list[Line]:
        """Return the text for what is chosen so far."""
        lines = [*prose(_ABOUT, width, Role.TEXT), ()]
        for text in (_COST, _KEPT):
            lines += [*prose(text, width, Role.MUTED), ()]
        for choice in CHOICES:
            spans = [_key(choice.key), Span(left(choice.label, _LABEL_CELLS), Role.MUTED)]
            for option in choice.options:
                is_chosen = option == getattr(self.consent, choice.field)
                spans += (gap(1), tab(choice.text(option), is_chosen=is_chosen))
            lines.append((gap(1), *spans))
        return [
            *lines,
            (),
            (gap(1), _key(literal("y")), Span(literal("start the session on the server"), Role.STRONG)),
            (gap(1), _key(literal("esc")), Span(literal("cancel: leave the server as it is"))),
        ]


class HotKeys:
    """Has the hot keys of an analysis read while a screen shows them: a session may have begun or ended elsewhere."""

    def __init__(self, source: AnalysisSource, screen: Screen[Any], are_shown: Callable[[], bool]) -> None:
        """The screen runs the workers and shows the notices; `are_shown` says whether hot keys are on it now."""
        self._source, self._screen, self._are_shown = source, screen, are_shown
        self._due_s = 0.0
        """When they are read again, on the clock of the event loop."""

    def refresh(self, status: AnalysisStatus) -> None:
        """Read them again if it is time, they are on the screen, and nothing else asks the server."""
        now_s, source = asyncio.get_running_loop().time(), self._source
        can_ask = status.is_live and isinstance(status.link, Online) and not status.is_under_way
        is_wanted = self._are_shown() and source.report is not None and source.reports_hot_keys
        if is_wanted and can_ask and now_s >= self._due_s:
            self._due_s = now_s + HOT_EVERY_S
            self._screen.run_worker(
                self._read(), group="hot keys", exclusive=True, exit_on_error=False, description="hot keys"
            )

    async def _read(self) -> None:
        """Read them; the status bar shows a lost connection, and other failures show in the next analysis."""
        with contextlib.suppress(RtuiError):
            await self._source.ask_hot()

    def start_session(self, consent: Consent) -> None:
        """Start a session that the user agreed to, and read what it finds."""
        name = "hot-key session"
        self._screen.run_worker(self._start(consent), group=name, exit_on_error=False, description=name)

    async def _start(self, consent: Consent) -> None:
        """Start a session and show in a notice whether the server has accepted it."""
        try:
            await self._source.start_hot_session(consent)
        except RtuiError as error:
            text = " ".join(filter(None, (error.happened, error.remedy)))
            self._screen.notify(text, title=error.title, severity="warning", markup=False, timeout=10)
        else:
            self._due_s = 0.0
            self.refresh(self._source.status)
            lasts = fmt.duration(consent.duration_s * fmt.SECOND_MS)
            text = f"It ends by itself in {lasts}; the panel shows what it finds."
            self._screen.notify(text, title="The server counts its hot keys", markup=False, timeout=10)


def _key(key: SafeText) -> Span:
    return Span(left(key, _KEY_CELLS), Role.ACCENT)
