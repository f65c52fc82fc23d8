"""The pages of the help on screen: those of `help/*.md`, tables from the declarations, and the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from rtui.analysis.query.terms import TERMS
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.help_pages import PAGES, HelpBlock, help_blocks, screen_pages
from rtui.keyspace.types import type_of
from rtui.registry.rules import FAMILIES, RULES
from rtui.server.facts.preview.places import PLACES
from rtui.server.user import known_servers
from rtui.server.wire.command_log import Purpose
from rtui.tui.kit.command import RULES_PAGE
from rtui.tui.kit.layout import display_text, prose
from rtui.tui.kit.styled_text import Line, Role, Span, cut, gap, left, line_width, literal, width_of
from rtui.values.chain import BUILT_IN
from rtui.values.plain import HEX, TEXT

TERM_CELLS: Final = 14
TITLE_CELLS: Final = 18
LEAST_TEXT_CELLS: Final = 24
"""A text with less room beside its term stands below it."""

NO_TEXT: Final = literal("")


@dataclass(frozen=True, slots=True)
class Entry:
    """A paragraph; with a term, its meaning; with a title too, a command. Without a text, a heading."""

    text: SafeText = NO_TEXT
    term: SafeText = NO_TEXT
    title: SafeText = NO_TEXT
    words: SafeText = NO_TEXT
    """Other words by which it is found."""

    @property
    def is_heading(self) -> bool:
        return not self.text

    def has(self, words: Sequence[str]) -> bool:
        """Whether all words, in small letters, are in it."""
        whole = f"{self.term} {self.title} {self.text} {self.words}".casefold()
        return all(word in whole for word in words)


@dataclass(frozen=True, slots=True)
class HelpPage:
    """A page."""

    title: SafeText
    entries: tuple[Entry, ...]


def page_lines(page: HelpPage, width: int) -> list[Line]:
    """Return a page for a panel of this width."""
    lines: list[Line] = []
    before: Entry | None = None
    for entry in page.entries:
        if before is None or entry.is_heading or not entry.term or not (before.term or before.is_heading):
            lines.append(())
        lines += _entry_lines(entry, width)
        before = entry
    return [*lines, ()]


def found_lines(pages: Sequence[HelpPage], text: str, width: int) -> list[Line]:
    """Return the entries of all pages that have all words of a text, below the titles of their pages."""
    words = text.casefold().split()
    lines: list[Line] = []
    for page in pages:
        found = [entry for entry in page.entries if not entry.is_heading and entry.has(words)]
        if found:
            lines += [(), (gap(1), Span(page.title, Role.ACCENT))]
            lines += [line for entry in found for line in _entry_lines(entry, width)]
    return [*lines, ()] if lines else [(), *prose(literal("The help says nothing of it."), width, Role.MUTED)]


def _entry_lines(entry: Entry, width: int) -> list[Line]:
    if entry.is_heading:
        return [(gap(1), Span(cut(entry.term, width - 2), Role.ACCENT))]
    if not entry.term:
        return prose(entry.text, width, Role.TEXT)
    is_long = width_of(entry.term) >= TERM_CELLS
    term = cut(entry.term, max(1, width - 2)) if is_long else left(entry.term, TERM_CELLS)
    head: Line = (gap(1), Span(term, Role.STRONG))
    if entry.title:
        head = (*head, *((gap(1),) if is_long else ()), Span(left(entry.title, TITLE_CELLS)))
    if not entry.text.strip():
        return [head]
    room = width - line_width(head) - 1
    if room < LEAST_TEXT_CELLS or (is_long and not entry.title):
        return [head, *((gap(3), *line) for line in prose(entry.text, width - 3, Role.MUTED))]
    first, *rest = prose(entry.text, room + 2, Role.MUTED)
    indent = gap(line_width(head))
    return [(*head, *first[1:]), *((indent, *line[1:]) for line in rest)]


def pages_of_screens(
    places: Sequence[tuple[SafeText, SafeText]], server_panels: Sequence[tuple[SafeText, SafeText]]
) -> tuple[HelpPage, ...]:
    """Return the pages of `help/screen.md`, with what is declared in the code in place of words such as `@terms`.

    `places` are the words of the line that goes to anything, with their meanings; `server_panels` the panels of the
    server with their keys and contents.
    """
    listed = {
        "@terms": [Entry(SafeText(spec.help), SafeText("  ".join(spec.examples))) for spec in TERMS.values()],
        "@places": [
            Entry(SafeText(f"{place.title}: {place.hint}"), SafeText(type_of(key_type).name.decode("ascii")))
            for key_type, place in PLACES.items()
        ],
        "@words": [Entry(text, term) for term, text in places],
        "@panels": [Entry(text, term) for term, text in server_panels],
    }
    named = {
        "@decoders": ", ".join(one.name for one in (*BUILT_IN, TEXT, HEX)),
        "@purposes": ", ".join(Purpose),
        "@profiles": str(known_servers.default_path()),
    }

    def filled(entry: Entry) -> list[Entry]:
        text = str(entry.text)
        for word, meaning in named.items():
            text = text.replace(word, meaning)
        return listed.get(text, [entry if text == entry.text else replace(entry, text=display_text(text, limit=4096))])

    pages = map(_page_of, screen_pages())
    return tuple(HelpPage(page.title, tuple(chain(*map(filled, page.entries)))) for page in pages)


def rules_page() -> HelpPage:
    """Return every rule: how it is broken, why it matters, the remedy, and its setting in a registry."""
    return HelpPage(RULES_PAGE, tuple(_rules()))


_ON_SCREEN: Final = tuple(name for name in PAGES if name not in ("terms", "columns", "ci"))
"""The pages of `rtui help` that the help on screen has, too: its own ones say the rest."""

_CODE_TERM: Final = re.compile(r"(\S.*?) {2,}(\S.*)")


def written_pages() -> tuple[HelpPage, ...]:
    """Return pages of `rtui help`."""
    return tuple(_page_of(help_blocks(name)) for name in _ON_SCREEN)


def _page_of(blocks: Sequence[HelpBlock]) -> HelpPage:
    (_, title), *blocks = blocks
    entries: list[Entry] = []
    for kind, lines in blocks:
        match kind:
            case "heading":
                entries.append(Entry(term=display_text(lines[0])))
            case "code":
                entries += _code_entries(lines)
            case "row":
                entries.append(Entry(display_text(" ".join(lines[1:]), limit=4096), display_text(lines[0], limit=400)))
            case _:
                entries.append(Entry(display_text(lines[0], limit=4096)))
    return HelpPage(display_text(title[0]), tuple(entries))


def _code_entries(lines: Sequence[str]) -> Iterator[Entry]:
    """Yield the lines of a code block: what stands before a gap is the term of what follows, also below it."""
    found: list[list[str]] = []
    for line in filter(str.strip, lines):
        match = _CODE_TERM.fullmatch(line.strip())
        if match is None and found and line.startswith(" " * 5):
            found[-1][1] += f" {line.strip()}"
        else:
            found.append([line.rstrip(), ""] if match is None else [match[1], match[2]])
    yield from (Entry(display_text(text or " ", limit=4096), display_text(term, limit=400)) for term, text in found)


def _rules() -> Iterator[Entry]:
    yield Entry(literal(
        "Findings (1 in Analyse) lists violations of these rules, errors first; ? there opens this page. rtui check "
        "lists the same for CI, rtui check --rules prints this page. Rules about names, expectations, patterns and "
        "references need a registry."
    ))  # fmt: skip
    yield Entry(literal(
        "A registry sets each rule to off, warn or error, and its parameters; these are the defaults:"
    ))  # fmt: skip
    yield Entry(SafeText(f"[rules] {RULES['expiry-cliff'].setting}"))
    for family, heading in FAMILIES.items():
        yield Entry(term=SafeText(heading))
        for rule in RULES.values():
            if rule.family is family:
                yield Entry(SafeText(" ".join(rule.sentences)), SafeText(f"{rule.id} ({rule.severity})"))
