"""What the questions about a key may be answered with: the one place that knows the range of each.

An answer outside its range is no fact, whatever it looks like: a server, a proxy or a module that is at fault must cost
that one fact and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rtui.server.wire.capability import Feature
from rtui.server.wire.replies import Reply

MOST: Final = (1 << 63) - 1
"""The largest number that the protocol's integers hold."""

MOST_NAME_BYTES: Final = 64
"""No type and no encoding has a longer name."""

GONE_TTL: Final = -2
"""What PTTL says of a key that is not there."""

GONE_TYPE: Final = b"none"
"""What TYPE says of a key that is not there."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The answers that a question may have: a name, or a number from `low` to `high`."""

    is_name: bool = False
    low: int = 0
    high: int = MOST
    gone: int | bytes | None = None
    """What it says of a key that is not there, if it says that."""
    nil_is_gone: bool = False
    """Whether it answers nil for a key that is not there."""

    def fits(self, answer: Reply) -> bool:
        """Whether an answer tells the fact."""
        if self.is_name:
            return type(answer) is bytes and answer != self.gone and 0 < len(answer) <= MOST_NAME_BYTES
        return type(answer) is int and self.low <= answer <= self.high

    def says_gone(self, answer: Reply) -> bool:
        """Whether an answer that is no error says that there is no such key."""
        return self.nil_is_gone if answer is None else self.gone is not None and answer == self.gone

    def all_fit(self, answers: Sequence[Reply]) -> bool:
        """Whether every one of many answers tells the fact, without a look at each."""
        if set(map(type, answers)) != {bytes if self.is_name else int}:
            return False
        if self.is_name:
            return all(map(self.fits, set(answers)))
        return self.low <= min(answers) and max(answers) <= self.high  # type: ignore[type-var, operator]


NUMBER: Final = Expected()
"""A length: of a key that is not there it is 0."""

_EXPECTED: Final[dict[str, Expected]] = {
    Feature.TYPE: Expected(is_name=True, gone=GONE_TYPE),
    Feature.PTTL: Expected(low=-1, gone=GONE_TTL),
    Feature.MEMORY_USAGE: Expected(nil_is_gone=True),
    Feature.OBJECT_ENCODING: Expected(is_name=True, nil_is_gone=True),
    Feature.OBJECT_IDLETIME: Expected(nil_is_gone=True),
    Feature.OBJECT_FREQ: Expected(high=255, nil_is_gone=True),
}


def expected(command: str) -> Expected:
    """What a question about a key may be answered, by the name of its command; a length unless it is known."""
    return _EXPECTED.get(command, NUMBER)
