"""Panels of a server's figures, tables and notes, the same on the screen and in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf, isfinite
from statistics import median
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.fields import FIELDS, FieldUnit
from rtui.analysis.health.possible import NEVER, range_of
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.view import MOST_HISTORY, HealthView, SampleSpan, number
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit, cell_text
from rtui.keyspace.text.display import Display, SafeText
from rtui.registry.rules import RULES


class State(StrEnum):
    """How a figure is, by its threshold."""

    PLAIN = "plain"
    """There is nothing to judge."""
    NORMAL = "normal"
    WARN = "warn"
    """It may become a problem, or is one where the reason given holds."""
    BAD = "bad"
    UNKNOWN = "unknown"


_SETTINGS: Final = (
    "commandlog-reply-larger-than", "commandlog-request-larger-than", "disable-thp", "io-threads",
    "latency-monitor-threshold", "slowlog-log-slower-than", "slowlog-max-len",
)  # fmt: skip
_FIELDS_OF: Final = {
    **{name.replace("-", "_"): name for name in _SETTINGS},
    "backlog_seconds": "repl_backlog_size",
    "banned_commands": "INFO commandstats",
    "commands": "total_commands_processed",
    "cpu": "used_cpu_user + used_cpu_sys",
    "cpu_main_thread": "used_cpu_*_main_thread",
    "dataset_share": "used_memory_dataset",
    "error_replies": "total_error_replies",
    "evictable_keys_share": "maxmemory_policy",
    "fork_per_gib": "latest_fork_usec",
    "hit_ratio": "keyspace_hits, _misses",
    "hit_ratio_total": "keyspace_hits, _misses",
    "largest_output": "omem of CLIENT LIST",
    "largest_query": "qbuf of CLIENT LIST",
    "latest_fork": "latest_fork_usec",
    "net_input": "total_net_input_bytes",
    "net_output": "total_net_output_bytes",
    "new_connections": "total_connections_received",
    "nodes_out_of_reach": "CLUSTER NODES",
    "primary": "master_host",
    "rdb_age": "rdb_last_save_time",
    "replica_behind": "slaveN: offset",
    "replica_lag": "slaveN: lag",
    "replicated": "master_repl_offset",
    "sentinels_answering": "SENTINEL SENTINELS",
    "slow_entries": "SLOWLOG GET",
    "slow_entries_of_rtui": "SLOWLOG GET",
}
"""Redis' names for lines that are not called by them."""


@dataclass(frozen=True, slots=True)
class Line:
    """One figure with all that explains it. All texts are safe."""

    id: str
    """Its name in JSON, in Prometheus metrics and in histories: `memory_fragmentation_ratio`."""
    title: str
    value: Cell
    unit: Unit
    is_rate: bool = False
    state: State = State.PLAIN
    said: SafeText = SafeText("")  # noqa: RUF009 - a value that does not change
    """The meaning of the value for this server and these keys, a sentence; may be empty."""
    normal: str = ""
    """The normal range: `1.0 to 1.5`."""
    remedy: str = ""
    source: str = ""
    rule: str = ""
    history: tuple[float | None, ...] = ()

    @property
    def field(self) -> str:
        """Redis' name: a field of INFO, a setting or a command; empty for a figure that only rtui has."""
        return self.id if self.id in FIELDS else _FIELDS_OF.get(self.id, "")

    @property
    def about(self) -> str:
        """The meaning of the figure, without a full stop; the reason of its rule where it is no field of INFO."""
        rule = RULES.get(self.rule)
        return FIELDS[self.field].about if self.field in FIELDS else rule.reason.rstrip(".") if rule else ""


LEAST_VALUES: Final = 2

LEAST_SPAN: Final = 0.05
"""The least height of a chart as a share of its highest value: small changes look level."""


def top_of_chart(low: float, high: float) -> float:
    return max(high, low + LEAST_SPAN * abs(high))


def plotted(history: Sequence[float | None]) -> list[float]:
    """Return the known values of a history; empty if they are too few for a chart."""
    known = [value for value in history if value is not None]
    return known if len(known) >= LEAST_VALUES else []


def chart_bounds(known: Sequence[float]) -> tuple[float, float]:
    """A chart begins at 0, but for values that stay above half of the highest one."""
    low, high = min(known), max(known)
    low = low if low > high / 2 else min(0.0, low)
    return low, top_of_chart(low, high)


