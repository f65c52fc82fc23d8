"""Files of a report (text, JSON, Markdown, CSV, HTML) and of a single table (CSV, Markdown, JSON)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rtui.analysis.formats.csv_and_json import table_csv, table_json, write_csv
from rtui.analysis.formats.json import write_json
from rtui.analysis.formats.markdown import table_markdown, write_markdown
from rtui.analysis.formats.text import write_text
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.table import Table


def write_html(report: Report) -> str:
    """Return a page, as `html.write_html` does."""
    from rtui.analysis.formats import html  # noqa: PLC0415 - only pages wait 15 ms for templates and digests

    return html.write_html(report)


FORMS: Final[dict[str, Callable[[Report], str]]] = {
    "text": write_text,
    "json": write_json,
    "md": write_markdown,
    "csv": write_csv,
    "html": write_html,
}
"""How a report is written, by the name of the form."""

TABLE_FORMATS: Final[dict[str, Callable[[Table], str]]] = {
    ".csv": table_csv,
    ".md": table_markdown,
    ".json": table_json,
}
"""How a single table is written, by the ending of the file's name."""
