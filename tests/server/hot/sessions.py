"""What a server itself says of its hot-key session."""

from __future__ import annotations

from tests.server.raw_commands import raw
from tests.servers import Server

GOES_ON = {b"total-cpu-time-user-ms", b"total-cpu-time-sys-ms"}
"""What the server counts on after a session has ended."""


def session_of(server: Server) -> dict[bytes, object]:
    """The reply to HOTKEYS GET as a map, without what goes on in any case."""
    (found,) = raw(server, "HOTKEYS", "GET")
    fields = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
    return {name: value for name, value in fields.items() if name not in GOES_ON}
