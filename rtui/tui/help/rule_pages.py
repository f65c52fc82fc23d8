"""The pages of the help about rules, and about the registries that ship with rtui as examples of conventions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import FAMILIES, RULES, Rule
from rtui.tui.help.pages import Entry, HelpPage
from rtui.tui.kit.command import RULES_PAGE
from rtui.tui.kit.styled_text import literal

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
"""What the rules of the registries that stand for a written convention catch on the keyspaces of the demo."""


def rules_page() -> HelpPage:
    """Return every rule: what breaks it, why it matters, what to do, and how a registry sets it."""
    return HelpPage(RULES_PAGE, tuple(_rules()))


def conventions_page() -> HelpPage:
    """Return how to try the registries that ship as examples."""
    return HelpPage(literal("Conventions"), tuple(_conventions()))


def _rules() -> Iterator[Entry]:
    yield Entry(literal(
        "Findings (1 in Analyse) lists what breaks these rules, most costly first; ? there comes here. rtui check "
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
                yield rule_entry(rule)


def rule_entry(rule: Rule) -> Entry:
    """Return a rule: its id with the severity, and all that is said of it."""
    return Entry(SafeText(" ".join(rule.sentences)), SafeText(f"{rule.id} ({rule.severity})"))


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
