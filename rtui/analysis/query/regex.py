"""Regular expressions over names, in time that is linear in their length.

The expressions of Python's `re` may take exponential time for a name of thirty bytes, and nothing can break a match
off: a word typed into the query line would hold the interface for hours. RE2 has no such expressions, so it is what
`re:` uses, from the library google-re2, an extra. Without the library, `re:` says so and every other term works.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from rtui.keyspace.text.display import display_text

MAX_EXPRESSION_BYTES: Final = 1_024
"""No longer expression is compiled."""

MAX_PROGRAM_BYTES: Final = 8 << 20
"""RE2 takes no more memory for one."""


class RegexError(ValueError):
    """An expression that can't be used; the message says why, in safe text without a full stop."""


@lru_cache(maxsize=32)
def compiled(expression: bytes) -> Callable[[bytes], object | None]:
    """Return what searches a name for an expression, byte by byte; None means not found. Raises RegexError."""
    if len(expression) > MAX_EXPRESSION_BYTES:
        raise RegexError(f"an expression has at most {MAX_EXPRESSION_BYTES:,} bytes")
    try:
        import re2  # noqa: PLC0415 - optional
    except ImportError:
        raise RegexError("re: needs the library google-re2, which comes with rtui's extra regex") from None
    options: Any = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = MAX_PROGRAM_BYTES
    options.log_errors = False
    try:
        found: Callable[[bytes], object | None] = re2.compile(expression, options).search
    except re2.error as error:
        why = error.args[0] if error.args else ""
        why = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise RegexError(f"the expression can't be read: {display_text(why, limit=120)}") from None
    return found
