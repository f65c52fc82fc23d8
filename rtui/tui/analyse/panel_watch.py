"""Watching an analysis: the same pass again and again, with what has changed since the one before.

A pass over all keys takes the server's time, so the next one comes when the last one was no more than `WATCH_SHARE` of
the time since it began. A pass that took 100 ms of the server is repeated every 10 s, one that took 5 s every 8 min;
while it runs it keeps its pace. Figures stay as they are until all of the new ones are there.
"""

from __future__ import annotations

from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.changes import total_change
from rtui.keyspace.text.display import SafeText

WATCH_SHARE: Final = 0.01
"""Of the server's time that is taken for watching."""

LEAST_S: Final = 10.0
"""A pass begins no sooner after the one before."""

FLASH_S: Final = 0.9
"""Rows that have changed are marked for so long."""


class PanelWatch:
    """When the next pass is due, and what it is compared with. Times are seconds of the event loop's clock."""

    def __init__(self, report: Report, server_s: float, now_s: float) -> None:
        """`report` is what is shown, which took so much of the server's time."""
        self.report = report
        self.before: Report | None = None
        """The report before, None until there is a second one."""
        self.every_s = 0.0
        self._due_s = now_s
        self._marked_s: float | None = None
        self._wait(server_s, now_s)

    def _wait(self, server_s: float, now_s: float) -> None:
        self.every_s = max(LEAST_S, server_s / WATCH_SHARE)
        self._due_s = now_s + self.every_s

    def is_due(self, now_s: float) -> bool:
        """Return whether it is time for the next pass."""
        return now_s >= self._due_s

    def learn(self, report: Report, server_s: float, now_s: float) -> bool:
        """Take the report of a pass that has ended; return whether it is a new one."""
        if report is self.report:
            return False
        self.before, self.report, self._marked_s = self.report, report, now_s
        self._wait(server_s, now_s)
        return True

    def settle(self, now_s: float) -> bool:
        """Return True once changes have been marked for `FLASH_S`."""
        if self._marked_s is None or now_s - self._marked_s < FLASH_S:
            return False
        self._marked_s = None
        return True

    def text(self, now_s: float) -> SafeText:
        """Return how often it is asked, when next, and how fast the number of keys and bytes changes."""
        rates = [] if self.before is None else _rates(self.before, self.report)
        wait = humanize.duration(round(self.every_s * 1000))
        left = humanize.duration(round(max(0.0, self._due_s - now_s) * 1000))
        return SafeText(" · ".join([f"watching every {wait}, next in {left}", *rates]))


def _rates(before: Report, after: Report) -> list[str]:
    """Return how fast the totals have changed between two reports: `keys +12/s`; only what has changed."""
    apart_s = after.head.made_at_s - before.head.made_at_s
    found = []
    for column in ("keys", "memory"):
        change = total_change(before, after, column)
        if apart_s <= 0 or isinstance(change, bool) or not isinstance(change, int | float | Estimate):
            continue
        difference = change.value if isinstance(change, Estimate) else change
        if not difference:
            continue
        sign, per_s = "+" if difference > 0 else "-", abs(difference) / apart_s
        text = f"{humanize.size(per_s)}/s" if column == "memory" else humanize.rate(per_s * 60)
        found.append(f"{'bytes' if column == 'memory' else 'keys'} {sign}{text}")
    return found
