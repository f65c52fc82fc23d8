"""What stands in place of the tree while there are no rows, and why."""

from __future__ import annotations

from rtui.keyspace.display import SafeText
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.progress import ScanState
from rtui.tui import format as fmt
from rtui.tui.ink import Line, Role, Span, gap, joined, own
from rtui.tui.lines.facts_grid import prose
from rtui.tui.shown import display

MOST_DATABASES = 8
"""So many other databases are named."""


def notice_lines(status: BrowsingStatus, needle: bytes | None, width: int) -> list[Line]:
    """Return why there are no rows and what to do about it; `needle` is what names are searched for."""
    state = status.progress.state
    if state is ScanState.FAILED:
        why = status.progress.reason or own("The server did not say why.")
        return _card(own("The scan failed"), Role.BAD, why, own("R tries again."), width)
    if needle is not None:
        text = SafeText(f"No name holds {display(needle, limit=60)}")
        more = (
            own("Escape shows everything again.")
            if status.complete
            else own("The scan goes on; what matches will appear here.")
        )
        return _card(text, Role.STRONG, more, None, width)
    if not status.complete:
        title = own("Paused") if state is ScanState.PAUSED else own("Looking for the first keys…")
        return _card(title, Role.MUTED, None, None, width)
    if status.match is not None or status.kind is not None:
        parts = [own("No key")]
        if status.match is not None:
            parts.append(SafeText(f"matches {display(status.match, limit=60)}"))
        if status.kind is not None:
            parts.append(SafeText(f"is of type {display(status.kind, limit=16)}"))
        return _card(joined(parts, " "), Role.STRONG, own("Escape shows everything again."), None, width)
    return _card(SafeText(f"db{status.db} is empty"), Role.STRONG, own("The server has no keys in this database."),
                 _elsewhere(status), width)  # fmt: skip


def _elsewhere(status: BrowsingStatus) -> SafeText | None:
    """Say which other databases have keys."""
    others = {db: keys for db, keys in (status.server.databases or {}).items() if db != status.db and keys}
    if not others:
        return None
    found = [SafeText(f"db{db} has {fmt.count(keys)}") for db, keys in sorted(others.items())[:MOST_DATABASES]]
    return SafeText(f"{joined(found, ', ')}: choose one with -n.")


def _card(title: SafeText, role: Role, text: SafeText | None, more: SafeText | None, width: int) -> list[Line]:
    lines: list[Line] = [(), (gap(1), Span(title, role))]
    for paragraph in (text, more):
        if paragraph is not None:
            lines += [(), *prose(paragraph, width, Role.MUTED)]
    return lines
