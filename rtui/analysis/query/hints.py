"""Help while a query line is typed: completion at the cursor, and words that look like a mistake.

`complete` returns candidates and the part of the line that each would replace. The caller gives the names of a keyspace
as a `Vocabulary`, in functions that find names by their beginning, so that a keyspace of any size is cheap.

Words that look like a mistake for something else are valid: most of them are searched for in names, and a key may be
named so: `tll:none`, `type=hash`, `AND`. So they are hints beside the search, not errors. A hint that would meet
ordinary names too often (`spot:5` is near `slot:5`) is a doubt, shown only if the search finds nothing. A suggestion is
always a term that can be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from rtui.analysis.query.parsing import ALIASES, LineReading, items, read, word_end, word_starts
from rtui.analysis.query.query import (
    HEAD,
    WILDCARD,
    Problem,
    Query,
    QuerySpan,
    Term,
    in_quotes,
    raw_bytes,
    written_bytes,
)
from rtui.analysis.query.terms import GLOB, PLACES, REGEX, TERMS, TEXT, TermForm, TermSpec
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.matching import edits
from rtui.keyspace.text.quantities import ValueSyntaxError

MOST: Final = 50

_OPENINGS: Final = {
    "text": (),
    "glob": (),
    "slot": ("slot:",),
    "shard": ("shard:",),
    "ttl": ("ttl:none", "ttl<", "ttl>", "ttl:"),
}

_NUMBER_END: Final = re.compile(r"[0-9](?:[0-9_]*[0-9])?(?:\.[0-9]+)?([A-Za-z]*)$")


def _nothing(prefix: bytes) -> Iterable[bytes]:
    return ()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of a keyspace; each function returns names that begin with some bytes, likeliest first."""

    namespaces: Callable[[bytes], Iterable[bytes]] = _nothing
    """Paths of namespaces, with or without the separator at the end."""
    patterns: Callable[[bytes], Iterable[bytes]] = _nothing
    tags: Callable[[bytes], Iterable[bytes]] = _nothing
    types: tuple[bytes, ...] = ()
    """Types that keys have, most keys first; all known ones follow."""
    encodings: tuple[bytes, ...] = ()
    nodes: tuple[bytes, ...] = ()
    """Of a cluster, by host and port."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to go on."""

    text: SafeText
    help: SafeText
    is_whole: bool = True
    """Whether a space may follow; else a value is still to be typed."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Candidates for a part of a line."""

    span: QuerySpan
    candidates: tuple[Candidate, ...] = ()
    help: SafeText = SafeText("")  # noqa: RUF009 - a value that does not change


def complete(line: str, cursor: int, vocabulary: Vocabulary | None = None) -> Completion:
    vocabulary = vocabulary or Vocabulary()
    cursor = max(0, min(cursor, len(line)))
    before = [*word_starts(line[:cursor])][-1:]
    start = before[0] if before and word_end(line[:cursor], before[0]) == cursor else cursor
    at = start + (line[start:cursor].startswith("!"))
    typed = line[at:cursor]
    head = HEAD.match(typed)
    spec = None if head is None else TERMS.get(head[1].lower())
    if head is None or spec is None:
        found = islice(_beginnings(typed), MOST)
        return Completion(QuerySpan(at, cursor), tuple(found))
    help_text = term_help(spec)
    value_start = at + head.end()
    if spec.form is not TermForm.TEXT:
        *_, (value_start, _) = items(line, value_start, cursor)
    value = line[value_start:cursor]
    if spec.form is TermForm.NAMES:
        candidates = tuple(islice(_names(spec, value, vocabulary), MOST))
    elif spec.form is TermForm.NUMBERS:
        candidates = tuple(_numbers(spec, value, head[2]))
    else:
        candidates = ()
    return Completion(QuerySpan(value_start, cursor), candidates, help_text)


def term_help(spec: TermSpec) -> SafeText:
    """Return the help on a term, with examples: `keys by their length: … (len>10000, len:1)`."""
    return SafeText(f"{spec.help} ({', '.join(spec.examples)})".replace(": (", " ("))


