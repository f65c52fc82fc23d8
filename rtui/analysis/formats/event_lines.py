"""How files begin and go on that say what happened over time: recorded sessions, and samples of servers.

They are lines of JSON, written as things happen, so that a file that is cut off can be read up to there. The first line
is a header, which says what the file is; each line after it is an event: its `kind`, and `at`, when it was, in
milliseconds since the file began.

    {"format":"rtui samples","schema":2,"rtui":"0.2.0","began_ms":1790000000000,"server":"10.0.0.5:6379"}
    {"kind":"sample","at":5012,"node":"10.0.0.5:6379", …}

A file comes from anywhere: who reads it limits its size and its texts, and ends at the first line that can't be read.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

EVENT_SCHEMA: Final = 2
"""The schema that is written."""


class EventHeader(Struct, frozen=True, kw_only=True):
    """What every such file begins with."""

    format: str
    """What the file is: `rtui samples`, `rtui recording`."""
    schema: int = EVENT_SCHEMA
    rtui: Annotated[str, Meta(max_length=64)]
    """Version of rtui."""
    began_ms: Annotated[float, Meta(ge=0, le=1e14)]
    """Milliseconds since the epoch."""


def event_line(event: Struct | dict[str, Any]) -> bytes:
    """Return the line of a header or an event."""
    return msgspec.json.encode(event) + b"\n"


def begins_as(beginning: bytes, name: str) -> bool:
    """Whether a file begins like one of a format, by its first bytes."""
    return beginning.lstrip().startswith(f'{{"format":"{name}"'.encode())
