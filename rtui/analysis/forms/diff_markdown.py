"""A comparison as Markdown, for a comment on a change or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rtui.analysis.forms.diff_lines import HEADINGS, DiffLines

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&$@])")
"""What means something within a line of Markdown, or in the HTML and mentions that some of its readers know."""

_BACKTICKS: Final = re.compile("`+")


def write_markdown(lines: DiffLines) -> str:
    """Return the comparison as tables; names of keys can't become markup. Ends with a newline."""
    return "\n".join(_lines(lines)) + "\n"


def _lines(lines: DiffLines) -> Iterator[str]:
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
