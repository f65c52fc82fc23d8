"""Hot keys as measured by the server: HOTKEYS of Redis 8.6, in sessions that are started, and of Valkey 9.2.

Redis measures during a session that is started and ends by itself; it keeps the result of one session. Valkey measures
all the time and reports its last window. `server_source` reads either; `start_session` starts a session with the user's
consent, and never in place of another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final, TypeAlias

from rtui.analysis.humanize import duration, moment
from rtui.analysis.report.document import HotKey, HotList, HotReport, HotSource, KeyRecord
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import display_text
from rtui.server import guard
from rtui.server.facts.preview.value_reader import items, mapping, pairs
from rtui.server.guard.evidence import Consent, SlotMetric
from rtui.server.wire.capability import CommandRunner, Querier, Verdict, capability_from
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.errors import Reply, RtuiError, ServerError
from rtui.server.wire.identity import ServerIdentity, parse_info, parse_number

MAX_LISTED_KEYS: Final = 1000
"""The most keys read of one list: Valkey's limit; Redis has up to 64."""

NAME_BYTES: Final = 4 << 20
"""The most bytes of names kept of one list; the list is cut there."""

_LISTS: Final = {SlotMetric.CPU: b"by-cpu-time-us", SlotMetric.NET: b"by-net-bytes"}


@dataclass(frozen=True, slots=True)
class HotSession:
    """The measurements of a Redis session, of all databases together."""

    is_active: bool
    sample_ratio: int
    """One in this many commands was measured."""
    started_s: float | None
    """Seconds since the epoch, by the server's clock."""
    lasted_s: float
    slots: int
    """The number of measured slots; all of them unless some were chosen."""
    measured: dict[SlotMetric, tuple[tuple[bytes, int], ...]]
    """By metric, keys with their sampled µs or bytes, highest first."""


@dataclass(frozen=True, slots=True)
class WindowKey:
    """A key of Valkey's last window."""

    key: bytes
    db: int
    qps: int
    """Estimated accesses per second."""


HotWindow: TypeAlias = tuple[WindowKey, ...]
"""Valkey's last window, hottest first; empty if it tracks none."""


def parse_hotkeys(reply: Reply) -> HotSession | HotWindow | None:
    """Read a reply; None if there is no session, or the reply has an unknown form."""
    if not isinstance(reply, list):
        return None
    maps = [mapping(element) for element in reply[:MAX_LISTED_KEYS]]
    if maps and b"tracking-active" in maps[0]:
        fields = maps[0]
        started_ms = _number(fields.get(b"collection-start-time-unix-ms"))
        slots = 0  # listed one by one or as first and last; none where all are measured
        for run in items(fields.get(b"selected-slots")):
            ends = [slot for end in (run if isinstance(run, list) else [run]) if (slot := _number(end)) is not None]
            slots += max(ends) - min(ends) + 1 if ends else 0
        return HotSession(
            is_active=_number(fields.get(b"tracking-active")) != 0,
            sample_ratio=max(1, _number(fields.get(b"sample-ratio")) or 1),
            started_s=None if started_ms is None else started_ms / 1000,
            lasted_s=(_number(fields.get(b"collection-duration-ms")) or 0) / 1000,
            slots=slots or SLOTS,
            measured={metric: _pairs(fields[name]) for metric, name in _LISTS.items() if name in fields},
        )
    window = []
    for fields in maps:
        key, db, qps = fields.get(b"key"), _number(fields.get(b"db")), _number(fields.get(b"qps"))
        if isinstance(key, bytes) and db is not None and qps is not None:
            window.append(WindowKey(key, db, qps))
    if reply and not window:
        return None
    window.sort(key=lambda one: (-one.qps, one.key))
    return tuple(window[: _fitting(entry.key for entry in window)])


def _number(reply: Reply) -> int | None:
    return reply if isinstance(reply, int) and reply >= 0 else None


def _pairs(reply: Reply) -> tuple[tuple[bytes, int], ...]:
    found = [
        (key, value)
        for key, reported in islice(pairs(reply), MAX_LISTED_KEYS)
        if isinstance(key, bytes) and (value := _number(reported)) is not None
    ]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    return tuple(found[: _fitting(key for key, _ in found)])


def _fitting(names: Iterable[bytes]) -> int:
    """Return how many of these names, from the first on, have at most NAME_BYTES together; the first always fits."""
    return max(1, sum(size <= NAME_BYTES for size in accumulate(map(len, names))))


HOTKEYS: Final = "HOTKEYS GET"
"""The name of the command in `Capabilities`."""

SINCE: Final[Mapping[str | None, tuple[int, int]]] = {"redis": (8, 6), "valkey": (9, 2)}
"""The first version of each product that reports hot keys."""

HOW_TO_START: Final = "HOTKEYS START METRICS 2 CPU NET DURATION 60 SAMPLE 100"
DENIED: Final = "HOTKEYS GET is denied to this user; the ACL rule +hotkeys|get allows it."
_TITLES: Final = {SlotMetric.CPU: ("CPU time", "µs of CPU"), SlotMetric.NET: ("Traffic", "bytes of network traffic")}


