"""Patterns that an analysis has learnt, in the syntax of registries: every key of the report has one of them;
written as the draft of a registry, as a table, as JSON.

The patterns of a report and those of a registry are not the same. In a report `<hash>` is any run of hexadecimal
digits from eight on, `<id>` whatever is no name, and a key is counted once, on the way down the tree. A registry asks
of each key which patterns it has, and the most specific one counts. So:

* A placeholder gets the narrowest form that has all it may stand for: `<uuid>`, `<hex>`, `<date>`, `<n>` a number,
  else anything. IP and e-mail addresses get theirs where all examples of the report have it.
* A short number that all keys begin with is a word, in reports that lack it as well (`report.namespaces`).
* Many single keys beside one another become one pattern: `config:<name>`. What was beyond the budget of a report
  becomes `app:cache:<**>`, and names whose hash tag holds a separator, as `{user:ann}:cart`, `{<**>}:cart`.
* `user:<id>:cart` and `user:index:<id>` are equally specific, and `user:index:cart` would have both. The one that is
  literal earlier gets a limit that every value keeps (`length = ">=1"`), so it comes first, as in the report. Where
  no placeholder is left to limit, both become one: `user:<id>:<id2>`.

The expectations of a draft are the values seen, with room to grow: the types, the next usual duration from the longest
time to live on, and a power of two from twice the largest size on.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, zip_longest
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.estimates import as_estimate
from rtui.analysis.formats.json import json_value, name_text
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import CoverageKind, Head, Node, NodeKind, Stats
from rtui.analysis.report.namespaces import only_number
from rtui.analysis.report.tables.table import COVERAGE_MARKS, Cell, Column, Table, Unit
from rtui.keyspace.text.display import display_text, is_hidden
from rtui.keyspace.text.identifiers import ANY_TAG, ANY_WITH_TAG, Identifiers, literals, placeholders
from rtui.keyspace.text.quantities import write_duration, write_size
from rtui.keyspace.text.segments import MARK, Separators, raw_name
from rtui.registry.expectations import ExpectationError, read_type
from rtui.registry.matching import Matcher, ambiguities
from rtui.registry.naming import NamingConfig, NamingRules, rule_ids
from rtui.registry.patterns import (
    ANY,
    ANY_DEPTH,
    DATE,
    EMAIL,
    FORMS,
    HEX,
    INT,
    IP,
    LONGEST_KEY,
    MOST_PLACEHOLDERS,
    UUID,
    Pattern,
    PlaceholderForm,
    Values,
    literal_text,
    read_pattern,
)

MOST_NAMES: Final = 32
"""Single keys beside one another that get a pattern each; more become one."""

MOST_EXAMPLES: Final = 3

_ANY_LENGTH: Final = ((1, None),)
"""A limit that every value keeps; a pattern that has it is more specific."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A placeholder for a part of a segment."""

    name: str
    form: PlaceholderForm


_SLOTS: Final = {
    b"<id>": Slot("id", ANY),
    b"<uuid>": Slot("uuid", UUID),
    b"<hash>": Slot("hex", HEX),
    b"<date>": Slot("date", DATE),
    b"<ip>": Slot("ip", IP),
    b"<email>": Slot("email", EMAIL),
    b"<n>": Slot("n", INT),
    b"<*>": Slot("name", ANY),
}

_NAME: Final = _SLOTS[b"<*>"]
_ADDRESS: Final = Slot("address", ANY)
_REST: Final = Slot("**", ANY_DEPTH)
_NAMES: Final[dict[bytes, tuple[bytes | Slot, ...]]] = {
    b"<*>": (_NAME,),
    ANY_TAG: (b"{", _REST, b"}"),
    ANY_WITH_TAG: (_REST,),
}
"""The placeholder of too many names: between the braces of a hash tag it may hold separators."""

Part = bytes | Slot
Parts = tuple[Part, ...]
"""Text and placeholders in turn, separators in the text."""


