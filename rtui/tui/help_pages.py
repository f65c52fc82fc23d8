"""The pages of the help about rtui's features: tables from the declarations, and short prose around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.query.terms import TERMS
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.help_pages import PAGES, help_blocks
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


def topics(
    places: Sequence[tuple[SafeText, SafeText]], server_panels: Sequence[tuple[SafeText, SafeText]]
) -> tuple[HelpPage, ...]:
    """Return the pages in their order.

    `places` are the words of the line that goes to anything, with their meanings; `server_panels` the panels of the
    server with their keys and contents.
    """
    return (
        HelpPage(literal("Queries"), tuple(_queries())),
        HelpPage(literal("Schema"), _SCHEMA),
        HelpPage(literal("Values"), tuple(_values())),
        HelpPage(literal("Decoders"), tuple(_decoders())),
        HelpPage(literal("Watching and history"), _WATCHING),
        HelpPage(literal("Going to anything"), (*_GOING, *(Entry(text, term) for term, text in places), *_BACK)),
        HelpPage(literal("Servers and profiles"), tuple(_servers())),
        HelpPage(literal("Health of the server"), tuple(_server(server_panels))),
        HelpPage(literal("Command log"), tuple(_log())),
        HelpPage(literal("Clipboard"), _CLIPBOARD),
        HelpPage(literal("Colours"), tuple(_colours())),
        HelpPage(literal("Record and replay"), _RECORDING),
        HelpPage(literal("Figures and terms"), (*_FIGURES, *_GLOSSARY)),
    )


def _queries() -> Iterator[Entry]:
    yield Entry(literal(
        "/ in the tree takes a part of a name, or terms with spaces between them: a key is found if all apply to it. "
        "Enter lists the keys. An exclamation mark before a term turns it round: !type:hash."
    ))  # fmt: skip
    yield Entry(literal(
        "Alternatives have commas between them: type:hash,set. Numbers take < <= > >= or a range: len:10..20. "
        "Quotes keep spaces together: \"two words\". Tab completes, ↑ recalls earlier lines, and what is wrong is "
        "marked while you type."
    ))  # fmt: skip
    for spec in TERMS.values():
        yield Entry(SafeText(spec.help), SafeText("  ".join(spec.examples)))
    yield Entry(literal(
        "Only what the terms need is asked, the cheapest first, and only of keys that may still be found. A search "
        "among 100,000 keys or more says what it will cost before it begins. rtui find does the same on a command line."
    ))  # fmt: skip
    yield Entry(literal(
        "After an analysis, and while it runs, keys are found among the rows that it has kept, without asking the "
        "server: the list says as of when. R asks the server; so does a query about what the analysis has not asked of "
        "all keys."
    ))  # fmt: skip


def _values() -> Iterator[Entry]:
    yield Entry(literal(
        "Enter on a key goes into its value, a page at a time; n and b turn pages. Enter on a row shows it whole, "
        "decoded. y copies the value of the row, C the redis-cli command that reads it, quoted for a shell, Y offers "
        "the rest."
    ))  # fmt: skip
    yield Entry(literal(
        "/ finds fields, members, items and entries by a part of them or by a glob, in bounded pages: an exact name "
        "is looked up at once, however many there are. w writes the value to a file, P shows it in $PAGER."
    ))  # fmt: skip
    yield Entry(term=literal("o goes to a place"))
    for key_type, place in PLACES.items():
        yield Entry(SafeText(f"{place.title}: {place.hint}"), SafeText(type_of(key_type).name.decode("ascii")))


def _decoders() -> Iterator[Entry]:
    yield Entry(literal(
        "A value is shown by what its bytes are, one layer within the other: base64 of gzip of JSON is JSON. The "
        "layers are named above the rows; d chooses others."
    ))  # fmt: skip
    names = [one.name for one in (*BUILT_IN, TEXT, HEX)]
    yield Entry(SafeText(", ".join(names)), literal("known"))
    yield Entry(literal(
        "Nothing is ever executed: pickle and objects of PHP, Java and Ruby are read as data and never run, tokens "
        "are never verified, protobuf is read without a schema. What a decoder makes is bounded in size, depth and "
        "time."
    ))  # fmt: skip
    yield Entry(literal("Some need libraries: pip install 'redis-rtui[decode]'."), literal("missing"))
    yield Entry(
        literal("A class with name, sniff and decode, as an entry point of rtui.decoders."), literal("your own")
    )


_SCHEMA: Final = (
    Entry(literal(
        "F shows the schema in the place of the names: segments that are identifiers are one row, so that "
        "user:1:orders, user:2:orders and 50,000 more are user, <id> ×50,000, orders. A row below stands for that "
        "level of all of them. F or Escape goes back to the names, to what the keys of the row begin with."
    )),
    Entry(literal("Lists the keys of the row, by the query that stands for them; add terms with /."), literal("enter")),
    Entry(literal("Open and close a level; * opens all below."), literal("→ ←")),
    Entry(literal(
        "How many different ones there are: exact for a few hundred, beyond that an estimate within 6 %."),
        literal("×50,000")),
    Entry(literal(
        "A number, a UUID, a hash, a date, an e-mail or IP address, or names whose number grows with the keys."),
        literal("<id> <uuid> …")),
    Entry(literal("Names that differ in their numbers only."), literal("page_<n>")),
    Entry(literal("Names where too many stand side by side; those with 1 % of the keys or bytes keep a row."),
        literal("<*>")),
    Entry(literal("What is beyond 4,096 patterns."), literal("(other)")),
    Entry(literal(
        "The latest analysis of these keys, with bytes, types, times to live and sizes. Without one, while names are "
        "filtered, and while an analysis has seen fewer keys than there are names: the names alone. ≥ says that not "
        "all keys have been seen."), literal("figures")),
    Entry(literal("rtui patterns writes the same patterns as the draft of a registry."), literal("rtui patterns")),
)  # fmt: skip

_WATCHING: Final = (
    Entry(literal(
        "W on a key asks about it again every few seconds, marks what changes and shows rates; on an open namespace "
        "it watches the keys in view. W again ends it. The pace follows what the server needs: less than a thousandth "
        "of its time."
    )),
    Entry(literal(
        "Times to live count down by themselves. What is older than a few seconds says how old it is; r looks again."
    )),
    Entry(literal(
        "Each analysis that ends is kept: 30 reports of a server and database at most, the first of each day longest. "
        "D in an analysis shows ▲▼ against an earlier one in every panel."
    )),
    Entry(literal("Lists what is kept, and opens one: --open 3."), literal("rtui history")),
    Entry(literal("Compares two: rtui diff prod:6379@yesterday prod:6379@latest."), literal("rtui diff")),
    Entry(literal("Begins without keeping anything."), literal("--no-keep")),
)  # fmt: skip

_GOING: Final = (
    Entry(literal(
        ": goes to anything by letters of its name: user finds shop:user. The best match is first; Tab completes, "
        "Enter goes there. A word and a blank narrow the list:"
    )),
)  # fmt: skip

_BACK: Final = (
    Entry(literal(
        "Alt+← and Alt+→, or Ctrl+O and Ctrl+N, go back and forward through where you have been. Escape always goes "
        "one step back, and never costs a scan. The path over the tree says where you are."
    )),
    Entry(literal(
        "Every command has a key, an entry in Ctrl+P and one behind the colon. rtui settings changes keys: "
        "rtui settings keys.browse.filter ctrl+f."
    )),
)  # fmt: skip


def _servers() -> Iterator[Entry]:
    yield Entry(literal(
        "rtui without a TARGET lists profiles and recent servers; O does the same while one is browsed, B lists its "
        "databases with what each holds. Passwords of recent servers are not kept: one that is missing is asked for, "
        "and stays in memory."
    ))  # fmt: skip
    yield Entry(
        SafeText(
            f"A profile is a table in {display_text(str(known_servers.default_path()), limit=120)}, yours only to read:"
        )
    )
    yield Entry(literal("redis://, rediss:// or unix://; or host, port, socket, db each for itself"), literal("url"))
    yield Entry(literal("as whom to log in"), literal("user, password"))
    yield Entry(literal("cacert, cert, key, sni; insecure accepts any certificate"), literal("tls"))
    yield Entry(literal("stand in the title bar: [PROD] in red"), literal("word, colour"))
    yield Entry(literal("rtui PROFILE connects; so does :profile and a few letters of its name."))


def _server(panels: Sequence[tuple[SafeText, SafeText]]) -> Iterator[Entry]:
    yield Entry(literal(
        "! shows how the server is, :server too. It is asked every 5 seconds while the screen is open, for less than "
        "1 ms of its time a second. MONITOR is never used: it would have the server write out everybody's commands."
    ))  # fmt: skip
    yield from (Entry(text, term) for term, text in panels)
    yield Entry(literal(
        "Each figure says what it means here, what is normal, what to do if it is not, and where that comes from. The "
        "bars are its values in this session, from the lowest to the highest."
    ))  # fmt: skip
    yield Entry(literal("It is as it should be, by the rule that is named."), literal("normal"))
    yield Entry(literal("A rule warns of it."), literal("watch"))
    yield Entry(literal("A rule finds an error."), literal("bad"))
    yield Entry(literal("The server does not tell it, or denies it."), literal("unknown"))
    yield Entry(literal(
        "Stands in the title of every screen where something is wrong, by what the server says anyway; a click or ! "
        "shows what. +2: two other rules find something."), literal("! cannot evict"))  # fmt: skip
    yield Entry(literal(
        "Not listed where more than 1,000 are connected: CLIENT LIST has no pages."), literal("clients"))  # fmt: skip
    yield Entry(
        literal("rtui acl --with health --with settings prints a user who may ask for all of it."), literal("rights")
    )


def _log() -> Iterator[Entry]:
    yield Entry(literal(
        "L shows every command that was sent, on which connection and what for, its bytes and how long it took. Enter "
        "shows it whole, y copies it for redis-cli, / filters. Passwords are never in it."
    ))  # fmt: skip
    yield Entry(SafeText(", ".join(Purpose)), literal("what for"))
    yield Entry(literal(
        "A bulk connection sends tens of thousands of commands a second: they are counted by name, not kept one by one."
    ), literal("sums"))  # fmt: skip
    yield Entry(literal("Writes the same as lines of JSON, to a file that only you can read."), literal("--log FILE"))
    yield Entry(literal("Prints what may be sent at all, with bounds, cost and reason."), literal("rtui commands"))
    yield Entry(literal("Prints a user who may do just that."), literal("rtui acl"))


_CLIPBOARD: Final = (
    Entry(literal("y copies what is under the cursor; Y offers all that can be copied of it. The ways, in order:")),
    Entry(literal("Its paste buffer, and on to the terminal: prefix ] pastes it."), literal("tmux")),
    Entry(literal(
        "wl-copy, xclip, xsel or pbcopy, if the display is yours: over SSH only with X forwarded."),
        literal("a program")),
    Entry(literal(
        "An escape sequence that the terminal puts onto its clipboard, through GNU screen too. It never confirms: so "
        "rtui says “sent”, not “copied”."), literal("OSC 52")),
    Entry(literal(
        "Where none of these takes a text, it is shown to be selected with the mouse; the last entry of Y does that "
        "anywhere."), literal("the screen")),
)  # fmt: skip


def _colours() -> Iterator[Entry]:
    yield Entry(literal(
        "t chooses a theme. Each has colours for 16 million, for 256 (what SSH passes on) and for 16 colours, and "
        "every text in them has a contrast of 4.5 or more. TERM and COLORTERM decide which are used."
    ))  # fmt: skip
    yield Entry(literal("Types have a colour each, names and figures none; no colour says anything alone."))
    yield Entry(literal(
        "The chart of memory has a colour for the share of keys without TTL, for idle keys, or for types; v switches, "
        "and the legend says which."), literal("v"))  # fmt: skip
    yield Entry(literal("How far a slot is from the mean: less is blue, more is amber."), literal("slots"))
    yield Entry(literal("The terminal's own colours."), literal("rtui-ansi16"))
    yield Entry(literal("No colours at all; --ascii draws without lines and arrows."), literal("NO_COLOR=1"))
    yield Entry(literal("Files of your own in the folder themes beside settings.toml."), literal("themes"))


_RECORDING: Final = (
    Entry(literal(
        "--record FILE keeps a session: replies, keys pressed and times, no password. The file is readable by you only."
    )),
    Entry(literal("Plays it, without a server; it can't write files, start programs or copy."), literal("rtui replay")),
    Entry(literal("Pause, and go on."), literal("space")),
    Entry(literal("Go to the next key that was pressed."), literal(". →")),
    Entry(literal("Faster and slower; --speed 4 begins so."), literal("+ -")),
    Entry(literal("A picture or the text of a moment: --to frame.svg --at 12.5."), literal("--to FILE")),
)  # fmt: skip

_FIGURES: Final = (
    Entry(literal(
        "1,204 is exact. ≥ 1,204 is at least so many: not everything has been seen. ≈ 1.20k is an estimate, "
        "from a sample or by the server. – means that there is nothing to show; denied means that the server "
        "refuses to say."
    )),
    Entry(literal(
        "KiB, MiB and GiB are 1,024 bytes and its powers; k, M and G behind a count are thousands, millions "
        "and billions. All times are in UTC."
    )),
    Entry(literal(
        "rtui only reads. What it may send is a closed list: rtui commands prints that list, and rtui acl "
        "prints a user with just these rights."
    )),
)  # fmt: skip
"""The meanings of marks and units."""

_GLOSSARY: Final = (
    Entry(term=literal("Terms")),
    Entry(literal(
        "All keys whose names begin alike, up to a separator: shop:user: holds shop:user:1 and shop:user:2."),
        literal("namespace")),
    Entry(literal(
        "Stands for the part in which otherwise equal names differ, such as a number or a UUID."),
        literal("pattern <id>")),
    Entry(literal(
        "One of the 16,384 parts into which a cluster divides its keys; CRC16 of the name decides which."),
        literal("hash slot")),
    Entry(literal(
        "A part of a name in braces; only it is hashed, so that all keys with the same tag share a slot."),
        literal("hash tag")),
    Entry(literal(
        "How the server stores a value in memory, such as listpack or hashtable; OBJECT ENCODING tells it."),
        literal("encoding")),
    Entry(literal(
        "A mode of the connection (Redis 7.2 and later, Valkey) in which reading a key does not count as a use of it."),
        literal("NO-TOUCH")),
    Entry(literal(
        "How long ago a key was last used, or last written under the policies whose names end in lrm."),
        literal("idle time")),
    Entry(literal(
        "A counter from 0 to 255 that grows with use and falls with time; servers keep it under the LFU policies."),
        literal("LFU frequency")),
    Entry(literal(
        "A time in which far more keys of a namespace expire than in the time around it."), literal("expiry cliff")),
    Entry(literal(
        "A figure for all keys worked out from a random sample; its 95 % interval says how far to trust it."),
        literal("estimate")),
)  # fmt: skip
"""The glossary: terms and their meanings."""


CONVENTIONS: Final = {
    "app-conventions": literal(
        "An application's naming guide: lower case, words of a glossary, a TTL for every cache key. Catches capitals, "
        "blanks, names that are too long or too short, cached keys and locks without a TTL."
    ),
    "project-table-id": literal(
        "Project, table, column, id, as in PRO:USER:UID:18, and what slots of a cluster ask for. Catches mixed styles, "
        "quotes, hash tags that are empty or unbalanced or load one slot, reports over 10 KB, keys that expire at once."
    ),
    "restaurant": literal(
        "Nine entities as JSON, with indexes kept by hand, some of them twice. Catches ids of entities that are gone, "
        "and two copies of an index that disagree."
    ),
    "ecm": literal(
        "A company's table of all keys. Catches keys that nobody entered, a pattern to be retired that still has keys, "
        "names of 1,024 bytes, a lock without a TTL."
    ),
    "internals": literal(
        "What goes wrong under load. Catches cached nulls that live long, keys that expire at once, locks without a "
        "TTL, big keys."
    ),
}  # fmt: skip
"""By registry of a written convention, the mistakes in the demo's keyspace that its rules catch."""