async def server_source(querier: Querier, *, now_s: float, looked_since_s: float | None = None) -> HotReport:
    """Ask the server for its report; `looked_since_s` is when rtui began to read keys. Raises ConnectionLost."""
    reason = too_old(querier.connection.server)
    if reason:
        return HotReport(better=(reason,))
    (reply,) = await querier.run(guard.hotkeys_get())
    if isinstance(reply, ServerError):
        is_denied = querier.capabilities[HOTKEYS].verdict is Verdict.DENIED
        failed = display_text(f"HOTKEYS GET failed: {reply}.")
        return HotReport(better=(DENIED if is_denied else failed,))
    found = parse_hotkeys(reply)
    if isinstance(found, HotSession):
        return _session_report(found, now_s, looked_since_s)
    if found:
        (info,) = await querier.run(guard.info("hotkeys"))
        window_ms = parse_number(parse_info(info), "hotkeys_last_window_duration_ms") or 0
        length = f"the last window of {duration(window_ms)}" if window_ms > 0 else "the last window"
        about = f"accesses in {length}, estimated by the server from a sample, keys that do not exist included"
        keys = tuple(HotKey(KeyRecord(entry.key, note=f"in database {entry.db}"), float(entry.qps)) for entry in found)
        return HotReport(HotSource.SERVER, about, 0.0, lists=(HotList("Accesses", "queries/s", keys),))
    if found is not None:
        reason = "The server tracks no hot keys, or saw none in the last window; hotkeys-top-k enables it."
    elif reply is None:
        reason = f"No hot-key session has been run on this server; {HOW_TO_START} starts one."
    else:
        reason = "The reply to HOTKEYS GET has an unknown format."
    return HotReport(better=(reason,))


def reports_hot_keys(server: ServerIdentity) -> bool:
    return server.product in SINCE and not too_old(server)


def too_old(server: ServerIdentity) -> str:
    """Return a sentence for a version without a report of hot keys; empty if it has one or the version is unknown."""
    since = SINCE.get(server.product)
    if since is None or server.version is None or server.version >= since:
        return ""
    name = (server.product or "").capitalize()
    return f"{name} {server.version_text} has no hot-key report; {name} {since[0]}.{since[1]} has."


def _session_report(session: HotSession, now_s: float, looked_since_s: float | None) -> HotReport:
    ratio = session.sample_ratio
    lists = tuple(
        HotList(*_TITLES[metric], tuple(HotKey(KeyRecord(key), float(value * ratio)) for key, value in keys))
        for metric, keys in session.measured.items()
        if keys
    )
    lasted = duration(round(session.lasted_s * 1000))
    better: tuple[str, ...] = ()
    if not lists and session.is_active:
        better = (f"A hot-key session runs on this server, {lasted} so far, and has measured no key yet.",)
    elif not lists:
        better = ("The hot-key session of this server has measured no key.",)
    about = [
        f"a session that runs, {lasted} so far" if session.is_active else f"a session of {lasted}",
        "all databases together",
    ]
    if session.slots < SLOTS:
        about.append(f"{session.slots:,} of {SLOTS:,} slots only")
    if session.sample_ratio > 1:
        about.append(f"1 command in {session.sample_ratio:,} measured and multiplied")
    ended_s = None if session.started_s is None else session.started_s + session.lasted_s
    if looked_since_s is not None and (session.is_active or (ended_s or session.lasted_s) > looked_since_s):
        about.append("commands of rtui during the session are included")
    age_s = 0.0 if session.is_active else None if ended_s is None else max(0.0, now_s - ended_s)
    return HotReport(HotSource.SERVER if lists else HotSource.NONE, ", ".join(about), age_s, better, lists)


TITLE: Final = "No hot-key session"


class SessionError(RtuiError):
    """A session that could not be started: the server has none, or denies it."""


class SessionRefusedError(SessionError):
    """A session that rtui did not start, since another one runs or its result would be lost."""


@for_purpose(Purpose.HOT)
async def start_session(connection: CommandRunner, consent: Consent) -> None:
    """Start a session of Redis that ends by itself; rtui never stops or resets one.

    Raises SessionRefusedError if one runs, or if one has left a result that `consent` does not give up; SessionError if
    the server can't or won't; GuardError for a consent beyond the bounds; ConnectionLost.
    """
    command = guard.hotkeys_start(consent)
    server = connection.server
    reason = too_old(server)
    if server.product == "valkey":
        reason = "Valkey tracks hot keys by its own settings and has no sessions."
    if reason:
        raise SessionError(TITLE, reason)
    (reply,) = await connection.run(guard.hotkeys_get())
    if isinstance(reply, ServerError):
        raise _error_for(reply, "hotkeys|get")
    earlier = parse_hotkeys(reply)
    if isinstance(earlier, HotSession):
        since = "" if earlier.started_s is None else f" since {moment(earlier.started_s)} UTC"
        if earlier.is_active:
            happened = f"A session runs{since}; it is not rtui's to stop."
            raise SessionRefusedError(TITLE, happened, "Read its report now, or wait until it has ended.")
        if not consent.discards_result:
            lasted = duration(round(earlier.lasted_s * 1000))
            happened = f"The server keeps one result, that of a session of {lasted}{since}."
            raise SessionRefusedError(TITLE, happened, "Agree to lose that result, or keep it with the report first.")
    (answer,) = await connection.run(command)
    if isinstance(answer, ServerError):
        if "already in progress" in answer.text:
            raise SessionRefusedError(TITLE, "Another session has just started.", "Wait until it has ended.")
        raise _error_for(answer, "hotkeys|start")


def _error_for(reply: ServerError, rule: str) -> SessionError:
    verdict = capability_from(reply).verdict
    if verdict is Verdict.DENIED:
        return SessionError(TITLE, f"Not permitted: {reply.text}", f"The ACL rule +{rule} allows it.")
    if verdict is Verdict.UNKNOWN_COMMAND:
        return SessionError(TITLE, "This server has no hot-key sessions.", "Redis 8.6 and later have them.")
    return SessionError(TITLE, f"The server replied: {reply}")