@dataclass
class Learnt:
    """One pattern and the figures of its keys."""

    parts: Parts
    keys: float = 0
    memory_bytes: float | None = None
    types: Counter[bytes] = field(default_factory=Counter)
    expiring: float = 0
    lasting: float = 0
    """Expiring and lasting keys, of keys with a known TTL."""
    ttl_left_s: tuple[float, float] | None = None
    """The shortest and the longest life left of expiring keys."""
    largest_bytes: int | None = None
    examples: list[bytes] = field(default_factory=list)
    limited: int = 0
    """How many of its placeholders for anything have a limit, from the first one on."""
    breaks: tuple[str, ...] = ()
    """Rules about names that it breaks, or one of its examples, by the default settings."""
    pattern: Pattern = field(init=False, repr=False)

    def add(self, stats: Stats) -> None:
        self.keys += as_estimate(stats.keys).value
        if stats.memory_bytes is not None:
            self.memory_bytes = (self.memory_bytes or 0) + as_estimate(stats.memory_bytes).value
        for name, keys in stats.types:
            self.types[name] += round(as_estimate(keys).value)
        if stats.no_ttl_keys is not None:
            self.lasting += as_estimate(stats.no_ttl_keys).value
            self.expiring += sum(as_estimate(one).value for one in stats.ttl or ())
        self.ttl_left_s = _widest(self.ttl_left_s, stats.ttl_range_s)
        if stats.memory is not None:
            self.largest_bytes = max(self.largest_bytes or 0, stats.memory.max)

    def merge(self, other: Learnt) -> None:
        self.keys += other.keys
        if other.memory_bytes is not None:
            self.memory_bytes = (self.memory_bytes or 0) + other.memory_bytes
        self.types.update(other.types)
        self.expiring += other.expiring
        self.lasting += other.lasting
        self.ttl_left_s = _widest(self.ttl_left_s, other.ttl_left_s)
        if other.largest_bytes is not None:
            self.largest_bytes = max(self.largest_bytes or 0, other.largest_bytes)
        self.examples += other.examples

    def named(self) -> Iterator[tuple[Part, str]]:
        """Yield its parts with the name of each that stands for others: `id`, and `id2` for the next one."""
        taken = set[str]()
        for part in self.parts:
            name = ""
            if isinstance(part, Slot):
                names = (part.name if number == 1 else f"{part.name}{number}" for number in count(1))
                name = part.name if part is _REST else next(one for one in names if one not in taken)
                taken.add(name)
            yield part, name

    def forms(self) -> dict[str, PlaceholderForm]:
        slots = [(part, name) for part, name in self.named() if isinstance(part, Slot) and part is not _REST]
        return {name: part.form for part, name in slots if FORMS.get(name, ANY) is not part.form}

    def limits(self) -> list[str]:
        free = [name for part, name in self.named() if isinstance(part, Slot) and part.form is ANY]
        return free[: self.limited]

    @property
    def can_be_limited(self) -> bool:
        return self.limited < sum(isinstance(part, Slot) and part.form is ANY for part in self.parts)

    def compile(self, separators: Sequence[bytes]) -> None:
        """Read it as a registry does."""
        text = "".join(
            f"<{name}>" if isinstance(part, Slot) else literal_text(name_text(part)) for part, name in self.named()
        )
        values = {name: Values(form) for name, form in self.forms().items()}
        values |= {name: Values(lengths=_ANY_LENGTH) for name in self.limits()}
        self.pattern = read_pattern(text, values, separators)


def _widest(one: tuple[float, float] | None, other: tuple[float, float] | None) -> tuple[float, float] | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one[0], other[0]), max(one[1], other[1])


@dataclass(frozen=True, slots=True)
class LearntPatterns:
    """All patterns of a report."""

    patterns: tuple[Learnt, ...]
    separators: tuple[bytes, ...]
    keys: float
    memory_bytes: float | None
    without: float = 0
    """Keys that can have no pattern: names of over 4,096 bytes, and the empty one."""