def rules_page() -> HelpPage:
    """Return every rule: how it is broken, why it matters, the remedy, and its setting in a registry."""
    return HelpPage(RULES_PAGE, tuple(_rules()))


def conventions_page() -> HelpPage:
    """Return how to try the registries that ship as examples."""
    return HelpPage(literal("Conventions"), tuple(_conventions()))


_ON_SCREEN: Final = tuple(name for name in PAGES if name not in ("terms", "columns", "ci"))
"""The pages of `rtui help` that the help on screen has, too: its own ones say the rest."""

_CODE_TERM: Final = re.compile(r"(\S.*?) {2,}(\S.*)")


def written_pages() -> tuple[HelpPage, ...]:
    """Return pages of `rtui help`."""
    return tuple(_written_page(name) for name in _ON_SCREEN)


def _written_page(name: str) -> HelpPage:
    (_, title), *blocks = help_blocks(name)
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
        "Findings (1 in Analyse) lists what breaks these rules, errors first; ? there comes here. rtui check "
        "lists the same for CI, rtui check --rules prints this page. Rules about names, expectations, patterns and "
        "references need a registry."
    ))  # fmt: skip
    yield Entry(literal(
        "A registry sets each to off, warn or error, and its parameters; what stands here are the defaults:"
    ))  # fmt: skip
    yield Entry(SafeText(f"[rules] {RULES['expiry-cliff'].setting}"))
    for family, heading in FAMILIES.items():
        yield Entry(term=SafeText(heading))
        for rule in RULES.values():
            if rule.family is family:
                yield Entry(SafeText(" ".join(rule.sentences)), SafeText(f"{rule.id} ({rule.severity})"))


def _conventions() -> Iterator[Entry]:
    yield Entry(literal(
        "Conventions that real teams have written down ship as registries, each with comments on what its rules catch. "
        "The demo holds a keyspace for each of them that keeps its rules, with some defects planted in it:"
    ))  # fmt: skip
    yield Entry(literal("browses it: 3 beside a key shows its references, Findings what is wrong"),
                literal("rtui --demo --registry ecm"))  # fmt: skip
    yield Entry(literal("lists what is wrong"), literal("rtui check --demo --registry ecm"))
    yield Entry(term=literal("Conventions"))
    for name, text in CONVENTIONS.items():
        yield Entry(text, SafeText(name))
    yield Entry(term=literal("Your own"))
    yield Entry(literal(
        "The files are a beginning for your own: rtui.toml in the working directory or above is found by itself, and "
        "rtui patterns -o rtui.toml writes a draft from the keys that are there."
    ))  # fmt: skip
