"""Whole command lines that fit an entry of the closed list, one for every way to fill its shape."""

from __future__ import annotations

from itertools import chain, product

from rtui.server.guard.closed_list import MAX_CURSOR
from rtui.server.guard.spec import (
    KEY,
    MAX_INDEX,
    Checked,
    Element,
    IndexRange,
    Integer,
    Keyword,
    Optional,
    Repeated,
    Spec,
)

Samples = tuple[tuple[bytes, ...], ...]
"""Ways to fill a shape: each is a run of arguments."""

EXAMPLES = {
    "user": (b"default",),
    "password": (b"password",),
    "field": (b"field",),
    "member": (b"member",),
    "min": (b"-inf", b"(1.5"),
    "max": (b"+inf", b"-2e+100"),
    "from": (b"-", b"[a"),
    "to": (b"+", b"(b"),
    "group": (b"group",),
    "version": (b"1.0.0",),
    "cursor": (b"0", b"%d" % MAX_CURSOR),
    "pattern": (b"user:*",),
    "type": (b"hash",),
    "end": (b"+",),
    "start": (b"-",),
    "service": (b"mymaster",),
    "name": (b"get",),
    "setting": (b"maxmemory",),
    "event": (b"command",),
}
"""Arguments that fit, by what a manual calls them."""


def samples(spec: Spec, key: bytes) -> Samples:
    """Whole command lines that fit, at the upper limits where numbers are meant."""
    return tuple((*spec.words, *arguments) for arguments in _combined(spec.shape, key))


def _combined(elements: tuple[Element, ...], key: bytes) -> Samples:
    ways = product(*(_of_element(element, key) for element in elements))
    return tuple(tuple(chain.from_iterable(way)) for way in ways)


def _of_element(element: Element, key: bytes) -> Samples:  # noqa: PLR0911 - a kind of element a line
    if element is KEY:
        return ((key,),)
    match element:
        case Checked(usage=name):
            return tuple((example,) for example in EXAMPLES[name])
        case Keyword(choices=choices):
            return choices
        case Integer(high=high):
            return ((b"%d" % high,),)
        case IndexRange(most=most):
            return ((b"0", b"%d" % (most - 1)), (b"%d" % (MAX_INDEX - most + 1), b"%d" % MAX_INDEX))
        case Optional(elements=elements):
            return ((), *_combined(elements, key))
        case Repeated(element=repeated, most=most, counted=True):
            one = _of_element(repeated, key)[0]
            return ((b"1", *one), (b"%d" % most, *one * most))
        case Repeated(element=repeated, most=most):
            ones = _of_element(repeated, key)
            return (*ones, ones[0] * most)
    raise AssertionError(f"no sample of {element}")