def _beginnings(typed: str) -> Iterator[Candidate]:
    for spec in TERMS.values():
        default = (f"{spec.name}:", *(f"{spec.name}{one}" for one in ("<", ">") if one in spec.operators))
        for opening in _OPENINGS.get(spec.name, default):
            if opening.startswith(typed.lower()) and opening != typed:
                is_whole = spec.keyword is not None and opening.endswith(spec.keyword.value)
                yield Candidate(SafeText(opening), term_help(spec), is_whole)


def _names(spec: TermSpec, value: str, vocabulary: Vocabulary) -> Iterator[Candidate]:
    try:
        prefix = raw_bytes(value.removeprefix('"'))
    except ValueSyntaxError:
        return
    match spec.name:
        case "in":
            found = vocabulary.namespaces(prefix)
        case "pattern":
            found = vocabulary.patterns(prefix)
        case "tag":
            found = vocabulary.tags(prefix)
        case "node":
            found = (one for one in vocabulary.nodes if one.startswith(prefix))
        case _:
            here = vocabulary.types if spec.name == "type" else vocabulary.encodings
            wanted = prefix.lower()
            found = (one for one in dict.fromkeys((*here, *spec.known)) if one.lower().startswith(wanted))
    for name in found:
        if name != prefix:
            yield Candidate(written_bytes(name, forbidden=","), SafeText(""))


def _numbers(spec: TermSpec, value: str, operator: str) -> Iterator[Candidate]:
    keyword, syntax = spec.keyword, spec.syntax
    if keyword is not None and operator == ":" and keyword.value.startswith(value.lower()) and value != keyword.value:
        yield Candidate(SafeText(keyword.value), SafeText("keys without a TTL"))
    number = _NUMBER_END.search(value)
    if number is None or syntax is None:
        return
    before = value[: number.start(1)]
    for unit in syntax.units:
        if unit.lower().startswith(number[1].lower()) and unit != number[1]:
            yield Candidate(display_text(before + unit), SafeText(_UNIT_NAMES.get(unit, "")))


_UNIT_NAMES: Final = {
    "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "K": "KiB", "M": "MiB, millions in a length",
    "G": "GiB", "k": "thousands",
}  # fmt: skip


_NAMED: Final = re.compile(r"([A-Za-z]{1,16})([=:<>!~]{1,3})(.+)", re.DOTALL)
_OPERATORS: Final = {"!=": "!:", "!": "!:", "<>": "!:", "=>": ">=", "=<": "<=", ":>": ">", ":<": "<", ":>=": ">="}
_OPERATORS_WITHOUT_COLON: Final = {**_OPERATORS, ":<=": "<=", "=": ":", "==": ":", ":=": ":", "::": ":", "~": ":"}
"""Operators that people try, and the ones they mean; `!:` negates the term."""

_OUTSIDE: Final = "-+^~('`“‘«,;&|"
_BEHIND: Final = ")'`”’»,;&|"
"""Characters around a term that have no meaning there; a minus before one turns it round elsewhere."""

_SPACES: Final = SafeText("terms are separated by spaces")

_WORD_UNITS: Final = {
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "h"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "m"),
    **dict.fromkeys(("second", "seconds", "sec", "secs"), "s"),
    **dict.fromkeys(("byte", "bytes"), ""),
}

_AND: Final = frozenset({"AND", "&&", "&", "+", ","})
_OR: Final = frozenset({"OR", "||", "|"})
_NOT: Final = frozenset({"NOT", "-", "!"})

_OWN_GLOB: Final = re.compile(r"[\[?\\]")
"""Characters of globs that do not match themselves, or are hardly ever meant as wildcards."""

_FREE_ALIASES: Final = frozenset({"namespace", "hashtag", "regex", "regexp"})
"""Names of terms in other tools that hardly any key begins with, whatever follows."""

_WITH_KNOWN: Final = tuple(f"{one.name}:" for one in TERMS.values() if one.known)
_OF_ONE: Final = frozenset({"type", "enc", "tag"})
_UNLIKELY: Final = frozenset({TEXT, GLOB, REGEX, "in"})
"""Terms that a mistyped name is not taken for: `test:`, `id:` and the like are ordinary beginnings of names."""


