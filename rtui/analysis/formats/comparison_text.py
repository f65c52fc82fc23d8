"""A comparison as text for a terminal, a pipe or the log of a build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rtui.analysis.formats.comparison_lines import HEADINGS, DiffLines


def write_text(lines: DiffLines) -> str:
    """Return the comparison in aligned columns; ends with a newline."""
    return "\n".join(_lines(lines)) + "\n"


def _lines(lines: DiffLines) -> Iterator[str]:
    yield f"before  {lines.before}"
    yield f"after   {lines.after}"
    rows = [HEADINGS, lines.total, *(row for section in lines.sections for row in section.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    yield ""
    yield _aligned(HEADINGS, widths)
    yield _aligned(lines.total, widths)
    for section in lines.sections:
        yield ""
        yield section.title
        for row in section.rows:
            yield _aligned(row, widths)
        if section.left_off:
            yield f"… and {section.left_off:,} more"
    for group in ((lines.rest,) if lines.rest else (), lines.notes, lines.judgements):
        if group:
            yield ""
            yield from group


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Names from the left, numbers from the right."""
    first, *others = zip(row, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
    return "  ".join(cells).rstrip()


_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&$@])")
"""What means something within a line of Markdown, or in the HTML and mentions that some of its readers know."""

_BACKTICKS: Final = re.compile("`+")


def write_markdown(lines: DiffLines) -> str:
    """Return the comparison as tables; names of keys can't become markup. Ends with a newline."""
    return "\n".join(_markdown_lines(lines)) + "\n"


def _markdown_lines(lines: DiffLines) -> Iterator[str]:
    yield "# What changed"
    yield ""
    yield f"- before: {_plain(lines.before)}"
    yield f"- after: {_plain(lines.after)}"
    yield ""
    yield from _table([lines.total])
    for section in lines.sections:
        yield ""
        yield f"## {section.title}"
        yield ""
        yield from _table(section.rows)
        if section.left_off:
            yield ""
            yield f"… and {section.left_off:,} more"
    if lines.rest:
        yield ""
        yield _plain(lines.rest)
    for title, group in (("Notes", lines.notes), ("Thresholds", lines.judgements)):
        if group:
            yield ""
            yield f"## {title}"
            yield ""
            yield from (f"- {_plain(line)}" for line in group)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield _line(HEADINGS)
    yield _line([":--", *["--:"] * (len(HEADINGS) - 1)])
    for row in rows:
        yield _line([_code(row[0]), *map(_plain, row[1:])])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """A text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def _code(text: str) -> str:
    """A name as code within a table: nothing in it means anything but the bar of the table."""
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}".replace("|", "\\|")
