"""From a connected lane to one that is ready: the handshake, then who it is that answers, then whether it serves."""

from __future__ import annotations

from typing import Final

from rtui.server import guard
from rtui.server.errors import ConnectFailure, FailureKind, ServerError
from rtui.server.failures import loading_failure, refusal, sentinel_failure
from rtui.server.handshake import Learned, shake
from rtui.server.identity import ServerIdentity, identity, number, parse_fields
from rtui.server.lane import Lane
from rtui.server.reply import Reply

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
