"""What holds just now, for the commands that make sense only then."""

from __future__ import annotations

from rtui.keyspace.rows.rows import Kind, Row
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.scan.progress import ScanState
from rtui.tui.browse.cursor_detail import Detail
from rtui.tui.commands import When


def conditions(
    status: BrowsingStatus,
    detail: Detail,
    cursor: Row | None,
    *,
    is_filtered: bool,
    can_go_back: bool,
    is_reading: bool,
) -> frozenset[When]:
    """Return all that holds; `can_go_back` says that Escape leads somewhere from the tree."""
    state = status.progress.state
    preview = detail.preview
    found = {
        When.SCANNING: not state.is_over and state is not ScanState.PAUSED,
        When.PAUSED: state is ScanState.PAUSED,
        When.SCAN_ENDED: state.is_over,
        When.ON_KEY: detail.key is not None,
        When.ON_ROW: cursor is not None or detail.key is not None,
        When.ON_NAMESPACE: cursor is not None and cursor.kind is Kind.NAMESPACE,
        When.PAGES: preview is not None and bool(preview.next_page or preview.previous_page),
        When.DETAIL_OPEN: is_reading,
        When.FILTERED: is_filtered,
        When.BEHIND: can_go_back,
    }
    return frozenset(condition for condition, holds in found.items() if holds)
