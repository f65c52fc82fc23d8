"""The possible figures of a server: the range of each field of a sample, and samples without impossible figures.

Servers tell nonsense now and then: counters that overflowed (18446744073709551615), percentages above 100, moments that
are still to come, memory below zero, `nan`. Such a figure is unknown; the server's text is in `Sample.impossible`, to
be shown in its place. Some fields may be -1, which means never or none, and some differences may be less than 0: those
are in `_EXCEPTIONS`.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import fields as fields_of
from msgspec.structs import replace

from rtui.analysis.health.fields import FIELDS, FieldUnit, InfoField
from rtui.analysis.health.sample import (
    FIGURES,
    ClientFigures,
    CommandStats,
    Database,
    LatencyEvent,
    LoggedCommand,
    Peer,
    Replica,
    Sample,
    SentinelView,
    Source,
)
from rtui.analysis.report.document import KeySizes
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import display_text

CLOCK_SLACK_S: Final = 5.0
"""Seconds that a moment may be later than now: clocks are read one after the other, in whole seconds."""

MAX_SAID: Final = 40
MOST_IMPOSSIBLE: Final = 100


NEVER: Final = -1
"""The value of times and durations of an event that never was."""


class Range(NamedTuple):
    """The least and the most that a figure can be; where the least is NEVER, else 0 or more."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float) or not isfinite(value) or not self.low <= value <= self.high:
            return False
        return not (self.low == NEVER < value < 0)


_COUNT: Final = Range(0, 10**16)
"""10 million a second for 30 years."""

_BYTES: Final = Range(0, 2**60)
_STREAM: Final = Range(-1, 2**62)
"""Offsets of the replication stream; -1 before there is one."""

_SECONDS: Final = Range(0, 10**10)
_TIME: Final = Range(0, 4_102_444_800)
"""Up to the year 2100; later than the server's own clock is checked besides."""

_OR_NEVER: Final = Range(-1, _SECONDS.high)
_DIFFERENCE: Final = Range(-(2**60), 2**60)
_PORT: Final = Range(0, 65_535)
_SLOTS: Final = Range(0, SLOTS)

_BY_UNIT: Final = {
    FieldUnit.COUNT: _COUNT,
    FieldUnit.BYTES: _BYTES,
    FieldUnit.KIB_PER_S: Range(0, 1e12),
    FieldUnit.PER_S: Range(0, 1e10),
    FieldUnit.SECONDS: _SECONDS,
    FieldUnit.MILLISECONDS: Range(0, 10**13),
    FieldUnit.MICROSECONDS: Range(0, 10**17),
    FieldUnit.PERCENT: Range(0, 100),
    FieldUnit.RATIO: Range(0, 1e9),
    FieldUnit.TIME: _TIME,
    FieldUnit.YES: Range(0, 1),
}

_EXCEPTIONS: Final[dict[str, Range]] = {
    "maxmemory": Range(0, 2**63),
    "server_time_usec": Range(0, _TIME.high * 1e6),
    **dict.fromkeys(("tcp_port", "master_port"), _PORT),
    **dict.fromkeys((f"cluster_slots_{one}" for one in ("assigned", "ok", "pfail", "fail")), _SLOTS),
    **dict.fromkeys(
        ("allocator_frag_bytes", "allocator_rss_bytes", "rss_overhead_bytes", "mem_fragmentation_bytes"), _DIFFERENCE
    ),
    **dict.fromkeys((
        "rdb_last_bgsave_time_sec", "rdb_current_bgsave_time_sec", "aof_last_rewrite_time_sec",
        "aof_current_rewrite_time_sec", "master_last_io_seconds_ago", "master_link_down_since_seconds",
        "master_sync_last_io_seconds_ago",
    ), _OR_NEVER),
    **dict.fromkeys((
        "master_repl_offset", "second_repl_offset", "slave_repl_offset", "slave_read_repl_offset",
        "repl_backlog_first_byte_offset", "master_sync_total_bytes", "master_sync_read_bytes",
    ), _STREAM),
    **dict.fromkeys((one.name for one in FIELDS.values() if one.is_counter and one.unit is FieldUnit.BYTES), _STREAM),
}  # fmt: skip

_WORDS: Final[dict[str, frozenset[object]]] = {
    **dict.fromkeys(
        ("rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status"), frozenset({"ok", "err"})
    ),
    "master_link_status": frozenset({"up", "down"}),
    "cluster_state": frozenset({"ok", "fail"}),
}
"""The possible words of text fields that rules judge; another word is neither good nor bad."""

_OF_LISTS: Final[dict[type[Struct], dict[str, Range]]] = {
    Database: {"keys": _COUNT, "expires": _COUNT, "avg_ttl_ms": Range(0, 10**18)},
    CommandStats: {
        "calls": _COUNT,
        "took_us": Range(0, 10**17),
        "rejected": _COUNT,
        "failed": _COUNT,
        "percentiles_us": Range(0, 10**13),
    },
    Replica: {"offset": _STREAM, "lag_s": _OR_NEVER},
    Peer: {"slots": _SLOTS},
    SentinelView: {"quorum": _COUNT, "sentinels": _COUNT, "replicas": _COUNT},
    LoggedCommand: {"id": _COUNT, "at_s": _TIME, "amount": Range(0, 10**15), "argument_count": _COUNT},
    LatencyEvent: {"at_s": _TIME, "latest_ms": Range(0, 10**10), "highest_ms": Range(0, 10**10)},
    ClientFigures: {
        "id": _COUNT,
        "db": _COUNT,
        "connected_s": _SECONDS,
        "idle_s": _SECONDS,
        "subscriptions": _COUNT,
        "query_bytes": _BYTES,
        "output_bytes": _BYTES,
        "total_bytes": _BYTES,
    },
    KeySizes: {},
}
"""The ranges of numbers, by the type of a list's items; times of a history are checked as the event's."""


