"""The hot-key session by the server itself, and summaries of hot keys made by hand."""

from __future__ import annotations

from rtui.analysis.report.document import KeyRecord, Node, NodeKind, Stats, Summary
from tests.server.raw_commands import raw
from tests.servers import Server

GOES_ON = {b"total-cpu-time-user-ms", b"total-cpu-time-sys-ms"}
"""What the server counts on after a session has ended."""


def session_of(server: Server) -> dict[bytes, object]:
    """The reply to HOTKEYS GET as a map, without what goes on in any case."""
    (found,) = raw(server, "HOTKEYS", "GET")
    fields = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
    return {name: value for name, value in fields.items() if name not in GOES_ON}


ASKED_AT_S = 1_790_000_000.0


def summary_of(*hottest: KeyRecord) -> Summary:
    """A summary with nothing but its hottest keys."""
    root = Node(b"", b"", NodeKind.LITERAL, Stats(keys=len(hottest), share_keys=1.0))
    return Summary(root=root, hottest=hottest)


def counted(key: bytes, counter: int) -> KeyRecord:
    """A key with an access counter."""
    return KeyRecord(key, frequency=counter, asked_at_s=ASKED_AT_S)


def idle(key: bytes, seconds: int) -> KeyRecord:
    """A key with an idle time."""
    return KeyRecord(key, idle_s=seconds, asked_at_s=ASKED_AT_S)