def learnt_patterns(root: Node, separators: Sequence[bytes], most_names: int = MOST_NAMES) -> LearntPatterns:
    """Return the patterns of a report by the root of its namespaces.

    Where types are known, keys without type or example have names too long to be asked about: they can have no pattern.
    """
    found: dict[Parts, Learnt] = {}
    cut = Separators(separators).values
    without = 0.0
    knows_types = bool(root.stats.types)
    for parts, node, examples in _leaves(root, Identifiers(cut), most_names):
        is_never_asked = knows_types and not (node.stats.types or examples or _REST in parts)
        is_too_long = is_never_asked or sum(len(part) for part in parts if isinstance(part, bytes)) > LONGEST_KEY
        if not any(parts) or is_too_long:
            without += as_estimate(node.stats.keys).value
            continue
        whole = _expressible(parts, cut)
        one = found.setdefault(whole, Learnt(whole))
        one.add(node.stats)
        one.examples += examples
    for one in found.values():
        one.compile(cut)
        if not all(map(one.pattern.matches, one.examples)):
            one.parts = tuple(
                _ADDRESS if isinstance(part, Slot) and part.form in (IP, EMAIL) else part for part in one.parts
            )
            one.compile(cut)
    told_apart = sorted(_told_apart(_merged(found.values()), cut), key=lambda one: one.pattern.text)
    _look_at_examples(told_apart, cut)
    memory = root.stats.memory_bytes
    return LearntPatterns(
        tuple(told_apart),
        cut,
        as_estimate(root.stats.keys).value,
        None if memory is None else as_estimate(memory).value,
        without,
    )


def _leaves(root: Node, identifiers: Identifiers, most_names: int) -> Iterator[tuple[Parts, Node, Sequence[bytes]]]:
    """Yield each node that keys end at, or that stands for a rest: the parts of its pattern, and example keys."""
    waiting: list[tuple[Parts, bytes | None, Node]] = [((), b"", root)]
    while waiting:
        before, text, parent = waiting.pop()
        is_many = sum(map(_is_single, parent.children)) > most_names
        for child in parent.children:
            if parent is root and child.name == MARK and child.children:
                waiting.append(((), MARK + child.separator, child))  # names of Java are matched by their texts
                continue
            word = None if text is None else only_number(child, text)
            name = child.name if word is None else word
            if word is not None:
                parts: Parts = (*before, word)
            elif is_many and _is_single(child):
                parts = (*before, *_NAMES[identifiers.any_name(name)])
            else:
                parts = (*before, *_parts_of(child))
            is_literal = child.kind is NodeKind.LITERAL or word is not None
            own = text + name + child.separator if text is not None and is_literal else None
            if child.children:
                waiting.append(((*parts, child.separator), own, child))
            elif child.kind is NodeKind.OTHER:
                yield (*before, _REST), child, ()
            elif child.separator:
                yield (*parts, child.separator, _REST), child, ()
            else:
                yield parts, child, child.examples if own is None else (raw_name(own),)


def _is_single(node: Node) -> bool:
    return node.kind is NodeKind.LITERAL and bool(node.name) and not node.separator


def _parts_of(node: Node) -> Iterator[Part]:
    if node.kind is not NodeKind.PATTERN:
        yield node.name
        return
    if node.name in _NAMES:
        yield from _NAMES[node.name]
        return
    texts = literals(node.name)
    for text, placeholder in zip_longest(texts, placeholders(node.name)):
        if text:
            yield text
        if placeholder:
            yield _SLOTS[placeholder]


def _expressible(parts: Iterable[Part], separators: Sequence[bytes]) -> Parts:
    """Return parts as a registry can have them: fewer placeholders in a segment, and one for any depth at most."""
    found: list[Part] = []
    for segment, separator in _segments(_with_one_rest(tuple(parts)), separators):
        found += [*_with_few_slots(segment, separators), separator]
    joined: list[Part] = []
    for part in found:
        if joined and isinstance(part, bytes) and isinstance(joined[-1], bytes):
            joined[-1] += part
        elif part != b"":
            joined.append(part)
    return tuple(joined)


def _with_one_rest(parts: Parts) -> Parts:
    at = [index for index, part in enumerate(parts) if part is _REST]
    return (*parts[: at[0]], *parts[at[-1] :]) if len(at) > 1 else parts


def _segments(parts: Iterable[Part], separators: Sequence[bytes]) -> Iterator[tuple[list[Part], bytes]]:
    cut = re.compile(b"(" + b"|".join(map(re.escape, separators)) + b")")
    segment: list[Part] = []
    text = b""
    for part in (*parts, None):
        if isinstance(part, bytes):
            text += part
            continue
        *whole, text = cut.split(text)
        for before, separator in zip(whole[::2], whole[1::2], strict=True):
            yield [*segment, before], separator
            segment = []
        if part is not None:
            segment += [text, part]
            text = b""
    yield [*segment, text], b""


