"""Rules about names: registered patterns and their expectations, hash tags, names that Java has serialised.

A report has the figures of a registry where it was made with one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.findings.finding import (
    Amount,
    Basis,
    Finding,
    amount,
    below,
    example_keys,
    glob_of,
    least,
    most,
    of_namespace,
    purpose_text,
    scan_line,
)
from rtui.analysis.findings.keys import total
from rtui.analysis.query.behind import Behind, label, step_of, tag_keys, without_ttl
from rtui.analysis.query.patterns import pattern_text
from rtui.analysis.query.query import Term, one_of, query_of
from rtui.analysis.query.terms import NumberKeyword
from rtui.analysis.report.document import Node, NodeKind, SlotTag
from rtui.analysis.report.members import EntryReport, Figure, LongName, NamePlace, NameRuleReport, UnregisteredReport
from rtui.keyspace.text.display import SafeText, display, display_text, quoted
from rtui.keyspace.text.glob import GlobMatcher, escape_glob
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.text.segments import MARK
from rtui.registry.expectations import read_length, read_size, read_ttl
from rtui.registry.patterns import Literal, PatternError, read_pattern
from rtui.registry.rules import RULES, Family

JAVA: Final = "name-java-serialised"


def java_namespaces(basis: Basis) -> list[Node]:
    """Return the namespaces of names that Java has serialised: one for each separator that may end their mark."""
    top = basis.report.summary.root.children
    return [node for node in top if node.name == MARK and node.kind is NodeKind.LITERAL]


def java_names(basis: Basis) -> Iterator[Finding]:
    for node in java_namespaces(basis):
        path, memory = (basis.report.summary.root, node), amount(basis.cells.memory(node.stats))
        keys = basis.keys(node.stats.keys)
        title = f"{keys.keys()} have a Java-serialised name: JdkSerializationRedisSerializer wrote it"
        evidence = [f"example: {quoted(key)}" for key in example_keys(path)[:1]]
        yield of_namespace(basis, JAVA, path, title=title, keys=keys, memory=memory, evidence=evidence)


SKEW: Final = "tag-skew"
CROSS: Final = "cross-slot"


def shares_unknown(basis: Basis) -> str:
    is_filtered = basis.report.head.scope.is_filtered
    return "--match or --type excludes keys, and the rule needs shares of all keys" if is_filtered else ""


def skewed_tags(basis: Basis) -> Iterator[Finding]:
    """Only known figures are compared; in an estimate the tag's lower bound with the upper bound of the total."""
    share = basis.number(SKEW, "share")
    whole = basis.report.summary.root.stats
    for tag in basis.report.summary.slots.tags:
        portions = _portion(tag.keys, whole.keys), _portion(tag.memory_bytes, whole.memory_bytes)
        if max(portions) >= share and least(tag.keys) > 1:
            keys = amount(basis.cells.part(tag.keys, not tag.at_least)) or Amount(0)
            memory = amount(basis.cells.part(tag.memory_bytes, not tag.at_least))
            yield _skewed(basis, tag, portions, keys, memory)


def _skewed(basis: Basis, tag: SlotTag, portions: tuple[float, float], keys: Amount, memory: Amount | None) -> Finding:
    portion, of_what = (portions[0], "keys") if portions[0] >= portions[1] else (portions[1], "bytes")
    shown = display(b"{%s}" % tag.tag, limit=80)
    cluster = basis.report.cluster
    owner = None if cluster is None else cluster.owner_of(tag.slot)
    slot = f"slot {tag.slot}" if owner is None else f"slot {tag.slot} of {owner.label}"
    whole = f"the {of_what} seen" if basis.cells.is_partial else f"all {of_what}"
    title = f"Hash tag {shown} puts {keys.keys()} on {slot}, {humanize.share(portion)} of {whole}"
    return Finding(
        rule=SKEW,
        severity=basis.severity(SKEW),
        title=SafeText(title),
        where=SafeText(f"slot {tag.slot}"),
        keys=keys,
        memory=memory,
        find_behind=lambda: tag_keys(tag),
        find_command=lambda: scan_line(b"*{%s}*" % escape_glob(tag.tag)),
    )


