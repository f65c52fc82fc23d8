"""The first commands on a new connection: user, database, client name and NO-TOUCH, then the server's identity.

All commands of the handshake go out in one write, and all of INFO with them if the server has answered it on another
connection: over a slow link each round trip delays the first keys. Commands that a server may lack or deny are
remembered once it refuses them, so that the next connection does not send them, and the server does not log them,
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rtui.server import guard
from rtui.server.guard.closed_list import MAX_NAMES
from rtui.server.guard.command import Command, Secret
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, Reply, ServerError
from rtui.server.wire.failures import (
    auth_refusal,
    database_failure,
    loading_failure,
    lost_failure,
    names_failure,
    refusal,
    sentinel_failure,
)
from rtui.server.wire.identity import NoTouch, ServerIdentity, parse_identity, parse_info, possible_number
from rtui.server.wire.lane import Lane
from rtui.server.wire.target import ProtocolVersion, Target

_SECTIONS: Final = ("memory", "stats", "clients", "replication", "persistence", "cluster", "keyspace")
"""The sections of INFO that are read besides `server`."""

_OPTIONAL: Final = ("name", "lib-name", "lib-ver", "no-touch")
"""Steps of the handshake that the server may refuse."""


@dataclass(slots=True)
class HandshakeOutcome:
    """The results of earlier handshakes with a server.

    Kept for one server and one reconnect: another server, or other rights, begin with an empty one.
    """

    refused: set[str] = field(default_factory=set)
    """Optional steps that the server does not know or allow."""
    no_touch: NoTouch = NoTouch.UNSUPPORTED


async def handshake_and_identify(lane: Lane, outcome: HandshakeOutcome, before: ServerIdentity) -> ServerIdentity:
    """Make the lane ready and return the server's identity; `before` is the last one. Raises `ConnectFailure`."""
    lane.server = before
    sections = _SECTIONS if before.run_id is not None else ()
    try:
        info = await handshake(lane, lane.target, outcome, sections)
    except ConnectFailure as failed:
        if failed.kind is not FailureKind.LOADING:
            raise
        (persistence,) = await lane.run(guard.info("persistence"))  # answered meanwhile: it tells how far it is
        fields = parse_info(persistence)
        percent = fields.get("loading_loaded_perc", "").partition(".")[0]
        eta_s = possible_number(fields, "loading_eta_seconds")
        is_share = percent.isdecimal() and len(percent) <= len("100") and int(percent) <= 100
        raise loading_failure(lane.target, int(percent) if is_share else None, eta_s) from None
    found = await identify(lane, info)
    if found.mode == "sentinel":
        raise sentinel_failure(lane.target, *await lane.run(guard.sentinel_masters()))
    if outcome.refused and before != ServerIdentity() and not before.is_like(found):
        outcome.refused.clear()  # another server may know what the last one refused
        await handshake(lane, lane.target, outcome)
    if found.role == "replica" and found.primary_link_up is False:
        # Such a replica may answer PING and INFO, but no command on a key.
        (reply,) = await lane.run(guard.exists(b""))
        if isinstance(reply, ServerError) and reply.code == "MASTERDOWN":
            raise refusal(lane.target, reply) or reply
    if found.cluster_enabled and found.role == "replica":
        await lane.run(guard.readonly())
    return found


async def handshake(lane: Lane, target: Target, outcome: HandshakeOutcome, sections: Sequence[str] = ()) -> list[Reply]:
    """Set up a new lane in one or two round trips; return the replies to INFO about `server` and these sections.

    Raises `ConnectFailure`.
    """
    try:
        lane.protocol, authenticated = await _choose_protocol(lane, target, outcome)
        steps: dict[str, Command] = {}
        if not authenticated and (target.password or target.user is not None):
            steps["auth"] = guard.auth(target.user, target.password or Secret(""))
        if lane.names.others:
            await _check_names(lane, target, steps.pop("auth", None))
        if target.db:
            steps["select"] = guard.select(target.db)
        optional = (guard.set_name(), guard.set_info("LIB-NAME"), guard.set_info("LIB-VER"), guard.no_touch())
        steps |= {step: one for step, one in zip(_OPTIONAL, optional, strict=True) if step not in outcome.refused}
        steps["ping"] = guard.ping()
        steps |= {f"info {section}": guard.info(section) for section in ("server", *sections)}
        replies = dict(zip(steps, await lane.run(*steps.values()), strict=True))
    except ConnectionLost as lost:
        said = None if lost.last_error is None else refusal(target, lost.last_error)
        raise said or lost_failure(target, lost.happened, lost.kind) from None
    errors = {step: reply for step, reply in replies.items() if isinstance(reply, ServerError)}
    if "auth" in errors:
        raise auth_refusal(target, errors["auth"])
    for error in errors.values():
        failed = refusal(target, error)
        if failed is not None and failed.kind is not FailureKind.NOPERM:
            raise failed
    if "select" in errors:
        raise database_failure(target, errors["select"])
    outcome.refused.update(step for step in _OPTIONAL if step in errors)
    if "no-touch" in errors:
        outcome.no_touch = NoTouch.DENIED if errors["no-touch"].code == "NOPERM" else NoTouch.UNSUPPORTED
    elif "no-touch" in replies:
        outcome.no_touch = NoTouch.ON
    lane.no_touch = outcome.no_touch
    return [replies[f"info {section}"] for section in ("server", *sections)]


