"""Rules about references: what points to a key that is gone, and copies of an index that disagree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Amount, Basis, Draft, Finding
from rtui.analysis.findings.places import scan_line
from rtui.analysis.query.behind import Behind
from rtui.analysis.query.query import one_of, query_of
from rtui.analysis.report.references import CheckedReference
from rtui.analysis.report.registered import TEXT_LIMIT
from rtui.keyspace.text.display import SafeText, display, display_text

DANGLING: Final = "reference-dangling"
TWIN: Final = "reference-twin"

ALL_NOTE: Final = SafeText("all keys of the pattern are found, and maybe others: no query follows references")


def dangling(basis: Basis) -> Iterator[Draft]:
    """Find patterns of which keys point to keys that are gone."""
    for one in () if basis.references is None else basis.references.dangling:
        keys = Amount(one.broken, at_least=_may_be_more(basis, one))
        yield Draft(keys, None, partial(_dangling, basis, one, keys))


def twins(basis: Basis) -> Iterator[Draft]:
    """Find patterns of which keys don't hold the same as their copy."""
    for one in () if basis.references is None else basis.references.unlike:
        keys = Amount(one.broken, at_least=_may_be_more(basis, one))
        yield Draft(keys, None, partial(_unlike, basis, one, keys))


def _may_be_more(basis: Basis, one: CheckedReference) -> bool:
    """Whether there may be more than were found, beyond what the interval of a sample says."""
    is_listed = basis.references is not None and basis.references.is_complete
    return not is_listed or bool(one.skipped or one.unknown)


def _dangling(basis: Basis, one: CheckedReference, keys: Amount) -> Finding:
    pattern, target = display_text(one.pattern, limit=120), display_text(one.target, limit=120)
    verb = "points" if keys.figure == 1 else "point"
    title = f"{keys.keys()} of {pattern} {verb} to a key that is gone: {display_text(one.source, limit=80)} → {target}"
    examples = [f"{display(key, limit=80)} → {display(missing, limit=80)}" for key, missing in one.examples]
    return _finding(basis, DANGLING, one, keys, title, _looked_at(one, "leads to no key", "lead to no key"), *examples)


def _unlike(basis: Basis, one: CheckedReference, keys: Amount) -> Finding:
    pattern, target = display_text(one.pattern, limit=120), display_text(one.target, limit=120)
    verb = "doesn't" if keys.figure == 1 else "don't"
    title = f"{keys.keys()} of {pattern} {verb} hold the same as {target}"
    examples = [f"{display(key, limit=80)}: {display(value, limit=80)} is in one only" for key, value in one.examples]
    return _finding(
        basis, TWIN, one, keys, title, _looked_at(one, "is in one copy only", "are in one copy only"), *examples
    )


def _looked_at(one: CheckedReference, what: str, plural: str) -> str:
    """Return what the figures rest on."""
    of = f"of {humanize.keys(one.looked_at)} looked at"
    if one.is_sample:
        of = f"{of}, chosen at random among {humanize.count(one.matching)}"
    parts = [f"{humanize.counted(one.broken_values, 'value')} {what if one.broken_values == 1 else plural}, {of}"]
    if one.unknown:
        parts.append(f"{humanize.counted(one.unknown, 'value')} could not be followed")
    if one.skipped:
        parts.append(f"{humanize.keys(one.skipped)} could be read in part only")
    return "; ".join(parts)


def _finding(basis: Basis, rule: str, one: CheckedReference, keys: Amount, *texts: str) -> Finding:
    """Return a finding about a pattern; `texts` are its title and its evidence."""
    return Finding(
        rule=rule,
        severity=basis.severity(rule),
        title=SafeText(texts[0]),
        where=display_text(one.pattern, limit=200),
        keys=keys,
        memory=None,
        find_behind=lambda: Behind(query_of(one_of("glob", [one.glob])), ALL_NOTE),
        find_command=lambda: scan_line(one.glob),
        evidence=tuple(map(SafeText, texts[1:])),
        pattern=display_text(one.pattern, limit=TEXT_LIMIT),
    )
