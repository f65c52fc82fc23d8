"""Whether data gets to disk, and what a fork costs: RDB, AOF, copy-on-write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.health.panel import About, Line, Lines, Panel
from rtui.analysis.health.possible import now_s
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.view import HealthView, number
from rtui.analysis.report.tables.table import Unit
from rtui.keyspace.text.display import SafeText

FAILING: Final = "persistence-failing"
FORK: Final = "fork-slow"
HUGE_PAGES: Final = "huge-pages"

GIB: Final = 1 << 30

USUAL_FORK_S_A_GIB: Final = (0.009, 0.013)
"""Redis' documentation (Latency) measured so much on a physical machine and on a current virtual one."""


def persistence_panel(view: HealthView) -> Panel:
    """Return the figures of INFO persistence, and what a fork would cost with the memory that is used now."""
    notes = []
    if view.setting("save") == "" and view.number("aof_enabled") == 0:
        notes.append(SafeText("nothing is saved: there is neither a schedule for RDB nor an AOF"))
    return Panel("persistence", "Persistence", tuple(_lines(view)), notes=tuple(notes))


def fork_s_a_gib(sample: Sample) -> float | None:
    """Return how long the last fork took for each GiB that is used; None where there was none."""
    took_us, used = number(sample, "latest_fork_usec"), number(sample, "used_memory")
    return took_us / 1e6 * GIB / used if took_us and used is not None and used >= 1 else None


def _lines(view: HealthView) -> Iterator[Line]:
    lines, stats = Lines(view, Source.INFO_PERSISTENCE), Lines(view, Source.INFO_STATS)
    yield lines.gauge("rdb_last_bgsave_status", "last RDB", Unit.TEXT, About(_rdb_took(view), "ok", FAILING))
    yield lines.computed("rdb_age", "since the last RDB", Unit.DURATION, _rdb_age, fields=("rdb_last_save_time",))
    yield lines.gauge("rdb_changes_since_last_save", "changes since then", Unit.COUNT, About("lost if it ends now"))
    yield lines.gauge("rdb_bgsave_in_progress", "RDBs being written", Unit.COUNT, About(_child(view)))
    yield lines.gauge("aof_enabled", "AOF, 1 for on", Unit.NUMBER)
    if view.number("aof_enabled"):
        yield lines.gauge("aof_last_write_status", "last write to the AOF", Unit.TEXT, About("", "ok", FAILING))
        yield lines.gauge("aof_last_bgrewrite_status", "last AOF rewrite", Unit.TEXT, About("", "ok", FAILING))
        yield lines.gauge("aof_current_size", "size of the AOF", Unit.BYTES)
        yield lines.gauge("aof_rewrite_in_progress", "AOF rewrites under way", Unit.COUNT, About(_child(view)))
        yield lines.rate("aof_delayed_fsync", "writes that wait for the disk", Unit.COUNT, "aof_delayed_fsync")
    longest = humanize.seconds(view.levels.number(FORK, "longest") / 1000)
    yield stats.computed(
        "latest_fork",
        "last fork",
        Unit.DURATION,
        _fork_s,
        About(_fork_said(view), f"up to {longest}", FORK),
        fields=("latest_fork_usec",),
    )
    usual = " to ".join(map(humanize.seconds, USUAL_FORK_S_A_GIB))
    if view.number("latest_fork_usec"):
        yield stats.computed("fork_per_gib", "fork for each GiB", Unit.DURATION, fork_s_a_gib, About("", usual))
    yield lines.gauge("rdb_last_cow_size", "copied on write by the last RDB", Unit.BYTES)
    if view.number("aof_enabled"):
        yield lines.gauge("aof_last_cow_size", "copied on write by the last rewrite", Unit.BYTES)
    pages = view.setting("disable-thp")
    if pages is not None:
        yield lines.given("disable_thp", "huge pages switched off", Unit.TEXT, pages, About("", "yes", HUGE_PAGES))


def _rdb_age(sample: Sample) -> float | None:
    """Return how long ago the last RDB was written, by the server's clock if that is known; None where none was."""
    saved = number(sample, "rdb_last_save_time")
    return max(0.0, now_s(sample) - saved) if saved else None


def _rdb_took(view: HealthView) -> str:
    took = view.number("rdb_last_bgsave_time_sec")
    return f"it took {humanize.seconds(took)}" if took is not None and took >= 0 else "none since the start"


def _child(view: HealthView) -> str:
    """Return how far the child is that writes just now, and what it has cost in memory; empty where there is none."""
    done, copied = view.number("current_fork_perc"), view.number("current_cow_size")
    if not (view.number("rdb_bgsave_in_progress") or view.number("aof_rewrite_in_progress")) or done is None:
        return ""
    more = f", {humanize.size(copied)} copied on write so far" if copied else ""
    return f"the child is {humanize.share(done / 100)} through{more}"


def _fork_s(sample: Sample) -> float | None:
    took_us = number(sample, "latest_fork_usec")
    return None if took_us is None else took_us / 1e6


def _fork_said(view: HealthView) -> str:
    """Return what the last fork was for the memory, or what one would be."""
    used = view.number("used_memory")
    if not used:
        return ""
    if view.number("latest_fork_usec"):
        return f"with {humanize.size(used)} used; nobody is answered meanwhile"
    low, high = (humanize.seconds(one * used / GIB) for one in USUAL_FORK_S_A_GIB)
    return f"none so far; with {humanize.size(used)} used it would usually be {low} to {high}"
