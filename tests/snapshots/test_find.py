"""Found keys as pictures: done, under way, before a costly search, empty, refused, hostile; and the line of queries."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rtui.analysis.humanize import Mark
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.search.search import Stage
from rtui.server.wire.errors import RtuiError
from tests.snapshots.test_screens import Compare, app, doing
from tests.tui.fixed_search import FixedSearch
from tests.tui.fixed_session import FixedSession

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])


def typed(text: str, *after: str) -> tuple[str, ...]:
    return ("slash", *("space" if character == " " else character for character in text), *after)


def done(search: FixedSearch) -> None:
    search.notes = (SafeText("The names are from 2027-01-01 00:00:00; newer keys are not found."),)


def running(search: FixedSearch) -> None:
    search.stage, search.mark, search.count = Stage.RUNNING, Mark.AT_LEAST, 48_211
    search.progress = Progress(ScanState.RUNNING, 0.41, 412_000, keys_per_s=92_000, eta_s=6.0)


def asking(search: FixedSearch) -> None:
    search.stage, search.kept, search.count, search.progress = Stage.ASKING, [], 0, Progress()
    search.plan = SafeText(
        "lists 2,000,000 names, then asks PTTL and MEMORY USAGE of ≈ 41.2k (40.1–42.3k) keys; about 15s at gentle pace"
    )


def refused(search: FixedSearch) -> None:
    search.kept, search.count, search.progress = [], 0, Progress(ScanState.FAILED, None, 0)
    search.failure = RtuiError(
        "The query can't be answered",
        "size>1M needs MEMORY USAGE: NOPERM this user has no permissions to run the 'memory|usage' command.",
        "rtui acl prints the permissions that rtui needs.",
    )


def session(change: Callable[[FixedSearch], object]) -> FixedSession:
    made = FixedSession()
    made.on_search = change
    return made


@SIZES
def test_found_keys(snap_compare: Compare, size: tuple[int, int]) -> None:
    keys = typed("cart len>0 freq>0 enc:listpack slot:0-16383", "enter", "down", "down")
    assert snap_compare(app(session(done)), terminal_size=size, run_before=doing(*keys))


@pytest.mark.parametrize(
    ("query", "change"),
    [("in:lock", running), ("ttl<10m size>1K", asking), ("size>1M", refused), ("in:hostile,naïve,long", done)],
    ids=["running", "asking", "refused", "hostile"],
)
def test_states(snap_compare: Compare, query: str, change: Callable[[FixedSearch], object]) -> None:
    assert snap_compare(app(session(change)), terminal_size=(120, 36), run_before=doing(*typed(query, "enter")))


@pytest.mark.parametrize("keys", [typed("in:shop ttl"), typed("cart sise>1M")], ids=["term", "wrong"])
def test_the_line(snap_compare: Compare, keys: tuple[str, ...]) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=(80, 24), run_before=doing(*keys))
