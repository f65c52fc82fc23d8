"""How servers and fleets are, as text, Markdown, a page, JSON and metrics: nothing becomes markup or is invented."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import fromstring

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from rtui.analysis.estimates import as_estimate
from rtui.analysis.facts import Reason
from rtui.analysis.findings.finding import severe_and_unjudged
from rtui.analysis.findings.server import HealthComparison, compare_health, server_findings
from rtui.analysis.formats import written
from rtui.analysis.formats.findings import servers_junit, servers_sarif
from rtui.analysis.formats.fleet import (
    STATES,
    FleetServer,
    fleet_findings,
    fleet_json,
    fleet_page,
    fleet_table,
    groups_table,
)
from rtui.analysis.formats.health import HealthDocument, health_json, health_page
from rtui.analysis.formats.html import spark
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
from rtui.analysis.formats.text import DEFAULT_WIDTH
from rtui.analysis.health.fields import FIELDS, FieldUnit
from rtui.analysis.health.panel import Line
from rtui.analysis.health.sample import ClientFigures, CommandStats, Database, Missing, Replica, Sample, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.document import Node, NodeKind
from rtui.analysis.report.tables.table import Unit
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import Severity
from tests.analysis.formats.test_ci_documents import junit_violations, sarif_violations
from tests.analysis.formats.test_html import ELEMENTS, Page
from tests.made_report import made_report
from tests.made_sample import GIB, made_sample

HOSTILE: Final = b'\x1b]0;x\x07\n|<b>`"\\\xff\xe2\x80\xae'
CONTROL: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")

BROKEN: Final = HealthView(
    (
        made_sample(used_memory_rss=4 * GIB),
        made_sample(5, used_memory_rss=4 * GIB, total_commands_processed=1_000_500, settings={"save": ""}),
    )
)
STRANGE: Final = HealthView(
    (
        made_sample(
            clients=(ClientFigures(1, HOSTILE, HOSTILE, HOSTILE, output_bytes=GIB, last_command="KEYS"),),
            replicas=(Replica(HOSTILE, 'x"\n', 7, 90),),
            connected_slaves=1,
            commands={HOSTILE.decode("latin-1"): CommandStats(1, 1)},
            errors={'E"\\\n': 2},
            settings={"notify-keyspace-events": HOSTILE.decode("latin-1")},
        ),
    )
)


def health_text(views: Sequence[HealthView], **asked: Any) -> str:
    return written(health_page(views, **asked), "text", width=DEFAULT_WIDTH)


def health_markdown(views: Sequence[HealthView], **asked: Any) -> str:
    return written(health_page(views, **asked), "md")


def health_html(views: Sequence[HealthView], comparison: HealthComparison | None = None, **asked: Any) -> str:
    return written(health_page(views, comparison, **asked, in_browser=True), "html")


def test_text_says_what_is_wrong_first_then_every_panel() -> None:
    text = health_text([BROKEN])
    first, *_ = text.splitlines()
    assert first == "10.0.0.5:6379 · redis 7.4.10 · primary · 2026-09-21 14:13:25 UTC · fragmented"
    assert text.index("memory-fragmented") < text.index("\nMemory\n")
    for title in ("Memory", "Load", "Slow", "Persistence", "Replication", "Clients", "Settings"):
        assert f"\n{title}\n" in text
    assert re.search(r"commands processed +100/s +total_commands_processed", text)
    assert not [line for line in text[text.index("\nMemory\n") :].splitlines() if len(line) > 110]
    assert "no problems" in health_text([HealthView((made_sample(),))])


def test_what_is_denied_is_said_in_its_place() -> None:
    denied = made_sample(missing={Source.SETTINGS: Missing(Reason.DENIED)}, used_memory_peak=None)
    text = health_text([HealthView((denied,))])
    assert "CONFIG GET: denied" in text
    assert "not checked" not in text


def test_nothing_of_a_server_becomes_markup_or_a_control_character() -> None:
    for text in (health_text([STRANGE]), health_markdown([STRANGE]), health_metrics([STRANGE])):
        assert not CONTROL.search(text)
    assert set(re.findall(r".{2}(?=<b>)", health_markdown([STRANGE]))) == {"\\|"}, "in code only, in its cell"


def test_markdown_has_a_section_for_each_node_and_panel() -> None:
    text = health_markdown([BROKEN, STRANGE])
    assert text.count("\n## ") == 2
    assert text.count("\n### Memory\n") == 2
    assert "### memory-fragmented" in text


@pytest.mark.parametrize(("count", "said"), [(20, False), (21, True), (45, True)])
def test_a_list_that_is_cut_says_how_long_it_is(count: int, said: bool) -> None:
    commands = {f"COMMAND{at}": CommandStats(at + 1, 10) for at in range(count)}
    view = HealthView((made_sample(commands=commands),))
    for text in (health_text([view]), health_markdown([view])):
        assert (f"The first 20 of {count}." in text) == said
        assert len(set(re.findall(r"COMMAND\d+", text))) == min(count, 20)


@pytest.mark.parametrize("views", [[BROKEN], [BROKEN, STRANGE]])
def test_a_page_ends_with_its_last_line_and_has_no_table_without_rows(views: list[HealthView]) -> None:
    for text in (health_text(views), health_markdown(views)):
        assert text.endswith("\n")
        assert not re.search(r"\n\n\Z|\n\n\n", text)
    assert not re.search(r"\n\| :?-[^\n]*\|\n(?!\|)", health_markdown(views))


def test_nothing_of_a_server_becomes_markup_in_a_page() -> None:
    page = Page(health_html([STRANGE, BROKEN], compare_health([BROKEN], [STRANGE])))
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= ELEMENTS | {"h3"}
    assert not [name for _, given in page.tags for name in given if name.startswith("on") or name == "style"]
    assert not CONTROL.search("".join(page.texts).replace("\n", ""))


def test_a_page_loads_nothing_and_has_its_charts() -> None:
    text = health_html([BROKEN])
    assert "http://" not in text
    assert "https://" not in text
    page = Page(text)
    assert any(str(given.get("content")).startswith("default-src 'none'") for _, given in page.tags)
    paths = [given["d"] for tag, given in page.tags if tag == "path"]
    assert paths
    for path in paths:
        assert re.fullmatch(r"(?:[ML][0-9.]+ [0-9.]+(?:h0)?)+", path or "")
    assert not [tag for tag, _ in Page(health_html([HealthView((made_sample(),))])).tags if tag == "path"]


def test_a_gap_in_a_history_is_a_gap_in_its_chart() -> None:
    line = Line("x", "x", 3, Unit.COUNT, history=(1.0, None, 2.0, 4.0))
    (path,) = [given["d"] for tag, given in Page(str(spark(line))).tags if tag == "path"]
    assert (path or "").count("M") == 2
    assert spark(Line("x", "x", 3, Unit.COUNT, history=(None, 2.0))) == ""


def test_json_is_a_document_of_its_schema() -> None:
    for views, then in (([BROKEN, STRANGE], None), ([BROKEN], [HealthView((made_sample(),))])):
        comparison = None if then is None else compare_health(then, views)
        found = msgspec.json.decode(health_json(views, comparison), type=HealthDocument)
        assert [one.node for one in found.nodes] == [view.latest.node for view in views]
        for node in found.nodes:
            figures = [one for panel in node.panels for one in panel.figures]
            assert all((one.change is None) == (then is None) for one in figures)
            assert all(one.value is None for one in figures if one.unknown is not None)


@pytest.mark.parametrize("others", [1, 2])
def test_findings_of_nodes_are_one_run_and_a_suite_each(others: int) -> None:
    samples = [msgspec.structs.replace(BROKEN.latest, node=f"10.0.0.{at}:6379") for at in range(others)]
    found = {one.node: server_findings(HealthView((one,))) for one in samples}
    log = json.loads(servers_sarif(found))
    assert sarif_violations(log) == []
    assert len(log["runs"][0]["results"]) == sum(len(one.findings) for one in found.values())
    uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in log["runs"][0]["results"]}
    assert uris == {f"redis/10.0.0.{at}%3A6379" for at in range(others)}
    suites = fromstring(servers_junit({node: (1.0, one) for node, one in found.items()}, Severity.WARN))  # noqa: S314
    assert junit_violations(suites) == []
    assert len(suites) == others
    assert suites.get("failures") == str(len(log["runs"][0]["results"]))
    assert (suites.get("errors"), log["runs"][0]["invocations"][0]["executionSuccessful"]) == ("0", True)


@pytest.mark.parametrize("label", [BROKEN.latest.node, "10.0.0.9:7001"])
def test_a_node_that_has_not_answered_last_is_in_every_file(label: str) -> None:
    """Whether it has answered before or never."""
    why = "<b>No answer\x1b[2J</b> | within 5 s."
    failures, found = {label: why}, {BROKEN.latest.node: server_findings(BROKEN)}
    log = json.loads(servers_sarif(found, failures))
    assert sarif_violations(log) == []
    assert log["runs"][0]["invocations"][0]["executionSuccessful"] is False
    suites = fromstring(servers_junit({node: (1.0, one) for node, one in found.items()}, Severity.WARN, failures))  # noqa: S314
    assert junit_violations(suites) == []
    assert suites.get("errors") == "1"
    document = msgspec.json.decode(health_json([BROKEN], failures=failures), type=HealthDocument)
    assert [(one.node, one.happened) for one in document.failures] == [(label, why)]
    assert f'redis_up{{node="{label}"}} 0.0' in health_metrics([BROKEN], failures).splitlines()
    for write in (health_text, health_markdown, health_html):
        text = write([BROKEN], failures=failures)
        assert "did not answer the last poll" in text
        assert "\x1b" not in text
    assert "<b>No" not in health_html([BROKEN], failures=failures)
    assert 'redis_up{node="10.0.0.5:6379"} 1.0' in health_metrics([BROKEN]).splitlines()


UNLIMITED: dict[str, Any] = {"maxmemory": 0, "used_memory": 15 * GIB, "used_memory_rss": 15 * GIB}
FAILING: dict[str, Any] = {"rdb_last_bgsave_status": "err"}


def server(name: str, labels: dict[str, str] | None = None, **changed: Any) -> FleetServer:
    view = HealthView((made_sample(node=name, **changed), made_sample(5, node=name, **changed)))
    pairs = tuple((SafeText(key), SafeText(value)) for key, value in (labels or {}).items())
    return FleetServer(SafeText(name), SafeText(name), pairs, view, server_findings(view))


def down(name: str) -> FleetServer:
    return FleetServer(SafeText(name), SafeText(name), failure=SafeText(f"Nothing listens on {name}."))


DENIED: dict[str, Any] = {
    "sources": tuple(one for one in Source if one is not Source.INFO_MEMORY),
    "missing": {Source.INFO_MEMORY: Missing(Reason.DENIED)},
    **dict.fromkeys(("maxmemory", "used_memory", "used_memory_rss", "total_system_memory")),
}


def test_the_same_trouble_on_many_servers_is_one_finding_of_those_that_could_be_judged() -> None:
    servers = [server(f"a{at}:1", **(UNLIMITED if at % 2 else {})) for at in range(38)]
    servers += [server(f"b{at}:1", **DENIED) for at in range(3)]
    servers += [server("c:1", **FAILING), down("d:1")]
    found = {one.rule: one for one in fleet_findings(servers)}
    assert found["memory-unlimited"].title == "19 of 39: no maxmemory"
    assert found["persistence-failing"].title.startswith("c:1: ")
    page = written(fleet_page(servers, is_summary=True), "text", width=110)
    assert page.startswith("43 servers: 1 down, 1 with errors, ")
    assert "a1:1, a3:1, a5:1, a7:1, a9:1, a11:1 and 13 more" in page
    assert page.count("Nothing listens on d:1.") == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["ok", "unlimited", "failing", "denied", "down"]), st.sampled_from(["", "x", "y"])),
        max_size=12,
    )
)
def test_each_server_is_counted_once(kinds: Sequence[tuple[str, str]]) -> None:
    makes: dict[str, dict[str, Any]] = {"ok": {}, "unlimited": UNLIMITED, "failing": FAILING, "denied": DENIED}
    servers = [
        down(f"s{at}") if kind == "down" else server(f"s{at}", {"zone": zone} if zone else None, **makes[kind])
        for at, (kind, zone) in enumerate(kinds)
    ]
    table = fleet_table(servers)
    assert sorted(map(str, table.subjects)) == sorted(one.address for one in servers)
    states = [str(row[1]) for row in table.rows]
    assert states == sorted(states, key=STATES.index)
    expected = {"ok": "ok", "unlimited": "warn", "failing": "error", "denied": "unclear", "down": "down"}
    assert sorted(states) == sorted(expected[kind] for kind, _ in kinds)
    for one in fleet_findings(servers):
        breaking = [each.name for each in servers if each.found and one.rule in {f.rule for f in each.found.findings}]
        assert list(one.servers) == breaking
        assert len(breaking) <= one.judged <= len(servers) - sum(kind == "down" for kind, _ in kinds)
    groups = groups_table(servers, "zone")
    assert sum(int(str(row[1])) for row in groups.rows) == len(servers)
    document = json.loads(fleet_json(servers))
    assert [one["address"] for one in document["servers"]] == list(table.subjects)
    assert all(one["of_maxmemory"] is None or one["of_maxmemory"] >= 0 for one in document["servers"])
    is_found, unjudged = severe_and_unjudged([one.found for one in servers if one.found is not None], Severity.ERROR)
    names = {kind for kind, _ in kinds}
    assert (is_found, any(one.is_missing for one in servers)) == ("failing" in names, "down" in names)
    assert bool(unjudged) <= ("denied" in names)


def test_figures_of_a_row() -> None:
    primary = server(
        "p",
        used_memory=GIB,
        maxmemory=4 * GIB,
        replicas=(Replica(b"r:1", "online", 1, 7), Replica(b"r:2", "online", 1, 3)),
    )
    unlimited, replica = server("u", maxmemory=0), server("r", role="slave", master_last_io_seconds_ago=12)
    unheard = server("n", role="slave", master_last_io_seconds_ago=-1, rdb_last_save_time=None)
    table = fleet_table([primary, unlimited, replica, unheard])

    def cells(column: str) -> dict[str, object]:
        at = table.column(column)
        return {str(row[0]): row[at] for row in table.rows}

    assert cells("lag") == {"p": 7, "u": None, "r": 12, "n": None}
    assert cells("of_maxmemory") | {"r": 0, "n": 0} == {"p": 0.25, "u": "no limit", "r": 0, "n": 0}
    assert cells("role") == {"p": "primary", "u": "primary", "r": "replica", "n": "replica"}
    assert cells("last_save")["n"] is None
    assert cells("hit_ratio")["p"] == 700_000 / 770_000


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
