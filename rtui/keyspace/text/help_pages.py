"""Pages of the help, written in a part of Markdown, as plain text.

Headings, paragraphs, lists, tables and code blocks are read; a row of a table is its first cell, and the others below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pkgutil import get_data
from textwrap import wrap
from typing import Final, NamedTuple

PAGES: Final = {
    "start": "the first five minutes, and how figures are written",
    "connection": "TARGET, passwords, TLS, clusters, Sentinels, profiles",
    "browsing": "the tree, its keys, and very many keys",
    "terms": "the query of rtui find and of / on screen",
    "sql": "the tables of rtui sql, their columns, and examples",
    "analysing": "panels, estimates, comparing with earlier reports",
    "columns": "the facts that an analysis reads",
    "findings": "rules, severities, exit codes",
    "registry": "what keys are for: patterns, types, TTLs, rules",
    "health": "the state of a server, over time, and of many",
    "clusters": "nodes, slots, hash tags, addresses",
    "formats": "files and pipes: formats, columns of keys, units",
    "files": "rtui export: columns, and queries of other programs",
    "scale": "--workers, --dask: many nodes and files",
    "thresholds": "--fail-on of rtui diff and rtui health",
    "exit-codes": "what 0 to 5 and 130 mean",
    "agents": "rtui mcp: what agents may ask, budgets, clients",
    "ci": "checks every night and before each commit",
    "questions": "questions, and where the answer is",
    "safety": "what may be sent, and what a server feels",
    "permissions": "the user that rtui needs, and what is missing without a right",
    "settings": "settings, keys, environment, files",
    "servers": "versions, managed services, compatible servers",
    "troubleshooting": "copying, colours, characters, denied columns",
    "how-it-works": "scans of keys that move, cost, estimates",
}
"""The pages by their names, with their contents in a phrase."""

_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")
_MARKS: Final = re.compile(r"\*\*|`|(?<!\\)\\(?=\|)|(?<![\w:*])\*(?=\w+\*)|(?<=\w)\*(?=[,. ])")
_RULE: Final = re.compile(r"\|[-:| ]+\|")
_CELLS: Final = re.compile(r"(?<!\\)\|")


class HelpBlock(NamedTuple):
    """A heading, paragraph, item, row or code block."""

    kind: str
    lines: list[str]
    """A paragraph and an item are one line, a row has a line a cell."""


def help_blocks(name: str) -> list[HelpBlock]:
    """Return the blocks of a page, without marks of Markdown."""
    return _blocks(_text(name))


def screen_pages() -> list[list[HelpBlock]]:
    """Return the blocks of each page that only the help on screen has, its title first."""
    return [*map(_blocks, re.split(r"^(?=# )", _text("screen"), flags=re.MULTILINE)[1:])]


def _text(name: str) -> str:
    return (get_data("rtui", f"help/{name}.md") or b"").decode()


def _blocks(text: str) -> list[HelpBlock]:
    return [one for kind, lines in _parts(text) for one in _read(kind, lines)]


def _parts(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield code blocks, and other lines up to an empty one."""
    for at, fenced in enumerate(re.split(r"^```.*$", text, flags=re.MULTILINE)):
        if at % 2:
            yield "code", [f"    {line}" for line in fenced.strip("\n").split("\n")]
            continue
        for is_blank, group in groupby(fenced.split("\n"), key=lambda line: not line.strip()):
            lines = list(group)
            if not is_blank:
                first = lines[0]
                starts = {"#": "heading", "|": "table", "-": "list", " ": "code"}
                yield starts.get(first[0], "paragraph"), lines


def _read(kind: str, lines: list[str]) -> Iterator[HelpBlock]:
    match kind:
        case "code":
            yield HelpBlock(kind, [line[4:] for line in lines])
        case "heading":
            yield HelpBlock(kind, [_plain(lines[0].lstrip("# "))])
        case "table":
            head, *rows = [
                [_plain(one) for one in _CELLS.split(line)[1:-1]] for line in lines if not _RULE.fullmatch(line)
            ]
            for first, *rest in rows:
                titled = zip(head[1:], rest, strict=True) if len(rest) > 1 else [("", one) for one in rest]
                yield HelpBlock("row", [first, *(f"{title}: {cell}" if title else cell for title, cell in titled)])
        case "list":
            for item in re.split(r"^- ", "\n".join(lines), flags=re.MULTILINE)[1:]:
                yield HelpBlock("item", [_plain(" ".join(item.split()))])
        case _:
            yield HelpBlock(kind, [_plain(" ".join(lines))])


def _plain(text: str) -> str:
    return _MARKS.sub("", _LINK.sub(r"\1", text)).strip()


def page_text(name: str, width: int) -> str:
    """Return a page in lines of at most `width` characters; code keeps its lines."""
    parts: list[str] = []
    before = ""
    for kind, lines in help_blocks(name):
        if kind == "heading":
            found = lines
        elif kind == "code":
            found = [f"  {line}".rstrip() for line in lines]
        else:
            first, rest = {"item": ("  - ", "    "), "row": ("  ", "    ")}.get(kind, ("  ", "  "))
            found = wrap(lines[0], width, initial_indent=first, subsequent_indent=rest)
            found += [
                part
                for line in lines[1:]
                for part in wrap(line, width, initial_indent="      ", subsequent_indent="      ")
            ]
        parts += [*([""] if parts and not (kind == before and kind in ("row", "item")) else []), *found]
        before = kind
    return "\n".join([*parts, ""])
