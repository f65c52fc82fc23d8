"""Finds pairs of equally specific patterns that match a common key, with such a key.

Common keys are composed segment by segment, from the texts of one pattern and sample values of the other, and tried
with both. So a reported key is always an example; an overlap of unusual placeholder forms may be missed.

Of thousands of patterns only few pairs are compared: patterns whose segments end in the same separators, and that have
the same text in the segment in which they differ most, or a placeholder there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice, product
from typing import Final, NamedTuple

from rtui.registry.patterns import LONGEST_KEY, Literal, Pattern, Segment, compiled, segment_expression

MOST_TRIED: Final = 512
"""The most texts tried for one pair."""


class Ambiguity(NamedTuple):
    """Two patterns, by their index, and a key that matches both."""

    first: int
    second: int
    example: bytes


def ambiguities(patterns: Sequence[Pattern]) -> Iterator[Ambiguity]:
    """Yield every pair of equally specific patterns that match a common key."""
    alike: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, pattern in enumerate(patterns):
        alike[pattern.specificity].append(index)
    for group in alike.values():
        for first, second in sorted(_candidates(patterns, group)):
            example = common_key(patterns[first], patterns[second])
            if example is not None:
                yield Ambiguity(first, second, example)


def _candidates(patterns: Sequence[Pattern], group: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a group that may match a common key, the lower index first."""
    still_open = [at for at in group if any(one.spans(patterns[at].separators) for one in patterns[at].segments)]
    others = set(still_open)
    yield from combinations(still_open, 2)
    yield from ((min(pair), max(pair)) for pair in product(still_open, (at for at in group if at not in others)))
    closed: defaultdict[tuple[bytes, ...], list[int]] = defaultdict(list)
    for at in group:
        if at not in others:
            closed[tuple(segment.separator for segment in patterns[at].segments)].append(at)
    for separators, members in closed.items():
        yield from _pairs_alike(patterns, members, range(len(separators)))


def _pairs_alike(
    patterns: Sequence[Pattern], members: Sequence[int], places: Iterable[int]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs without different literal text in any of these segments; all patterns have as many segments."""
    texts = {place: [patterns[at].segments[place].literal for at in members] for place in places}
    differing = {place: len({*found} - {None}) for place, found in texts.items()}
    place = max(differing, key=differing.__getitem__, default=None)
    if place is None or differing[place] < 2 or len(members) < 2:
        yield from combinations(members, 2)
        return
    by_text: defaultdict[bytes | None, list[int]] = defaultdict(list)
    for at, text in zip(members, texts[place], strict=True):
        by_text[text].append(at)
    rest = [other for other in texts if other != place]
    free = by_text.pop(None, [])
    for some in (free, *by_text.values()):
        yield from _pairs_alike(patterns, some, rest)
    yield from ((min(pair), max(pair)) for some in by_text.values() for pair in product(free, some))


def common_key(first: Pattern, second: Pattern) -> bytes | None:
    """Return a key that matches both patterns, or None."""
    separators = first.separators
    if any(segment.spans(separators) for segment in (*first.segments, *second.segments)):
        return _common_open(first, second)
    if [segment.separator for segment in first.segments] != [segment.separator for segment in second.segments]:
        return None
    pairs = list(zip(first.segments, second.segments, strict=True))
    if any(one.literal is not None and two.literal not in (None, one.literal) for one, two in pairs):
        return None
    found = b""
    for one, two in pairs:
        text = _common_text(one, two, separators)
        if text is None:
            return None
        found += text + one.separator
    return found if len(found) <= LONGEST_KEY else None


def _common_text(one: Segment, two: Segment, separators: Sequence[bytes]) -> bytes | None:
    """Return a text that matches both segments, or None."""
    if one.literal is not None and one.literal == two.literal:
        return one.literal
    tests = [compiled(segment_expression(segment.parts, separators)).fullmatch for segment in (one, two)]
    return next((text for text in _texts(one, two) if all(test(text) for test in tests)), None)


def _texts(one: Segment, two: Segment) -> Iterator[bytes]:
    """Yield texts that may match both segments."""
    literals = [segment.literal for segment in (one, two) if segment.literal is not None]
    if literals:
        yield literals[0]
        return
    samples = [text for segment in (one, two) for part in segment.placeholders for text in part.values.samples()]
    for segment in (one, two):
        choices = [[part.text] if isinstance(part, Literal) else samples for part in segment.parts]
        yield from islice(map(b"".join, product(*choices)), MOST_TRIED)
    begin = max(_end_literal(one, 0), _end_literal(two, 0), key=len)
    end = max(_end_literal(one, -1), _end_literal(two, -1), key=len)
    middles = [
        b"x".join((b"", *(part.text for segment in order for part in segment.parts if isinstance(part, Literal)), b""))
        for order in ((one, two), (two, one))
    ]
    for middle in (b"", *samples, *middles):
        yield begin + middle + end
        for overlap in range(1, min(len(begin), len(end)) + 1):
            if begin.endswith(end[:overlap]):
                yield begin + end[overlap:]


def _end_literal(segment: Segment, at: int) -> bytes:
    """Return the literal text at an end of a segment; empty if a placeholder is there."""
    part = segment.parts[at]
    return part.text if isinstance(part, Literal) else b""


def _common_open(first: Pattern, second: Pattern) -> bytes | None:
    """Return a key that matches both patterns, of which one has a placeholder that may span segments; or None."""
    for one, two in ((first, second), (second, first)):
        if not _may_begin_alike(one, two):
            return None
        texts = [segment.literal for segment in two.segments if segment.literal]
        rests = [Pattern("", two.separators, two.segments[at:]).sample() for at in range(len(two.segments))]
        samples = [text for part in two.placeholders for text in part.values.samples()[:2]]
        choices = [
            [part.text] if isinstance(part, Literal) else [*part.values.samples(), *texts, *rests, *samples]
            for segment in one.segments
            for part in (*segment.parts, *([Literal(segment.separator)] if segment.separator else []))
        ]
        for text in islice(map(b"".join, product(*choices)), MOST_TRIED):
            if one.matches(text) and two.matches(text):
                return text
    return None


def _may_begin_alike(one: Pattern, two: Pattern) -> bool:
    """Return False if literal text differs before the first placeholder that may span segments."""
    for first, second in zip(one.segments, two.segments, strict=False):
        if any(segment.spans(one.separators) for segment in (first, second)):
            return True
        if first.separator != second.separator:
            return False
        if first.literal is not None and second.literal is not None and first.literal != second.literal:
            return False
    return True