async def _check_names(lane: Lane, target: Target, auth: Command | None) -> None:
    """Log in, and check by COMMAND INFO the names of commands from a profile; raises `ConnectFailure`.

    Nothing is sent under such a name before that.
    """
    others = lane.names.others
    names = tuple(others.values())
    asked = [guard.command_info(*names[at : at + MAX_NAMES]) for at in range(0, len(names), MAX_NAMES)]
    steps = [] if auth is None else [auth]
    replies = await lane.run(*steps, *asked)
    if auth is not None and isinstance(refused := replies.pop(0), ServerError):
        raise auth_refusal(target, refused)
    found: list[Reply] = []
    for reply in replies:
        if isinstance(reply, ServerError):
            failed = refusal(target, reply)
            if failed is not None and failed.kind is not FailureKind.NOPERM:
                raise failed
            raise names_failure(target, f"does not say which commands they stand for: {reply.text}.")
        found += reply if isinstance(reply, list) else []
    if len(found) != len(others):
        raise names_failure(target, "does not say which commands they stand for.")
    for word, known in zip(others, found, strict=True):
        match known:
            case [bytes(name), *_] if name.upper() != word:
                other = name.decode("utf-8", "replace").upper()
                raise names_failure(target, f"runs {other} under the name that is given for {word.decode()}.")
            case [bytes(), *_]:
                continue
        raise names_failure(target, f"has no command of the name that is given for {word.decode()}.")


async def _choose_protocol(lane: Lane, target: Target, outcome: HandshakeOutcome) -> tuple[ProtocolVersion, bool]:
    """Send HELLO 3 if the user wants protocol 3; return the protocol and whether the user is logged in.

    If the server or the user has no HELLO, protocol 2 is used.
    """
    if target.protocol != 3 or "hello" in outcome.refused:
        return 2, False
    password = target.password or None
    (reply,) = await lane.run(guard.hello(3, target.user if password else None, password))
    if not isinstance(reply, ServerError):
        return 3, password is not None
    if reply.code in {"WRONGPASS", "NOAUTH"}:
        raise auth_refusal(target, reply)
    failed = refusal(target, reply)
    if failed is not None and failed.kind is not FailureKind.NOPERM:
        raise failed
    outcome.refused.add("hello")
    return 2, False


async def identify(lane: Lane, asked: Sequence[Reply] = ()) -> ServerIdentity:
    """Read the server's identity: INFO, HELLO if INFO is refused, and CLUSTER INFO from a node of a cluster.

    INFO is read a section at a time, since servers before 7.0 take no more; `asked` are replies about the first
    section, or all of them, if they are at hand. A user without INFO is refused it once, and not for each section.
    """
    info = list(asked) or await lane.run(guard.info("server"))
    if lane.server == ServerIdentity():  # nothing is known yet, and some servers are not to be sent all that follows
        lane.server = parse_identity(info)
    hello: Reply = None
    if isinstance(info[0], ServerError):
        (hello,) = await lane.run(guard.hello(lane.protocol))
    elif len(info) == 1:
        info += await lane.run(*[guard.info(section) for section in _SECTIONS])
    lane.info = dict(zip(("server", *_SECTIONS), info, strict=False))
    found = parse_identity(info, None, hello)
    if not found.cluster_enabled:
        return found
    (nodes,) = await lane.run(guard.cluster_info())
    return parse_identity(info, nodes, hello)
