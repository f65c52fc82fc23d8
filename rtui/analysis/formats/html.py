"""A report as one self-contained page: it loads nothing, and its own policy forbids it to.

The policy lets in the one style sheet and the one script that are written into the page, by their hashes. Without the
script everything is there, but nothing zooms or sorts. Names and server texts are escaped in every place.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from rtui.analysis import humanize
from rtui.analysis.formats.html_parts import Markup, element, icicle, joined, section, share_styles, timeline
from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.analysis.report.tables.contents import about, coverage_sentence, headline, tables
from rtui.analysis.report.tables.table import COVERAGE_MARKS


def write_html(report: Report) -> str:
    """Return the page; it ends with a line feed."""
    style, script = _style(), _inline("page.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"rtui report · {report.head.server.label}"),
        element("style", style),
    )
    body = element("body", _header(report), _main(report), element("script", script))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


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
    """Return the server, the main figures, and what a reader must know before any figure."""
    head, stats = report.head, report.summary.root.stats
    product = f"{head.server.product} {head.server.version}".strip()
    server = " · ".join(part for part in (product, head.server.role) if part)
    kind = head.coverage.kind
    figures = [("keys", humanize.written_keys(stats.keys, COVERAGE_MARKS[kind]))]
    if stats.memory_bytes is not None:
        figures.append(("memory of keys", humanize.written(stats.memory_bytes, humanize.size, COVERAGE_MARKS[kind])))
    if stats.no_ttl_share is not None:
        figures.append(("never expire", humanize.written(stats.no_ttl_share, humanize.share)))
    figures.append(("server time", humanize.seconds(round(head.cost.server_us / 1e6, 1))))
    figures.append(("took", humanize.seconds(round(head.cost.elapsed_s, 1))))
    warnings = [] if kind is CoverageKind.EXACT else [coverage_sentence(head.coverage)]
    for name, column in head.columns.items():
        if column.state is ColumnState.DENIED:
            warnings.append(f"Denied, {name}: {column.reason or column.state}.")
    tiles = (element("div", element("b", value), element("span", title)) for title, value in figures)
    return element(
        "header",
        element("p", "rtui report", class_="kicker"),
        element("h1", head.server.label, element("span", kind.value, class_=f"badge {kind}")),
        element("p", f"{server} · db{head.server.db} · {humanize.moment(head.made_at_s)} UTC", class_="sub"),
        element("div", *tiles, class_="tiles"),
        *(element("p", one, class_="warning") for one in warnings),
    )


def _main(report: Report) -> Markup:
    """Return the drawings, the tables and the head of the report."""
    rows = [item for what, text in about(report).rows for item in (element("dt", str(what)), element("dd", str(text)))]
    rests = element("section", element("h2", "About this report"), element("dl", *rows), id="about")
    sections = [section(table) for table in tables(report) if table.rows]
    nothing = [] if sections else [element("p", headline(report))]
    return element("main", icicle(report), timeline(report), *sections, *nothing, rests)
