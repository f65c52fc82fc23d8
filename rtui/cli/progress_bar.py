"""How far an analysis is, on the terminal behind standard error; nothing anywhere else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

from rtui.analysis import humanize
from rtui.analysis.humanize import Mark
from rtui.keyspace.text.display import display_text
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

ENDING: Final = "ending; Ctrl-C again: at once"
"""What stands before the bar once the user wants it to end."""

REASON_LIMIT: Final = 48
"""Characters of why it waits."""

_STATES: Final = {
    ScanState.READY: "connecting",
    ScanState.SAMPLING: "sampling",
    ScanState.RUNNING: "inspecting",
    ScanState.PAUSED: "paused",
    ScanState.WAITING: "waiting",
    ScanState.DONE: "finishing",
    ScanState.STOPPED: "finishing",
    ScanState.FAILED: "finishing",
}


class UnderWay(Protocol):
    """What can be shown: an analysis has it."""

    @property
    def progress(self) -> Progress:
        """How far it is."""

    @property
    def cost(self) -> Cost:
        """What it has cost the server."""

    @property
    def control(self) -> RunControl:
        """What says how hard the server is asked."""


def state_text(progress: Progress) -> str:
    """What it does just now, and why it waits."""
    state = _STATES[progress.state]
    if progress.state is ScanState.WAITING and progress.reason:
        return f"{state}: {display_text(progress.reason, limit=REASON_LIMIT)}"
    return state


def figures_text(under_way: UnderWay) -> str:
    """How far, how fast, how long still, how hard: `78% · 786k keys · 41k/s · 12s left · gentle · server 9%`."""
    progress, cost = under_way.progress, under_way.cost
    parts = [f"{humanize.short_count(progress.keys)} {humanize.noun(progress.keys, 'key')}"]
    if progress.fraction is not None:
        parts.insert(0, f"{progress.fraction:.0%}")
    if progress.state is ScanState.RUNNING:
        parts.append(f"{humanize.short_count(progress.keys_per_s)}/s")
        if progress.eta_s is not None:
            parts.append(f"{humanize.seconds(round(progress.eta_s))} left")
    parts.append(under_way.control.pace.value)
    if cost.elapsed_s > 0:
        parts.append(f"server {humanize.share(cost.server_share, Mark.EXACT if cost.is_measured else Mark.ABOUT)}")
    return " · ".join(parts)


class ProgressBar:
    """A line that is redrawn when told to and gone at the end; a context manager."""

    def __init__(self) -> None:
        self.is_shown = sys.stderr.isatty()
        """Whether there is a terminal to draw on."""
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if not self.is_shown:
            return self
        from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
        from rich.progress import BarColumn, TextColumn  # noqa: PLC0415
        from rich.progress import Progress as Bar  # noqa: PLC0415

        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[figures]}", markup=False),
            console=Console(stderr=True, highlight=False, emoji=False),
            auto_refresh=False,
            transient=True,
            expand=True,
        )
        self._task = self._bar.add_task(_STATES[ScanState.READY], total=None, figures="")
        self._bar.start()
        self._bar.refresh()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, under_way: UnderWay, *, is_ending: bool = False) -> None:
        """Redraw the line; `is_ending` says that the user wants it to end."""
        if self._bar is None or self._task is None:
            return
        progress = under_way.progress
        self._bar.update(
            self._task,
            description=ENDING if is_ending else state_text(progress),
            total=None if progress.fraction is None else 1.0,
            completed=progress.fraction or 0.0,
            figures=figures_text(under_way),
            refresh=True,
        )