def _portion(part: Figure | None, whole: Figure | None) -> float:
    """Return which share a number is of another at least; 0 where one is not known."""
    at_most = 0 if whole is None else most(whole)
    return min(1.0, least(part) / at_most) if at_most else 0.0


def is_cluster(basis: Basis) -> bool:
    """Whether commands on several keys need them in one slot."""
    return basis.report.head.server.cluster_enabled


def scattered(basis: Basis) -> Iterator[Finding]:
    """Find things, such as `user:<id>:`, of which several keys are kept without a hash tag in a cluster."""
    for path in below(basis.report.summary.root):
        node = path[-1]
        is_thing = node.kind is NodeKind.PATTERN and not node.is_of_names and bool(node.separator)
        parts = [one for one in node.children if one.kind is NodeKind.LITERAL and not one.children]
        if is_thing and len(parts) > 1 and not any(map(_has_brace, (*parts, *path))):
            keys = basis.keys(node.stats.keys)
            memory = amount(basis.cells.memory(node.stats))
            names = " and ".join(display(one.name, limit=30) for one in parts[:2])
            title = f"{keys.keys()} of {label(path)} have no hash tag: {names} of one thing lie in different slots"
            yield of_namespace(basis, CROSS, path, title=title, keys=keys, memory=memory)


def _has_brace(node: Node) -> bool:
    return b"{" in node.name


EXPECTATIONS: Final = tuple(rule.id for rule in RULES.values() if rule.family is Family.EXPECTATIONS)

OF_NAMESPACES: Final = frozenset({"tag-skew", "name-java-serialised"})
"""Rules about names that are broken by many together, whatever a registry says."""

NAMES: Final = tuple(rule.id for rule in RULES.values() if rule.family is Family.NAMES and rule.id not in OF_NAMESPACES)
UNREGISTERED: Final = "key-unregistered"
UNUSED: Final = "pattern-unused"
DEPRECATED: Final = "pattern-deprecated"
RULE_WAS_OFF: Final = "the report was made with a registry that turns the rule off"
MOST_EXAMPLES: Final = 3
_NAME_LIMIT: Final = 120

_BREAK: Final = {
    "type-wrong": "{keys} of {where} {are} not of type {expected}",
    "ttl-missing": "{keys} of {where} {have} no TTL (expected: {expected})",
    "ttl-too-long": "{keys} of {where} {have} a longer TTL than expected ({expected})",
    "ttl-too-short": "{keys} of {where} {have} a shorter TTL than expected ({expected})",
    "ttl-unexpected": "{keys} of {where} {have} a TTL (expected: none)",
    "size-out-of-range": "{keys} of {where} {are} out of the expected memory range ({expected})",
    "length-out-of-range": "{keys} of {where} {are} out of the expected length range ({expected})",
}

_FACTS: Final = {"type": "type", "ttl": "ttl", "size": "memory", "length": "length"}
_SPECIAL: Final = re.compile(rb"[*?\[\\]")

_WITH: Final = {
    "name-whitespace": b"*[ \t\n\r\v\f]*",
    "name-quotes": b"*[\"'`]*",
    "name-control": b"*[^ -~]*",
    "name-encoding": b"*[\x80-\xff]*",
    "tag-empty": b"*{}*",
}
"""Globs for names that break a rule, and maybe for others, by rule."""

_MOST_EXCLUDED: Final = 8
_OF_ONE_BYTE: Final = b"*["
"""How a glob begins that names match by a single byte, wherever it is."""

_REST_NOTE: Final = SafeText("the report does not tell which keys are registered, so other keys match, too")
GLOB_NOTE: Final = SafeText("all keys of the pattern match, and others with similar names")


