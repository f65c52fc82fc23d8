"""Many servers: a row each, the findings of all folded into one list, as a page for people and as one JSON document.

The same trouble on many servers is one entry of the list: `18 of 40: no maxmemory`, of the servers on which that could
be judged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rtui import __version__
from rtui.analysis import humanize
from rtui.analysis.findings.finding import Found
from rtui.analysis.findings.server import FINDERS, headline
from rtui.analysis.formats.blocks import Block, BlockPage, Facts, PageHead, Paragraph
from rtui.analysis.formats.csv_and_json import table_records
from rtui.analysis.formats.findings import finding_record, unjudged_records
from rtui.analysis.health.durability_panels import ROLES
from rtui.analysis.health.load_panels import hits_and_reads
from rtui.analysis.health.possible import NEVER
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit
from rtui.keyspace.text.display import SafeText, display_text
from rtui.registry.rules import RULES, Severity

FleetLabels = tuple[tuple[SafeText, SafeText], ...]


@dataclass(frozen=True, slots=True)
class FleetServer:
    """A server, or a node of a cluster."""

    name: SafeText
    """Of its profile, else its address."""
    address: SafeText
    labels: FleetLabels = ()
    view: HealthView | None = None
    """Its last samples; None before the first one."""
    found: Found | None = None
    failure: SafeText | None = None
    """Why it has not answered last, a sentence; its samples are older then."""

    @property
    def state(self) -> str:
        if self.failure is not None:
            return DOWN
        if self.found is None:
            return WAITING
        if self.found.findings:
            return self.found.findings[0].severity.value
        return UNCLEAR if self.found.unjudged else OK

    @property
    def is_missing(self) -> bool:
        return self.state in (DOWN, WAITING)

    def label(self, name: str) -> SafeText:
        return dict(self.labels).get(SafeText(name), SafeText(""))


DOWN: Final = "down"
WAITING: Final = "waiting"
UNCLEAR: Final = "unclear"
"""Nothing was found, but not all could be judged."""

OK: Final = "ok"
STATES: Final = (DOWN, Severity.ERROR.value, Severity.WARN.value, WAITING, UNCLEAR, OK)
"""The worst first."""


@dataclass(frozen=True, slots=True)
class FleetFinding:
    """A rule with all servers that break it."""

    rule: str
    severity: Severity
    servers: tuple[SafeText, ...]
    judged: int
    """The servers on which the rule could be judged."""
    first: SafeText

    @property
    def title(self) -> SafeText:
        """`18 of 40: no maxmemory`; on a single server what is found there."""
        if len(self.servers) == 1:
            return SafeText(f"{self.servers[0]}: {self.first}")
        return SafeText(f"{len(self.servers):,} of {self.judged:,}: {FINDERS[self.rule].word}")


def fleet_findings(servers: Sequence[FleetServer]) -> list[FleetFinding]:
    """Return the findings of all servers by rule and severity: errors first, then those on most servers."""
    judged = Counter(rule for one in servers if one.found is not None for rule in one.found.judged)
    titles: dict[tuple[str, Severity], dict[SafeText, SafeText]] = {}
    for one in servers:
        for finding in () if one.found is None else one.found.findings:
            titles.setdefault((finding.rule, finding.severity), {}).setdefault(one.name, finding.title)
    found = [
        FleetFinding(rule, severity, tuple(at), judged[rule], next(iter(at.values())))
        for (rule, severity), at in titles.items()
    ]
    return sorted(found, key=lambda one: (one.severity is not Severity.ERROR, -len(one.servers), one.rule))


_SERVER: Final = Column("server", "server", Unit.TEXT, 32)
_STATE: Final = Column("state", "state", Unit.TEXT, 7, "Whether it answers, and the severity of its worst finding")
_WORST: Final = Column("worst", "worst finding", Unit.TEXT)
_LABELS: Final = Column("labels", "labels", Unit.TEXT, 14, yields=True)


def _field(name: str) -> Callable[[HealthView], Cell]:
    def value(view: HealthView) -> Cell:
        found = view.number(name)
        return view.latest.why_impossible(name) if found is None else found

    return value


def _version(view: HealthView) -> Cell:
    valkey = view.text("valkey_version")
    return display_text(f"valkey {valkey}" if valkey else view.text("redis_version"), limit=24)


def _role(view: HealthView) -> Cell:
    role = view.text("role")
    return ROLES.get(role, display_text(role, limit=12))


def _of_maxmemory(view: HealthView) -> Cell:
    used, limit = view.number("used_memory"), view.number("maxmemory")
    if limit == 0:
        return SafeText("no limit")
    return None if used is None or limit is None else used / limit


def _hit_ratio(view: HealthView) -> Cell:
    hits, reads = hits_and_reads(view) or (0.0, 0.0)
    return hits / reads if reads else None


def _evicted(view: HealthView) -> Cell:
    return view.spans[-1].rate("evicted_keys") if view.spans else None


def _lag(view: HealthView) -> Cell:
    """Return the seconds since a replica heard of its primary, or since a primary heard of its slowest replica."""
    if view.text("role") == "slave":
        known = view.number("master_last_io_seconds_ago")
        return None if known in (None, NEVER) else known
    return max((one.lag_s for one in view.latest.replicas if one.lag_s not in (None, NEVER)), default=None)


def _last_save(view: HealthView) -> Cell:
    saved = view.number("rdb_last_save_time")
    return None if not saved else max(0.0, view.latest.at_ms / 1000 - saved)


_FIGURES: Final[dict[Column, Callable[[HealthView], Cell]]] = {
    Column("version", "version", Unit.TEXT, 12, yields=True): _version,
    Column("role", "role", Unit.TEXT, 7): _role,
    Column("uptime", "uptime", Unit.DURATION, 8, yields=True): _field("uptime_in_seconds"),
    Column("used_memory", "memory", Unit.BYTES, 8, "used_memory"): _field("used_memory"),
    Column("of_maxmemory", "of max", Unit.SHARE, 8, "used_memory of maxmemory"): _of_maxmemory,
    Column("ops_per_s", "ops/s", Unit.COUNT, 7, "instantaneous_ops_per_sec"): _field("instantaneous_ops_per_sec"),
    Column("hit_ratio", "hits", Unit.SHARE, 5, "keyspace_hits of all look-ups since the start"): _hit_ratio,
    Column("clients", "clients", Unit.COUNT, 7, "connected_clients"): _field("connected_clients"),
    Column("evicted_per_s", "evicted/s", Unit.COUNT, 9, "Growth of evicted_keys"): _evicted,
    Column("lag", "lag", Unit.DURATION, 6, "Time since replica and primary have heard of each other"): _lag,
    Column("last_save", "last save", Unit.DURATION, 9, "Time since rdb_last_save_time"): _last_save,
}

_SUMMARY: Final = ("server", "state", "worst", "version", "role", "used_memory", "of_maxmemory", "ops_per_s", "clients")


def fleet_table(servers: Sequence[FleetServer], columns: Sequence[str] = ()) -> Table:
    """Return a row for each server, the worst state first; subjects are addresses, `columns` ids, empty for all."""
    order = sorted(servers, key=lambda one: STATES.index(one.state))
    all_columns = (_SERVER, _STATE, _WORST, *_FIGURES, *([_LABELS] if any(one.labels for one in servers) else []))
    kept = [at for at, one in enumerate(all_columns) if not columns or one.id in columns]
    rows = tuple(tuple(row[at] for at in kept) for row in map(_row, order))
    subjects = tuple(one.address for one in order)
    return Table("fleet", "Servers", tuple(all_columns[at] for at in kept), rows, subjects, tells_by_subject=True)


def _row(one: FleetServer) -> Row:
    worst = one.failure or (SafeText("") if one.found is None else headline(one.found))
    view = one.view
    figures: Iterator[Cell] = (None if view is None else value(view) for value in _FIGURES.values())
    labels = SafeText(" ".join(f"{name}={value}" for name, value in one.labels))
    return (one.name, SafeText(one.state), worst, *figures, labels)


def findings_of_fleet(servers: Sequence[FleetServer]) -> Table:
    columns = (
        Column("severity", "severity", Unit.TEXT, 8),
        Column("servers", "servers", Unit.COUNT, 7),
        Column("of", "of", Unit.COUNT, 6, "Servers on which the rule could be judged"),
        Column("finding", "finding", Unit.TEXT),
        Column("rule", "rule", Unit.TEXT, 24, yields=True),
    )
    found = fleet_findings(servers)
    rows = tuple(
        (SafeText(one.severity.value), len(one.servers), one.judged, one.title, SafeText(one.rule)) for one in found
    )
    down = [one for one in servers if one.failure is not None]
    failures = tuple((SafeText(DOWN), 1, len(servers), f"{one.name}: {one.failure}", SafeText("")) for one in down)
    return Table("fleet-findings", "Findings", columns, (*failures, *rows), tuple(
        [one.address for one in down] + [SafeText(one.rule) for one in found]), tells_by_subject=True)  # fmt: skip


def groups_table(servers: Sequence[FleetServer], label: str) -> Table:
    groups: dict[SafeText, list[FleetServer]] = {}
    for one in servers:
        groups.setdefault(one.label(label) or SafeText("(none)"), []).append(one)
    rows = []
    for value, members in sorted(groups.items()):
        states = Counter(one.state for one in members)
        sums = [_sum(members, name) for name in ("used_memory", "instantaneous_ops_per_sec")]
        rows.append((value, len(members), *(states[state] for state in STATES[:3]), *sums))
    columns = (
        Column("value", label, Unit.TEXT),
        Column("servers", "servers", Unit.COUNT, 7),
        *(Column(state, state, Unit.COUNT, 6) for state in STATES[:3]),
        Column("used_memory", "memory", Unit.BYTES, 8, "Of those that are known"),
        Column("ops_per_s", "ops/s", Unit.COUNT, 7, "Of those that are known"),
    )
    return Table("fleet-groups", f"By {label}", columns, tuple(rows), tuple(sorted(groups)), tells_by_subject=True)


def _sum(servers: Sequence[FleetServer], name: str) -> float | None:
    known = [value for one in servers if one.view is not None and (value := one.view.number(name)) is not None]
    return sum(known) if known else None


MOST_NAMED: Final = 6


def state_line(servers: Sequence[FleetServer]) -> SafeText:
    """Return how many servers there are, and in which states: `40 servers: 2 down, 3 with errors`."""
    counts = Counter(one.state for one in servers)
    words = {
        DOWN: "down",
        "error": "with errors",
        "warn": "with warnings",
        WAITING: "waiting",
        UNCLEAR: "not fully judged",
        OK: "ok",
    }
    parts = [f"{counts[state]:,} {words[state]}" for state in STATES if counts[state]]
    return SafeText(f"{humanize.counted(len(servers), 'server')}: {', '.join(parts) or 'none'}")


def fleet_page(servers: Sequence[FleetServer], *, group_by: str | None = None, is_summary: bool = False) -> BlockPage:
    down = [(one.name, one.failure) for one in servers if one.failure is not None]
    findings = [(one.severity.value, _finding_text(one)) for one in fleet_findings(servers)]
    shown = [replace(one, failure=SafeText("")) if one.failure else one for one in servers]
    table = fleet_table(shown if is_summary else servers, _SUMMARY if is_summary else ())
    blocks: list[Block] = [
        Paragraph((state_line(servers),)),
        Facts("Unreachable", down),
        Facts("Findings", findings),
        *([groups_table(servers, group_by)] if group_by else []),
        table,
    ]
    worst = min((one.state for one in servers), key=STATES.index, default=OK)
    return BlockPage("rtui fleet", blocks, head=PageHead("rtui fleet", state_line(servers), (worst, worst)))


def _finding_text(one: FleetFinding) -> SafeText:
    if len(one.servers) == 1:
        return SafeText(f"{one.title} ({one.rule})")
    more = f" and {len(one.servers) - MOST_NAMED:,} more" if len(one.servers) > MOST_NAMED else ""
    return SafeText(f"{one.title} ({one.rule}): {', '.join(one.servers[:MOST_NAMED])}{more}")


SCHEMA: Final = 1


def fleet_json(servers: Sequence[FleetServer]) -> str:
    """Return the document, in ASCII; ends with a newline.

    It has the members of `fleet_table` for each server, with labels, failure and findings as in `rtui health`, and the
    folded findings with the names of their servers.
    """
    by_address = {one.address: one for one in servers}
    table = fleet_table(servers)
    members = []
    for address, record in zip(table.subjects, table_records(table), strict=True):
        one = by_address[SafeText(str(address))]
        found = one.found
        members.append(
            {
                **record,
                "of_maxmemory": None if isinstance(record["of_maxmemory"], str) else record["of_maxmemory"],
                "address": one.address,
                "labels": dict(one.labels),
                "failure": one.failure,
                "at_epoch_s": None if one.view is None else one.view.latest.at_ms / 1000,
                "findings": [] if found is None else [finding_record(each) for each in found.findings],
                "not_judged": [] if found is None else unjudged_records(found),
            }
        )
    document: dict[str, Any] = {
        "format": "rtui fleet",
        "schema": SCHEMA,
        "rtui": __version__,
        "servers": members,
        "findings": [
            {
                "rule": one.rule,
                "severity": one.severity.value,
                "title": one.title,
                "what": RULES[one.rule].title,
                "remedy": RULES[one.rule].remedy,
                "servers": list(one.servers),
                "judged": one.judged,
            }
            for one in fleet_findings(servers)
        ],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
