r"""Finds the most specific of a registry's patterns that matches a key, and patterns that are equally specific.

Trying 200 patterns one after another would cost a hundred microseconds a key. So a key is split at the separators, and
the number of its segments leads to the patterns with as many. With the patterns

    app:session:<id>    app:cache:<entity>:count    app:lock:<resource>:<id>    <entity>:<id>:all:<x>

`app:cache:user:count` has four segments, as three of them. These differ most in the second segment, so that is looked
up: one has `cache` there, and one more a placeholder. A few remaining patterns are tried at once: their expressions are
alternatives of one, the most specific first. If many remain, another segment is looked up, or the beginning of one that
is partly literal (`rank_daily_<n>`), three times at most.

A pattern with a placeholder that may span separators (an IPv6 address, any depth) has no fixed number of segments: it
is among the patterns of every possible number, and only segments before that placeholder are looked up. With several
separators, patterns are not found by the number of segments but by the sequence of the separators between them:
`page-<n>:<id>` has `-:`. Deleting and replacing bytes is faster than splitting by an expression.

To find equally specific ones, common keys are composed segment by segment, from the texts of one pattern and sample
values of the other, and tried with both. So a reported key is always an example; an overlap of unusual placeholder
forms may be missed. Of thousands of patterns only few pairs are compared: patterns whose segments end in the same
separators, and that have the same text in the segment in which they differ most, or a placeholder there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, product
from typing import Final, NamedTuple

from rtui.keyspace.text.segments import texts_of
from rtui.registry.patterns import LONGEST_KEY, Literal, Pattern, PatternSegment, compiled, segment_expression

NO_PATTERN: Final = -1
FEW: Final = 3
MOST_SINGLY: Final = 256
"""The number of keys for which the few remaining patterns are tried one after another."""

MOST_LOOKUPS: Final = 3
Parts = Sequence[bytes]

Sequenced = int | bytes
"""The first lookup of a key: the number of its segments, or the sequence of its separators."""

Place = tuple[int, int]
"""A segment, and the number of leading bytes that are looked up; 0 for the whole segment."""

_BEGINNINGS: Final = (16, 8, 4, 2)


@dataclass(frozen=True)
class _Shape:
    """A pattern as segments of a key."""

    pattern: Pattern
    index: int
    segments: tuple[PatternSegment, ...]
    """The segments before the first that spans, whose own beginning can be looked up, too."""

    @cached_property
    def source(self) -> bytes:
        return self.pattern.source(has_groups=False)

    @cached_property
    def match(self) -> Callable[[bytes], re.Match[bytes] | None]:
        return compiled(self.source).fullmatch

    @property
    def is_open(self) -> bool:
        """Whether a segment spans, so that a key may have more segments."""
        return len(self.segments) < self.least

    @property
    def least(self) -> int:
        return len(self.pattern.segments)

    @property
    def sequence(self) -> Sequenced:
        """The sequence of its keys; the beginning of it if the pattern is open."""
        segments = self.segments if self.is_open else self.segments[:-1]
        separators = [segment.separator for segment in segments]
        known = self.pattern.separators
        if len(known) < 2:
            return len(separators) + 1
        return (b"" if _are_bytes(known) else _BETWEEN).join(separators)

    def fits(self, sequence: Sequenced, segments: int) -> bool:
        own = self.sequence
        if not self.is_open:
            return own == sequence
        is_begun = not isinstance(own, bytes) or not isinstance(sequence, bytes) or sequence.startswith(own)
        return self.least <= segments and is_begun

    def text(self, place: Place) -> bytes | None:
        at, count = place
        if at > len(self.segments) or at == self.least:
            return None
        segment = self.pattern.segments[at]
        if segment.literal is not None:
            return segment.literal[:count] if count else segment.literal
        first = segment.parts[0]
        is_long = isinstance(first, Literal) and 0 < count <= len(first.text)
        return first.text[:count] if is_long and isinstance(first, Literal) else None


class _Trial:
    """Tries the few remaining patterns, the most specific first.

    At first one after another. Compiling all of them as one expression takes milliseconds, which pays off after many
    keys.
    """

    __slots__ = ("_keys", "_match", "_shapes")

    def __init__(self, shapes: Sequence[_Shape]) -> None:
        self._shapes = shapes
        self._keys = 0
        self._match: Callable[[bytes], re.Match[bytes] | None] | None = None

    def index(self, key: bytes) -> int:
        if not self._shapes:
            return NO_PATTERN
        match = self._match
        if match is None:
            self._keys += 1
            if self._keys <= MOST_SINGLY:
                return next((shape.index for shape in self._shapes if shape.match(key)), NO_PATTERN)
            match = self._match = re.compile(b"|".join(b"(" + shape.source + rb")\Z" for shape in self._shapes)).match
        found = match(key)
        return NO_PATTERN if found is None else self._shapes[(found.lastindex or 1) - 1].index


class _Lookup:
    """Looks up a segment, or its beginning."""

    __slots__ = ("at", "by_text", "others", "part")

    def __init__(self, shapes: Sequence[_Shape], place: Place, lookups: int) -> None:
        at, count = place
        groups: dict[bytes, list[_Shape]] = {}
        others: list[_Shape] = []
        for shape in shapes:
            text = shape.text(place)
            if text is not None:
                groups.setdefault(text, others.copy()).append(shape)
                continue
            others.append(shape)
            for group in groups.values():
                group.append(shape)
        self.at = at
        self.part = slice(count or None)
        self.by_text: dict[bytes, _Trial | _Lookup] = {text: _node(group, lookups) for text, group in groups.items()}
        self.others: _Trial | _Lookup = _node(others, lookups)


def _node(shapes: Sequence[_Shape], lookups: int) -> _Trial | _Lookup:
    if len(shapes) <= FEW or not lookups:
        return _Trial(shapes)
    most = max(min(len(shape.segments) + 1, shape.least) for shape in shapes)
    places = [(at, count) for count in (0, *_BEGINNINGS) for at in range(most)]
    left, place = min(
        ((_mean_remaining(shapes, place), place) for place in places), key=lambda one: one[0], default=(0.0, (0, 0))
    )
    if not places or left > 0.8 * len(shapes):
        return _Trial(shapes)
    return _Lookup(shapes, place, lookups - 1)


def _mean_remaining(shapes: Sequence[_Shape], place: Place) -> float:
    """Return the mean number of patterns that remain after a lookup, if each has as many keys."""
    counts: defaultdict[bytes | None, int] = defaultdict(int)
    for shape in shapes:
        counts[shape.text(place)] += 1
    others = counts.pop(None, 0)
    return (sum(count * (count + others) for count in counts.values()) + others * others) / len(shapes)


def _are_bytes(separators: Sequence[bytes]) -> bool:
    return all(len(separator) == 1 for separator in separators)


_BETWEEN: Final = b"\0"


class Matcher:
    """Finds the patterns of keys, by their index in `patterns`."""

    def __init__(self, patterns: Sequence[Pattern], separators: Sequence[bytes]) -> None:
        self.patterns = tuple(patterns)
        self.separators = tuple(separators)
        self.order: tuple[int, ...] = tuple(
            sorted(range(len(patterns)), key=lambda at: (patterns[at].specificity, patterns[at].earliest, at))
        )
        self._split = _splitter(self.separators)
        shapes = [_shape(patterns[index], index) for index in self.order]
        fixed = {shape.sequence: shape.least for shape in shapes if not shape.is_open}
        self._nodes = {
            sequence: _node([shape for shape in shapes if shape.fits(sequence, segments)], MOST_LOOKUPS)
            for sequence, segments in fixed.items()
        }
        still_open = [shape for shape in shapes if shape.is_open]
        most = max((shape.least for shape in still_open), default=1)
        self._open = [
            _node([shape for shape in still_open if shape.least <= parts], MOST_LOOKUPS) for parts in range(1, most + 1)
        ]
        """For sequences with open patterns only, by the number of segments less one."""

    def __reduce__(self) -> tuple[type[Matcher], tuple[Sequence[Pattern], Sequence[bytes]]]:
        """Pickle what it is made of: another process makes its own."""
        return Matcher, (self.patterns, self.separators)

    def match(self, key: bytes) -> int | None:
        found = self.match_page((key,))[0]
        return None if found == NO_PATTERN else found

    def match_page(self, keys: Sequence[bytes]) -> list[int]:
        """Return the index of each key's pattern, or NO_PATTERN; a Java-serialised name is matched by its text."""
        split, nodes, still_open = self._split, self._nodes, self._open
        most = len(still_open)
        found: list[int] = []
        for key in texts_of(keys):
            if len(key) > LONGEST_KEY:
                found.append(NO_PATTERN)
                continue
            sequence, parts = split(key)
            node = nodes.get(sequence) or still_open[min(len(parts), most) - 1]
            while isinstance(node, _Lookup):
                node = node.by_text.get(parts[node.at][node.part], node.others)
            found.append(node.index(key))
        return found

    def fields(self, key: bytes, index: int) -> dict[str, bytes]:
        found = self.patterns[index].fields(texts_of((key,))[0])
        if found is None:
            raise ValueError("the key does not have this pattern")
        return found