def broken(rule: str, basis: Basis) -> Iterator[Finding]:
    for entry in basis.entries:
        for one in entry.expectations:
            if one.rule == rule and one.keys is not None and as_estimate(one.keys).value > 0:
                is_whole = one.known_keys >= entry.inspected_keys
                keys = amount(basis.cells.part(one.keys, is_whole)) or Amount(0)
                memory = amount(basis.cells.part(one.memory_bytes, is_whole))
                are, have = ("is", "has") if keys.figure == 1 else ("are", "have")
                title = _BREAK[rule].format(
                    keys=keys.keys(), where=entry.pattern, expected=one.expected, are=are, have=have
                )
                examples = list(_examples(one.examples, one.long_names))
                yield _of_pattern(
                    basis, rule, entry, title, keys=keys, memory=memory, examples=examples, expected=one.expected
                )


def _of_pattern(
    basis: Basis,
    rule: str,
    entry: EntryReport,
    title: str,
    *,
    keys: Amount,
    memory: Amount | None,
    examples: Sequence[SafeText],
    expected: str = "",
) -> Finding:
    evidence = [*examples]
    if text := purpose_text(entry.purpose, entry.owner):
        evidence.append(text)
    return Finding(
        rule=rule,
        severity=basis.severity(rule),
        title=display_text(title, limit=400),
        where=display_text(entry.pattern, limit=_NAME_LIMIT),
        keys=keys,
        memory=memory,
        find_behind=lambda: _keys_of(entry.pattern, rule, expected),
        find_command=lambda: scan_line(glob_of_pattern(entry.pattern)),
        evidence=tuple(evidence),
        pattern=entry.pattern,
    )


def _examples(keys: Sequence[bytes], long_names: Sequence[LongName] = ()) -> Iterator[SafeText]:
    """Yield a line that names some keys: whole, or where they are too long by their beginning and length."""
    texts = [str(display(key, limit=_NAME_LIMIT) or "(empty name)") for key in keys]
    texts += [f"{display(one.beginning)}… ({one.length:,} bytes)" for one in long_names]
    if texts:
        yield SafeText(f"such as {', '.join(texts[:MOST_EXAMPLES])}")


def _keys_of(pattern: str, rule: str, expected: str) -> Behind:
    of = Behind(query_of(one_of("glob", [glob_of_pattern(pattern)])), GLOB_NOTE)
    if rule == "type-wrong":
        return of.with_terms(one_of("type", expected.encode().split(b" or "), is_negated=True))
    if rule in ("ttl-unexpected", "ttl-too-short"):
        return of.with_terms(one_of("ttl", [NumberKeyword.NONE], is_negated=True))
    if rule == "ttl-missing":
        return without_ttl(of)
    try:
        return of.with_terms(_beyond(rule, expected))
    except ValueError:
        return of


def _beyond(rule: str, expected: str) -> Term | None:
    """Return the term for facts above or below an expectation; None for another rule. Raises ValueError."""
    if rule == "ttl-too-long":
        high_ms = read_ttl(expected).high_ms
        return None if high_ms is None else one_of("ttl", [Bounds(high_ms + 1)])
    if rule not in ("size-out-of-range", "length-out-of-range"):
        return None
    term, bounds = ("size", read_size(expected)) if rule == "size-out-of-range" else ("len", read_length(expected))
    if bounds.low is None or bounds.high is None:
        low = None if bounds.high is None else bounds.high + 1
        return one_of(term, [Bounds(low, None if bounds.low is None else bounds.low - 1)])
    return one_of(term, [bounds], is_negated=True)


@lru_cache(maxsize=256)
def glob_of_pattern(pattern: str) -> bytes:
    """Return a glob for all keys of a registered pattern; it matches others, too."""
    try:
        segments = read_pattern(pattern, {}, ()).segments
    except PatternError:
        return b"*"
    parts = [part for segment in segments for part in segment.parts]
    return b"".join(escape_glob(part.text) if isinstance(part, Literal) else b"*" for part in parts)


