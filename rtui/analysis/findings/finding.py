"""The basis of rules, and their findings: title, place, amount, evidence, query.

Places by their names, globs and examples of keys, with lines for redis-cli to look at them.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from msgspec import Struct, structs

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import Mark
from rtui.analysis.query.behind import Behind, keys_of, label
from rtui.analysis.report.document import ColumnState, Node, NodeKind, Report
from rtui.analysis.report.members import EntryReport, Figure, ReferenceChecks
from rtui.analysis.report.tables.cells import Cells
from rtui.analysis.report.tables.table import AtLeast, Cell, cell_reason
from rtui.keyspace.text.display import SafeText, display_text, quoted
from rtui.keyspace.text.glob import escape_glob
from rtui.keyspace.text.identifiers import literals
from rtui.keyspace.text.segments import HEADER, MARK, raw_name
from rtui.registry.rules import RULES, Family, ParameterValue, Rule, RuleLevels, Severity

if TYPE_CHECKING:
    from rtui.analysis.health.sample import Source
    from rtui.analysis.health.view import HealthView

_PURPOSE_LIMIT: Final = 120

_PLAIN: Final = re.compile(r"[!#-&(-~]+")
"""Characters that redis-cli reads as themselves with and without quotes: printable ASCII but spaces and quotes."""


MOST_NODES: Final = 64
"""Namespaces below another that are searched for examples of its keys."""

MOST_EXAMPLES: Final = 8


def least(figure: Figure | None) -> float:
    """Return the lower bound of a number; 0 if it is unknown."""
    if figure is None:
        return 0
    return figure.low if isinstance(figure, Estimate) else figure


def most(figure: Figure) -> float:
    return figure.high if isinstance(figure, Estimate) else figure


def is_one_pattern(path: Sequence[Node]) -> bool:
    """Whether keys end here, and all for the same: no rest of names, no level that was cut off."""
    leaf = path[-1]
    is_of_any = any(node.kind is NodeKind.OTHER or node.is_of_names for node in path)
    return not leaf.children and not leaf.separator and not is_of_any


def below(root: Node) -> Iterator[tuple[Node, ...]]:
    return (path for path in root.walk() if len(path) > 1)


def glob_of(path: Sequence[Node]) -> bytes:
    """Return a glob for a namespace or pattern; it may match other keys, too."""
    parts: list[bytes] = []
    for node in path:
        if node.kind is NodeKind.OTHER:
            return b"".join(parts) + b"*"
        if node.name == MARK and node.kind is NodeKind.LITERAL and len(parts) <= 2:
            parts.append(HEADER + b"??")
            continue
        texts = literals(node.name) if node.kind is NodeKind.PATTERN else [node.name]
        parts.append(b"*".join(map(escape_glob, texts)))
        parts.append(escape_glob(node.separator))
    return b"".join(parts) + (b"*" if path[-1].separator or len(path) == 1 else b"")


def example_keys(path: Sequence[Node]) -> tuple[bytes, ...]:
    found: list[bytes] = []
    for below_it in islice(path[-1].walk(tuple(path[:-1])), MOST_NODES):
        node = below_it[-1]
        if node.kind is NodeKind.LITERAL and not node.separator and not node.children and len(below_it) > 1:
            found.append(raw_name(b"".join(one.name + one.separator for one in below_it)))
        found += node.examples[:1] if node.children or len(below_it) > len(path) else node.examples
    return tuple(found[:MOST_EXAMPLES])


def purpose_text(purpose: str, owner: str) -> SafeText:
    parts = [purpose or "no purpose given", *([f"owner {owner}"] if owner else [])]
    return display_text(" · ".join(parts), limit=_PURPOSE_LIMIT) if purpose or owner else SafeText("")


def scan_line(glob: bytes) -> SafeText:
    text = glob.decode("latin-1")
    option, written = ("--pattern", text) if _PLAIN.fullmatch(text) else ("--quoted-pattern", quoted(glob))
    return SafeText(f"redis-cli --scan {option} {shlex.quote(written)}")


def key_line(command: str, key: bytes) -> SafeText:
    return SafeText(f"redis-cli --quoted-input {command} {shlex.quote(quoted(key))}")


class Amount(Struct, frozen=True):
    """A number of keys or bytes: exact, a lower bound, or an estimate with its 95 % interval."""

    figure: Figure
    at_least: bool = False

    @property
    def mark(self) -> Mark:
        return Mark.AT_LEAST if self.at_least else Mark.EXACT

    @property
    def value(self) -> float:
        return self.figure.value if isinstance(self.figure, Estimate) else self.figure

    @property
    def cell(self) -> Cell:
        return AtLeast(self.figure) if self.at_least and not isinstance(self.figure, Estimate) else self.figure

    def keys(self, noun: str = "key") -> SafeText:
        """Return it as a number of keys: `1 key`, `≥ 1,204 keys`, `≈ 1.20k (1.10–1.30k) keys`."""
        return SafeText(f"{humanize.written_keys(self.figure, self.mark)} {humanize.noun(self.figure, noun)}")

    def size(self) -> SafeText:
        """Return it as bytes: `29.5 KiB`, `≥ 1.00 GiB`."""
        return humanize.written(self.figure, humanize.size, self.mark)


def amount(cell: Cell) -> Amount | None:
    if isinstance(cell, AtLeast):
        return Amount(cell.value, at_least=True)
    return Amount(cell) if isinstance(cell, int | float | Estimate) else None


class Finding(Struct, frozen=True):
    """A rule broken in one place. All texts are safe to show."""

    rule: str
    severity: Severity
    title: SafeText
    """A sentence with its numbers, without a full stop."""
    where: SafeText
    """The namespace, pattern, type or hash tag, or the server."""
    keys: Amount | None
    """None for a finding that is about no keys."""
    memory: Amount | None
    """Bytes of these keys or of its other subject; None if unknown."""
    find_behind: Callable[[], Behind | None]
    find_command: Callable[[], SafeText]
    """Make `behind` and `command`, which take longer than the rest: many findings are only listed."""
    evidence: tuple[SafeText, ...] = ()
    """Examples and numbers, a line each."""
    pattern: str = ""
    """The registered pattern that it is about, as reports have it; empty for anything else."""
    example_keys: tuple[bytes, ...] = ()
    """Some of its keys, or of the keys beside them."""

    @property
    def behind(self) -> Behind | None:
        return self.find_behind()

    @property
    def query(self) -> str:
        behind = self.behind
        return "" if behind is None else str(behind.query)

    @property
    def query_note(self) -> SafeText:
        """Why it may find other keys than were counted, without a full stop; mostly empty."""
        behind = self.behind
        return SafeText("") if behind is None else behind.note

    @property
    def command(self) -> SafeText:
        return self.find_command()

    @property
    def size(self) -> str:
        return "" if self.memory is None else self.memory.size()

    @property
    def declared(self) -> Rule:
        return RULES[self.rule]

    @property
    def explained(self) -> list[tuple[str, str]]:
        """Reason and remedy; of rules about servers, whose thresholds have sources worth a line, also the basis."""
        rule = self.declared
        how = [("note", rule.basis)] if rule.basis and rule.family is Family.SERVER else []
        return [("why", rule.reason), ("do", rule.remedy), *how]


def of_namespace(
    basis: Basis,
    rule: str,
    path: Sequence[Node],
    *,
    title: str,
    keys: Amount,
    memory: Amount | None,
    narrowed: Callable[[Behind], Behind] = lambda behind: behind,
    evidence: Sequence[str] = (),
) -> Finding:
    """Return a finding about keys of a namespace or pattern; `narrowed` narrows the query to these keys."""
    return Finding(
        rule=rule,
        severity=basis.severity(rule),
        title=SafeText(title),
        where=label(path),
        keys=keys,
        memory=memory,
        find_behind=lambda: narrowed(keys_of(path)),
        find_command=lambda: scan_line(glob_of(path)),
        evidence=tuple(map(SafeText, evidence)),
        example_keys=example_keys(path),
    )


def of_server(
    view: HealthView,
    rule: str,
    title: str,
    *,
    command: str,
    where: str = "",
    memory: float | None = None,
    keys: Amount | None = None,
    behind: Behind | None = None,
    evidence: Iterable[str] = (),
    example_keys: tuple[bytes, ...] = (),
    is_worse: bool = False,
) -> Finding:
    """`where` is the node unless given; one that `is_worse` is an error, unless the registry sets the severity."""
    is_error = is_worse and not view.levels.is_set(rule)
    return Finding(
        rule=rule,
        severity=Severity.ERROR if is_error else view.levels.severity(rule),
        title=SafeText(title),
        where=SafeText(f"{view.latest.node} {where}".strip()),
        keys=keys,
        memory=None if memory is None else Amount(round(memory)),
        find_behind=lambda: behind,
        find_command=lambda: SafeText(command),
        evidence=tuple(map(SafeText, evidence)),
        example_keys=example_keys,
    )


def levels_of(report: Report) -> RuleLevels:
    """Return the severities and parameters that a report was made with, of rules known here."""
    severities: dict[str, Severity] = {}
    parameters: dict[str, dict[str, ParameterValue]] = {}
    for name, one in report.summary.rules.items():
        if name in RULES and one.severity in list(Severity):
            severities[name] = Severity(one.severity)
            parameters[name] = {
                parameter: value
                for parameter, value in one.parameters.items()
                if (declared := RULES[name].parameters.get(parameter)) is not None and declared.may_be(value)
            }
    return RuleLevels(severities, parameters)


_UNKNOWN: Final = {
    ColumnState.DENIED: "denied",
    ColumnState.UNSUPPORTED: "not supported by this server",
    ColumnState.NOT_ASKED: "not read",
}
"""The states of columns of which nothing is known, in words."""


@dataclass(frozen=True)
class Basis:
    """The report and the levels that rules go by."""

    report: Report
    levels: RuleLevels
    before: Report | None = None
    references: ReferenceChecks | None = None

    @cached_property
    def cells(self) -> Cells:
        return Cells(self.report)

    @property
    def may_lack(self) -> bool:
        return self.cells.is_partial or self.cells.is_estimate

    @property
    def entries(self) -> Sequence[EntryReport]:
        registry = self.report.summary.registry
        return () if registry is None else registry.entries

    def keys(self, figure: Figure) -> Amount:
        return amount(self.cells.amount(figure)) or Amount(0)

    @property
    def is_of_replicas(self) -> bool:
        """Whether keys were inspected on a replica, which does not know when clients use them."""
        nodes = () if self.report.cluster is None else self.report.cluster.nodes
        return "replica" in (self.report.head.server.role, *(one.role for one in nodes))

    def knows(self, fact: str) -> bool:
        return not self.why_unknown(fact)

    def why_unknown(self, *facts: str) -> str:
        """Return why the first of some facts that is not known of any key is not; empty where all are known."""
        for fact in facts:
            column = self.report.head.columns.get(fact)
            if column is not None and (state := _UNKNOWN.get(column.state)) is not None:
                return f"{humanize.fact_name(fact)} is {state}{f': {column.reason}' if column.reason else ''}"
        return ""

    def severity(self, rule: str) -> Severity:
        return self.levels.severity(rule)

    def number(self, rule: str, name: str) -> float:
        """Return a parameter that is a number: durations in milliseconds, sizes in bytes."""
        return self.levels.number(rule, name)


class Unjudged(Struct, frozen=True):
    """A rule that a report does not suffice for."""

    rule: str
    severity: Severity
    why: SafeText


class Unlisted(Struct, frozen=True):
    """How many more places break a rule than are listed."""

    rule: str
    severity: Severity
    places: int


class Found(Struct, frozen=True):
    """The findings of all rules."""

    findings: tuple[Finding, ...]
    """Most bytes first, then findings with unknown bytes, most keys first."""
    unlisted: tuple[Unlisted, ...]
    unjudged: tuple[Unjudged, ...]
    checked: tuple[str, ...]
    """The rules that have been looked at, including the unjudged ones."""
    notes: tuple[SafeText, ...] = ()
    so_far: SafeText = SafeText("")
    """How a sentence about all of them ends where not every key was seen; empty where they were."""

    @property
    def identities(self) -> tuple[str, ...]:
        """The identity of each finding, also in a later report: its rule and place."""
        seen = Counter[str]()
        names = []
        for one in self.findings:
            name = f"{one.rule} {one.where}"
            seen[name] += 1
            names.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
        return tuple(names)

    @property
    def doubts(self) -> dict[SafeText, list[str]]:
        by_why: dict[SafeText, list[str]] = {}
        for one in self.unjudged:
            by_why.setdefault(one.why, []).append(one.rule)
        return by_why

    @property
    def remarks(self) -> str:
        parts = [f"{humanize.counted(one.places, 'more place')} of {one.rule}" for one in self.unlisted]
        parts += [f"not checked: {', '.join(rules)}, because {why}" for why, rules in self.doubts.items()]
        return "; ".join([*parts, *self.notes])

    @property
    def judged(self) -> tuple[str, ...]:
        doubtful = {one.rule for one in self.unjudged}
        return tuple(rule for rule in self.checked if rule not in doubtful)

    def with_servers(self, servers: Sequence[Found]) -> Found:
        """Return the findings of keys with those of servers, errors first; a rule is judged where every server is."""
        findings = sorted(
            (one for found in (*servers, self) for one in found.findings),
            key=lambda one: one.severity is not Severity.ERROR,
        )
        unjudged = {one.rule: one for found in servers for one in found.unjudged}
        return structs.replace(
            self,
            findings=tuple(findings),
            unjudged=(*self.unjudged, *unjudged.values()),
            checked=tuple(dict.fromkeys((*self.checked, *(rule for found in servers for rule in found.checked)))),
        )

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if reaches(one.severity, severity))


def severe_and_unjudged(found: Sequence[Found], least: Severity) -> tuple[bool, list[str]]:
    """Return whether any finding is at least this severe, and the rules of such severity that were not judged."""
    unjudged = dict.fromkeys(one.rule for each in found for one in each.unjudged if reaches(one.severity, least))
    return any(each.at_least(least) for each in found), list(unjudged)


def reaches(severity: Severity, least: Severity) -> bool:
    order = list(Severity)
    return order.index(severity) >= order.index(least)


B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Finder(Generic[B]):
    """Looks for places that break a rule."""

    rule: str
    look: Callable[[B], Iterable[Finding]]
    doubt: Callable[[B], str] = lambda _basis: ""
    """Why the rule can't be judged, or not in full, without a full stop; empty where it can."""
    applies: Callable[[B], bool] = lambda _basis: True
    """Whether the rule has a subject, such as replicas; without one it is not looked at."""
    part: str = ""
    """The part of a report that the rule goes by, if that may be missing."""
    lacks: str = ""
    """Why nothing can be said where it does not apply; empty where there is nothing to say."""
    word: str = ""
    """The trouble of a server for a title: `fragmented`."""
    source: Source | None = None
    """The source of the figures of a rule about servers."""
    needs_more: bool = False
    """Whether it takes samples over time, settings or a report, without which a server may break it unseen."""