def read_with_hints(line: str) -> LineReading:
    reading = read(line)
    reading = replace(reading, problems=tuple(_better(line, problem) for problem in reading.problems))
    hints: list[Problem] = []
    doubts: list[Problem] = []
    terms = reading.query.terms
    taken: set[int] = set()
    for problem, is_sure, words in _misses(line, terms):
        if taken.isdisjoint(words):
            taken.update(words)
            (hints if is_sure else doubts).append(problem)
    return replace(reading, query=replace(reading.query, hints=tuple(hints), doubts=tuple(doubts)))


def _better(line: str, problem: Problem) -> Problem:
    """Return a problem with a suggestion for more than one word: `type: hash`, `ttl:none;type:hash`."""
    words = [found.span() for found in re.finditer(r"\S+", line) if found.end() >= problem.span.start]
    if not words:
        return problem
    (start, end), *others = words
    apart = _apart(line[start:end])
    if apart is not None:
        return Problem(QuerySpan(start, end), _SPACES, (apart,))
    if others and line[end - 1] in ":<>=":
        joined = _understood(line[start:end] + line[slice(*others[0])])
        if joined is not None:
            message = display_text(f"“{line[start : others[0][1]]}” contains a space", limit=400)
            return Problem(QuerySpan(start, others[0][1]), message, (str(joined),))
    return problem


def _apart(word: str) -> str | None:
    parts = re.split(r"[,;|&]+(?=!?[A-Za-z]+[:<>])", word)
    if len(parts) < 2 or any(_understood(part) is None for part in parts):
        return None
    return " ".join(parts)


Miss = tuple[Problem, bool, tuple[int, ...]]
"""A problem with its suggestion, whether it is likely whatever is found, and the starts of the words it is about."""


def _misses(line: str, terms: Sequence[Term]) -> Iterator[Miss]:
    yield from _spaced(line, terms)
    yield from _connectives(line, terms)
    yield from _contradictions(terms)
    for term in terms:
        found = _plain_word(line, term) if _is_plain(line, term) else _values(line, term)
        if found is not None:
            yield (*found, (term.span.start,))


def _word(line: str, term: Term) -> str:
    return line[term.span.start : term.span.end]


def _is_plain(line: str, term: Term) -> bool:
    word = _word(line, term).removeprefix("!")
    is_named = word.lower().startswith(f"{term.name}:")
    return term.name in (TEXT, GLOB) and not is_named and not word.startswith('"')


def _searched(span: QuerySpan, shown: str, *meant: str, is_negated: bool = False, why: str = "") -> Problem:
    """Return the hint that a word is searched for in names, or with a ! in front of it leaves names out."""
    said = (
        f"“!{shown}” excludes names that contain “{shown}”"
        if is_negated
        else f"“{shown}” is searched as part of a name"
    )
    return Problem(span, display_text(f"{said}{why}", limit=400), meant)


def _understood(text: str) -> Query | None:
    """Return the query of a suggestion, with its own first mistake mended; None if it can't be parsed."""
    reading = read(text)
    if reading.problems:
        problem = reading.problems[0]
        is_whole = problem.span.start == 0 or text[: problem.span.start] == "!"
        if not problem.meant or not (is_whole or text.lstrip("!").lower().startswith(_WITH_KNOWN)):
            return None
        reading = read(text[: problem.span.start] + problem.meant[0] + text[problem.span.end :])
    terms = reading.query.terms
    is_useful = len(terms) == 1 and terms[0].name not in (TEXT, GLOB)
    return reading.query if is_useful and not reading.problems else None


# one word


def _plain_word(line: str, term: Term) -> tuple[Problem, bool] | None:
    word, sign = _word(line, term).removeprefix("!"), "!" if term.is_negated else ""
    wrapped = _unwrapped(word)
    if wrapped is not None:
        return _searched(term.span, word, _turned(sign + wrapped), is_negated=term.is_negated), True
    found = _NAMED.fullmatch(word)
    if found is not None and (named := _named(*found.groups())) is not None:
        meant, is_sure = named
        return _searched(term.span, word, _turned(sign + meant), is_negated=term.is_negated), is_sure
    return _as_text(term, word)


def _turned(text: str) -> str:
    return text.removeprefix("!!")


