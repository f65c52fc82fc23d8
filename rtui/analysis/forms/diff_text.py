"""A comparison as text for a terminal, a pipe or the log of a build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rtui.analysis.forms.diff_lines import HEADINGS, DiffLines


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