def range_of(field: InfoField) -> Range:
    return _EXCEPTIONS.get(field.name, _BY_UNIT.get(field.unit, _COUNT))


def now_s(sample: Sample) -> float:
    """Return when a sample was taken, in seconds since the epoch: by the server's clock, else by rtui's."""
    clock = sample.info.get("server_time_usec")
    is_known = isinstance(clock, int | float) and clock in range_of(FIELDS["server_time_usec"])
    return clock / 1e6 if is_known and isinstance(clock, int | float) else sample.at_ms / 1000


def with_possible(sample: Sample) -> Sample:
    """Return a sample without impossible figures; the server's words for them are in `impossible`."""
    checked = _Checked(sample)
    info = checked.info()
    lists = {
        name: checked.listed(source, name, getattr(sample, name))
        for source, name in FIGURES.items()
        if source is not Source.SETTINGS
    }
    return replace(sample, info=info, **lists, impossible=checked.found)


class _Checked:
    """Takes impossible figures out of one sample."""

    def __init__(self, sample: Sample) -> None:
        self._sample, self._now_s = sample, now_s(sample)
        self.found = {source: dict(said) for source, said in sample.impossible.items()}
        self._primary_offset = sample.info.get("master_repl_offset")

    def _note(self, source: Source, name: str, said: object) -> None:
        noted = self.found.setdefault(source, {})
        if len(noted) < MOST_IMPOSSIBLE:
            noted.setdefault(name, display_text(str(said), limit=MAX_SAID))

    def _is_possible(self, value: object, within: Range) -> bool:
        is_to_come = within is _TIME and isinstance(value, int | float) and value > self._now_s + CLOCK_SLACK_S
        return value in within and not is_to_come

    def info(self) -> dict[str, int | float | str]:
        kept: dict[str, int | float | str] = {}
        for name, value in self._sample.info.items():
            field = FIELDS.get(name)
            if field is None or self._can_say(field, value):
                kept[name] = value
            else:
                self._note(field.source, name, value)
        return kept

    def _can_say(self, field: InfoField, value: object) -> bool:
        if field.unit is FieldUnit.TEXT:
            return field.name not in _WORDS or value in _WORDS[field.name]
        return self._is_possible(value, range_of(field))

    def listed(self, source: Source, name: str, values: Any) -> Any:
        if isinstance(values, dict):
            pairs = (
                (key, self._one(source, f"{'db' if name == 'databases' else ''}{key}", one))
                for key, one in values.items()
            )
            return {key: one for key, one in pairs if one is not None}
        kept = (self._one(source, _label(one), one) for one in values)
        return tuple(one for one in kept if one is not None)

    def _one(self, source: Source, label: str, one: Any) -> Any:
        """Return one of a list with None for a figure that can't be; None where it can't be without that figure."""
        if isinstance(one, int):
            if one in _COUNT:
                return one
            self._note(source, label, one)
            return None
        if isinstance(one, KeySizes):
            bins = tuple((least, keys) for least, keys in one.bins if keys in _COUNT)
            for least, keys in one.bins:
                if keys not in _COUNT:
                    self._note(source, f"{one.name} {least}", keys)
            return replace(one, bins=bins)
        changed: dict[str, Any] = {}
        for name, within in _OF_LISTS[type(one)].items():
            value = getattr(one, name)
            if isinstance(value, dict):
                changed[name] = kept = {key: each for key, each in value.items() if self._is_possible(each, within)}
                for key in value.keys() - kept.keys():
                    self._note(source, f"{label} p{key}", value[key])
            elif value is not None and not self._can_be(one, name, value, within):
                self._note(source, f"{label} {name.removesuffix('_s').removesuffix('_us').replace('_', ' ')}", value)
                if name in _REQUIRED[type(one)]:
                    return None
                changed[name] = None
        if isinstance(one, LatencyEvent):
            changed["history"] = tuple(
                (at_s, ms) for at_s, ms in one.history if self._is_possible(at_s, _TIME) and ms in Range(0, 10**10)
            )
        return replace(one, **changed) if changed else one

    def _can_be(self, one: Struct, name: str, value: float, within: Range) -> bool:
        if isinstance(one, Database) and name == "expires" and value > one.keys >= 0:
            return False
        if isinstance(one, Replica) and name == "offset":
            of_primary = self._primary_offset
            if isinstance(of_primary, int) and of_primary in _STREAM and value > of_primary:
                return False
        return self._is_possible(value, within)


def _label(one: Struct) -> str:
    if isinstance(one, LoggedCommand):
        return f"entry {one.id}"
    found = getattr(one, "address", getattr(one, "name", b""))
    return display_text(found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found), limit=MAX_SAID)


_REQUIRED: Final = {
    kind: frozenset(one.name for one in fields_of(kind) if type(None) not in get_args(one.type)) for kind in _OF_LISTS
}
"""The fields without which an item is dropped, by the type of a list's items."""