def judge(
    finders: Iterable[Finder[B]], basis: B, levels: RuleLevels, *, in_doubt: bool, most_places: int | None = None
) -> Found:
    """With `in_doubt` doubtful rules are looked at, too; of each the `most_places` most costly findings are listed."""
    findings: list[Finding] = []
    unlisted, unjudged, checked = [], [], []
    for finder in finders:
        severity = levels.severity(finder.rule)
        if severity is Severity.OFF or not finder.applies(basis):
            continue
        checked.append(finder.rule)
        if doubt := finder.doubt(basis):
            unjudged.append(Unjudged(finder.rule, severity, SafeText(doubt)))
            if not in_doubt:
                continue
        found = list(finder.look(basis))
        if most_places is not None and len(found) > most_places:
            unlisted.append(Unlisted(finder.rule, severity, len(found) - most_places))
            found = nsmallest(most_places, found, key=cost)
        findings += found
    return Found(tuple(findings), tuple(unlisted), tuple(unjudged), tuple(checked))


def cost(one: Finding) -> tuple[bool, float, float]:
    """Return the sort key of a finding: most bytes first, then without bytes, most keys first."""
    return one.memory is None, -(one.memory.value if one.memory else 0), -(one.keys.value if one.keys else 0)


def server_rule(
    rule: str,
    look: Callable[[HealthView], Iterable[Finding]],
    word: str,
    fields: tuple[str, ...] = (),
    source: Source | None = None,
    *,
    applies: Callable[[HealthView], bool] = lambda _view: True,
    needs_more: bool = False,
) -> Finder[HealthView]:
    """Return the finder of a rule about servers that can't be judged without these fields of INFO, and their source."""

    def doubt(view: HealthView) -> str:
        lacking = [name for name in fields if name not in view.latest.info]
        if source is None or (not lacking and source not in view.latest.missing):
            return ""
        what = f"{lacking[0]}:" if lacking else f"{source} is"
        return f"{what} {cell_reason(view.unknown(source, *lacking))}"

    return Finder(rule, look, doubt, applies, word=word, source=source, needs_more=needs_more)
