"""Files of a report (text, JSON, Markdown, CSV, HTML) and of a single table (CSV, Markdown, JSON, a line each, too)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings import contents
from rtui.analysis.findings.contents import findings_table
from rtui.analysis.formats.blocks import Block, BlockPage, Facts, PageHead, ReportCharts
from rtui.analysis.formats.csv_and_json import table_csv, table_json, table_jsonl, write_csv
from rtui.analysis.formats.json import write_json
from rtui.analysis.formats.text import DEFAULT_WIDTH, page_markdown, page_text, table_markdown
from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.analysis.report.tables.contents import about, coverage_sentence, headline, tables
from rtui.analysis.report.tables.table import COVERAGE_MARKS, Table


def report_page(report: Report) -> BlockPage:
    found = about(report)
    facts = Facts(found.title, tuple((str(what), str(text)) for what, text in found.rows))
    blocks: list[Block] = [facts, ReportCharts(report), findings_table(contents.findings(report)), *tables(report)]
    return BlockPage(headline(report), blocks, has_headline=True, head=_head(report))


def _head(report: Report) -> PageHead:
    head, stats = report.head, report.summary.root.stats
    kind, mark = head.coverage.kind, COVERAGE_MARKS[head.coverage.kind]
    server = " · ".join(
        part for part in (f"{head.server.product} {head.server.version}".strip(), head.server.role) if part
    )
    tiles: list[tuple[str, str]] = [(humanize.written_keys(stats.keys, mark), "keys")]
    if stats.memory_bytes is not None:
        tiles.append((humanize.written(stats.memory_bytes, humanize.size, mark), "memory of keys"))
    if stats.no_ttl_share is not None:
        tiles.append((humanize.written(stats.no_ttl_share, humanize.share), "no TTL"))
    tiles.append((humanize.seconds(round(head.cost.server_us / 1e6, 1)), "server time"))
    tiles.append((humanize.seconds(round(head.cost.elapsed_s, 1)), "took"))
    warnings = [] if kind is CoverageKind.EXACT else [coverage_sentence(head.coverage)]
    warnings += [
        f"Denied, {name}: {column.reason or column.state}."
        for name, column in head.columns.items()
        if column.state is ColumnState.DENIED
    ]
    sub = f"{server} · db{head.server.db} · {humanize.moment(head.made_at_s)} UTC"
    return PageHead("rtui report", head.server.label, (kind.value, kind), sub, (), tiles, warnings)


def written(page: BlockPage, form: str, *, width: int | None = None, ascii_only: bool = False) -> str:
    """Return a page as `text` (in lines of `width` characters, unbroken for None), `md` or `html`."""
    if form == "text":
        return page_text(page, width=width, ascii_only=ascii_only)
    if form == "md":
        return page_markdown(page)
    from rtui.analysis.formats.html import page_html  # noqa: PLC0415 - only pages wait 15 ms for templates and digests

    return page_html(page)


def write_text(report: Report, *, width: int | None = DEFAULT_WIDTH, ascii_only: bool = False) -> str:
    return page_text(report_page(report), width=width, ascii_only=ascii_only)


FORMS: Final[dict[str, Callable[[Report], str]]] = {
    "text": write_text,
    "json": write_json,
    "md": lambda report: written(report_page(report), "md"),
    "csv": write_csv,
    "html": lambda report: written(report_page(report), "html"),
}

TABLE_FORMATS: Final[dict[str, Callable[[Table], str]]] = {
    ".csv": table_csv,
    ".md": table_markdown,
    ".json": table_json,
    ".jsonl": table_jsonl,
}