def _with_few_slots(segment: Sequence[Part], separators: Sequence[bytes]) -> Sequence[Part]:
    """Return a segment that has at most as many placeholders as a registry allows, and text between any two."""
    parts = [part for part in segment if part != b""]
    at = [index for index, part in enumerate(parts) if isinstance(part, Slot)]
    if len(at) > MOST_PLACEHOLDERS:
        first, last = at[MOST_PLACEHOLDERS - 1], at[-1]
        parts[first : last + 1] = [_REST if _REST in parts[first : last + 1] else _NAME]
    for index in range(len(parts) - 1, 0, -1):
        before, part = parts[index - 1], parts[index]
        if not isinstance(part, Slot):
            continue
        if isinstance(before, Slot):
            parts[index - 1 : index + 1] = [_REST if _REST in (before, part) else _NAME]
        elif any(before.endswith(one[:size]) for one in separators for size in range(1, len(one))):
            return [_REST if _REST in parts else _NAME]
    return parts


def _merged(learnt: Iterable[Learnt]) -> list[Learnt]:
    found: dict[tuple[bytes | PlaceholderForm, ...], Learnt] = {}
    for one in learnt:
        kind = tuple(part.form if isinstance(part, Slot) else part for part in one.parts)
        first = found.setdefault(kind, one)
        if first is not one:
            first.merge(one)
    return list(found.values())


def _told_apart(learnt: list[Learnt], separators: Sequence[bytes]) -> list[Learnt]:
    """Return patterns of which no key has two that are equally specific, as far as that can be."""
    while pairs := list(ambiguities([one.pattern for one in learnt])):
        changed = set[int]()
        joined: list[tuple[Learnt, Learnt, Learnt]] = []
        for first, second, _ in pairs:
            if first in changed or second in changed:
                continue
            both = sorted((first, second), key=lambda at: learnt[at].pattern.earliest)
            limited = next((at for at in both if learnt[at].can_be_limited), None)
            if limited is not None:
                learnt[limited].limited += 1
                learnt[limited].compile(separators)
                changed.add(limited)
                continue
            one = _common(learnt[first], learnt[second], separators)
            if one is not None:
                joined.append((learnt[first], learnt[second], one))
                changed |= {first, second}
        if not changed:
            return learnt
        if joined:
            gone = {id(one) for pair in joined for one in pair[:2]}
            learnt = _merged([*(one for one in learnt if id(one) not in gone), *(one for *_, one in joined)])
    return learnt


def _common(first: Learnt, second: Learnt, separators: Sequence[bytes]) -> Learnt | None:
    """Return the pattern that has the keys of both; None where their segments are too different."""
    one, two = (list(_segments(learnt.parts, separators)) for learnt in (first, second))
    if [separator for _, separator in one] != [separator for _, separator in two]:
        return None
    parts: list[Part] = []
    for (left, separator), (right, _) in zip(one, two, strict=True):
        same = [part for part in left if part != b""] == [part for part in right if part != b""]
        parts += [*(left if same else [_REST if _REST in (*left, *right) else _NAME]), separator]
    found = Learnt(_expressible(parts, separators))
    found.merge(first)
    found.merge(second)
    found.compile(separators)
    return found


def _look_at_examples(learnt: Sequence[Learnt], separators: tuple[bytes, ...]) -> None:
    """Keep a few examples of each pattern that it has as the most specific one, and find the rules that names break."""
    patterns = [one.pattern for one in learnt]
    matcher, naming = Matcher(patterns, separators), NamingRules(NamingConfig(separators), patterns)
    for at, one in enumerate(learnt):
        mask = naming.broken(one.pattern.sample(), at)
        for example in one.examples:
            mask |= naming.broken(example, at)
        one.breaks = rule_ids(mask)
        found = matcher.match_page(one.examples)
        own = [example for example, index in zip(one.examples, found, strict=True) if index == at]
        one.examples = list(dict.fromkeys(own))[:MOST_EXAMPLES]


_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3_600, 86_400

