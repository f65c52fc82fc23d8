"""A report as one self-contained page: it loads nothing, and its own policy forbids it to.

The policy lets in the one style sheet and the one script that are written into the page, by their hashes. Without the
script everything is there, but nothing zooms or sorts. Names and server texts are escaped in every place.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.formats.html_charts import icicle, timeline
from rtui.analysis.formats.html_markup import Markup, element, joined, section, share_styles
from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.analysis.report.tables.contents import about, coverage_sentence, headline, tables
from rtui.analysis.report.tables.table import written, written_keys

_MARKS: Final = {CoverageKind.EXACT: "exact", CoverageKind.PARTIAL: "partial", CoverageKind.ESTIMATE: "estimate"}


def write_html(report: Report) -> str:
    """Return the page; it ends with a line feed."""
    title = f"rtui report · {report.head.server.label}"
    style, script = _style(), _inline("page.js")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", style),
    )
    body = element("body", _header(report), _main(report), element("script", script))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _policy(style: str, script: str) -> str:
    """Return the policy of the page: nothing but its own style and script."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _style() -> Markup:
    return joined((_inline("page.css"), share_styles()))


@cache
def _inline(name: str) -> Markup:
    """Return a file that lies beside this module."""
    return Markup((files(__package__) / name).read_text("utf-8"))


def _header(report: Report) -> Markup:
    head = report.head
    server = " · ".join(
        part for part in (f"{head.server.product} {head.server.version}".strip(), head.server.role) if part
    )
    kind = head.coverage.kind
    return element(
        "header",
        element("p", "rtui report", class_="kicker"),
        element("h1", head.server.label, element("span", _MARKS[kind], class_=f"badge {_MARKS[kind]}")),
        element("p", f"{server} · db{head.server.db} · {humanize.moment(head.made_at_s)} UTC", class_="sub"),
        element("div", *_tiles(report), class_="tiles"),
        *_warnings(report),
    )


def _tiles(report: Report) -> list[Markup]:
    stats, head = report.summary.root.stats, report.head
    mark = {CoverageKind.ESTIMATE: humanize.Mark.ABOUT, CoverageKind.PARTIAL: humanize.Mark.AT_LEAST}.get(
        head.coverage.kind, humanize.Mark.EXACT
    )
    figures = [("keys", written_keys(stats.keys, mark))]
    if stats.memory_bytes is not None:
        figures.append(("memory of keys", written(stats.memory_bytes, humanize.size, mark)))
    if stats.no_ttl_share is not None:
        figures.append(("never expire", written(stats.no_ttl_share, humanize.share, humanize.Mark.EXACT)))
    figures.append(("server time", humanize.seconds(round(head.cost.server_us / 1e6, 1))))
    figures.append(("took", humanize.seconds(round(head.cost.elapsed_s, 1))))
    return [element("div", element("b", value), element("span", title)) for title, value in figures]


def _warnings(report: Report) -> list[Markup]:
    """Return what a reader must know before any figure."""
    head = report.head
    texts = [] if head.coverage.kind is CoverageKind.EXACT else [coverage_sentence(head.coverage)]
    denied = [
        f"{name}: {column.reason or column.state}."
        for name, column in head.columns.items()
        if column.state is ColumnState.DENIED
    ]
    texts += [f"Denied, {one}" for one in denied]
    return [element("p", one, class_="warning") for one in texts]


def _main(report: Report) -> Markup:
    """Return the drawings, the tables and the head of the report."""
    rows = [item for what, text in about(report).rows for item in (element("dt", str(what)), element("dd", str(text)))]
    rests = element("section", element("h2", "About this report"), element("dl", *rows), id="about")
    sections = [section(table) for table in tables(report) if table.rows]
    nothing = [] if sections else [element("p", headline(report))]
    return element("main", icicle(report), timeline(report), *sections, *nothing, rests)