def _unwrapped(word: str) -> str | None:
    """Return the term within meaningless characters, as in `(ttl:none)` and `-type:hash`."""
    inner = word.lstrip(_OUTSIDE)
    if inner == word and word[-1:] not in _BEHIND:
        return None
    texts = (inner.rstrip(_BEHIND), inner)
    for text in reversed(texts) if word[0] in "-+" else texts:
        understood = _understood(text)
        if understood is not None:
            return f"{'!' if word.startswith('-') else ''}{understood}"
    return None


def _named(name: str, operator: str, value: str) -> tuple[str, bool] | None:
    lower = name.lower()
    meant_operator = _OPERATORS_WITHOUT_COLON.get(operator, operator)
    is_negated = meant_operator.startswith("!")
    sign, meant_operator = ("!", ":") if is_negated else ("", meant_operator)
    is_exact = lower in TERMS
    for term_name in (lower,) if is_exact else _near_terms(lower):
        text = f"{sign}{term_name}{meant_operator}{value}"
        understood = _understood(text)
        if understood is None:
            continue
        if is_exact or lower in _FREE_ALIASES:
            is_sure = not {"&", "="} & set(value)
        else:
            is_sure = _is_distinctive(understood.terms[0], value, is_swapped=sorted(term_name) == sorted(lower))
        return str(understood), is_sure
    return None


def _near_terms(name: str) -> list[str]:
    known = {**{one: one for one in TERMS if one not in _UNLIKELY}, **ALIASES}
    if name in ALIASES:
        return [ALIASES[name]]
    near = sorted(
        (edits(name, one), one) for one in known if edits(name, one) <= (1 if min(len(one), len(name)) < 6 else 2)
    )
    return list(dict.fromkeys(known[one] for _, one in near if len(name) > 1))


def _is_distinctive(term: Term, value: str, *, is_swapped: bool) -> bool:
    """Whether hardly any name has such a value after a text that resembles the name of this term."""
    spec = term.spec
    if spec.known:
        return all(name in spec.known for name in term.names)
    if is_swapped:
        return True
    if spec.form is not TermForm.NUMBERS or spec.syntax in PLACES or term.name == "expires":
        return False
    return re.search(r"[^0-9,]", value) is not None


def _as_text(term: Term, word: str) -> tuple[Problem, bool] | None:
    sign = "!" if term.is_negated else ""
    if term.name == GLOB and _OWN_GLOB.search(word):
        message = display_text(f"“{word}” is a glob, which must match the whole name", limit=400)
        return Problem(term.span, message, (sign + in_quotes(display_text(word, limit=4096)),)), False
    if term.name == TEXT and word[-1] in ",;" and word[:-1]:
        return _searched(term.span, word, sign + word[:-1], is_negated=term.is_negated), False
    if term.name == TEXT and word != word.lower():
        message = display_text(f"“{word}” has capital letters, so only names with the same capitals match", limit=400)
        return Problem(term.span, message, (sign + word.lower(),)), False
    return None


def _values(line: str, term: Term) -> tuple[Problem, bool] | None:
    word = _word(line, term)
    if term.spec.form is not TermForm.NAMES or '"' in word or term.name == "pattern":
        return None
    apart = _apart(word)
    if apart is not None:
        return Problem(term.span, _SPACES, (apart,)), True
    stars = next((name for name in term.names if WILDCARD.search(name.decode("utf-8", "replace"))), None)
    if stars is not None:
        shown = written_bytes(stars, forbidden=",")
        message = display_text(f"“{shown}” is not a glob in “{term.name}:”, which takes names literally", limit=400)
        return Problem(term.span, message, _without_stars(term, stars)), True
    if term.spec.known and (unknown := [name for name in term.names if name not in term.spec.known]):
        listed = ", ".join(written_bytes(name) for name in unknown)
        noun = "type" if term.name == "type" else "encoding"
        message = display_text(f"“{listed}” is not a {noun} known to rtui", limit=400)
        return Problem(term.span, message), False
    return None


def _without_stars(term: Term, name: bytes) -> tuple[str, ...]:
    """Return the suggestion for a term whose only name contains wildcards: the namespace, or else a glob."""
    if term.name not in ("in", "tag") or len(term.names) > 1:
        return ()
    plain = re.sub(rb"[:/.|]?\*+$", b"", name)
    if plain and WILDCARD.search(plain.decode("utf-8", "replace")) is None:
        return (str(replace(term, values=(plain,))),)
    return (str(Term(GLOB, (name.rstrip(b":*") + b":*",), term.is_negated)),) if term.name == "in" else ()