def deprecated(basis: Basis) -> Iterator[Finding]:
    for entry in basis.entries:
        if entry.deprecated and entry.inspected_keys:
            is_whole = isinstance(entry.memory_bytes, Estimate) or entry.memory_known_keys >= entry.inspected_keys
            keys, memory = basis.keys(entry.keys), amount(basis.cells.part(entry.memory_bytes, is_whole))
            title = f"{keys.keys()} of {entry.pattern}, which is deprecated: {entry.deprecated}"
            examples = list(_examples(entry.examples))
            yield _of_pattern(basis, DEPRECATED, entry, title, keys=keys, memory=memory, examples=examples)


def unused(basis: Basis) -> Iterator[Finding]:
    for entry in _without_keys(basis):
        if not _why_unseen(basis, entry):
            title = f"No key has the pattern {entry.pattern}"
            yield _of_pattern(basis, UNUSED, entry, title, keys=Amount(0), memory=None, examples=())


def _without_keys(basis: Basis) -> Iterator[EntryReport]:
    """Patterns to be retired should have no keys, and of an included registry not everything is used."""
    for entry in basis.entries:
        if not (entry.inspected_keys or entry.deprecated or entry.origin):
            yield entry


def _why_unseen(basis: Basis, entry: EntryReport) -> str:
    """Return why the report may lack keys of a pattern, as a phrase; empty if it has all of them."""
    if basis.may_lack:
        return "not every key was seen"
    scope, of_pattern = basis.report.head.scope, glob_of_pattern(entry.pattern)
    if scope.key_type is not None:
        return "--type excludes keys"
    if scope.match is None or scope.match == of_pattern:
        return ""
    beginning, star = scope.match[:-1], scope.match[-1:]
    is_plain = star == b"*" and not _SPECIAL.search(beginning)
    return "" if is_plain and of_pattern.startswith(beginning) else "--match excludes keys"


def patterns_unseen(basis: Basis) -> str:
    return next((why for entry in _without_keys(basis) if (why := _why_unseen(basis, entry))), "")


def expected_unknown(rule: str, basis: Basis) -> str:
    fact = _FACTS[rule.partition("-")[0]]
    expected = [(entry, one) for entry in basis.entries for one in entry.expectations if one.rule == rule]
    if not expected:
        return ""
    lacking = [
        display_text(entry.pattern, limit=_NAME_LIMIT)
        for entry, one in expected
        if one.known_keys < entry.inspected_keys and not isinstance(one.keys, Estimate)
    ]
    more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
    why = f"{humanize.fact_name(fact)} is not known of every key of {lacking[0]}{more}" if lacking else ""
    return basis.why_unknown(fact) or why


def unregistered(basis: Basis) -> Iterator[Finding]:
    found = basis.report.summary.registry
    fewest, listed = basis.number(UNREGISTERED, "keys"), [] if found is None else list(found.unregistered)
    single = [one for one in listed if one.place and least(one.keys) >= fewest]
    others = [one for one in listed if not one.place or least(one.keys) < fewest]
    if len(others) == 1 and others[0].place:
        single, others = [*single, *others], []
    for one in single:
        keys = basis.keys(one.keys)
        memory = amount(basis.cells.amount(one.memory_bytes, "memory"))
        (path,) = _paths(basis, [one])
        name = display(one.namespace, limit=_NAME_LIMIT) or "no namespace"
        has = "has" if keys.figure == 1 else "have"
        title = f"{keys.keys()} of {name} {has} no registered pattern"
        evidence = list(_examples(one.examples))
        yield of_namespace(basis, UNREGISTERED, path, title=title, keys=keys, memory=memory, evidence=evidence)
    if others:
        keys = basis.keys(total([one.keys for one in others]))
        sizes = [one.memory_bytes for one in others if one.memory_bytes is not None]
        memory = amount(basis.cells.part(total(sizes), len(sizes) == len(others))) if sizes else None
        yield _small_unregistered(basis, others, keys, memory)


def _paths(basis: Basis, wanted: Sequence[UnregisteredReport]) -> list[tuple[Node, ...]]:
    places = {one.place for one in wanted if one.place}
    return [path for place, path in enumerate(basis.report.summary.root.walk()) if place in places]


