"""A query as a condition on the rows of the key table, with the answers of `names` and `deciding`.

Terms about facts are comparisons, null where the fact is not known. Terms about names are what Polars finds quickest: a
beginning, an end, a part, or a regular expression, each of which is right for names that are ASCII. Names for which it
would not be, those that are not UTF-8 above all, are decided one by one by the test of a scan (`names.name_test`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Final

import polars as pl

from rtui.analysis.query.ascii_regex import ascii_regex, escaped, one_of_bytes
from rtui.analysis.query.matches import Order
from rtui.analysis.query.names import Test, name_test, namespace_prefixes, typed_name
from rtui.analysis.query.patterns import HEX_PARTS, PatternMatcher, read_pattern
from rtui.analysis.query.places import slots_in
from rtui.analysis.query.query import Query, Term
from rtui.analysis.query.terms import Fact
from rtui.analysis.query.values import Keyword
from rtui.keyspace.text.glob import Matcher, tokens
from rtui.keyspace.text.natural import natural
from rtui.keyspace.text.quantities import LARGEST, Bounds
from rtui.keyspace.text.segments import Separators
from rtui.table.condition import Condition
from rtui.table.questions import By
from rtui.table.schema import NEVER, keys_in_slices

COLUMN_OF: Final[dict[Fact, str]] = {
    Fact.NAME: "name",
    Fact.TYPE: "type",
    Fact.TTL: "expires_ms",
    Fact.IDLE: "idle_s",
    Fact.FREQUENCY: "frequency",
    Fact.ENCODING: "encoding",
    Fact.MEMORY: "memory_bytes",
    Fact.LENGTH: "length",
}
"""The column of the key table that holds a fact."""

_COSTS: Final = {"slot": 0, "in": 1, "glob": 2, "text": 3, "tag": 4, "re": 5, "pattern": 6}
"""Terms about names in the order in which they are decided."""


def condition_of(query: Query, separators: Separators, now_ms: int) -> Condition:
    """Return what the rows that a query finds are like; times to live are what is left of them at `now_ms`.

    A time to live that has run out is 0 ms. Raises RegexError where an expression can't be used, ValueError for nodes
    and shards, which have to be replaced before, see `places.on_slots`.
    """
    names = sorted(query.about(Fact.NAME), key=lambda term: _COSTS.get(term.name, 0))
    facts = [_fact(term, now_ms) for term in query.terms if term.spec.fact is not Fact.NAME]
    return Condition(
        tuple(_name(term, separators) for term in names),
        pl.all_horizontal(*facts) if facts else None,
        tuple(COLUMN_OF[fact] for fact in query.facts),
    )


def by_order(order: Order) -> By:
    """Return what sorts rows as matches are sorted: no time to live is the longest, names by the numbers in them."""
    column = pl.col(COLUMN_OF[order.fact])
    match order.fact:
        case Fact.NAME:
            raw = pl.coalesce("raw", column.cast(pl.Binary))
            value = raw if order.is_by_bytes else raw.map_batches(_natural, pl.Binary(), is_elementwise=True)
        case Fact.TYPE | Fact.ENCODING:
            value = column.cast(pl.String)
        case Fact.TTL:
            value = pl.when(column == NEVER).then(_number(LARGEST)).otherwise(column)
        case _:
            value = column
    return By(value, order.is_descending)


def _natural(names: pl.Series) -> pl.Series:
    return pl.Series([natural(name) for name in names], dtype=pl.Binary)


def _fact(term: Term, now_ms: int) -> pl.Expr:
    found = _positive(term, now_ms)
    return ~found if term.is_negated else found


def _positive(term: Term, now_ms: int) -> pl.Expr:
    """Return the expression for a term about a fact, apart from its negation."""
    column = pl.col(COLUMN_OF[term.spec.fact])
    ranges = [value for value in term.values if isinstance(value, Bounds)]
    match term.name:
        case "type" | "enc":
            return column.is_in([name.decode("utf-8", "backslashreplace") for name in term.names])
        case "ttl":
            expiry = (column != NEVER) & _in_any(column, (_moments(one, now_ms) for one in ranges))
            return expiry | (column == NEVER) if Keyword.NONE in term.values else expiry
        case "expires":
            return (column != NEVER) & _in_any(column, ranges)
        case "idle":
            return _in_any(column, (_seconds(one) for one in ranges))
        case "freq" | "size" | "len":
            return _in_any(column, ranges)
    raise ValueError(f"{term.name} is not about a fact that is asked")


def _moments(left: Bounds, now_ms: int) -> Bounds:
    """Return when keys expire with so much left of their time to live."""
    low = None if not left.low or left.low < 0 else now_ms + left.low
    if left.high is not None and left.high < 0:
        return Bounds(1, 0)
    return Bounds(low, None if left.high is None else now_ms + left.high)


def _seconds(ms: Bounds) -> Bounds:
    """Return the whole seconds within bounds of milliseconds."""
    return Bounds(None if ms.low is None else -(-ms.low // 1000), None if ms.high is None else ms.high // 1000)


def _in_any(column: pl.Expr, ranges: Iterable[Bounds]) -> pl.Expr:
    """Return whether a whole number is within one of some bounds; null where it is not known."""
    return pl.any_horizontal(*(_within(column, one) for one in ranges), column != column)  # noqa: PLR0124 - false or null


def _within(column: pl.Expr, bounds: Bounds) -> pl.Expr:
    low, high = bounds.low, bounds.high
    if (low is not None and low > LARGEST) or (high is not None and high < -LARGEST):
        return column != column  # noqa: PLR0124 - false or null
    above = column == column if low is None else column >= _number(low)  # noqa: PLR0124 - true or null
    return above if high is None or high >= LARGEST else above & (column <= _number(high))


def _number(value: int) -> pl.Expr:
    """Return a number that no narrower column changes."""
    return pl.lit(max(value, -LARGEST), pl.Int64)


@dataclass(frozen=True, slots=True)
class _Found:
    """What Polars finds of names, which may have to be looked at again one by one."""

    by: pl.Expr | bool
    """Right for names that are ASCII."""
    is_for_unicode: bool = True
    """Whether it is right for all names that are UTF-8."""
    is_sure: bool = True
    """Whether all that it finds passes; else those are looked at again."""
    is_alike: Callable[[bytes, bool], bool] | None = None
    """Whether all names that differ from one in their digits only, or also in hexadecimal parts, have its answer."""


_NONE_IN_ASCII: Final = _Found(False, is_for_unicode=False)
"""Finds nothing: what is searched for is no UTF-8, of which only names beyond ASCII may have a part."""


def _name(term: Term, separators: Separators) -> pl.Expr:
    """Return the expression for a term about names."""
    test, found = name_test(term, separators), _found(term, separators)
    by = pl.lit(found.by) if isinstance(found.by, bool) else found.by
    inputs: list[str | pl.Expr] = ["name", "raw", by, *(["slot"] if term.name == "slot" else [])]

    def decide(columns: Sequence[pl.Series]) -> pl.Series:
        name, raw, answers = columns[:3]
        if len(answers) != len(name):
            answers = answers.new_from_index(0, len(name))
        again = [raw.is_not_null()] if raw.null_count() < len(raw) else []
        if term.name == "slot":
            again = [columns[3].is_null()]
        if not found.is_for_unicode:
            again.append(name.str.len_bytes() != name.str.len_chars())
        if not found.is_sure:
            again.append(answers)
        rows = reduce(or_, again).arg_true() if again else pl.Series(dtype=pl.UInt32)
        if not len(rows):
            return answers
        table = pl.DataFrame({"name": name.gather(rows), "raw": raw.gather(rows)})
        is_alike = found.is_alike
        looked_at = _one_by_one(test, table) if is_alike is None else _by_shape(test, is_alike, table)
        return answers.clone().scatter(rows, looked_at)

    answer = pl.map_batches(inputs, decide, return_dtype=pl.Boolean(), is_elementwise=True)
    return ~answer if term.is_negated else answer


def _one_by_one(test: Test, table: pl.DataFrame) -> pl.Series:
    """Return the answers of a test for the names of a table."""
    parts = [pl.Series([bool(test(key)) for key in keys], dtype=pl.Boolean) for keys in keys_in_slices(table)]
    return pl.concat(parts)


def _by_shape(test: Test, is_alike: Callable[[bytes, bool], bool], table: pl.DataFrame) -> pl.Series:
    """Return the same, but of names that differ in identifiers, look at one only where the others are alike."""
    name = shape = pl.col("name")
    for part, mark in zip(HEX_PARTS, _MARKS, strict=True):
        shape = shape.str.replace_all(part, mark)
    shape = shape.str.replace_all("[0-9]", "0")
    is_plain = pl.col("raw").is_null() & ~name.str.contains(f"[{_MARKS}]")
    table = table.with_columns(pl.when(is_plain).then(shape).alias("shape"))
    groups = table.filter(pl.col("shape").is_not_null()).group_by("shape").agg(name.first(), pl.len())
    groups = groups.filter(pl.col("len") > 1)
    found = [
        bool(test(key.encode())) if is_alike(key.encode(), any(mark in shape for mark in _MARKS)) else None
        for key, shape in zip(groups["name"], groups["shape"], strict=True)
    ]
    groups = groups.select("shape", pl.Series("answer", found, dtype=pl.Boolean))
    answers = table.join(groups, on="shape", how="left", maintain_order="left")["answer"]
    rows = answers.is_null().arg_true()
    return answers.scatter(rows, _one_by_one(test, table[rows])) if len(rows) else answers


_MARKS: Final = "\x01\x02"
"""Stand for HEX_PARTS in the shape of a name."""


def _found(term: Term, separators: Separators) -> _Found:
    """Return what Polars finds for a term about names, apart from its negation."""
    if term.name == "slot":
        return _Found(pl.col("slot").is_in(list(slots_in(term.values))).fill_null(False))
    if term.name == "tag":
        return _tagged(term.names)
    names = tuple(typed_name(name, separators) for name in term.names)
    if term.name == "in":
        return _inside(names, separators)
    if term.name == "pattern":
        patterns = [read_pattern(name, separators) for name in names]
        loose = _any_of([_Found(True) if one.glob is None else _glob(one.glob) for one in patterns])
        matcher = PatternMatcher(patterns, separators)
        return replace(loose, is_sure=False, is_alike=lambda key, has_hex: matcher.is_alike(key, has_hex=has_hex))
    return _OF_ONE[term.name](names[0])


def _inside(namespaces: Sequence[bytes], separators: Separators) -> _Found:
    """Return what finds names below one of some namespaces: within a hash tag, none begins."""
    prefixes = [prefix for name in namespaces for prefix in namespace_prefixes(name, separators)]
    found = _any_of([_literal(prefix, _NAME.str.starts_with) for prefix in prefixes])
    is_sure = all(len(value) == 1 for value in separators.values) and not any(b"{" in prefix for prefix in prefixes)
    return replace(found, is_sure=is_sure)


def _found_by_re2(expression: bytes) -> _Found:
    found = ascii_regex(expression)
    return _Found(True, is_sure=False) if found is None else _Found(_regex(found), is_for_unicode=False)


_NAME: Final = pl.col("name")


def _any_of(parts: Sequence[_Found]) -> _Found:
    """Return what finds all that one of some finds."""
    expressions = [one.by for one in parts if not isinstance(one.by, bool)]
    by = True if any(one.by is True for one in parts) else pl.any_horizontal(*expressions) if expressions else False
    return _Found(by, is_for_unicode=all(one.is_for_unicode for one in parts))


def _text(raw: bytes) -> str | None:
    """Return bytes as text; None where they are not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _literal(raw: bytes, finds: Callable[[str], pl.Expr]) -> _Found:
    """Return what finds bytes by a comparison of text, which is one of bytes where both are UTF-8."""
    text = _text(raw)
    return _NONE_IN_ASCII if text is None else _Found(finds(text))


