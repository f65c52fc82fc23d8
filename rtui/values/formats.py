"""What a decoder is to the chain: its name, how it recognises bytes, how it reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rtui.values.limits import Budget
from rtui.values.source import Source
from rtui.values.tree import Step

CERTAIN: Final = 1.0
"""The bytes have a mark that nothing else has."""

LIKELY: Final = 0.7
"""They are well formed from the first to the last byte, and little else would be."""

POSSIBLE: Final = 0.3
"""They are well formed, as other bytes may be by chance."""

OFFERED: Final = 0.01
"""They can be read so, but so can too many others: it is never chosen, only offered where one switches decoders."""


def by_hand(_source: Source, _budget: Budget) -> None:
    """Recognise nothing: this decoder is only used where someone asks for it."""


@dataclass(frozen=True, slots=True)
class Format:
    """One decoder."""

    name: str
    """As it is shown; unique."""
    sniff: Callable[[Source, Budget], float | None]
    """Return how sure it is that the bytes are its own, between 0 and 1, or None.

    Raises Invalid only where a plugin fails."""
    read: Callable[[Source, Budget], Step]
    """Decode; raises Invalid, Exceeded or MissingLibrary only when there is nothing to show."""
    needs_proof: bool = False
    """Whether many other bytes look the same, so that it counts only where what comes out of it is recognised."""
    can_read: Callable[[Source], bool] = lambda _source: True
    """Tell whether it is worth being offered by name."""