def _small_unregistered(
    basis: Basis, found: Sequence[UnregisteredReport], keys: Amount, memory: Amount | None
) -> Finding:
    paths = _paths(basis, found)
    of = f" of {humanize.counted(len(paths), 'name pattern')}" if paths else ""
    has = "has" if keys.figure == 1 else "have"
    evidence = list(_examples([one.examples[0] for one in found if one.examples]))
    rest = [one for one in found if not one.place]
    if rest and paths:
        evidence.append(SafeText(f"among them {humanize.keys(round(least(rest[0].keys)))} without a listed pattern"))
    evidence += [line for one in rest for line in _examples((), one.long_names)]
    behind = Behind(
        query_of(one_of("pattern", [pattern_text([step_of(node) for node in path[1:]]) for path in paths])),
        _REST_NOTE if rest or any(isinstance(one.keys, Estimate) for one in found) else SafeText(""),
    )
    glob = glob_of(paths[0]) if len(paths) == 1 else b"*"
    return Finding(
        rule=UNREGISTERED,
        severity=basis.severity(UNREGISTERED),
        title=SafeText(f"{keys.keys()}{of} {has} no registered pattern"),
        where=SafeText(f"name patterns of fewer than {basis.number(UNREGISTERED, 'keys'):,.0f} keys"),
        keys=keys,
        memory=memory,
        find_behind=lambda: behind,
        find_command=lambda: scan_line(glob),
        evidence=tuple(evidence),
        example_keys=tuple(one.examples[0] for one in found if one.examples),
    )


def against(rule: str, basis: Basis) -> Iterator[Finding]:
    found = basis.report.summary.naming
    for one in () if found is None else found.rules:
        if one.rule != rule:
            continue
        for place in one.places:
            keys = basis.keys(place.keys)
            memory = amount(basis.cells.amount(place.memory_bytes, "memory"))
            yield _named(basis, one, place, keys, memory)


def _named(basis: Basis, one: NameRuleReport, place: NamePlace, keys: Amount, memory: Amount | None) -> Finding:
    shown = display_text(place.pattern, limit=_NAME_LIMIT) or display(place.namespace, limit=_NAME_LIMIT)
    where, breaks = shown or SafeText("no namespace"), RULES[one.rule].title
    breaks = breaks if breaks[1:2].isupper() else f"{breaks[0].lower()}{breaks[1:]}"  # `UTF-8` keeps its capitals
    glob = glob_of_pattern(place.pattern) if place.pattern else escape_glob(place.namespace) + b"*"
    against = _against(one.rule, place)
    if against is not None and not place.pattern and (against.startswith(_OF_ONE_BYTE) or not place.namespace):
        is_told = GlobMatcher(against)(place.namespace)
        glob, against = glob if is_told else escape_glob(place.namespace) + against, None
    elsewhere = () if place.pattern or place.namespace else tuple(at.namespace for at in one.places if at.namespace)
    query = query_of(
        one_of("glob", [glob]),
        None if against is None else one_of("glob", [against]),
        one_of("in", elsewhere[:_MOST_EXCLUDED], is_negated=True),
    )
    return Finding(
        rule=one.rule,
        severity=basis.severity(one.rule),
        title=SafeText(f"{keys.keys()} of {where} break naming rules: {breaks}"),
        where=where,
        keys=keys,
        memory=memory,
        find_behind=lambda: Behind(query, GLOB_NOTE),
        find_command=lambda: scan_line(glob),
        evidence=tuple(_examples(place.examples, place.long_names)),
        pattern=place.pattern,
    )


def _against(rule: str, place: NamePlace) -> bytes | None:
    """Return the glob for names that break a rule, where one can tell and tells so of all examples."""
    glob = _WITH.get(rule)
    return glob if glob is not None and place.examples and all(map(GlobMatcher(glob), place.examples)) else None


def name_rule_off(rule: str, basis: Basis) -> str:
    naming = basis.report.summary.naming
    return "" if naming is None or any(one.rule == rule for one in naming.rules) else RULE_WAS_OFF
