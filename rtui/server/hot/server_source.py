"""The server's own hot-key report: a session of Redis 8.6, the last window of Valkey 9.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rtui.analysis.report import HotKey, HotList, HotSource, KeyRecord
from rtui.analysis.words import duration
from rtui.keyspace.display import display_text
from rtui.keyspace.slot import SLOTS
from rtui.server import guard
from rtui.server.asking import Asking
from rtui.server.capability import Verdict
from rtui.server.errors import ServerError
from rtui.server.guard import Metric
from rtui.server.hot.hotkeys_reply import HotSession, HotWindow, parse_hotkeys
from rtui.server.hot.source import Source
from rtui.server.identity import ServerIdentity, number, parse_fields
from rtui.server.reply import Reply

HOTKEYS: Final = "HOTKEYS GET"
"""The name of the command among the capabilities."""

SINCE: Final[Mapping[str | None, tuple[int, int]]] = {"redis": (8, 6), "valkey": (9, 2)}
"""The first version of each product that reports hot keys."""

HOW_TO_START: Final = "HOTKEYS START METRICS 2 CPU NET DURATION 60 SAMPLE 100"
"""What an operator would type."""

_TITLES: Final = {Metric.CPU: ("CPU time", "µs of CPU"), Metric.NET: ("Traffic", "bytes of network traffic")}


async def server_source(asking: Asking, *, now_s: float, looked_since_s: float | None = None) -> Source:
    """Ask the server for its report; `looked_since_s` is when rtui began to inspect keys. Raises ConnectionLost."""
    reason = too_old(asking.connection.server)
    if reason:
        return Source(better=(reason,))
    (reply,) = await asking.run(guard.hotkeys_get())
    if isinstance(reply, ServerError):
        return Source(better=(_refused(asking, reply),))
    found = parse_hotkeys(reply)
    if isinstance(found, HotSession):
        return _of_session(found, now_s, looked_since_s)
    if isinstance(found, tuple):
        (info,) = await asking.run(guard.info("hotkeys")) if found else [None]
        return _of_window(found, info)
    if reply is None:
        return Source(better=(f"No hot-key session has been run on this server; {HOW_TO_START} starts one.",))
    return Source(better=("The server's hot-key report has a shape that is not known.",))


def reports_hot_keys(server: ServerIdentity) -> bool:
    """Say whether this version is known to have a report of hot keys."""
    return server.product in SINCE and not too_old(server)


def too_old(server: ServerIdentity) -> str:
    """Say that this version has no report of hot keys; empty when it has or nobody knows."""
    since = SINCE.get(server.product)
    if since is None or server.version is None or server.version >= since:
        return ""
    name = (server.product or "").capitalize()
    return f"{name} {server.version_text} has no hot-key report of its own; {name} {since[0]}.{since[1]} has."


def _refused(asking: Asking, reply: ServerError) -> str:
    if asking.capabilities.verdict(HOTKEYS) is Verdict.DENIED:
        return "The server's own hot-key report is denied to this user; the ACL rule +hotkeys|get allows it."
    return display_text(f"The server's own hot-key report could not be had: {reply}.")


def _of_session(session: HotSession, now_s: float, looked_since_s: float | None) -> Source:
    ratio = session.sample_ratio
    lists = tuple(
        HotList(*_TITLES[metric], tuple(HotKey(KeyRecord(key), float(value * ratio)) for key, value in keys))
        for metric, keys in session.measured.items()
        if keys
    )
    ended_s = None if session.started_s is None else session.started_s + session.lasted_s
    age_s = 0.0 if session.is_active else None if ended_s is None else max(0.0, now_s - ended_s)
    better = () if lists else (_no_key_yet(session),)
    return Source(HotSource.SERVER if lists else HotSource.NONE, lists, _about(session, looked_since_s), age_s, better)


def _no_key_yet(session: HotSession) -> str:
    if session.is_active:
        lasted = duration(round(session.lasted_s * 1000))
        return f"A hot-key session runs on this server, {lasted} so far, and has measured no key yet."
    return "The hot-key session of this server has measured no key."


def _about(session: HotSession, looked_since_s: float | None) -> str:
    lasted = duration(round(session.lasted_s * 1000))
    parts = [
        f"a session that runs, {lasted} so far" if session.is_active else f"a session of {lasted}",
        "all databases together",
    ]
    if session.slots < SLOTS:
        parts.append(f"{session.slots:,} of {SLOTS:,} slots only")
    if session.sample_ratio > 1:
        parts.append(f"1 command in {session.sample_ratio:,} measured and multiplied")
    ended_s = (session.started_s or 0.0) + session.lasted_s
    if looked_since_s is not None and (session.is_active or ended_s > looked_since_s):
        parts.append("what rtui asked meanwhile is counted with the rest")
    return ", ".join(parts)


def _of_window(window: HotWindow, info: Reply) -> Source:
    if not window:
        reason = "The server tracks no hot keys, or saw none in its last window; its setting hotkeys-top-k turns it on."
        return Source(better=(reason,))
    keys = tuple(HotKey(KeyRecord(one.key, note=f"in database {one.db}"), float(one.qps)) for one in window)
    window_ms = number(parse_fields(info), "hotkeys_last_window_duration_ms")
    length = (
        f"the last window of {duration(window_ms)}" if window_ms is not None and window_ms > 0 else "the last window"
    )
    about = f"accesses in {length}, estimated by the server from a sample, keys that do not exist included"
    return Source(HotSource.SERVER, (HotList("Accesses", "queries/s", keys),), about, 0.0)
