"""The replies to HOTKEYS GET: a session of Redis 8.6, or the last window of Valkey 9.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from rtui.analysis.ranking import fitting
from rtui.keyspace.slot import SLOTS
from rtui.server.guard import Metric
from rtui.server.reply import Reply

MAX_KEYS: Final = 1000
"""Most keys of one list that are read: Valkey keeps up to so many, Redis 64."""

NAME_BYTES: Final = 4 << 20
"""The names of one list that are kept have at most so many bytes together: behind them the list ends."""

_LISTS: Final = {Metric.CPU: b"by-cpu-time-us", Metric.NET: b"by-net-bytes"}


@dataclass(frozen=True, slots=True)
class HotSession:
    """What a session of Redis has measured, of all databases together."""

    is_active: bool
    sample_ratio: int
    """One command in so many was measured."""
    started_s: float | None
    """Seconds since the epoch, by the server's clock."""
    lasted_s: float
    slots: int
    """Slots that are measured; all of them unless somebody chose some."""
    measured: dict[Metric, tuple[tuple[bytes, int], ...]]
    """By metric, keys with their µs or bytes as they were sampled, highest first."""


@dataclass(frozen=True, slots=True)
class WindowKey:
    """A key of Valkey's last window."""

    key: bytes
    db: int
    qps: int
    """Estimated accesses a second."""


HotWindow: TypeAlias = tuple[WindowKey, ...]
"""Valkey's last window, hottest first; empty where it tracks nothing."""


def parse_hotkeys(reply: Reply) -> HotSession | HotWindow | None:
    """Read a reply; None where there is no session, or where its shape is not known."""
    if not isinstance(reply, list):
        return None
    maps = [_fields(one) for one in reply[:MAX_KEYS]]
    if maps and b"tracking-active" in maps[0]:
        return _session(maps[0])
    window = [found for one in maps if (found := _window_key(one)) is not None]
    if reply and not window:
        return None
    window.sort(key=lambda one: (-one.qps, one.key))
    return tuple(window[: fitting((one.key for one in window), NAME_BYTES)])


def _fields(reply: Reply) -> dict[bytes, Reply]:
    """A map as protocol 2 has it, names and values in turns."""
    flat = reply if isinstance(reply, list) else []
    return {name: value for name, value in zip(flat[::2], flat[1::2], strict=False) if isinstance(name, bytes)}


def _number(reply: Reply) -> int | None:
    return reply if isinstance(reply, int) and reply >= 0 else None


def _session(fields: dict[bytes, Reply]) -> HotSession:
    started_ms = _number(fields.get(b"collection-start-time-unix-ms"))
    return HotSession(
        is_active=_number(fields.get(b"tracking-active")) != 0,
        sample_ratio=max(1, _number(fields.get(b"sample-ratio")) or 1),
        started_s=None if started_ms is None else started_ms / 1000,
        lasted_s=(_number(fields.get(b"collection-duration-ms")) or 0) / 1000,
        slots=_slot_count(fields.get(b"selected-slots")),
        measured={metric: _pairs(fields[name]) for metric, name in _LISTS.items() if name in fields},
    )


def _slot_count(reply: Reply) -> int:
    """Slots are listed one by one or as first and last; none are named where all are meant."""
    count = 0
    for one in reply if isinstance(reply, list) else []:
        ends = [number for end in (one if isinstance(one, list) else [one]) if (number := _number(end)) is not None]
        count += max(ends) - min(ends) + 1 if ends else 0
    return count or SLOTS


def _pairs(reply: Reply) -> tuple[tuple[bytes, int], ...]:
    flat = reply[: 2 * MAX_KEYS] if isinstance(reply, list) else []
    found = [
        (key, value)
        for key, said in zip(flat[::2], flat[1::2], strict=False)
        if isinstance(key, bytes) and (value := _number(said)) is not None
    ]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    return tuple(found[: fitting((key for key, _ in found), NAME_BYTES)])


def _window_key(fields: dict[bytes, Reply]) -> WindowKey | None:
    key, db, qps = fields.get(b"key"), _number(fields.get(b"db")), _number(fields.get(b"qps"))
    return WindowKey(key, db, qps) if isinstance(key, bytes) and db is not None and qps is not None else None