def _shape(pattern: Pattern, index: int) -> _Shape:
    spanning = (at for at, segment in enumerate(pattern.segments) if segment.spans(pattern.separators))
    return _Shape(pattern, index, pattern.segments[: next(spanning, None)])


def _splitter(separators: tuple[bytes, ...]) -> Callable[[bytes], tuple[Sequenced, Parts]]:
    if not separators:
        return lambda key: (1, (key,))
    first = separators[0]
    if len(separators) == 1:

        def by_one(key: bytes) -> tuple[Sequenced, Parts]:
            parts = key.split(first)
            return len(parts), parts

        return by_one
    if _are_bytes(separators):
        every = b"".join(separators)
        to_first = bytes.maketrans(every, first * len(every))
        others = bytes(set(range(256)) - set(every))
        return lambda key: (key.translate(None, others), key.translate(to_first).split(first))
    split = re.compile(b"(" + b"|".join(map(re.escape, separators)) + b")").split

    def by_expression(key: bytes) -> tuple[Sequenced, Parts]:
        pieces = split(key)
        return _BETWEEN.join(pieces[1::2]), pieces[::2]

    return by_expression


MOST_TRIED: Final = 512


class Ambiguity(NamedTuple):
    """Two patterns, by their index, and a key that matches both."""

    first: int
    second: int
    example: bytes