def _regex(expression: str) -> pl.Expr:
    return _NAME.str.contains(expression)


def _containing(needle: bytes) -> _Found:
    """Return what finds names with a part, of which ASCII letters match in either case unless one is a capital."""
    if needle != needle.lower() or needle == needle.upper():
        return _literal(needle, lambda text: _NAME.str.contains(text, literal=True))
    return _literal(needle, lambda text: _regex("".join(_either_case(one) for one in text)))


def _either_case(character: str) -> str:
    is_letter = character.isascii() and character.isalpha()
    return f"[{character}{character.upper()}]" if is_letter else escaped(character)


def _tagged(tags: Iterable[bytes]) -> _Found:
    """Return what finds names with one of some hash tags."""
    possible = [tag for tag in tags if tag and b"}" not in tag]
    texts = [text for tag in possible if (text := _text(tag)) is not None]
    if not texts:
        return _Found(False)
    return _Found(_regex(rf"\A[^{{]*\{{(?:{'|'.join(map(escaped, texts))})\}}"))


def _matching(glob: bytes) -> _Found:
    """Return what finds names for a glob, which the name that is written like it passes, too."""
    found = _glob(glob)
    return found if Matcher(glob)(glob) else _any_of([found, _literal(glob, _NAME.eq)])


def _glob(glob: bytes) -> _Found:
    """Return what finds names that match a glob as a whole; the empty name matches only the globs `` and `*`."""
    pieces: list[list[frozenset[int]]] = [[]]
    for members in tokens(glob):
        if members is None:
            pieces.append([])
        else:
            pieces[-1].append(members)
    if not any(pieces):
        return _Found(_NAME.eq("") if len(pieces) == 1 else len(pieces) == 2 or _NAME.ne(""))
    if any(len(members) != 1 for piece in pieces for members in piece):
        return _Found(_regex(_anchored(["".join(map(_one_of, piece)) for piece in pieces])), is_for_unicode=False)
    texts = [text for piece in pieces if (text := _text(bytes(byte for (byte,) in piece))) is not None]
    return _Found(_literal_glob(texts)) if len(texts) == len(pieces) else _NONE_IN_ASCII


