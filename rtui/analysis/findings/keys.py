"""Rules about keys: cliffs, locks, forgotten TTLs; big, unused, growing and hot keys; references to keys that are
gone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.findings.finding import (
    MOST_NODES,
    Amount,
    Basis,
    Finding,
    amount,
    example_keys,
    glob_of,
    is_one_pattern,
    key_line,
    least,
    most,
    of_namespace,
    scan_line,
)
from rtui.analysis.query.behind import DRIFT_NOTE, Behind, above, behind_key, cliff_keys, expiring, label, without_ttl
from rtui.analysis.query.query import one_of, query_of
from rtui.analysis.report.document import KeyRecord, Node, NodeKind
from rtui.analysis.report.members import DAY_S, IDLE_EDGES_S, TEXT_LIMIT, TTL_EDGES_S, CheckedReference, Cliff, Figure
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.table import find
from rtui.analysis.report.thresholds import SizeLimits, preset, preset_names
from rtui.keyspace.text.display import SafeText, display, display_text
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.types import LIST, STRING
from rtui.registry.rules import RuleLevels, Severity

CLIFF: Final = "expiry-cliff"
MIXED: Final = "ttl-mixed"
LOCK_WITHOUT_TTL: Final = "lock-without-ttl"
LOCK_LONG: Final = "lock-long"
_WORD: Final = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+")
_NAME_LIMIT: Final = 120
_NAMED: Final = 3


def such_as(path: Sequence[Node], is_one: Callable[[Node], bool]) -> Iterator[SafeText]:
    """Yield a line that names keys of a namespace, of parts of which all keys are meant (`is_one`), else of any."""
    parts = islice(path[-1].walk(tuple(path[:-1])), MOST_NODES)
    meant = [key for part in parts if len(part) > 1 and is_one(part[-1]) for key in example_keys(part)]
    keys = list(dict.fromkeys(meant or example_keys(path)))[:_NAMED]
    if keys:
        names = ", ".join(display(key, limit=_NAME_LIMIT) or "(empty name)" for key in keys)
        yield SafeText(f"{'such as' if meant else 'among keys such as'} {names}")


def cliffs(basis: Basis) -> Iterator[Finding]:
    """Of a namespace and a sub-namespace with the same cliff, only the inner one is reported."""
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
        evidence=(SafeText(f"expected, by the rate around it: {humanize.written_keys(one.expected_keys)}"),),
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
    """Only single patterns are judged: a namespace may well have lasting settings beside expiring sessions."""
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
            title = f"{lasting.keys()} of {label(path)} have no TTL, only {portion}"
            yield of_namespace(basis, MIXED, path, title=title, keys=lasting, memory=memory, narrowed=without_ttl)


def locks_without_ttl(basis: Basis) -> Iterator[Finding]:
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
    is_beyond = basis.number(LOCK_LONG, "longest") > TTL_EDGES_S[-1] * 1000
    why = f"reports have TTLs only up to {humanize.seconds(TTL_EDGES_S[-1])} apart; set longest to less"
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


BIG: Final = "key-big"
IDLE: Final = "key-idle"
MOST_EXAMPLES: Final = 3


def big_keys(basis: Basis) -> Iterator[Finding]:
    """Find the listed keys of each type above the limits of the rule.

    A list that ends with a key above the limit goes on after it, so there are at least as many. Where lengths are not
    known, memory decides: that of a string exceeds its length by some tens of bytes.
    """
    big = basis.report.summary.big
    size = int(basis.number(BIG, "size"))
    for kind in dict.fromkeys((*big.by_type_memory, *big.by_type_length)):
        is_string = kind == STRING.name
        length = int(basis.number(BIG, "string" if is_string else "elements"))
        lists = big.by_type_memory.get(kind, ()), big.by_type_length.get(kind, ())
        over = {one.key: one for records in lists for one in records if _is_over(one, length, size)}
        by_length = basis.knows("length") or any((one.length or 0) > length for one in over.values())
        if by_length:
            behind = above(kind, length, None if is_string else size)
        else:
            behind = above(kind, None, length if is_string else size)
        if not over or behind is None:
            continue
        goes_on = any(records and _is_over(records[-1], length, size) for records in lists)
        not_asked = big.length_not_asked.get(kind, 0)
        may_lack = basis.may_lack or goes_on or not_asked is None or not_asked > length
        largest = sorted(over.values(), key=lambda one: -(one.memory_bytes or 0))
        known = [one.memory_bytes for one in largest if one.memory_bytes is not None]
        keys = Amount(len(over), at_least=may_lack)
        memory = Amount(sum(known), at_least=may_lack or len(known) < len(over)) if known else None
        limit = humanize.size(length if is_string else size)
        if not is_string and by_length:
            limit = SafeText(f"{length:,} elements or {limit}")
        yield _big(basis, kind, limit, keys=keys, memory=memory, largest=largest, behind=behind)


def _big(
    basis: Basis,
    kind: bytes,
    limit: str,
    *,
    keys: Amount,
    memory: Amount | None,
    largest: Sequence[KeyRecord],
    behind: Behind,
) -> Finding:
    name = display(kind, limit=40)
    title = f"{keys.keys(f'{name} key')} over {limit}"
    if keys.value == 1 and not keys.at_least:
        title = f"{_record_text(largest[0])}, a {name} over {limit}"
    return Finding(
        rule=BIG,
        severity=basis.severity(BIG),
        title=SafeText(title),
        where=SafeText(f"type {name}"),
        keys=keys,
        memory=memory,
        find_behind=lambda: behind,
        find_command=lambda: key_line("MEMORY USAGE", largest[0].key),
        evidence=(*map(_record_text, largest[:MOST_EXAMPLES]), *_other_limit(basis, kind)),
        example_keys=tuple(one.key for one in largest[:MOST_EXAMPLES]),
    )


def _other_limit(basis: Basis, kind: bytes) -> Iterator[SafeText]:
    name = basis.report.head.scope.preset
    found = preset(name).limits(kind) if name in preset_names() else SizeLimits()
    own = int(basis.number(BIG, "string" if kind == STRING.name else "elements"))
    if found.length not in (None, own):
        unit = humanize.size(found.length) if kind == STRING.name else f"{found.length:,} elements"
        counted = f"the thresholds of {display(name.encode(), limit=40)}, from {unit}"
        yield SafeText(f"{BIG} has a limit of its own; the list of big keys goes by {counted}")


def _is_over(record: KeyRecord, length: int, size: int) -> bool:
    """Whether a key is above one of both limits; a string of unknown length is judged by its memory."""
    is_unknown = record.key_type == STRING.name and record.length is None
    return (record.length or 0) > length or (record.memory_bytes or 0) > (min(length, size) if is_unknown else size)


def _record_text(record: KeyRecord) -> SafeText:
    figures = []
    if record.memory_bytes is not None:
        figures.append(humanize.size(record.memory_bytes))
    if record.length is not None and record.key_type != STRING.name:
        figures.append(humanize.counted(record.length, "element"))
    return SafeText(f"{display(record.key, limit=200)}: {', '.join(figures)}")


def idle_keys(basis: Basis) -> Iterator[Finding]:
    """Find the namespaces of the first level with keys that nobody has used for days.

    A report has the idle times of a namespace between borders, so more days than the last border can't be
    distinguished. Bytes are those of the sub-namespaces in which no key has been used.
    """
    first = idle_border(basis)
    if first is None or basis.is_of_replicas:
        return
    edge_s, root = IDLE_EDGES_S[first], basis.report.summary.root
    is_later = edge_s > basis.number(IDLE, "days") * DAY_S

    def narrowed(behind: Behind) -> Behind:
        return behind.with_terms(one_of("idle", [Bounds(edge_s * 1000)]), note=DRIFT_NOTE)

    for node in root.children:
        idle = _idle(node, first)
        if idle is None or least(idle) < 1:
            continue
        is_bound = not isinstance(idle, Estimate) and (basis.cells.is_partial or is_later)
        keys, unused = Amount(idle, at_least=is_bound), _wholly_idle_bytes(node, first)
        memory = Amount(unused, at_least=True) if unused else None
        path = root, node
        title = f"{keys.keys()} of {label(path)} idle for {humanize.seconds(edge_s)} or longer"
        yield of_namespace(basis, IDLE, path, title=title, keys=keys, memory=memory, narrowed=narrowed)


def idle_border(basis: Basis) -> int | None:
    days_s = basis.number(IDLE, "days") * DAY_S
    return next((at for at, edge_s in enumerate(IDLE_EDGES_S) if edge_s >= days_s), None)


def idle_unknown(basis: Basis) -> str:
    if why := basis.why_unknown("idle"):
        return why
    if basis.is_of_replicas:
        return "replicas were read, and they do not track reads on the primary"
    if idle_border(basis) is None:
        return f"reports have idle times only up to {humanize.seconds(IDLE_EDGES_S[-1])} apart; set days to less"
    return ""


def _idle(node: Node, first: int) -> Figure | None:
    bins = node.stats.idle
    return None if bins is None else total(bins[first + 1 :])


def total(figures: Sequence[Figure]) -> Figure:
    """Add figures; the bounds of estimates add up too wide rather than wrong."""
    exact = [one for one in figures if not isinstance(one, Estimate)]
    if len(exact) == len(figures):
        return sum(exact)
    known = [as_estimate(one) for one in figures]
    return Estimate(sum(one.low for one in known), sum(one.value for one in known), sum(one.high for one in known))


def _wholly_idle_bytes(node: Node, first: int) -> int:
    """Return the bytes of the largest parts of a node in which every key is idle, as far as they are known."""
    waiting, total = [node], 0
    while waiting:
        one = waiting.pop()
        idle, stats = _idle(one, first), one.stats
        if isinstance(idle, Estimate) or isinstance(stats.memory_bytes, Estimate) or not idle:
            continue
        if idle == stats.keys:
            total += int(stats.memory_bytes or 0)
        else:
            waiting += one.children
    return total


GROWING: Final = "queue-growing"
HOT: Final = "hot-key-expiring"


def growing_queues(basis: Basis) -> Iterator[Finding]:
    if basis.before is None:
        return
    least = basis.number(GROWING, "length")
    took = humanize.seconds(round(max(0.0, basis.report.head.made_at_s - basis.before.head.made_at_s)))
    earlier = {one.key: one for one in basis.before.summary.big.by_type_length.get(LIST.name, ())}
    for one in basis.report.summary.big.by_type_length.get(LIST.name, ()):
        was, length = earlier.get(one.key), one.length or 0
        if was is not None and was.length is not None and length > was.length and length >= least:
            grew = f"from {was.length:,} to {humanize.counted(length, 'element')}"
            yield _of_key(basis, GROWING, one, f"List {_name(one)} grew {grew} in {took}", "LLEN")


def expiring_hot_keys(basis: Basis) -> Iterator[Finding]:
    left_ms, counter = basis.number(HOT, "left"), basis.number(HOT, "counter")
    words = lock_words(basis.levels)
    seen: set[bytes] = set()
    for one in (hot.record for found in basis.report.hot.lists for hot in found.keys):
        is_hot = one.frequency is None or one.frequency >= counter
        is_soon = one.ttl_ms is not None and 0 <= one.ttl_ms < left_ms
        if is_hot and is_soon and one.key not in seen and not is_lock(one.key, words):
            seen.add(one.key)
            title = f"Hot key {_name(one)} has {humanize.seconds((one.ttl_ms or 0) / 1000)} left"
            yield _of_key(basis, HOT, one, title, "PTTL")


def _name(one: KeyRecord) -> SafeText:
    return display(one.key, limit=_NAME_LIMIT) or SafeText("(empty name)")


def _of_key(basis: Basis, rule: str, one: KeyRecord, title: str, command: str) -> Finding:
    return Finding(
        rule=rule,
        severity=basis.severity(rule),
        title=SafeText(title),
        where=_name(one),
        keys=Amount(1),
        memory=None if one.memory_bytes is None else Amount(one.memory_bytes),
        find_behind=lambda: behind_key(one.key),
        find_command=lambda: key_line(command, one.key),
        example_keys=(one.key,),
    )


DANGLING: Final = "reference-dangling"
TWIN: Final = "reference-twin"
ALL_NOTE: Final = SafeText("the query matches all keys of the pattern: queries do not follow references")


def dangling(basis: Basis) -> Iterator[Finding]:
    for one in () if basis.references is None else basis.references.dangling:
        keys = _broken(basis, one)
        verb = "points" if keys.figure == 1 else "point"
        which = f"{display_text(one.source, limit=80)} → {display_text(one.target, limit=120)}"
        title = f"{keys.keys()} of {display_text(one.pattern, limit=120)} {verb} to a missing key: {which}"
        looked_at = _looked_at(one, "leads to no key" if one.broken_values == 1 else "lead to no key")
        examples = (f"{display(key, limit=80)} → {display(missing, limit=80)}" for key, missing in one.examples)
        yield _of_reference(basis, DANGLING, one, keys, title, looked_at, *examples)


def twins(basis: Basis) -> Iterator[Finding]:
    for one in () if basis.references is None else basis.references.unlike:
        keys = _broken(basis, one)
        verb, copy = "doesn't" if keys.figure == 1 else "don't", display_text(one.target, limit=120)
        title = f"{keys.keys()} of {display_text(one.pattern, limit=120)} {verb} hold the same as {copy}"
        looked_at = _looked_at(one, "is in one copy only" if one.broken_values == 1 else "are in one copy only")
        examples = (
            f"{display(key, limit=80)}: {display(value, limit=80)} is in one only" for key, value in one.examples
        )
        yield _of_reference(basis, TWIN, one, keys, title, looked_at, *examples)


def references_left(basis: Basis) -> str:
    failure = "" if basis.references is None else basis.references.failure
    return f"not all references were followed: {failure}" if failure else ""


def _broken(basis: Basis, one: CheckedReference) -> Amount:
    """Return the number of keys that break a reference; there may be more than a sample's interval says."""
    is_listed = basis.references is not None and basis.references.is_complete
    return Amount(one.broken, at_least=not is_listed or bool(one.skipped or one.unknown))


def _looked_at(one: CheckedReference, what: str) -> str:
    of = f"of {humanize.keys(one.looked_at)} checked"
    if one.is_sample:
        of = f"{of}, chosen at random among {humanize.count(one.matching)}"
    parts = [f"{humanize.counted(one.broken_values, 'value')} {what}, {of}"]
    if one.unknown:
        parts.append(f"{humanize.counted(one.unknown, 'value')} could not be followed")
    if one.skipped:
        parts.append(f"{humanize.keys(one.skipped)} could be read in part only")
    return "; ".join(parts)


def _of_reference(basis: Basis, rule: str, one: CheckedReference, keys: Amount, *texts: str) -> Finding:
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