# several words


def _spaced(line: str, terms: Sequence[Term]) -> Iterator[Miss]:
    """Yield words that are one term without the spaces between them: `ttl < 10m`, `size>1 M`."""
    for at, first in enumerate(terms):
        for count in (3, 2):
            group = terms[at : at + count]
            if len(group) < count or not all(_is_plain(line, one) for one in group[1:]):
                continue
            words = [_word(line, one) for one in group]
            words[-1] = _WORD_UNITS.get(words[-1].lower(), words[-1])
            joined = "".join(words)
            if not (_begins_term(line, group) if _is_plain(line, first) else _has_unit_behind(words)):
                continue
            found = _NAMED.fullmatch(joined.removeprefix("!"))
            named = None if found is None else _named(*found.groups())
            if named is None:
                continue
            span = QuerySpan(first.span.start, group[-1].span.end)
            shown = " ".join(_word(line, one) for one in group)
            message = display_text(f"“{shown}” is {count} terms; separate them with spaces", limit=400)
            meant = _turned(("!" if first.is_negated else "") + named[0])
            yield Problem(span, message, (meant,)), True, tuple(one.span.start for one in group)
            break


def _begins_term(line: str, group: Sequence[Term]) -> bool:
    name = _word(line, group[0]).removeprefix("!").lower().rstrip("=:<>")
    return name in TERMS and _word(line, group[1])[0] in "=:<>" and _word(line, group[-1]).strip("=:<>") != ""


def _has_unit_behind(words: Sequence[str]) -> bool:
    *_, number, unit = words
    return len(words) == 2 and number[-1:].isdigit() and unit[-1:].isalpha() and not read("".join(words)).problems


def _contradictions(terms: Sequence[Term]) -> Iterator[Miss]:
    """Yield pairs of terms that no key passes, such as `type:hash type:set`."""
    for at, one in enumerate(terms):
        for other in terms[at + 1 :]:
            if one.name != other.name or one.name not in _OF_ONE or {*one.values} & {*other.values}:
                continue
            merged = _merged(one, other)
            if merged is not None:
                span = QuerySpan(one.span.start, other.span.end)
                message = display_text(f"no key matches both “{one}” and “{other}”", limit=400)
                meant = (str(merged),) if terms[at + 1] is other else ()
                yield Problem(span, message, meant), True, (other.span.start,)


def _connectives(line: str, terms: Sequence[Term]) -> Iterator[Miss]:
    for at, term in enumerate(terms):
        word = _word(line, term)
        upper = word.upper()
        if len(terms) < 2 or not _is_plain(line, term) or term.is_negated or upper not in _AND | _OR | _NOT:
            continue
        before, after = terms[:at], terms[at + 1 : at + 2]
        real = [one for one in (*before[-1:], *after) if not _is_plain(line, one)]
        is_sure = not word.islower() or len(real) == len(before[-1:]) + len(after)
        if upper in _NOT and after:
            span = QuerySpan(term.span.start, after[0].span.end)
            meant: tuple[str, ...] = (str(replace(after[0], is_negated=not after[0].is_negated)),)
            yield _searched(span, word, *meant, why=": ! before a term negates it"), is_sure, (term.span.start,)
        elif before and after:
            span = QuerySpan(before[-1].span.start, after[0].span.end)
            pair = before[-1], after[0]
            if upper in _OR:
                merged = _merged(*pair)
                meant = () if merged is None else (str(merged),)
                why = ": there is no OR, all terms must match"
            else:
                meant, why = (" ".join(str(one) for one in pair),), ": all terms must match anyway"
            yield _searched(span, word, *meant, why=why), is_sure, (term.span.start,)


def _merged(one: Term, other: Term) -> Term | None:
    is_list = one.spec.form is not TermForm.TEXT
    if one.name != other.name or one.is_negated or other.is_negated or not is_list:
        return None
    return replace(one, values=tuple(dict.fromkeys((*one.values, *other.values))))
