"""Writes the patterns that an analysis has learnt: as the draft of a registry, as a table, as JSON.

The expectations of a draft are the values seen, with room to grow: the types, the next usual duration from the longest
time to live on, and a power of two from twice the largest size on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.formats.json import json_value
from rtui.analysis.formats.learnt_patterns import Learnt, LearntPatterns
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import CoverageKind, Head
from rtui.analysis.report.tables.table import COVERAGE_MARKS, Cell, Column, Table, Unit
from rtui.keyspace.text.display import display_text, is_hidden
from rtui.keyspace.text.quantities import write_duration, write_size
from rtui.registry.expectations import ExpectationError, read_type

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
    """Return the types of its keys, most keys first, as a registry names them."""
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
    """Return the times to live that its keys may be given; None where nothing is known of any."""
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
    """Return the most memory of a key; None where it is not known."""
    return None if not one.largest_bytes else f"<={write_size(1 << (2 * one.largest_bytes - 1).bit_length())}"


def write_registry(head: Head, learnt: LearntPatterns, errors: Sequence[str] = ()) -> str:
    """Return the draft of a registry, in TOML; the registry loader reads it without a warning.

    `errors` are the rules that the keyspace breaks today as errors: in the draft they are warnings.
    """
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
    """Return the patterns as a table, most keys first."""
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
    """Return the gaps of the table."""
    notes = []
    if head.coverage.kind is not CoverageKind.EXACT:
        notes.append("not every key was analysed: there may be other patterns")
    if learnt.without:
        notes.append(f"{humanize.keys(round(learnt.without))} cannot have a pattern: empty name, or over 4,096 bytes")
    return "; ".join(notes)


def by_keys(learnt: LearntPatterns) -> Sequence[Learnt]:
    return sorted(learnt.patterns, key=lambda one: (-one.keys, one.pattern.text))


def write_patterns_json(head: Head, learnt: LearntPatterns) -> str:
    """Return the patterns with their figures as one JSON object."""
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
