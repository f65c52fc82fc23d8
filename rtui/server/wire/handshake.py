"""What each connection says first: who it is, which database, its name, and that looking is not using."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, ServerError
from rtui.server.wire.failures import (
    auth_refusal,
    database_failure,
    loading_failure,
    lost_failure,
    refusal,
    sentinel_failure,
)
from rtui.server.wire.identity import NoTouch, ServerIdentity, identity, number, parse_fields
from rtui.server.wire.lane import Lane
from rtui.server.wire.replies import Reply
from rtui.server.wire.target import Protocol, Secret, Target

__all__ = ["Learned", "NoTouch", "shake"]


@dataclass(slots=True)
class Learned:
    """What earlier handshakes with this server learned, so that a refused command is not sent again.

    Meant for one server and one reconnect: another server, or other rights, begin with an empty one.
    """

    refused: set[str] = field(default_factory=set)
    """Names of optional steps that the server does not know or allow."""
    no_touch: NoTouch = NoTouch.UNSUPPORTED


async def shake(lane: Lane, target: Target, learned: Learned) -> None:
    """Make a new lane ready for work in one or two round trips; raises `ConnectFailure`."""
    try:
        lane.protocol, authenticated = await _hello(lane, target, learned)
        steps = _steps(target, learned, authenticated=authenticated)
        replies = await lane.run(*steps.values())
    except ConnectionLost as lost:
        raise _ended(target, lost) from None
    answers = dict(zip(steps, replies, strict=True))
    _judge(target, answers)
    _learn(learned, answers)
    lane.no_touch = learned.no_touch


async def _hello(lane: Lane, target: Target, learned: Learned) -> tuple[Protocol, bool]:
    """Ask for protocol 3 where the user wants it; a server or user without HELLO goes on with 2."""
    if target.protocol != 3 or "hello" in learned.refused:
        return 2, False
    password = target.password
    (reply,) = await lane.run(guard.hello(3, _user(target) if password else None, password or None))
    if not isinstance(reply, ServerError):
        return 3, bool(password)
    if reply.code in {"WRONGPASS", "NOAUTH"}:
        raise auth_refusal(target, reply)
    known = refusal(target, reply)
    if known is not None and known.kind is not FailureKind.NOPERM:
        raise known
    learned.refused.add("hello")
    return 2, False


def _user(target: Target) -> str:
    return target.user if target.user is not None else "default"


def _steps(target: Target, learned: Learned, *, authenticated: bool) -> dict[str, Command]:
    steps: dict[str, Command] = {}
    if not authenticated and (target.password or target.user is not None):
        steps["auth"] = guard.auth(target.user, target.password or Secret(""))
    if target.db:
        steps["select"] = guard.select(target.db)
    optional = {
        "name": guard.set_name,
        "lib-name": lambda: guard.set_info("LIB-NAME"),
        "lib-ver": lambda: guard.set_info("LIB-VER"),
        "no-touch": guard.no_touch,
    }
    for step, build in optional.items():
        if step not in learned.refused:
            steps[step] = build()
    steps["ping"] = guard.ping()
    return steps


def _judge(target: Target, answers: dict[str, Reply]) -> None:
    """Raise what makes the connection useless; everything optional may fail."""
    auth = answers.get("auth")
    if isinstance(auth, ServerError):
        raise auth_refusal(target, auth)
    for reply in answers.values():
        known = refusal(target, reply) if isinstance(reply, ServerError) else None
        if known is not None and known.kind is not FailureKind.NOPERM:
            raise known
    selected = answers.get("select")
    if isinstance(selected, ServerError):
        raise database_failure(target, selected)


def _learn(learned: Learned, answers: dict[str, Reply]) -> None:
    for step in ("name", "lib-name", "lib-ver", "no-touch"):
        if isinstance(answers.get(step), ServerError):
            learned.refused.add(step)
    if "no-touch" in answers:
        reply = answers["no-touch"]
        if not isinstance(reply, ServerError):
            learned.no_touch = NoTouch.ON
        else:
            learned.no_touch = NoTouch.DENIED if reply.code == "NOPERM" else NoTouch.UNSUPPORTED


def _ended(target: Target, lost: ConnectionLost) -> ConnectFailure:
    """The server hung up during the handshake; what it said last may be the reason."""
    if lost.said is not None:
        known = refusal(target, lost.said)
        if known is not None:
            return known
    return lost_failure(target, lost.happened, lost.kind)


INFO_SECTIONS: Final = ("memory", "stats", "clients", "replication", "persistence", "cluster", "keyspace")
"""What of INFO is read beside `server`."""


async def arrive(lane: Lane, learned: Learned, before: ServerIdentity) -> ServerIdentity:
    """Make the lane ready and say who answers (`before`: who did last); raises `ConnectFailure`, `ConnectionLost`."""
    try:
        await shake(lane, lane.target, learned)
    except ConnectFailure as failed:
        if failed.kind is FailureKind.LOADING:
            raise await _loading(lane) from None
        raise
    found = await identify(lane)
    if found.mode == "sentinel":
        raise sentinel_failure(lane.target)
    if learned.refused and before != ServerIdentity() and not before.is_like(found):
        learned.refused.clear()  # another server may know what the last one refused
        await shake(lane, lane.target, learned)
    await _check_serving(lane, found)
    if found.is_cluster_replica:
        await lane.run(guard.readonly())
    return found


async def identify(lane: Lane) -> ServerIdentity:
    """Ask INFO (a section at a time: servers before 7.0 take no more), HELLO without it, CLUSTER INFO of a node."""
    info = await lane.run(guard.info("server"))
    hello: Reply = None
    if isinstance(info[0], ServerError):
        (hello,) = await lane.run(guard.hello(lane.protocol))
    else:
        info += await lane.run(*[guard.info(section) for section in INFO_SECTIONS])
    found = identity(info, None, hello)
    if not found.cluster_enabled:
        return found
    (nodes,) = await lane.run(guard.cluster_info())
    return identity(info, nodes, hello)


async def _loading(lane: Lane) -> ConnectFailure:
    """How far a loading server is; it answers INFO meanwhile."""
    (persistence,) = await lane.run(guard.info("persistence"))
    fields = parse_fields(persistence)
    percent = fields.get("loading_loaded_perc", "").partition(".")[0]
    eta_s = number(fields, "loading_eta_seconds")
    return loading_failure(lane.target, int(percent) if percent.isdecimal() else None, eta_s)


async def _check_serving(lane: Lane, found: ServerIdentity) -> None:
    """A replica without its primary may answer PING and INFO but no question about keys."""
    if found.role == "replica" and found.primary_link_up is False:
        (reply,) = await lane.run(guard.exists(b""))
        if isinstance(reply, ServerError) and reply.code == "MASTERDOWN":
            raise refusal(lane.target, reply) or reply
