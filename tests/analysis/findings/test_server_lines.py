"""Figures of panels: the state that a rule gives them, and that each rule has a figure that shows what it found."""

from __future__ import annotations

from msgspec.structs import replace

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.findings.server import FINDERS, server_health
from rtui.analysis.health.panel import Line, State
from rtui.analysis.health.sample import CommandStats, Missing, Sample, SentinelView, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.document import HotReport, HotSource, Report
from tests.made_report import made_report
from tests.made_sample import GIB, made_sample


def test_lines_of_panels_have_the_state_of_their_rule() -> None:
    def states(*samples: Sample) -> dict[str, State]:
        return {line.id: line.state for panel in server_health(HealthView(samples)).panels for line in panel.lines}

    assert states(made_sample())["mem_fragmentation_ratio"] is State.NORMAL
    assert states(made_sample(used_memory_rss=4 * GIB))["mem_fragmentation_ratio"] is State.WATCH
    assert states(made_sample(rdb_last_bgsave_status="err"))["rdb_last_bgsave_status"] is State.BAD
    assert states(made_sample(total_system_memory=None))["maxmemory"] is State.UNKNOWN
    assert states(made_sample())["used_memory_rss"] is State.NORMAL
    assert states(made_sample(used_memory_rss=GIB))["used_memory_rss"] is State.WATCH
    assert states(made_sample())["used_memory_peak"] is State.PLAIN
    assert states(made_sample(mem_fragmentation_ratio=None))["mem_fragmentation_ratio"] is State.UNKNOWN


def test_a_figure_that_is_as_it_should_be_is_not_blamed_for_another_one_of_its_rule() -> None:
    states = {
        line.id: line.state
        for panel in server_health(HealthView((made_sample(aof_last_write_status="err", aof_enabled=1),))).panels
        for line in panel.lines
    }
    assert states["aof_last_write_status"] is State.BAD
    assert states["rdb_last_bgsave_status"] is State.NORMAL


def shown(*samples: Sample, report: Report | None = None) -> set[str]:
    """The rules that lines of panels are about."""
    health = server_health(HealthView(samples, report))
    return {line.rule for panel in health.panels for line in panel.lines}


def test_every_rule_has_a_line_that_shows_what_it_has_found() -> None:
    """Else a title would say what is wrong, and no panel which figure that is."""
    report = replace(made_report(), hot=HotReport(HotSource.SERVER))
    processor = {"used_cpu_user_main_thread": 1, "used_cpu_sys_main_thread": 1}
    primary = {"connected_slaves": 1, "repl_backlog_active": 1, "cluster_enabled": 1, **processor}
    others = {"settings": {"disable-thp": "yes"}, "sentinels": (SentinelView("a"),)}
    known = shown(*(made_sample(30 * at, **primary, **others) for at in range(3)), report=report)
    known |= shown(made_sample(role="slave", master_link_status="up"))
    assert known >= {finder.rule for finder in FINDERS.values()}


def test_a_line_counts_what_its_rule_has_found() -> None:
    commands = {"KEYS": CommandStats(12, 900_000), "FLUSHALL": CommandStats(10, 900)}

    def banned(sample: Sample) -> Line:
        panels = server_health(HealthView((sample,))).panels
        return next(line for panel in panels for line in panel.lines if line.id == "banned_commands")

    assert (banned(made_sample()).value, banned(made_sample()).state) == (0, State.NORMAL)
    two = banned(made_sample(commands=commands))
    assert (two.value, two.state) == (2, State.WATCH)
    assert two.said == "KEYS was called 12 times; FLUSHALL was called 10 times"
    denied = banned(made_sample(commands={}, missing={Source.COMMAND_STATS: Missing(Reason.DENIED)}))
    assert (denied.value, denied.state) == (Unknown(Reason.DENIED), State.UNKNOWN)
