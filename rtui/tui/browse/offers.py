"""What holds just now, for the commands that make sense only then."""

from __future__ import annotations

from rtui.keyspace.rows.rows import Kind, Row
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.scan.progress import ScanState
from rtui.tui.browse.cursor_detail import Detail
from rtui.tui.kit.command import Condition, Conditions


def conditions(
    status: BrowsingStatus,
    detail: Detail,
    cursor: Row | None,
    *,
    is_filtered: bool,
    can_go_back: bool,
    is_reading: bool,
) -> Conditions:
    """Return all that holds; `can_go_back` says that Escape leads somewhere from the tree."""
    state = status.progress.state
    preview = detail.preview
    found = {
        Condition.SCANNING: not state.is_over and state is not ScanState.PAUSED,
        Condition.PAUSED: state is ScanState.PAUSED,
        Condition.ON_KEY: detail.key is not None,
        Condition.ON_ROW: cursor is not None or detail.key is not None,
        Condition.ON_NAMESPACE: cursor is not None and cursor.kind is Kind.NAMESPACE,
        Condition.PAGES: preview is not None and bool(preview.next_page or preview.previous_page),
        Condition.DETAIL_OPEN: is_reading,
        Condition.FILTERED: is_filtered,
        Condition.CAN_GO_BACK: can_go_back,
    }
    return frozenset(condition for condition, holds in found.items() if holds)
