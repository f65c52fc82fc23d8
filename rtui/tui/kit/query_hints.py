"""Hints for a query while it is typed: whether it is one, its problems, and completion at the cursor.

Completion knows the tree and the latest analysis. Nothing is asked of the server, and its search is bounded to less
than a frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import islice
from typing import Final

from rtui.analysis.query.behind import step_of
from rtui.analysis.query.hints import MOST, Candidate, Completion, Vocabulary
from rtui.analysis.query.parsing import LineReading, word_end
from rtui.analysis.query.patterns import PatternStep, pattern_text
from rtui.analysis.query.query import HEAD
from rtui.analysis.query.query import QuerySpan as Part
from rtui.analysis.query.terms import GLOB, TERMS, TEXT
from rtui.analysis.report.document import Node, NodeKind
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import count_inline
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, literal

MOST_LOOKED_AT: Final = 5_000
MOST_NODES: Final = 2_000


def vocabulary_of(session: BrowsingSession) -> Vocabulary:
    """Return the words for completion: loaded namespaces, nodes by host and port, patterns and types of an analysis."""
    labels = tuple(node.label.encode() for node in session.status.nodes)

    def namespaces(prefix: bytes) -> Iterable[bytes]:
        return loaded_namespaces(session.store.root, prefix)

    if session.analysed is None:
        return Vocabulary(namespaces, nodes=labels)
    summary = session.analysed.report.summary

    def patterns(prefix: bytes) -> Iterator[bytes]:
        found = islice(_patterns(summary.root), MOST_NODES)
        return (pattern for pattern in found if pattern.startswith(prefix))

    def tags(prefix: bytes) -> Iterator[bytes]:
        tagged = () if summary.slots is None else summary.slots.tags
        return (one.tag for one in tagged if one.tag.startswith(prefix))

    return Vocabulary(
        namespaces,
        patterns,
        tags,
        tuple(one.name for one in summary.types),
        tuple(dict.fromkeys(one.encoding for one in summary.encodings)),
        labels,
    )


def _patterns(root: Node) -> Iterator[bytes]:
    """Yield the patterns of a report that are no mere namespaces or keys, the largest first at each level."""
    waiting: list[tuple[Node, tuple[PatternStep, ...]]] = [(root, ())]
    for node, steps in waiting:
        for child in node.children:
            if child.kind is NodeKind.OTHER or len(waiting) > MOST_NODES:
                continue
            path = (*steps, step_of(child))
            waiting.append((child, path))
            if any(step.is_folded for step in path):
                yield pattern_text(path)


def loaded_namespaces(root: Namespace, prefix: bytes) -> list[bytes]:
    """Return the loaded namespaces with a prefix, in descending number of keys."""
    node, done = root, b""
    while True:
        inner = _child_on_the_way(node, prefix[len(done) :])
        if inner is None:
            break
        node, done = inner, done + inner.label
    if node.children is None:
        return []
    rest, found = prefix[len(done) :], []
    labels = node.labels if len(node.labels) <= MOST_LOOKED_AT else node.labels[:MOST_LOOKED_AT]
    for label in labels:
        if label.startswith(rest):
            child = node.children.get(label)
            if isinstance(child, Namespace):
                found.append((child.count, label))
            else:
                found.append((child if isinstance(child, int) else count_inline(child or b""), label))
    return [done + label for _, label in nlargest(MOST, found)]


def _child_on_the_way(node: Namespace, rest: bytes) -> Namespace | None:
    """Return the child whose whole label a name begins with, if it is listed."""
    if node.children is None:
        return None
    for end in range(1, len(rest) + 1):
        child = node.children.get(rest[:end])
        if isinstance(child, Namespace) and child.children is not None:
            return child
    return None


MEANT: Final = literal("did you mean")
"""The help of a completion that corrects a problem in the line, in place of the term at the cursor."""

GRAMMAR: Final = literal("text, a glob, or terms (all must match); prefix ! to negate")


def is_query(reading: LineReading, line: str) -> bool:
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


def meant_completion(reading: LineReading) -> Completion | None:
    """Return the correction of the first problem in a line, or of a doubtful part; None if there is none."""
    problem = next((one for one in (*reading.problems, *reading.query.hints) if one.meant), None)
    if problem is None:
        return None
    candidates = tuple(Candidate(display_text(text, limit=400), MEANT) for text in problem.meant)
    return Completion(problem.span, candidates, MEANT)


_SAVED: Final = re.compile(r"(?<!\S)@[A-Za-z0-9_-]*$")


def saved_completion(line: str, cursor: int, saved: Mapping[str, str]) -> Completion | None:
    """Return the names of saved queries if one is being typed at a cursor; None elsewhere, or if none fits."""
    found = _SAVED.search(line, 0, cursor)
    if found is None:
        return None
    names = sorted(name for name in saved if f"@{name}".startswith(found[0]))
    if not names:
        return None
    help_text = display_text(saved[names[0]], limit=300) if len(names) == 1 else literal("saved queries")
    candidates = tuple(Candidate(SafeText(f"@{name}"), display_text(saved[name], limit=80)) for name in names)
    return Completion(Part(found.start(), cursor), candidates, help_text)


def styled_parts(reading: LineReading, line: str) -> Iterator[tuple[int, int, Role]]:
    """Yield the highlighted parts of a line: names of terms, problems, and doubtful parts."""
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
    reading: LineReading,
    completion: Completion,
    tried: tuple[Sequence[str], int] | None,
    width: int,
    *,
    is_refused: bool = False,
) -> list[Line]:
    """Return two lines: the problem or the term's syntax, and the candidates of Tab.

    A missing value is not reported before it is begun, unless the line was refused. `tried` are the candidates of Tab,
    and the number of the inserted one.
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