def ambiguities(patterns: Sequence[Pattern]) -> Iterator[Ambiguity]:
    alike: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, pattern in enumerate(patterns):
        alike[pattern.specificity].append(index)
    for group in alike.values():
        for first, second in sorted(_candidates(patterns, group)):
            example = common_key(patterns[first], patterns[second])
            if example is not None:
                yield Ambiguity(first, second, example)


def _candidates(patterns: Sequence[Pattern], group: Sequence[int]) -> Iterator[tuple[int, int]]:
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


def _common_text(one: PatternSegment, two: PatternSegment, separators: Sequence[bytes]) -> bytes | None:
    if one.literal is not None and one.literal == two.literal:
        return one.literal
    tests = [compiled(segment_expression(segment.parts, separators)).fullmatch for segment in (one, two)]
    return next((text for text in _texts(one, two) if all(test(text) for test in tests)), None)


def _texts(one: PatternSegment, two: PatternSegment) -> Iterator[bytes]:
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


def _end_literal(segment: PatternSegment, at: int) -> bytes:
    part = segment.parts[at]
    return part.text if isinstance(part, Literal) else b""


def _common_open(first: Pattern, second: Pattern) -> bytes | None:
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
    for first, second in zip(one.segments, two.segments, strict=False):
        if any(segment.spans(one.separators) for segment in (first, second)):
            return True
        if first.separator != second.separator:
            return False
        if first.literal is not None and second.literal is not None and first.literal != second.literal:
            return False
    return True
