"""The slow log: the commands that took longer than the server's threshold, latest first, as SLOWLOG GET tells them.

An entry has 4 fields before Redis 4.0, 6 up to Redis 8.8 and 7 from Redis 8.10 on. The server keeps at most 32
arguments of 128 bytes each, and says of the others how many there were.
"""

from __future__ import annotations

from dataclasses import dataclass

from rtui.server.guard.closed_list import MAX_SLOW
from rtui.server.wire.replies import Reply


@dataclass(frozen=True, slots=True)
class SlowCommand:
    """A command that was slow."""

    id: int
    at_s: int
    """When it was carried out, in seconds since the epoch by the server's clock."""
    took_us: int
    argv: tuple[bytes, ...]
    """The command and its arguments, cut by the server."""
    address: bytes = b""
    """Of the client; empty before Redis 4.0."""
    client_name: bytes = b""

    @property
    def name(self) -> str:
        """The command in capitals."""
        return self.argv[0].decode("ascii", "replace").upper() if self.argv else ""


def parse_slow_log(reply: Reply) -> tuple[SlowCommand, ...]:
    """Read the reply to SLOWLOG GET; entries of another form are left out."""
    found = []
    for entry in reply[:MAX_SLOW] if isinstance(reply, list) else []:
        match entry:
            case [int(number), int(at_s), int(took_us), list(argv), *more] if argv and took_us >= 0:
                texts = tuple(one for one in argv if isinstance(one, bytes))
                who = [one if isinstance(one, bytes) else b"" for one in more[:2]]
                if texts:
                    found.append(SlowCommand(number, at_s, took_us, texts, *who))
    return tuple(found)
