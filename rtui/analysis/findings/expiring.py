"""Rules about times to live: cliffs, keys that were forgotten, locks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import (
    MOST_NODES,
    Amount,
    Basis,
    Finding,
    amount,
    example_keys,
    glob_of,
    is_one_pattern,
    least,
    most,
    of_namespace,
    scan_line,
)
from rtui.analysis.query.behind import cliff_keys, expiring, label, without_ttl
from rtui.analysis.report.document import Node, NodeKind
from rtui.analysis.report.members import TTL_EDGES_S, Cliff
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.table import find
from rtui.keyspace.text.display import SafeText, display
from rtui.registry.rules import RuleLevels, Severity

CLIFF: Final = "expiry-cliff"
MIXED: Final = "ttl-mixed"
LOCK_WITHOUT_TTL: Final = "lock-without-ttl"
LOCK_LONG: Final = "lock-long"

_WORD: Final = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+")

_NAMED: Final = 3
"""Keys named in the evidence of a finding."""

_NAME_LIMIT: Final = 120


def such_as(path: Sequence[Node], is_one: Callable[[Node], bool]) -> Iterator[SafeText]:
    """Yield a line that names keys of a namespace, of parts of which all keys are meant (`is_one`), else of any."""
    parts = islice(path[-1].walk(tuple(path[:-1])), MOST_NODES)
    meant = [key for part in parts if len(part) > 1 and is_one(part[-1]) for key in example_keys(part)]
    keys = list(dict.fromkeys(meant or example_keys(path)))[:_NAMED]
    if keys:
        names = ", ".join(display(key, limit=_NAME_LIMIT) or "(empty name)" for key in keys)
        yield SafeText(f"{'such as' if meant else 'among keys such as'} {names}")


def cliffs(basis: Basis) -> Iterator[Finding]:
    """Find the stretches of time in which a large share of a namespace expires.

    Of a namespace and a sub-namespace with the same cliff, only the inner one is reported.
    """
    share, keys = basis.number(CLIFF, "share"), basis.number(CLIFF, "keys")
    within_s = basis.number(CLIFF, "within") / 1000
    found = [
        one
        for one in basis.report.summary.expiry.cliffs
        if least(one.share) >= share and least(one.keys) >= keys and one.end_s - one.start_s <= within_s
    ]
    for one in found:
        if not any(_is_same_within(inner, one) for inner in found):
            count = basis.keys(one.keys)
            memory = amount(basis.cells.amount(one.memory_bytes, "memory"))
            yield _cliff(basis, one, count, memory)


def _is_same_within(inner: Cliff, outer: Cliff) -> bool:
    """Whether a cliff is, for the most part, another cliff of a namespace around it."""
    is_inside = len(inner.path) > len(outer.path) and inner.path[: len(outer.path)] == outer.path
    meets = inner.meets(outer.start_s, outer.end_s)
    return is_inside and meets and plain(inner.keys) >= 0.9 * plain(outer.keys)


def _cliff(basis: Basis, one: Cliff, keys: Amount, memory: Amount | None) -> Finding:
    portion = humanize.written(one.share, humanize.share)
    root = basis.report.summary.root
    path = find(root, one.path)

    return Finding(
        rule=CLIFF,
        severity=basis.severity(CLIFF),
        title=SafeText(
            f"{keys.keys()} of {one.label} expire {_times(one, basis.report.head.made_at_s)} UTC, {portion} of them"
        ),
        where=SafeText(one.label),
        keys=keys,
        memory=memory,
        find_behind=partial(cliff_keys, one, root),
        find_command=lambda: scan_line(b"*" if path is None else glob_of(path)),
        evidence=(SafeText(f"expected then, by the time around it: {humanize.written_keys(one.expected_keys)}"),),
        example_keys=() if path is None else example_keys(path),
    )


def _times(one: Cliff, made_at_s: float) -> str:
    """Return the beginning and end of a cliff: `01:12–01:14`, with the date if it is on another day."""
    start, end = humanize.moment(one.start_s), humanize.moment(one.end_s)
    if start[:10] == end[:10]:
        end = SafeText(end[11:])
    if start[:10] == humanize.moment(made_at_s)[:10]:
        start = SafeText(start[11:])
    if start.endswith(":00") and end.endswith(":00"):
        start, end = SafeText(start[:-3]), SafeText(end[:-3])
    return f"{start}–{end}" if len(end) == len("00:00") else f"{start} – {end}"


def mixed(basis: Basis) -> Iterator[Finding]:
    """Find patterns of which nearly all keys expire.

    Only single patterns are judged: a namespace may well have lasting settings beside expiring sessions.
    """
    share, keys = basis.number(MIXED, "share"), basis.number(MIXED, "keys")
    has_lock_rule = basis.severity(LOCK_WITHOUT_TTL) is not Severity.OFF
    for path, lock_at in _with_locks(basis.report.summary.root, lock_words(basis.levels)):
        stats = path[-1].stats
        if stats.no_ttl_share is None or least(stats.no_ttl_keys) < keys or most(stats.no_ttl_share) > 1 - share:
            continue
        if (has_lock_rule and lock_at) or not is_one_pattern(path):
            continue
        lasting, memory = map(amount, basis.cells.lasting(stats))
        if lasting is not None:
            portion = humanize.written(stats.no_ttl_share, humanize.share)
            title = f"{lasting.keys()} of {label(path)} never expire ({portion}); all others do"
            yield of_namespace(basis, MIXED, path, title=title, keys=lasting, memory=memory, narrowed=without_ttl)


def locks_without_ttl(basis: Basis) -> Iterator[Finding]:
    """Find namespaces of locks with keys that never expire."""
    for path in _locks(basis):
        lasting, memory = map(amount, basis.cells.lasting(path[-1].stats))
        if lasting is not None and least(lasting.figure) > 0:
            has = "has" if lasting.figure == 1 else "have"
            yield of_namespace(
                basis,
                LOCK_WITHOUT_TTL,
                path,
                title=f"{lasting.keys('lock')} of {label(path)} {has} no TTL",
                keys=lasting,
                memory=memory,
                narrowed=without_ttl,
                evidence=list(such_as(path, lambda node: node.stats.no_ttl_keys == node.stats.keys)),
            )


def long_locks(basis: Basis) -> Iterator[Finding]:
    """Find namespaces of locks with keys that live longer than a lock should."""
    longest_s = basis.number(LOCK_LONG, "longest") / 1000
    first = next((at for at, edge_s in enumerate(TTL_EDGES_S) if edge_s >= longest_s), None)
    if first is None:
        return
    is_later = TTL_EDGES_S[first] > longest_s
    for path in _locks(basis):
        stats = path[-1].stats
        long = 0 if stats.ttl is None else round(sum(map(least, stats.ttl[first + 1 :])))
        if stats.ttl is None or long < 1:
            continue
        known = plain(stats.no_ttl_keys or 0) + sum(map(plain, stats.ttl))
        keys = Amount(long, at_least=basis.may_lack or is_later or known < plain(stats.keys))
        yield _long_locks(basis, path, keys, longest_s, first)


def long_unknown(basis: Basis) -> str:
    """Return why it is unknown which locks live too long."""
    is_beyond = basis.number(LOCK_LONG, "longest") > TTL_EDGES_S[-1] * 1000
    why = f"reports tell times to live up to {humanize.seconds(TTL_EDGES_S[-1])} apart; set longest to less"
    return basis.why_unknown("ttl") or (why if is_beyond else "")


def _long_locks(basis: Basis, path: Sequence[Node], keys: Amount, longest_s: float, first: int) -> Finding:
    def is_long(node: Node) -> bool:
        return node.stats.ttl is not None and sum(map(plain, node.stats.ttl[first + 1 :])) == node.stats.keys

    has = "has" if keys.figure == 1 else "have"
    title = f"{keys.keys('lock')} of {label(path)} {has} more than {humanize.seconds(longest_s)} left"
    later = partial(expiring, basis.report.head.made_at_s + longest_s, None)
    evidence = list(such_as(path, is_long))
    return of_namespace(basis, LOCK_LONG, path, title=title, keys=keys, memory=None, narrowed=later, evidence=evidence)


def _locks(basis: Basis) -> Iterator[tuple[Node, ...]]:
    return locks(basis.report.summary.root, lock_words(basis.levels))


def locks(root: Node, words: frozenset[bytes]) -> Iterator[tuple[Node, ...]]:
    return (path for path, lock_at in _with_locks(root, words) if lock_at == len(path))


def _with_locks(root: Node, words: frozenset[bytes]) -> Iterator[tuple[tuple[Node, ...], int]]:
    """Yield all namespaces and patterns, with the length of the outermost path to each that is of locks; 0 for none."""
    waiting: list[tuple[tuple[Node, ...], int]] = [((root, node), 0) for node in reversed(root.children)]
    while waiting:
        path, lock_at = waiting.pop()
        node = path[-1]
        if not lock_at and node.kind is not NodeKind.OTHER and is_lock(node.name, words):
            lock_at = len(path)
        yield path, lock_at
        waiting += [((*path, child), lock_at) for child in reversed(node.children)]


def lock_words(levels: RuleLevels) -> frozenset[bytes]:
    return frozenset(one.lower().encode() for one in levels.words(LOCK_WITHOUT_TTL, "words"))


def is_lock(name: bytes, words: frozenset[bytes]) -> bool:
    """Whether a name has a word that makes it a lock: `lock`, `order-lock`, `userLock`."""
    lower = name.lower()
    return any(word in lower for word in words) and any(word.lower() in words for word in _WORD.findall(name))
