"""What is said of a query while it is typed: whether it is one, what is wrong, what the term at the cursor takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rtui.analysis.query.completion import Candidate, Completion
from rtui.analysis.query.parsing import Reading, word_end
from rtui.analysis.query.query import HEAD
from rtui.analysis.query.query import Span as Part
from rtui.analysis.query.terms import GLOB, TERMS, TEXT
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, literal

MEANT: Final = literal("what was probably meant")
"""The help of a completion that is not for the cursor, but for what is wrong in the line."""

GRAMMAR: Final = literal("text, a glob, or terms that all have to apply; ! before one turns it round")


def is_query(reading: Reading, line: str) -> bool:
    """Return whether a line has terms, right or wrong, and not just a text or a glob that names may have."""
    if any(term.is_negated or term.name not in (TEXT, GLOB) for term in reading.query.terms):
        return True
    meant = {problem.span.start for problem in reading.problems if problem.meant}
    at = 0
    while at < len(line):
        start = at + (line[at] == "!")
        head = HEAD.match(line, start)
        if head is not None and (head[1].lower() in TERMS or start in meant):
            return True
        at = word_end(line, at) + 1
    return False


def meant_completion(reading: Reading) -> Completion | None:
    """Return what is probably meant in place of the first part of a line that is wrong, or that looks so."""
    problem = next((one for one in (*reading.problems, *reading.query.hints) if one.meant), None)
    if problem is None:
        return None
    candidates = tuple(Candidate(display_text(text, limit=400), MEANT) for text in problem.meant)
    return Completion(problem.span, candidates, MEANT)


_SAVED: Final = re.compile(r"(?<!\S)@[A-Za-z0-9_-]*$")


def saved_completion(line: str, cursor: int, saved: Mapping[str, str]) -> Completion | None:
    """Return the names of saved queries where one is being typed at a cursor; None elsewhere, or where none fits."""
    found = _SAVED.search(line, 0, cursor)
    if found is None:
        return None
    names = sorted(name for name in saved if f"@{name}".startswith(found[0]))
    if not names:
        return None
    help_text = display_text(saved[names[0]], limit=300) if len(names) == 1 else literal("queries that were saved")
    candidates = tuple(Candidate(SafeText(f"@{name}"), display_text(saved[name], limit=80)) for name in names)
    return Completion(Part(found.start(), cursor), candidates, help_text)


def styled_parts(reading: Reading, line: str) -> Iterator[tuple[int, int, Role]]:
    """Yield which parts of a line stand out: the names of terms, what is wrong, what may be meant otherwise."""
    for term in reading.query.terms:
        start = term.span.start + term.is_negated
        head = HEAD.match(line, start) if term.name in TERMS else None
        if head is not None and head[1].lower() == term.name:
            yield term.span.start, head.end(), Role.ACCENT
    for problem in reading.problems:
        yield problem.span.start, problem.span.end, Role.BAD
    for hint in reading.query.hints:
        yield hint.span.start, hint.span.end, Role.WARN


def hint_lines(
    reading: Reading,
    completion: Completion,
    tried: tuple[Sequence[str], int] | None,
    width: int,
    *,
    is_refused: bool = False,
) -> list[Line]:
    """Return two lines: what is wrong or what the term takes, and what Tab puts in.

    While a value has not been begun, that it is missing is not said unless the line was refused. `tried` are the
    candidates of which one was put in, and which one that is.
    """
    is_begun = not is_refused and bool(completion.help) and completion.span.start == completion.span.end
    if (reading.problems and not is_begun) or reading.query.hints:
        problem = (reading.problems or reading.query.hints)[0]
        said = problem.sentence if not problem.meant else replace(problem, meant=()).sentence
        first: Line = (gap(1), Span(said, Role.WARN))
    else:
        first = (gap(1), Span(SafeText((completion.help != MEANT and completion.help) or GRAMMAR), Role.MUTED))
    texts, chosen = ([one.text for one in completion.candidates], None) if tried is None else tried
    second: list[Span] = [gap(1)]
    if texts:
        meant = literal(" meant: ") if completion.help == MEANT else literal(" ")
        second += [Span(literal("tab"), Role.ACCENT), Span(meant, Role.MUTED)]
    skipped = max(0, (chosen or 0) - 2)
    for at, text in enumerate(texts[skipped:], skipped):
        second += [Span(display_text(text, limit=40), Role.STRONG if at == chosen else Role.MUTED), gap(2)]
    return [clip(first, width), clip(tuple(second), width)]