@dataclass(frozen=True, slots=True)
class Panel:
    """Figures that belong together: memory, load, clients …"""

    id: str
    title: str
    lines: tuple[Line, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[SafeText, ...] = ()
    """Unreadable sources with the right or version that they take, and other notes; without full stops."""


ONE_SAMPLE: Final = Unknown(Reason.NOT_ASKED, "a rate needs two samples")
RESTARTED: Final = Unknown(
    Reason.NOT_ASKED, "the server was restarted or its statistics were reset since the last sample"
)
NOT_YET: Final = Unknown(Reason.UNSUPPORTED, "not known to the server yet")
NO_READS: Final = Unknown(Reason.UNSUPPORTED, "no keys were read in this interval")


@dataclass(frozen=True, slots=True)
class About:
    """The texts of a line beside its value."""

    said: str = ""
    normal: str = ""
    rule: str = ""


PLAIN: Final = About()


@dataclass(frozen=True, slots=True)
class Lines:
    """Makes lines of the figures of one section of INFO."""

    view: HealthView
    source: Source

    def gauge(self, name: str, title: str, unit: Unit, about: About = PLAIN) -> Line:
        """Return a field of INFO as it is now; -1 for never in words."""
        value = self.view.cell(name, self.source)
        if value == NEVER and range_of(FIELDS[name]).low == NEVER:
            value = "never" if unit is Unit.DURATION else NOT_YET
        history = self._history(lambda one: None if (found := number(one, name)) is None or found < 0 else found)
        return self.given(name, title, unit, value, about, history=history)

    def computed(
        self,
        line_id: str,
        title: str,
        unit: Unit,
        of: Callable[[Sample], float | None],
        about: About = PLAIN,
        *,
        fields: tuple[str, ...] = (),
    ) -> Line:
        value = of(self.view.latest)
        unknown = self.view.unknown(self.source, *fields)
        return self.given(line_id, title, unit, unknown if value is None else value, about, history=self._history(of))

    def rate(self, line_id: str, title: str, unit: Unit, *counters: str, about: About = PLAIN) -> Line:
        return self.over_time(
            line_id, title, unit, lambda span: span.rate(*counters), about, counters=counters, is_rate=True
        )

    def over_time(
        self,
        line_id: str,
        title: str,
        unit: Unit,
        of: Callable[[SampleSpan], float | None],
        about: About = PLAIN,
        *,
        counters: tuple[str, ...] = (),
        is_rate: bool = False,
        otherwise: Unknown = RESTARTED,
    ) -> Line:
        """Return a figure of the time between the last two samples; `otherwise` is why a known one has no value."""
        history = tuple(of(span) for span in self.view.spans)
        value: Cell = history[-1] if history else ONE_SAMPLE
        if any(self.view.number(name) is None for name in counters):
            value = self.view.unknown(self.source, *counters)
        elif value is None:
            value = otherwise if self.view.spans[-1].is_continuous else RESTARTED
        return self.given(line_id, title, unit, value, about, history=history, is_rate=is_rate)

    def given(
        self,
        line_id: str,
        title: str,
        unit: Unit,
        value: Cell,
        about: About = PLAIN,
        *,
        history: tuple[float | None, ...] = (),
        is_rate: bool = False,
    ) -> Line:
        """Return a value that is known otherwise, with its history where it has one."""
        rule = RULES.get(about.rule)
        if isinstance(value, int | float):
            value = possible(line_id, unit, value)
        cells = [None if one is None else possible(line_id, unit, one) for one in history[-MOST_HISTORY:]]
        return Line(
            line_id,
            title,
            value,
            unit,
            is_rate,
            said=SafeText(about.said),
            normal=about.normal,
            remedy=rule.remedy if rule else "",
            source=rule.basis if rule else "",
            rule=about.rule,
            history=tuple(one if isinstance(one, int | float) else None for one in cells),
        )

    def _history(self, of: Callable[[Sample], float | None]) -> tuple[float | None, ...]:
        values = self.view.history(of)
        return values if any(one is not None for one in values) else ()


def possible(line_id: str, unit: Unit, value: float) -> Cell:
    """Return a figure, or Unknown if it is impossible: below 0, not a number, or a share above 1.

    A rate over a short time may be a little above its maximum, since clocks are read before the counters are.
    """
    most = _MOST.get(line_id, 1.0 if unit is Unit.SHARE else inf)
    if most < value <= most * SLACK:
        return most
    if isfinite(value) and 0 <= value <= most:
        return value
    said = humanize.share(value) if unit is Unit.SHARE and isfinite(value) and value > 0 else f"{value:g}"
    return Unknown(Reason.IMPOSSIBLE, f"the server's figures come to {said}")


SLACK: Final = 1.1
"""A share up to this many times the whole counts as the whole."""

_MOST: Final = {"cpu": inf}
"""The most that shares can be which may be above 1: of the time of one core, all threads take more."""


_DISPLAY: Final = Display()


def value_text(line: Line, value: Cell = None, display: Display = _DISPLAY) -> SafeText:
    """Return the value of a line as people read it, or another of the same kind: `1.20 GiB`, `412/s`, `denied`."""
    shown = line.value if value is None else value
    if shown in (0, 1) and line.id in FIELDS and FIELDS[line.id].unit is FieldUnit.YES:
        return SafeText("yes" if shown else "no")
    text = cell_text(shown, Column(line.id, line.title, line.unit), display)
    if isinstance(shown, Unknown) and shown.reason is Reason.IMPOSSIBLE:
        return SafeText(f"{text} ({shown.detail})")
    return SafeText(f"{text}/s") if line.is_rate and isinstance(shown, int | float) else text


OUTLIER: Final = 1.5
"""Multiple of the median over all nodes with its role from which a node is an outlier."""

LEAST_NODES: Final = 3
"""Least nodes with a role among which there are outliers."""

_NODE: Final = Column("node", "node", Unit.TEXT)
_STATE: Final = Column("state", "state", Unit.TEXT, 14, "Problems of the node, worst first")
_DIFFERS: Final = Column("differs", "differs in", Unit.TEXT, 16, "Metrics far above the median of nodes with this role")
_ROLE: Final = Column("role", "role", Unit.TEXT, 7)
_COMPARED: Final = {
    "used_memory": Column("used_memory", "memory", Unit.BYTES, 8),
    "instantaneous_ops_per_sec": Column("ops_per_s", "ops/s", Unit.COUNT, 7),
    "connected_clients": Column("clients", "clients", Unit.COUNT, 7),
    "mem_fragmentation_ratio": Column("fragmentation", "RSS/used", Unit.RATIO, 8, "mem_fragmentation_ratio"),
}

_LIMIT: Final = Column("maxmemory", "maxmemory", Unit.BYTES, 8)
_UPTIME: Final = Column("uptime", "uptime", Unit.DURATION, 8)


def nodes_table(latest: Mapping[SafeText, Sample], wrong: Mapping[SafeText, SafeText]) -> Table:
    """Outliers come first, each part in the order of the nodes; `wrong` nodes have the worst finding as their state."""
    rows = {node: _row(node, sample, wrong.get(node, SafeText("")), latest) for node, sample in latest.items()}
    order = sorted(rows, key=lambda node: (not rows[node][1], not rows[node][2]))
    columns = (_NODE, _STATE, _DIFFERS, _ROLE, *_COMPARED.values(), _LIMIT, _UPTIME)
    subjects = tuple(order)
    return Table("nodes", "Nodes", columns, [rows[node] for node in order], subjects, tells_by_subject=True)


def _row(node: SafeText, sample: Sample, word: SafeText, latest: Mapping[SafeText, Sample]) -> Row:
    role = str(sample.info.get("role", ""))
    alike = [one for one in latest.values() if one.info.get("role") == role]
    limit = number(sample, "maxmemory")
    figures: tuple[Cell, ...] = tuple(_cell(sample, name) for name in _COMPARED)
    what = "primary" if role == "master" else "replica" if role else ""
    return (
        node,
        word,
        _outlying(sample, alike),
        what,
        *figures,
        "none" if limit == 0 else _cell(sample, "maxmemory"),
        _cell(sample, "uptime_in_seconds"),
    )


def _cell(sample: Sample, name: str) -> Cell:
    value = number(sample, name)
    return sample.why_impossible(name) if value is None else value


def _outlying(sample: Sample, alike: list[Sample]) -> SafeText:
    """Return the figures in which a node is an outlier, the worst first: `memory 4.1×`."""
    found = []
    for name, column in _COMPARED.items():
        values = [value for one in alike if (value := number(one, name)) is not None]
        value, middle = number(sample, name), median(values) if len(values) >= LEAST_NODES else 0
        if value is not None and middle > 0 and value > OUTLIER * middle:
            found.append((value / middle, column.title))
    return SafeText(", ".join(f"{title} {humanize.ratio(times)}" for times, title in sorted(found, reverse=True)))