_DURATIONS_S: Final = (
    *(one * _SECOND for one in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(one * _MINUTE for one in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(one * _HOUR for one in (1, 2, 3, 4, 6, 8, 12)),
    *(one * _DAY for one in (1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 90, 180)),
)
"""Times to live as people give them, in seconds; beyond them whole years."""

FEW_KEYS: Final = 20
"""The longest life left of fewer keys says little about their TTL."""


def expected_types(one: Learnt) -> list[str]:
    found = []
    for name, _ in one.types.most_common():
        text = name.decode("utf-8", "replace")
        try:
            read_type(text)
        except ExpectationError:
            return []
        found.append(text)
    return found


def expected_ttl(one: Learnt) -> str | None:
    if not one.expiring:
        return "none" if one.lasting else None
    if one.ttl_left_s is None:
        return "none|required" if one.lasting else "required"
    longest = one.ttl_left_s[1]
    if one.expiring < FEW_KEYS:
        # The longest of n times between 0 and what is given is n / (n + 1) of it on average.
        longest *= (one.expiring + 1) / one.expiring
    years = (365 * _DAY * number for number in count(1))
    given = next(duration for duration in chain(_DURATIONS_S, years) if duration >= longest)
    return f"{'none|' if one.lasting else ''}<={write_duration(given * 1000)}"


def expected_size(one: Learnt) -> str | None:
    return None if not one.largest_bytes else f"<={write_size(1 << (2 * one.largest_bytes - 1).bit_length())}"


def write_registry(head: Head, learnt: LearntPatterns, errors: Sequence[str] = ()) -> str:
    """`errors` are the rules that the keyspace breaks today as errors: in the draft they are warnings."""
    lines = [f"# {line}" for line in _introduction(head, learnt)]
    lines += ["", f"title = {_toml(head.server.label or 'keys')}"]
    lines.append(f"separators = [{', '.join(_toml(one.decode('utf-8', 'replace')) for one in learnt.separators)}]")
    forms = {name: form.name for one in learnt.patterns for name, form in one.forms().items()}
    if forms:
        lines += ["", "[placeholders]", *(f"{name} = {_toml(forms[name])}" for name in sorted(forms))]
    if errors:
        lines += ["", "# Errors that rtui check finds today; without these lines they are errors again.", "[rules]"]
        lines += [f'{rule} = "warn"' for rule in errors]
    mark = COVERAGE_MARKS[head.coverage.kind]
    for one in learnt.patterns:
        lines += ["", *_entry(one, learnt, mark)]
    return "\n".join(lines) + "\n"


def _introduction(head: Head, learnt: LearntPatterns) -> Iterator[str]:
    mark = COVERAGE_MARKS[head.coverage.kind]
    keys = humanize.keys(round(learnt.keys), mark)
    of = f"{display_text(head.server.label)} db{head.server.db}, {humanize.moment(head.made_at_s)}"
    yield f"{keys} in {humanize.counted(len(learnt.patterns), 'pattern')}: {of}"
    if head.coverage.kind is not CoverageKind.EXACT:
        why = f": {display_text(head.coverage.reason)}" if head.coverage.reason else ""
        yield f"Not every key was analysed{why}; there may be other patterns."
    if learnt.without:
        yield f"{humanize.keys(round(learnt.without), mark)} cannot have a pattern: empty name, or over 4,096 bytes."
    yield "A draft: add the purpose and owner of each pattern, rename placeholders, and correct the expectations, which"
    yield "are the values seen with room to grow. Use the file with `rtui --registry FILE`."


def _entry(one: Learnt, learnt: LearntPatterns, mark: Mark) -> Iterator[str]:
    yield f"# {_figures(one, learnt, mark)}"
    yield "[[pattern]]"
    yield f"pattern = {_toml(one.pattern.text)}"
    yield 'purpose = ""'
    yield 'owner = ""'
    limits = one.limits()
    if limits:
        tables = ", ".join(f'{name} = {{ length = ">=1" }}' for name in limits)
        yield f"placeholders = {{ {tables} }} # so it comes before patterns that are as specific"
    types = expected_types(one)
    if types:
        yield f"type = {_toml(types[0]) if len(types) == 1 else '[' + ', '.join(map(_toml, types)) + ']'}"
    for name, value in (("ttl", expected_ttl(one)), ("size", expected_size(one))):
        if value is not None:
            yield f"{name} = {_toml(value)}"
    if one.breaks:
        yield f"naming = false # its names break {', '.join(one.breaks)}"
    if one.examples and one.pattern.placeholders:
        yield f"examples = [{', '.join(_toml(_escaped(example)) for example in one.examples)}]"


def _figures(one: Learnt, learnt: LearntPatterns, mark: Mark) -> str:
    keys = humanize.keys(round(one.keys), mark)
    parts = [f"{keys} ({humanize.share(one.keys / learnt.keys if learnt.keys else 0)})"]
    if one.memory_bytes is not None:
        parts.append(humanize.size(one.memory_bytes, mark))
    if one.largest_bytes is not None and round(one.keys) > 1:
        parts.append(f"at most {humanize.size(one.largest_bytes)} a key")
    if one.ttl_left_s is not None:
        short, long = (humanize.duration(round(1000 * seconds)) for seconds in one.ttl_left_s)
        parts.append(f"{short} to {long} of the TTL left" if short != long else f"{long} of the TTL left")
    if one.expiring and one.lasting:
        parts.append(f"{humanize.short_count(one.lasting, mark)} without TTL")
    return ", ".join(parts)


def _escaped(example: bytes) -> str:
    text: str = json_value(example)
    return text


def _toml(text: str) -> str:
    """Return a string of TOML: a literal one where that saves escapes."""
    if ("\\" in text or '"' in text) and "'" not in text and not any(map(is_hidden, text)):
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\U{ord(one):08x}" if is_hidden(one) else one for one in escaped) + '"'


_COLUMNS: Final = (
    Column("pattern", "pattern", Unit.TEXT),
    Column("keys", "keys", Unit.KEYS, 9),
    Column("share_of_keys", "share", Unit.SHARE, 6),
    Column("memory_bytes", "memory", Unit.BYTES, 9),
    Column("types", "types", Unit.MIX, 20),
    Column("ttl", "TTL", Unit.TEXT, 10, "What a registry would expect"),
    Column("size", "size", Unit.TEXT, 8, "What a registry would expect"),
    Column("example", "example", Unit.NAME),
)


def patterns_table(head: Head, learnt: LearntPatterns) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            display_text(one.pattern.text),
            round(one.keys),
            one.keys / learnt.keys if learnt.keys else 0.0,
            None if one.memory_bytes is None else round(one.memory_bytes),
            tuple(one.types.most_common()),
            expected_ttl(one) or "",
            expected_size(one) or "",
            one.examples[0] if one.examples else None,
        )
        for one in by_keys(learnt)
    ]
    return Table(
        "patterns",
        f"Patterns of {display_text(head.server.label)} db{head.server.db}",
        _COLUMNS,
        rows,
        note=_note(head, learnt),
    )


