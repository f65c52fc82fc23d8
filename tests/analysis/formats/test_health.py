"""How servers are as text, Markdown and metrics: what is wrong is said first, nothing of a server becomes markup."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final
from xml.etree.ElementTree import fromstring

import msgspec
import pytest

from rtui.analysis.facts import Reason
from rtui.analysis.findings.server import HealthComparison, compare_health, server_findings
from rtui.analysis.formats import written
from rtui.analysis.formats.findings import servers_junit, servers_sarif
from rtui.analysis.formats.health import HealthDocument, health_json, health_page
from rtui.analysis.formats.html import spark
from rtui.analysis.formats.openmetrics import health_metrics
from rtui.analysis.formats.text import DEFAULT_WIDTH
from rtui.analysis.health.panel import Line
from rtui.analysis.health.sample import ClientFigures, CommandStats, Missing, Replica, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Unit
from rtui.registry.rules import Severity
from tests.analysis.formats.ci_documents import junit_violations, sarif_violations
from tests.analysis.formats.test_html import ELEMENTS, Page
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
    assert first == "10.0.0.5:6379 · redis 7.4.1 · primary · 2026-09-21 14:13:25 UTC · fragmented"
    assert text.index("memory-fragmented") < text.index("\nMemory\n")
    for title in ("Memory", "Load", "Slow", "Persistence", "Replication", "Clients", "Settings"):
        assert f"\n{title}\n" in text
    assert re.search(r"commands processed +100/s +total_commands_processed", text)
    panels = text[text.index("\nMemory\n") :].splitlines()
    assert not [line for line in panels if len(line) > 110]
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
    metrics = health_metrics([BROKEN], failures)
    assert f'redis_up{{node="{label}"}} 0.0' in metrics.splitlines()
    for write in (health_text, health_markdown, health_html):
        text = write([BROKEN], failures=failures)
        assert "did not answer the last poll" in text
        assert "\x1b" not in text
    assert "<b>No" not in health_html([BROKEN], failures=failures)
    assert 'redis_up{node="10.0.0.5:6379"} 1.0' in health_metrics([BROKEN]).splitlines()
