"""Metrics: read back by the parsers of both formats, names and values of redis_exporter, bounded, nothing invented."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from rtui.analysis.estimates import as_estimate
from rtui.analysis.findings.server import server_findings
from rtui.analysis.formats.fleet import FleetServer
from rtui.analysis.formats.openmetrics import (
    LABEL_LIMIT,
    MOST_PATTERNS,
    MOST_SAMPLES,
    OPENMETRICS,
    OTHERS,
    PROMETHEUS,
    REDIS_EXPORTER,
    fleet_metrics,
    health_metrics,
    metric_of,
    report_metrics,
)
from rtui.analysis.health.fields import FIELDS, FieldUnit
from rtui.analysis.health.sample import CommandStats, Database, Replica, Sample
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.document import Node, NodeKind
from rtui.keyspace.text.display import SafeText
from tests.analysis.formats.test_health import BROKEN, STRANGE
from tests.made_report import made_report
from tests.made_sample import GIB, made_sample

DASHBOARD = Path(__file__).parents[3] / ".github" / "grafana-dashboard.json"

REPLICA = HealthView(
    (
        made_sample(
            node="10.0.0.6:6379",
            role="slave",
            master_host="10.0.0.5",
            master_port=6379,
            master_link_status="down",
            cluster_state="fail",
        ),
    )
)


def read(text: str, form: str) -> dict[str, Metric]:
    families = list((read_openmetrics if form == OPENMETRICS else read_text)(text))
    names = Counter(one.name for one in families)
    assert set(names.values()) <= {1}, "all samples of a metric stand together"
    for one in families:
        keys = [(sample.name, *sorted(sample.labels.items())) for sample in one.samples]
        assert len(set(keys)) == len(keys), one.name
    return {one.name: one for one in families}


def values(text: str, form: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    return {
        sample.name: {
            tuple(sorted(each.labels.items())): each.value for each in one.samples if each.name == sample.name
        }
        for one in read(text, form).values()
        for sample in one.samples
    }


@pytest.mark.parametrize("form", [PROMETHEUS, OPENMETRICS])
def test_both_formats_are_read_back_by_their_parsers(form: str) -> None:
    strange = HealthView(tuple(replace(one, node="10.0.0.9:1") for one in STRANGE.samples))
    text = health_metrics([BROKEN, strange, REPLICA], ["10.0.0.7:1"], form)
    assert text.endswith("# EOF\n") == (form == OPENMETRICS)
    found, node = values(text, form), (("node", "10.0.0.5:6379"),)
    assert found["redis_latest_fork_seconds"][node] == 0.009
    assert found["redis_memory_used_rss_bytes"][node] == 4 * GIB
    assert found["redis_up"] == {
        (("node", name),): float(name != "10.0.0.7:1")
        for name in ("10.0.0.5:6379", "10.0.0.9:1", "10.0.0.6:6379", "10.0.0.7:1")
    }
    assert found["redis_rdb_last_bgsave_status"][node] == 1
    assert list(found["redis_master_link_up"].values()) == [0]
    assert found["redis_cluster_state"] == {(("node", "10.0.0.6:6379"),): 0}
    kinds = {name: one.type for name, one in read(text, form).items()}
    assert kinds["redis_expired_keys"] == "counter"
    assert kinds["redis_memory_used_bytes"] == "gauge"
    labels = [key for name in found for key in found[name]]
    assert all(len(value) <= LABEL_LIMIT + 1 for key in labels for _, value in key)
    assert any(dict(key).get("rule") == "memory-fragmented" for key in found["rtui_finding"])


def test_each_field_has_a_name_of_its_own() -> None:
    metrics = [metric_of(one) for one in FIELDS.values()]
    assert len({one.name for one in metrics}) == len(metrics)
    assert not [one for one in metrics if not re.fullmatch("(redis|rtui)_[a-z][a-z0-9_]*", one.name)]
    assert all(one.name.endswith("_total") == one.is_counter for one in metrics)
    assert set(REDIS_EXPORTER) <= set(FIELDS)


def test_values_under_names_of_redis_exporter_are_the_servers_own() -> None:
    """In its units, not in base units: milliseconds and percent stay as they are, but for the time of a fork."""
    info: dict[str, int | float | str] = {
        one.name: 7 + at
        for at, one in enumerate(FIELDS.values())
        if one.name in REDIS_EXPORTER and one.unit not in (FieldUnit.TEXT, FieldUnit.YES)
    }
    found = values(health_metrics([HealthView((Sample(0, "a", info=info),))]), PROMETHEUS)
    for name, value in info.items():
        (written,) = found[f"redis_{REDIS_EXPORTER[name]}"].values()
        assert written == (float(value) / 1e6 if name == "latest_fork_usec" else value), name


def test_what_is_not_known_has_no_metric() -> None:
    assert "redis_memory_used_bytes" not in health_metrics([HealthView((made_sample(used_memory=None),))])
    found = values(health_metrics([HealthView((Sample(0, "x"),))]), PROMETHEUS)
    assert set(found) == {"redis_up", "redis_instance_info", "rtui_health_rule_checked"}
    assert "redis_rdb_last_bgsave_duration_sec" not in health_metrics(
        [HealthView((made_sample(rdb_last_bgsave_time_sec=-1),))]
    )


def test_samples_of_a_metric_are_bounded_and_the_largest_stay() -> None:
    many = range(3 * MOST_SAMPLES)
    sample = made_sample(
        commands={f"C{at}": CommandStats(at, 1) for at in many},
        errors={f"E{at}": at for at in many},
        databases={at: Database(at, 0) for at in many},
        replicas=tuple(Replica(b"10.0.0.1:%d" % at, "online", 1, 1) for at in many),
    )
    for found in values(health_metrics([HealthView((sample,))]), PROMETHEUS).values():
        assert len(found) <= MOST_SAMPLES
    found = values(health_metrics([HealthView((sample,))]), PROMETHEUS)["redis_commands_total"]
    assert min(found.values()) == 2 * MOST_SAMPLES


def wide(root: Node, count: int) -> Node:
    """A tree with further patterns, whose keys are counted in the root, too."""
    model = root.children[0].stats
    more = tuple(
        Node(b"more%d" % at, b"", NodeKind.LITERAL, replace(model, keys=at, memory_bytes=at * 10, no_ttl_keys=1))
        for at in range(1, count + 1)
    )
    return replace(root, children=(*root.children, *more))


@pytest.mark.parametrize("count", [0, MOST_PATTERNS, 5 * MOST_PATTERNS])
def test_each_key_of_a_report_is_in_one_pattern(count: int) -> None:
    report = made_report()
    report = replace(report, summary=replace(report.summary, root=wide(report.summary.root, count)))
    ends = [path[-1] for path in report.summary.root.walk() if not path[-1].children]
    for form in (PROMETHEUS, OPENMETRICS):
        found = values(report_metrics(report, form), form)
        keys = {dict(key)["pattern"]: value for key, value in found["rtui_pattern_keys"].items()}
        assert len(keys) <= MOST_PATTERNS + 1
        assert (OTHERS in keys) == (len(ends) > MOST_PATTERNS)
        assert sum(keys.values()) == pytest.approx(sum(as_estimate(one.stats.keys).value for one in ends))
        (info,) = found["rtui_report_info"]
        assert dict(info)["coverage"] == report.head.coverage.kind.value
    assert found["rtui_finding"]


def test_a_fleet_has_the_labels_of_its_servers() -> None:
    labels = ((SafeText("team"), SafeText('a"b\\')), (SafeText("node"), SafeText("x")))
    name = SafeText(BROKEN.latest.node)
    servers = [
        FleetServer(SafeText("cache"), name, labels, BROKEN, server_findings(BROKEN)),
        FleetServer(SafeText("gone"), SafeText("gone:1"), failure=SafeText("It is gone.")),
    ]
    for form in (PROMETHEUS, OPENMETRICS):
        found = values(fleet_metrics(servers, form), form)
        infos = [dict(key) for key in found["rtui_server_info"]]
        assert {"node": name, "name": "cache", "label_team": 'a"b\\', "label_node": "x"} in infos
        assert found["redis_up"] == {(("node", name),): 1, (("node", "gone:1"),): 0}


def queries(panels: Sequence[dict[str, Any]]) -> list[str]:
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def test_the_dashboard_asks_for_nothing_that_is_not_written() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    sample = made_sample(
        node="10.0.0.4:6379",
        replicas=(Replica(b"10.0.0.6:1", "online", 1, 2),),
        errors={"ERR": 1},
        instantaneous_input_kbps=1.0,
        evicted_keys=3,
    )
    view = HealthView((sample,), made_report())
    labels: dict[str, set[str]] = {}
    for text in (
        health_metrics([view, BROKEN, REPLICA]),
        fleet_metrics([FleetServer(SafeText("a"), SafeText("a"), view=view)]),
    ):
        for name, found in values(text, PROMETHEUS).items():
            labels.setdefault(name, set()).update(key for one in found for key, _ in one)
    asked = queries(dashboard["panels"])
    assert len(asked) > 10
    for expression in [*asked, *(one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query")]:
        names = re.findall(r"\b(?:redis|rtui)_[a-z0-9_]+", expression)
        assert names, expression
        for name in names:
            assert name in labels, expression
            for selector in re.findall(rf"{name}\{{([^}}]*)\}}", expression):
                assert {one.split("=")[0].strip("!~ ") for one in selector.split(",") if one} <= labels[name], (
                    expression
                )
        for by in re.findall(r"by \(([^)]*)\)", expression):
            assert {one.strip() for one in by.split(",")} <= set.union(*(labels[name] for name in names)), expression