def _note(head: Head, learnt: LearntPatterns) -> str:
    notes = []
    if head.coverage.kind is not CoverageKind.EXACT:
        notes.append("not every key was analysed: there may be other patterns")
    if learnt.without:
        notes.append(f"{humanize.keys(round(learnt.without))} cannot have a pattern: empty name, or over 4,096 bytes")
    return "; ".join(notes)


def by_keys(learnt: LearntPatterns) -> Sequence[Learnt]:
    return sorted(learnt.patterns, key=lambda one: (-one.keys, one.pattern.text))


def write_patterns_json(head: Head, learnt: LearntPatterns) -> str:
    members: list[dict[str, Any]] = [
        {
            "pattern": one.pattern.text,
            "keys": round(one.keys),
            "memory_bytes": None if one.memory_bytes is None else round(one.memory_bytes),
            "types": dict(one.types.most_common()),
            "ttl_left_s": one.ttl_left_s,
            "keys_without_ttl": round(one.lasting),
            "largest_bytes": one.largest_bytes,
            "expected": {"type": expected_types(one), "ttl": expected_ttl(one), "size": expected_size(one)},
            "examples": one.examples,
        }
        for one in by_keys(learnt)
    ]
    whole = {
        "format": "rtui patterns",
        "server": head.server.label,
        "db": head.server.db,
        "made_at_s": head.made_at_s,
        "coverage": head.coverage.kind.value,
        "keys": round(learnt.keys),
        "keys_without_pattern": round(learnt.without),
        "separators": learnt.separators,
        "patterns": members,
    }
    return json.dumps(json_value(whole), indent=1, allow_nan=False) + "\n"
