"""Files of a report: text, JSON, Markdown, CSV and HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rtui.analysis.formats.csv import write_csv
from rtui.analysis.formats.html import write_html
from rtui.analysis.formats.json import write_json
from rtui.analysis.formats.markdown import write_markdown
from rtui.analysis.formats.text import write_text
from rtui.analysis.report.document import Report

FORMS: Final[dict[str, Callable[[Report], str]]] = {
    "text": write_text,
    "json": write_json,
    "md": write_markdown,
    "csv": write_csv,
    "html": write_html,
}
"""How a report is written, by the name of the form."""


def write(report: Report, form: str) -> str:
    """Return a report as a file of one of FORMS; KeyError for any other."""
    return FORMS[form](report)
