"""Which server a line of rules is for: product and version, such as `redis-7.0`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from rtui.server.guard.spec import Spec, Version

OLDEST: Final[dict[str, Version]] = {"redis": (6, 2), "valkey": (7, 2)}
"""The first version of each product that the lines of rules are tested on."""

_NAME: Final = re.compile(r"(redis|valkey)-(\d{1,3})\.(\d{1,3})(?:\.\d{1,3})?")


class ReleaseError(ValueError):
    """A text that names no server this project knows; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Release:
    """A product and its version."""

    product: Literal["redis", "valkey"]
    version: Version

    @property
    def has_read_key_patterns(self) -> bool:
        """Whether it knows `%R~pattern` and selectors."""
        return self.version >= (7, 0)

    @property
    def takes_any_subcommand(self) -> bool:
        """Whether a rule may name a subcommand that the server does not have."""
        return self.version < (7, 0)

    def knows(self, spec: Spec) -> bool:
        """Whether it is new enough for a command; modules may be missing all the same."""
        since = spec.since_redis if self.product == "redis" else spec.since_valkey
        return since is not None and self.version >= since


def parse_release(text: str) -> Release:
    """Read `redis-7.0` or `valkey-8.1`, patch levels ignored; raises ReleaseError."""
    found = _NAME.fullmatch(text.strip().lower())
    if found is None:
        raise ReleaseError("write a product and a version, such as redis-7.0 or valkey-8.1")
    product: Literal["redis", "valkey"] = "valkey" if found[1] == "valkey" else "redis"
    version = (int(found[2]), int(found[3]))
    oldest = OLDEST[product]
    if version < oldest:
        raise ReleaseError(f"rules are known from {product}-{oldest[0]}.{oldest[1]} on")
    return Release(product, version)
