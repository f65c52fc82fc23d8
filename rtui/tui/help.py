"""The help: every command with its keys, pages about rtui's features, and a search through all of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from rtui.analysis.query.terms import TERMS
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.help_pages import PAGES, HelpBlock, help_blocks, screen_pages
from rtui.keyspace.types import type_of
from rtui.registry.rules import FAMILIES, RULES
from rtui.server.facts.preview.places import PLACES
from rtui.server.user import known_servers
from rtui.server.wire.command_log import Purpose
from rtui.tui.kit.bars import FilterInput
from rtui.tui.kit.choice import CardScreen
from rtui.tui.kit.command import RULES_PAGE, Group, HelpSubject, Owner, ScreenCommand
from rtui.tui.kit.layout import display_text, prose
from rtui.tui.kit.styled_text import Line, Role, Span, cut, gap, left, line_width, literal, width_of
from rtui.values.chain import BUILT_IN
from rtui.values.plain import HEX, TEXT

FOCUSED: Final[dict[str, SafeText]] = {
    Owner.TREE: literal("tree"),
    Owner.ROWS: literal("value"),
    Owner.TABLE: literal("tables of an analysis"),
    Owner.FOUND: literal("keys found by a query"),
    Owner.ENTRIES: literal("command log"),
    Owner.SERVER: literal("server"),
}
"""The names of widgets that can have the focus, by their owner of commands."""

KEYS_HINT: Final = "tab next page · / search · esc closes"
SEARCH_HINT: Final = "enter goes to the text · esc ends the search"


def groups_for(commands: Sequence[ScreenCommand], owners: Sequence[str]) -> list[Group]:
    """Return the groups of commands, those of the first owners first.

    `owners` begin with the focused widget and end with the screen around it; groups of other screens follow.
    """
    first: dict[Group, None] = {}
    for owner in owners:
        of_owner = {command.group for command in commands if command.owner == owner} - {Group.APP, Group.MOVE}
        first |= dict.fromkeys(group for group in Group if group in of_owner)
    return list(first | dict.fromkeys(Group))


def keys_page(commands: Sequence[ScreenCommand], groups: Iterable[Group] = Group) -> HelpPage:
    """Return the page of the commands under their headings, those with words of Redis first in each.

    The keys that move a cursor are the same in every list, and are there once.
    """
    entries: list[Entry] = []
    for group in groups:
        of_group: dict[str, ScreenCommand] = {}
        for one in commands:
            if one.group is group and one.owner is not Owner.CONNECT:
                of_group.setdefault(one.id if group is Group.MOVE else one.action, one)
        if of_group:
            entries.append(Entry(term=SafeText(group.value)))
        for one in sorted(of_group.values(), key=lambda one: not one.words):
            term, words = SafeText(one.key_text or "–"), SafeText(one.words)
            entries.append(Entry(SafeText(one.help), term, SafeText(one.title), words))
    return HelpPage(literal("Keys"), tuple(entries))


class HelpScreen(CardScreen[None]):
    """Shows a page of the help at a time, first the commands of the focused widget."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Close", show=False),
        Binding("q,question_mark,f1", "dismiss", "Close", show=False),
        Binding("tab,right,l,right_square_bracket,n", "turn(1)", "Next page", show=False),
        Binding("shift+tab,left,h,left_square_bracket,b", "turn(-1)", "Previous page", show=False),
        Binding("slash", "search", "Search", show=False),
    ]

    def __init__(
        self,
        commands: Sequence[ScreenCommand],
        owners: Sequence[str] = (),
        topics: Sequence[HelpPage] = (),
        subject: HelpSubject | None = None,
    ) -> None:
        """`owners` of commands are the focused widget, the widgets that hold it, and last the screen.

        With a `subject` it begins there.
        """
        super().__init__("Help", "help")
        self._focused = next((FOCUSED[owner] for owner in owners if owner in FOCUSED), None)
        self.pages = (keys_page(commands, groups_for(commands, owners)), *topics)
        self.page = 0
        """Which page is shown, unless something is searched."""
        self._term = ""
        if subject is not None:
            self.page = next((at for at, page in enumerate(self.pages) if page.title == subject.page), 0)
            self._term = subject.term
        self.search_input = FilterInput("one or more words", id="help-search")

    def compose(self) -> ComposeResult:
        with self._card:
            yield self.search_input

    def on_mount(self) -> None:
        super().on_mount()
        self._show()

    def lines(self, width: int) -> list[Line]:
        if self.search_input.value:
            return found_lines(self.pages, self.search_input.value, width)
        return page_lines(self.pages[self.page], width)

    def _show(self) -> None:
        title = self.pages[self.page].title
        if not self.page:
            title = SafeText("Help" if self._focused is None else f"Help: {self._focused}")
        if self.search_input.value:
            title = literal("Help: found")
        elif len(self.pages) > 1:
            title = SafeText(f"{title} · {self.page + 1} of {len(self.pages)}")
        self._card.border_title = title
        self._card.border_subtitle = SEARCH_HINT if self.search_input.is_open else KEYS_HINT
        self.body.set_content(self.lines)
        self.body.scroll_home(animate=False, force=True, immediate=True)
        if self._term:
            self.call_after_refresh(self._show_term, self._term)
            self._term = ""

    def _show_term(self, term: str) -> None:
        starts = (
            at
            for at, line in enumerate(self.body.lines)
            if "".join(span.text for span in line).strip().startswith(term)
        )
        self.body.scroll_to(y=next(starts, 0), animate=False, force=True, immediate=True)

    def action_turn(self, step: int) -> None:
        """Show the page `step` places after this one; after a search, the page before it."""
        if self.search_input.value:
            self.search_input.value = ""
        else:
            self.page = (self.page + step) % len(self.pages)
        self._show()

    def action_search(self) -> None:
        self.search_input.open(self.search_input.value)
        self._show()

    @on(FilterInput.Changed)
    def _typed(self) -> None:
        if self.search_input.is_open:
            self._show()

    @on(FilterInput.Submitted)
    def action_leave_filter(self) -> None:
        self.search_input.close()
        self.set_focus(self.body)
        self._show()

    def action_back(self) -> None:
        if self.search_input.is_open or self.search_input.value:
            self.search_input.value = ""
            self.action_leave_filter()
        else:
            self.dismiss(None)


TERM_CELLS: Final = 14
TITLE_CELLS: Final = 19
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
        whole = f"{self.term} {self.title} {self.text} {self.words}".casefold()
        return all(word in whole for word in words)


@dataclass(frozen=True, slots=True)
class HelpPage:
    """A page."""

    title: SafeText
    entries: tuple[Entry, ...]


def page_lines(page: HelpPage, width: int) -> list[Line]:
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
    return [*lines, ()] if lines else [(), *prose(literal("The help does not mention it."), width, Role.MUTED)]


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


def help_pages(
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
    *own, conventions = (HelpPage(page.title, tuple(chain(*map(filled, page.entries)))) for page in pages)
    written = (_page_of(help_blocks(name)) for name in _ON_SCREEN)
    return (*own, *written, HelpPage(RULES_PAGE, tuple(_rules())), conventions)


_ON_SCREEN: Final = tuple(name for name in PAGES if name not in ("terms", "columns", "ci"))
"""The pages of `rtui help` that the help on screen has, too: its own ones say the rest."""

_CODE_TERM: Final = re.compile(r"(\S.*?) {2,}(\S.*)")


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