def _one_of(members: frozenset[int]) -> str:
    """Return the expression for the ASCII characters that a part of a glob accepts."""
    excluded = frozenset(range(0x80)) - members
    return one_of_bytes(members) if len(excluded) > 0x40 else one_of_bytes(excluded, is_negated=True)


def _anchored(pieces: Sequence[str]) -> str:
    """Return the expression for a whole name from expressions between which there may be anything."""
    start, end = pieces[0] and rf"\A{pieces[0]}", pieces[-1] and rf"{pieces[-1]}\z"
    if len(pieces) == 1:
        return rf"\A{pieces[0]}\z"
    return "(?s)" + ".*".join(piece for piece in (start, *pieces[1:-1], end) if piece)


def _literal_glob(texts: Sequence[str]) -> pl.Expr:
    """Return what finds names that have these texts one after the other, the first and last at their ends."""
    if len(texts) == 1:
        return _NAME.eq(texts[0])
    first, last = texts[0], texts[-1]
    between = [text for text in texts[1:-1] if text]
    if between and (first or last or len(between) > 1):
        return _regex(_anchored([escaped(text) for text in (first, *between, last)]))
    parts = [_NAME.str.contains(text, literal=True) for text in between]
    parts += [_NAME.str.starts_with(first)] if first else []
    parts += [_NAME.str.ends_with(last)] if last else []
    if first and last:
        parts.append(_NAME.str.len_bytes() >= len(first.encode()) + len(last.encode()))
    return pl.all_horizontal(*parts)


_OF_ONE: Final[dict[str, Callable[[bytes], _Found]]] = {
    "text": _containing,
    "glob": _matching,
    "re": _found_by_re2,
}
"""What finds names for terms that have one value."""
