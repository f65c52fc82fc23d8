"""All rules that need a report alone, and what they find in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from typing import Final

from rtui.analysis.findings.encodings import (
    AS_HASH,
    NULL,
    OVER,
    has_limited_types,
    knows_string_lengths,
    lengths_over,
    strings_as_hash,
    tiny_border,
    tiny_strings,
    types_without_lengths,
)
from rtui.analysis.findings.expiring import (
    CLIFF,
    LOCK_LONG,
    LOCK_WITHOUT_TTL,
    MIXED,
    cliffs,
    locks_without_ttl,
    long_locks,
    mixed,
)
from rtui.analysis.findings.finding import Basis, Draft, Finding, Found, Unjudged, Unlisted, levels_of
from rtui.analysis.findings.keys import (
    BIG,
    DANGLING,
    GROWING,
    HOT,
    IDLE,
    TWIN,
    big_keys,
    dangling,
    expiring_hot_keys,
    growing_queues,
    idle_border,
    idle_keys,
    knows_hot_keys,
    twins,
)
from rtui.analysis.findings.names import (
    CROSS,
    DEPRECATED,
    EXPECTATIONS,
    JAVA,
    NAMES,
    SKEW,
    UNREGISTERED,
    UNUSED,
    broken,
    deprecated,
    facts_missing,
    has_java_names,
    is_cluster,
    is_expected,
    java_names,
    names,
    patterns_unseen,
    scattered,
    skewed_tags,
    unregistered,
    unused,
)
from rtui.analysis.humanize import fact_name, seconds
from rtui.analysis.report.document import ColumnState, Report
from rtui.analysis.report.members import IDLE_EDGES_S, TTL_EDGES_S, ReferenceChecks
from rtui.analysis.report.tables.cells import so_far
from rtui.keyspace.text.display import SafeText, display
from rtui.registry.rules import RuleLevels, Severity


@dataclass(frozen=True, slots=True)
class Finder:
    """What looks for the violations of one rule."""

    rule: str
    look: Callable[[Basis], Iterator[Draft]]
    part: str = ""
    """The part of the report that it goes by, if that may be missing: such a rule is not looked at then."""
    facts: tuple[str, ...] = ()
    """What has to be known of keys, by the names of columns."""
    applies: Callable[[Basis], bool] = lambda _basis: True
    """Whether there is what it is about; such a rule is not looked at elsewhere."""
    lacks: str = ""
    """Why nothing can be said elsewhere; empty where there is nothing to say, as of slots without a cluster."""
    follows_references: bool = False
    """Whether it looks at what following references has found, not at the report."""


def _facts_of(rule: str) -> tuple[str, ...]:
    """Return the fact that an expectation is about."""
    return ({"type": "type", "ttl": "ttl", "size": "memory", "length": "length"}[rule.partition("-")[0]],)


NO_EARLIER: Final = "there is no earlier report to compare with (--since)"
NO_COUNTERS: Final = "the server counts no accesses (an LFU policy or HOTKEYS)"

FINDERS: Final = (
    Finder(CLIFF, cliffs, facts=("ttl",)),
    Finder(MIXED, mixed, facts=("ttl",)),
    Finder(LOCK_WITHOUT_TTL, locks_without_ttl, facts=("ttl",)),
    Finder(LOCK_LONG, long_locks, facts=("ttl",)),
    Finder(BIG, big_keys, facts=("type",)),
    Finder(SKEW, skewed_tags),
    Finder(CROSS, scattered, applies=is_cluster),
    Finder(JAVA, java_names, applies=has_java_names),
    Finder(
        GROWING,
        growing_queues,
        facts=("type", "length"),
        applies=lambda basis: basis.before is not None,
        lacks=NO_EARLIER,
    ),
    Finder(NULL, tiny_strings, facts=("type", "ttl", "length")),
    Finder(AS_HASH, strings_as_hash, facts=("type", "ttl", "memory", "length")),
    Finder(OVER, lengths_over, facts=("type", "encoding", "length"), applies=has_limited_types),
    Finder(
        HOT,
        expiring_hot_keys,
        facts=("ttl",),
        applies=knows_hot_keys,
        lacks=NO_COUNTERS,
    ),
    Finder(IDLE, idle_keys, facts=("idle",)),
    *(Finder(rule, partial(broken, rule), "registry", _facts_of(rule)) for rule in EXPECTATIONS),
    Finder(UNREGISTERED, unregistered, "registry"),
    Finder(UNUSED, unused, "registry"),
    Finder(DEPRECATED, deprecated, "registry"),
    *(Finder(rule, partial(names, rule), "naming") for rule in NAMES),
    Finder(DANGLING, dangling, follows_references=True),
    Finder(TWIN, twins, follows_references=True),
)
"""All of them."""

MOST_PLACES: Final = 20
"""Findings of one rule that are listed, the most costly ones."""

RULE_WAS_OFF: Final = "the report was made with a registry in which the rule is off"


def findings(
    report: Report,
    levels: RuleLevels | None = None,
    before: Report | None = None,
    references: ReferenceChecks | None = None,
    *,
    most_places: int | None = MOST_PLACES,
) -> Found:
    """Return what the rules that are not off find in a report, and which of them it does not suffice for.

    `before` is an earlier report of the same keyspace, for rules about what has changed; `references` is what following
    the references of the registry has found. Without levels they are those that the report was made with. Of each rule
    the `most_places` most costly are listed, None for all.
    """
    basis = Basis(report, levels_of(report) if levels is None else levels, before, references)
    found: list[Finding] = []
    unlisted: list[Unlisted] = []
    unjudged: list[Unjudged] = []
    checked = [finder for finder in FINDERS if _is_looked_at(finder, basis)]
    for finder in checked:
        severity = basis.severity(finder.rule)
        doubt = _doubt(finder, basis)
        if doubt:
            unjudged.append(Unjudged(finder.rule, severity, doubt))
        drafts = list(finder.look(basis))
        if most_places is not None and len(drafts) > most_places:
            unlisted.append(Unlisted(finder.rule, severity, len(drafts) - most_places))
            drafts = nsmallest(most_places, drafts, key=_cost)
        found += [draft.make() for draft in drafts]
    found.sort(key=_cost)
    return Found(
        tuple(found),
        tuple(unlisted),
        tuple(unjudged),
        tuple(finder.rule for finder in checked),
        notes=tuple(_notes(checked, basis)),
        so_far=SafeText(so_far(report.head.coverage)),
    )


def looked_at(report: Report, levels: RuleLevels | None = None) -> frozenset[str]:
    """Return the rules that a report alone has what they are about of, without those that are off."""
    basis = Basis(report, levels_of(report) if levels is None else levels)
    return frozenset(finder.rule for finder in FINDERS if _is_looked_at(finder, basis))


def _is_looked_at(finder: Finder, basis: Basis) -> bool:
    """Whether a rule is not off, and the report has what it is about."""
    has_part = not finder.part or getattr(basis.report.summary, finder.part) is not None
    if finder.follows_references and basis.references is None:
        return False
    return has_part and finder.applies(basis) and basis.severity(finder.rule) is not Severity.OFF


def _doubt(finder: Finder, basis: Basis) -> SafeText:
    """Return why a report does not suffice for a rule, without a full stop; empty where it does."""
    if finder.rule in EXPECTATIONS and not is_expected(finder.rule, basis):
        return SafeText("")
    for fact in finder.facts:
        if not basis.knows(fact):
            return _why_unknown(fact, basis)
    if "idle" in finder.facts and basis.is_of_replicas:
        return SafeText("replicas were asked, which do not know what clients read on the primary")
    special = _DOUBTS.get(finder.rule)
    if special is not None and (why := special(basis)):
        return SafeText(why)
    return _lengths_missing(finder.rule, basis) or _border_missing(finder.rule, basis)


def _why_unknown(fact: str, basis: Basis) -> SafeText:
    """Return why a fact is not known of any key."""
    column = basis.report.head.columns[fact]
    reason = f": {column.reason}" if column.reason else ""
    return SafeText(f"{fact_name(fact)} is {_STATES.get(column.state, column.state)}{reason}")


def _sizes_unknown(basis: Basis) -> str:
    """Return why nothing is known of how large keys are; one of memory and length suffices."""
    return "" if basis.knows("memory") or basis.knows("length") else _why_unknown("memory", basis)


def _notes(checked: Sequence[Finder], basis: Basis) -> Iterator[SafeText]:
    """Yield what rules go by that go by less than they might."""
    for known, other in (("memory", "length"), ("length", "memory")):
        if any(one.rule == BIG for one in checked) and basis.knows(known) and not basis.knows(other):
            yield SafeText(f"{BIG} goes by {known}: {_why_unknown(other, basis)}")


def _references_left(basis: Basis) -> str:
    failure = "" if basis.references is None else basis.references.failure
    return f"not all references were followed: {failure}" if failure else ""


def _shares_unknown(basis: Basis) -> str:
    is_filtered = basis.report.head.scope.is_filtered
    return "--match or --type leaves keys out, and the rule is about shares of all keys" if is_filtered else ""


def _name_rule_off(rule: str, basis: Basis) -> str:
    naming = basis.report.summary.naming
    return "" if naming is None or any(one.rule == rule for one in naming.rules) else RULE_WAS_OFF


_DOUBTS: Final[dict[str, Callable[[Basis], str]]] = {
    BIG: _sizes_unknown,
    DANGLING: _references_left,
    TWIN: _references_left,
    SKEW: _shares_unknown,
    UNUSED: patterns_unseen,
    **{rule: partial(facts_missing, rule) for rule in EXPECTATIONS},
    **{rule: partial(_name_rule_off, rule) for rule in NAMES},
}
"""By rule, why a report does not suffice although it has the facts that the rule goes by; empty where it does."""


def _lengths_missing(rule: str, basis: Basis) -> SafeText:
    """Return which lengths a rule goes by that the report does not have."""
    if rule in (NULL, AS_HASH) and not knows_string_lengths(basis):
        return SafeText("the report does not have lengths by pattern, as those of older versions")
    if rule == OVER and (kinds := types_without_lengths(basis)):
        return SafeText(
            f"the report does not have lengths of type {', '.join(display(one, limit=40) for one in kinds)}"
        )
    return SafeText("")


def _border_missing(rule: str, basis: Basis) -> SafeText:
    """Return up to where the report tells times apart, if a parameter of the rule is beyond."""
    if rule == IDLE and idle_border(basis) is None:
        return SafeText(f"reports tell idle times up to {seconds(IDLE_EDGES_S[-1])} apart; set days to less")
    if rule == NULL and tiny_border(basis.number(NULL, "left")) is None:
        return SafeText(f"reports tell times to live up to {seconds(TTL_EDGES_S[-1])} apart; set left to less")
    if rule == LOCK_LONG and basis.number(LOCK_LONG, "longest") > TTL_EDGES_S[-1] * 1000:
        return SafeText(f"reports tell times to live up to {seconds(TTL_EDGES_S[-1])} apart; set longest to less")
    return SafeText("")


_STATES: Final = {
    ColumnState.DENIED: "denied",
    ColumnState.UNSUPPORTED: "not known to this server",
    ColumnState.NOT_ASKED: "not asked",
}


def _cost(one: Finding | Draft) -> tuple[bool, float, float]:
    """Return what findings are sorted by: most bytes first, then without bytes, most keys first."""
    return one.memory is None, -(one.memory.value if one.memory else 0), -(one.keys.value if one.keys else 0)
