"""What a pass would have found, by hand."""

from __future__ import annotations

from rtui.analysis.report.document import KeyRecord, Node, NodeKind, Stats, Summary

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
