"""The dialog before a hot-key session: the server then finds its hottest keys itself, which is not only reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget

from rtui.analysis import humanize as fmt
from rtui.keyspace.text.display import SafeText
from rtui.server.guard.evidence import Consent
from rtui.tui.kit.command_screen import FocusScreen
from rtui.tui.kit.layout import prose
from rtui.tui.kit.line_view import ScrollingPanel
from rtui.tui.kit.styled_text import ROLE_CLASSES, Line, Role, Span, gap, left, literal

DURATIONS_S: Final = (10, 60, 300, 1800)
"""Durations to choose from."""

SAMPLE_RATIOS: Final = (1000, 100, 10)
"""Sample ratios to choose from: one command in so many is measured."""

DEFAULT: Final = Consent(duration_s=DURATIONS_S[1], sample_ratio=SAMPLE_RATIOS[1])
"""What is chosen at first."""

S = TypeVar("S")


class HotSessionScreen(ModalScreen[Consent | None], FocusScreen[Consent | None]):
    """Dismissed with what the user agreed to by pressing `y`, with None for anything else."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "dismiss", show=False),
        Binding("d", "duration", show=False),
        Binding("s", "sampling", show=False),
        Binding("l", "loss", show=False),
        Binding("y", "agree", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {*ROLE_CLASSES}

    def __init__(self) -> None:
        super().__init__()
        self.consent = DEFAULT
        self.body = ScrollingPanel(id="consent-body")

    @property
    def focus_home(self) -> Widget:
        """The text."""
        return self.body

    def compose(self) -> ComposeResult:
        """Put the text into a card."""
        with Vertical(id="consent-card") as card:
            card.border_title = "Start a hot-key session?"
            card.border_subtitle = "esc closes"
            yield self.body

    def on_mount(self) -> None:
        """Show the default choices."""
        self.body.focus()
        self._offer(self.consent)

    def action_duration(self) -> None:
        """Take the next duration."""
        self._offer(replace(self.consent, duration_s=_after(DURATIONS_S, self.consent.duration_s)))

    def action_sampling(self) -> None:
        """Take the next sample ratio."""
        self._offer(replace(self.consent, sample_ratio=_after(SAMPLE_RATIOS, self.consent.sample_ratio)))

    def action_loss(self) -> None:
        """Toggle whether an earlier result may be lost."""
        self._offer(replace(self.consent, discards_result=not self.consent.discards_result))

    def action_agree(self) -> None:
        """Agree."""
        self.dismiss(self.consent)

    def _offer(self, consent: Consent) -> None:
        self.consent = consent
        self.body.set_content(lambda width: consent_lines(consent, width))


def _after(options: Sequence[S], chosen: S) -> S:
    """Return the option behind the chosen one, the first behind the last."""
    return options[(options.index(chosen) + 1) % len(options)]


def notice_of_session(consent: Consent) -> SafeText:
    """Return what the user is to expect of a session that has started."""
    lasts = fmt.duration(consent.duration_s * fmt.SECOND_MS)
    return SafeText(f"It ends by itself in {lasts}; the panel shows what it finds.")


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


def consent_lines(consent: Consent, width: int) -> list[Line]:
    """Return the text of the dialog for what is chosen so far."""
    durations = [(fmt.duration(one * fmt.SECOND_MS), one == consent.duration_s) for one in DURATIONS_S]
    ratios = [(SafeText(f"1 in {one:,}"), one == consent.sample_ratio) for one in SAMPLE_RATIOS]
    losses = [(literal("keep it"), not consent.discards_result), (literal("may be lost"), consent.discards_result)]
    return [
        *prose(_ABOUT, width, Role.TEXT),
        (),
        *prose(_COST, width, Role.MUTED),
        (),
        *prose(_KEPT, width, Role.MUTED),
        (),
        _choice(literal("d"), literal("duration"), durations),
        _choice(literal("s"), literal("measured"), ratios),
        _choice(literal("l"), literal("earlier result"), losses),
        (),
        (
            gap(1),
            Span(left(literal("y"), _KEY_CELLS), Role.ACCENT),
            Span(literal("start the session on the server"), Role.STRONG),
        ),
        (
            gap(1),
            Span(left(literal("esc"), _KEY_CELLS), Role.ACCENT),
            Span(literal("cancel: leave the server as it is")),
        ),
    ]


def _choice(key: SafeText, label: SafeText, options: Sequence[tuple[SafeText, bool]]) -> Line:
    """Return a line of options, the chosen one in brackets, with the key that takes the next."""
    spans: list[Span] = [gap(1), Span(left(key, _KEY_CELLS), Role.ACCENT), Span(left(label, _LABEL_CELLS), Role.MUTED)]
    for text, chosen in options:
        spans += (gap(1), Span(SafeText(f"[{text}]" if chosen else f" {text} "), Role.TAB_ON if chosen else Role.TAB))
    return tuple(spans)
