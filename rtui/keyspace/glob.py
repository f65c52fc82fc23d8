"""Patterns for `SCAN … MATCH`: names turned into patterns, and patterns kept within harmless bounds."""

from __future__ import annotations

import re

MAX_PATTERN_BYTES = 512
"""No longer pattern is sent: before 6.2.16, 7.2.6 and 7.4.1 long ones overflow the server's stack (CVE-2024-31228)."""

MAX_STARS = 16
"""No pattern with more `*` is sent: each may make the server try all that follows again, at every place of a name."""

_SPECIAL = re.compile(rb"[\\*?\[\]]")
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_WILDCARD = re.compile(rb"(?:[^\\*?\[]|\\.)*+[*?\[]", re.DOTALL)
_ESCAPED_OR_STAR = re.compile(rb"\\.|\*", re.DOTALL)


class PatternError(ValueError):
    """A pattern that is not sent to a server; the message says why, as safe text."""


def escape_glob(literal: bytes) -> bytes:
    """Return the pattern that matches exactly these bytes; without special bytes it is the same object."""
    return _SPECIAL.sub(rb"\\\g<0>", literal)


def is_literal(pattern: bytes) -> bool:
    """Tell whether the pattern can match one name only, so that a look-up does instead of a scan.

    A backslash at the end stands for itself, as in the server's matcher.
    """
    return _WILDCARD.match(pattern) is None


def literal_name(pattern: bytes) -> bytes | None:
    """Return the only name that the pattern can match, its escapes resolved, or None if it has wildcards."""
    return _ESCAPED.sub(rb"\1", pattern) if is_literal(pattern) else None


def prefix_pattern(prefix: bytes) -> bytes:
    """Return a pattern within bounds that matches all names with this prefix.

    A prefix too long for a pattern is shortened, and then other names match too: filter what comes with `startswith`.
    """
    escaped = escape_glob(prefix[:MAX_PATTERN_BYTES])[: MAX_PATTERN_BYTES - 1]
    backslashes = len(escaped) - len(escaped.rstrip(b"\\"))
    return escaped[: len(escaped) - backslashes % 2] + b"*"


def containing_pattern(literal: bytes) -> bytes:
    """Return the pattern that matches all names that contain these bytes; raises PatternError if it is too long."""
    return check_pattern(b"*" + escape_glob(literal) + b"*")


def check_pattern(pattern: bytes) -> bytes:
    """Return the pattern if it is within the bounds, raise PatternError otherwise."""
    if len(pattern) > MAX_PATTERN_BYTES:
        raise PatternError(f"the pattern has {len(pattern):,} bytes; at most {MAX_PATTERN_BYTES} are sent")
    stars = _ESCAPED_OR_STAR.findall(pattern).count(b"*")
    if stars > MAX_STARS:
        raise PatternError(f"the pattern has {stars:,} stars; at most {MAX_STARS} are sent")
    return pattern
