"""How much of a value one page may bring: decided before anything is read, from encoding, length and memory.

Of a hash the size of each value can be asked for. Of a list, set, sorted set or stream it can't: there the average
element decides, and a single one far above the average comes with its page.
"""

from __future__ import annotations

from typing import Final

from rtui.analysis.facts import KeyFacts, Reason, Unknown
from rtui.analysis.words import size
from rtui.server.guard import MAX_ELEMENTS, MAX_RANDOM
from rtui.server.guard.evidence import FEW_ELEMENTS

PAGE_ITEMS: Final = 100
"""Elements of a full page."""

SAMPLE_ITEMS: Final = MAX_RANDOM
"""Random elements shown of a collection that can't be paged."""

CAUTIOUS_ITEMS: Final = FEW_ELEMENTS
"""Elements of a page when nobody knows how large they are."""

PAGE_BYTES: Final = 1 << 20
"""What a page may bring, by the memory of an average element."""

VALUE_BYTES: Final = 16 * 1024
"""Largest value of a hash field that is read; of larger ones the size is shown."""

VALUES_BYTES: Final = 256 * 1024
"""What the values of one page of a hash may add up to."""

STRING_WINDOW_BYTES: Final = 4 * 1024
"""Bytes of a string that one page shows unless asked otherwise."""


def page_items(facts: KeyFacts) -> int:
    """How many elements a page may ask for, by the size of the average one; 0 when a single one is too much."""
    if isinstance(facts.memory_bytes, Unknown):
        return CAUTIOUS_ITEMS
    if facts.memory_bytes <= PAGE_BYTES:
        return PAGE_ITEMS
    mean = facts.mean_element_bytes
    if mean is None:
        return CAUTIOUS_ITEMS
    return min(PAGE_ITEMS, MAX_ELEMENTS, int(PAGE_BYTES // mean))


def all_at_once(facts: KeyFacts, command: str) -> str:
    """Say why a scan command is not used on this value."""
    if isinstance(facts.encoding, Unknown):
        return f"{command} might answer with all at once, since the encoding is not known"
    return f"{command} would answer with all at once in this encoding"


def too_large(facts: KeyFacts, element: str) -> Unknown:
    """Say that elements of this size are not read."""
    mean = facts.mean_element_bytes or 0
    return Unknown(Reason.TOO_LARGE, f"on average one {element} takes {size(mean)}: none was read")


def no_sample(facts: KeyFacts, command: str) -> Unknown:
    """Say that not even random elements are read, since the server would walk over all of them."""
    if isinstance(facts.encoding, Unknown):
        return Unknown(Reason.TOO_LARGE, f"{command} might walk over all elements, since the encoding is not known")
    return Unknown(Reason.TOO_LARGE, f"{command} would walk over all elements in this encoding")


def size_notes(facts: KeyFacts) -> tuple[str, ...]:
    """Say why pages are smaller than usual, if they are."""
    items = page_items(facts)
    if items >= PAGE_ITEMS:
        return ()
    if isinstance(facts.memory_bytes, Unknown) or facts.mean_element_bytes is None:
        return (f"pages of {items}: the size of the elements is not known",)
    return (f"pages of {items}: on average one element takes {size(facts.mean_element_bytes)}",)
