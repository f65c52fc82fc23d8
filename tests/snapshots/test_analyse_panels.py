"""The panels with charts over their tables: hot keys, expiry, slots and types, at the sizes that must look right."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from rtui.analysis.report.document import HotList, HotReport, HotSource, Report, SlotLoad
from rtui.keyspace.slots import SLOTS
from tests.made_report import denied_report, estimate_report, made_report, partial_report, unsettled_report
from tests.snapshots.test_analyse import DONE, MEDIUM, SMALL, doing
from tests.tui.analyse.analysing import FixedAnalysis, app_on

Compare = Callable[..., bool]


class SessionAnalysis(FixedAnalysis):
    """An analysis of a server that has hot-key sessions."""

    offers_hot_session = True

    async def start_hot_session(self, consent: object) -> None:
        raise NotImplementedError


def node_report() -> Report:
    """A report of one node of a cluster that counts the load of its slots and has had a hot-key session."""
    made = made_report()
    keys = made.hot.lists[0].keys[3:15]
    lists = (
        HotList(
            "By CPU time", "µs of CPU", tuple(replace(key, value=900_000.0 / (at + 1)) for at, key in enumerate(keys))
        ),
        HotList(
            "By network",
            "bytes of network traffic",
            tuple(replace(key, value=9e8 / (at + 1) ** 2) for at, key in enumerate(reversed(keys))),
        ),
    )
    loads = tuple(SlotLoad(137 * at + 5, {"key-count": 60, "cpu-usec": 900_000 // (at + 1)}) for at in range(10))
    hot = HotReport(HotSource.SERVER, "what commands took in 60 s, one in 100 measured", 95.0, (), lists, loads)
    keys_by_slot = array("Q", [*made.summary.slots.keys[:5461], *[0] * (SLOTS - 5461)])
    keys_by_slot[2048] += 400
    slots = replace(made.summary.slots, keys=keys_by_slot, memory_bytes=None, tags=(), owned=((0, 5460),))
    server = replace(made.head.server, cluster_enabled=True)
    return replace(made, head=replace(made.head, server=server), hot=hot, summary=replace(made.summary, slots=slots))


@pytest.mark.parametrize(
    ("panel", "size"),
    [("4", MEDIUM), ("5", SMALL), ("5", MEDIUM), ("6", SMALL), ("6", MEDIUM), ("7", MEDIUM)],
    ids=["hot", "expiry-80x24", "expiry", "slots-80x24", "slots", "types"],
)
def test_an_exact_report(snap_compare: Compare, size: tuple[int, int], panel: str) -> None:
    app = app_on(FixedAnalysis(made_report(), DONE))
    assert snap_compare(app, terminal_size=size, run_before=doing(panel))


def test_slots_of_a_cluster(snap_compare: Compare) -> None:
    app = app_on(FixedAnalysis(unsettled_report(), DONE))
    assert snap_compare(app, terminal_size=MEDIUM, run_before=doing("6", "down"))


@pytest.mark.parametrize(
    ("report", "panel"),
    [
        (estimate_report(), "5"),
        (partial_report(), "6"),
        (denied_report(), "5"),
        (node_report(), "4"),
        (node_report(), "6"),
    ],
    ids=[
        "estimate-expiry", "partial-slots", "denied-expiry", "node-hot", "node-slots",
    ],
)  # fmt: skip
def test_what_is_known_less_well(snap_compare: Compare, panel: str, report: Report) -> None:
    assert snap_compare(app_on(FixedAnalysis(report, DONE)), terminal_size=MEDIUM, run_before=doing(panel))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("soon-gone", ("5", "right_square_bracket")),
        ("another-cell", ("6", "shift+down", "shift+right")),
        ("bytes-of-twelve-nodes", ("6", "m", "N", "right_square_bracket", "right_square_bracket")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_keys_bring(snap_compare: Compare, name: str, keys: tuple[str, ...]) -> None:
    app = app_on(FixedAnalysis(made_report(), DONE))
    assert snap_compare(app, terminal_size=MEDIUM, run_before=doing(*keys))


def test_consent_to_a_hot_key_session(snap_compare: Compare) -> None:
    app = app_on(SessionAnalysis(made_report(), DONE))
    assert snap_compare(app, terminal_size=MEDIUM, run_before=doing("4", "H", "d"))


def test_a_chart_in_plain_ascii(snap_compare: Compare) -> None:
    app = app_on(FixedAnalysis(made_report(), DONE), ascii_only=True)
    assert snap_compare(app, terminal_size=MEDIUM, run_before=doing("5"))


def test_the_map_of_slots_without_colours(snap_compare: Compare) -> None:
    app = app_on(FixedAnalysis(made_report(), DONE), no_color=True)
    assert snap_compare(app, terminal_size=MEDIUM, run_before=doing("6"))
