"""The state of servers in the text format of Prometheus, for the textfile collector of the node exporter.

Every field of INFO that is a number becomes a metric, in base units as Prometheus asks for: seconds, bytes, ratios;
counters end in `_total`. An unknown figure has no sample, since 0 would be a value. Each finding is a sample of
`rtui_finding`; `rtui_health_rule_checked` is 1 for each rule that was judged, 0 for those that could not be. `rtui_up`
is 0 for a node that has not answered last: its other metrics are older.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rtui.analysis.findings.server import server_findings
from rtui.analysis.health.fields import FIELDS, FieldUnit, InfoField
from rtui.analysis.health.possible import NEVER, range_of
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import display, display_text

_SUFFIXES: Final = {
    FieldUnit.BYTES: ("bytes", 1.0),
    FieldUnit.KIB_PER_S: ("bytes_per_second", 1024.0),
    FieldUnit.SECONDS: ("seconds", 1.0),
    FieldUnit.MILLISECONDS: ("seconds", 1e-3),
    FieldUnit.MICROSECONDS: ("seconds", 1e-6),
    FieldUnit.PERCENT: ("ratio", 0.01),
    FieldUnit.RATIO: ("ratio", 1.0),
    FieldUnit.TIME: ("timestamp_seconds", 1.0),
}
"""The suffix of names and the factor of values, by unit."""

_LABEL_LIMIT: Final = 200
"""Characters of the value of a label."""

_UNIT_WORDS: Final = re.compile(r"_(?:in_seconds|seconds|sec|usec|milliseconds|bytes|ratio|perc|kbps)\Z")


class Metric(NamedTuple):
    """A metric with its samples."""

    name: str
    kind: str
    """gauge or counter."""
    help: str
    samples: Sequence[tuple[dict[str, str], float]]
    """Labels and values."""


def health_prometheus(views: Sequence[HealthView], failed: Collection[str] = ()) -> str:
    """Return all metrics of the latest sample of each node; ends with a newline. `failed` nodes gave no answer last."""
    lines: list[str] = []
    nodes = dict.fromkeys([*(view.latest.node for view in views), *failed])
    answers = [({"node": node}, float(node not in failed)) for node in nodes]
    up = Metric("rtui_up", "gauge", "Whether the node has answered when it was asked last.", answers)
    for metric in (up, *_fields(views), *_lists(views), *_rules(views)):
        if metric.samples:
            about = metric.help.replace("\\", r"\\").replace("\n", r"\n")
            lines += [f"# HELP {metric.name} {about}", f"# TYPE {metric.name} {metric.kind}"]
            lines += [f"{metric.name}{{{_labels(labels)}}} {value!r}" for labels, value in metric.samples]
    return "\n".join(lines) + "\n" if lines else ""


def metric_name(one: InfoField) -> str:
    """Return the name of the metric of a field: `rtui_used_memory_bytes`, `rtui_expired_keys_total`."""
    suffix, _ = _SUFFIXES.get(one.unit, ("", 1.0))
    stem = _UNIT_WORDS.sub("", one.name) if suffix else one.name
    stem = stem.removeprefix("total_") if one.is_counter else stem
    parts = ["rtui", stem, *([suffix] if suffix else []), *(["total"] if one.is_counter else [])]
    return "_".join(parts)


def _fields(views: Sequence[HealthView]) -> Iterator[Metric]:
    for one in FIELDS.values():
        if one.unit is FieldUnit.TEXT:
            continue
        _, factor = _SUFFIXES.get(one.unit, ("", 1.0))
        samples = [
            ({"node": view.latest.node}, value * factor)
            for view in views
            if (value := view.number(one.name)) is not None and not (value == NEVER and range_of(one).low == NEVER)
        ]
        yield Metric(metric_name(one), "counter" if one.is_counter else "gauge", one.about, samples)


def _lists(views: Sequence[HealthView]) -> Iterator[Metric]:
    nodes = [(view.latest.node, view.latest) for view in views]
    databases = [({"node": node, "db": str(db)}, one) for node, last in nodes for db, one in last.databases.items()]
    commands = [({"node": node, "command": name}, one) for node, last in nodes for name, one in last.commands.items()]
    errors = [({"node": node, "error": code}, times) for node, last in nodes for code, times in last.errors.items()]
    yield Metric("rtui_db_keys", "gauge", "keys of a database", _floats((at, one.keys) for at, one in databases))
    expiring = _floats((at, one.expires) for at, one in databases if one.expires is not None)
    yield Metric("rtui_db_expiring_keys", "gauge", "keys of a database with a TTL", expiring)
    calls = _floats((at, one.calls) for at, one in commands)
    yield Metric("rtui_command_calls_total", "counter", "calls of a command", calls)
    took = [(at, one.took_us / 1e6) for at, one in commands]
    yield Metric("rtui_command_seconds_total", "counter", "time that a command took", took)
    yield Metric("rtui_errors_total", "counter", "replies with an error code", _floats(errors))
    lags = [
        ({"node": node, "replica": display(one.address, limit=_LABEL_LIMIT)}, float(one.lag_s))
        for node, last in nodes
        for one in last.replicas
        if one.lag_s is not None and one.lag_s != NEVER
    ]
    yield Metric("rtui_replica_lag_seconds", "gauge", "since the last acknowledgement of a replica", lags)


def _floats(samples: Iterable[tuple[dict[str, str], int]]) -> list[tuple[dict[str, str], float]]:
    return [(labels, float(value)) for labels, value in samples]


def _rules(views: Sequence[HealthView]) -> Iterator[Metric]:
    broken, checked = [], []
    for view in views:
        found, node = server_findings(view), view.latest.node
        broken += [
            ({"node": node, "rule": one.rule, "severity": one.severity.value, "where": str(one.where)}, 1.0)
            for one in found.findings
        ]
        unjudged = {one.rule for one in found.unjudged}
        checked += [({"node": node, "rule": rule}, float(rule not in unjudged)) for rule in found.checked]
    yield Metric("rtui_finding", "gauge", "what is wrong by a rule", broken)
    yield Metric("rtui_health_rule_checked", "gauge", "whether a rule could be judged", checked)


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    """Return a text as the value of a label, without control characters and invisible ones."""
    return display_text(value, limit=_LABEL_LIMIT).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
