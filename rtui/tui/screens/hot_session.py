"""Asks whether the server may be made to find its hottest keys itself: the one thing that is not only reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget

from rtui.server.guard import Consent
from rtui.tui.ink import INK_CLASSES
from rtui.tui.lines.analyse.consent import DURATIONS_S, FIRST, SAMPLE_RATIOS, consent_lines
from rtui.tui.screens.command_screen import FocusScreen
from rtui.tui.widgets.detail_pane import DetailBody

Option = TypeVar("Option")


class HotSessionScreen(ModalScreen[Consent | None], FocusScreen[Consent | None]):
    """Returns what the user has agreed to by pressing `y`, None for anything else."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "dismiss", show=False),
        Binding("d", "duration", show=False),
        Binding("s", "sampling", show=False),
        Binding("l", "loss", show=False),
        Binding("y", "agree", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {*INK_CLASSES}

    def __init__(self) -> None:
        super().__init__()
        self.consent = FIRST
        self.body = DetailBody(id="consent-body")

    @property
    def focus_home(self) -> Widget:
        """The words."""
        return self.body

    def compose(self) -> ComposeResult:
        """Lay the words into a card."""
        with Vertical(id="consent-card") as card:
            card.border_title = "Start a hot-key session?"
            card.border_subtitle = "esc closes"
            yield self.body

    def on_mount(self) -> None:
        """Show what is offered."""
        self.body.focus()
        self._offer(self.consent)

    def action_duration(self) -> None:
        """Take the next duration."""
        self._offer(replace(self.consent, duration_s=_after(DURATIONS_S, self.consent.duration_s)))

    def action_sampling(self) -> None:
        """Measure more, or fewer, of the commands."""
        self._offer(replace(self.consent, sample_ratio=_after(SAMPLE_RATIOS, self.consent.sample_ratio)))

    def action_loss(self) -> None:
        """Agree, or not, that an earlier result may be lost."""
        self._offer(replace(self.consent, discards_result=not self.consent.discards_result))

    def action_agree(self) -> None:
        """Have it started."""
        self.dismiss(self.consent)

    def _offer(self, consent: Consent) -> None:
        self.consent = consent
        self.body.say(lambda width: consent_lines(consent, width))


def _after(options: Sequence[Option], chosen: Option) -> Option:
    """Return the option behind the chosen one, the first behind the last."""
    return options[(options.index(chosen) + 1) % len(options)]
