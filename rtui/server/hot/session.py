"""Starting a hot-key session of Redis: only with the user's consent, never in place of somebody else's."""

from __future__ import annotations

from typing import NoReturn

from rtui.analysis.humanize import duration, moment
from rtui.server import guard
from rtui.server.guard.evidence import Consent
from rtui.server.hot.hotkeys import HotSession, parse_hotkeys, too_old
from rtui.server.wire.capability import CommandRunner, Verdict, capability_from
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.replies import ServerError

TITLE = "No hot-key session"
"""What the user reads first when none was started."""


class SessionError(RtuiError):
    """A session that could not be started: the server has none, or denies it."""


class SessionRefusedError(SessionError):
    """A session that rtui did not start, since another one runs or its result would be lost."""


async def start_session(connection: CommandRunner, consent: Consent) -> None:
    """Start a session that ends by itself; it is never stopped or reset from here.

    Raises SessionRefusedError when one runs, or when one has left a result that `consent` does not give up;
    SessionError when the server can't or won't; GuardError for a consent beyond the bounds; ConnectionLost.
    """
    command = guard.hotkeys_start(consent)
    server = connection.server
    reason = too_old(server)
    if server.product == "valkey":
        reason = "Valkey tracks hot keys by its own settings and has no sessions."
    if reason:
        raise SessionError(TITLE, reason)
    (said,) = await connection.run(guard.hotkeys_get())
    if isinstance(said, ServerError):
        _raise(said, "hotkeys|get")
    earlier = parse_hotkeys(said)
    if isinstance(earlier, HotSession):
        _refuse(earlier, consent)
    (answer,) = await connection.run(command)
    if isinstance(answer, ServerError):
        if "already in progress" in answer.text:
            raise SessionRefusedError(TITLE, "Another session began at this moment.", "Wait until it has ended.")
        _raise(answer, "hotkeys|start")


def _refuse(earlier: HotSession, consent: Consent) -> None:
    """Leave a session alone that runs, and a result that the user has not given up."""
    since = "" if earlier.started_s is None else f" since {moment(earlier.started_s)} UTC"
    if earlier.is_active:
        happened = f"A session runs{since}; it is not rtui's to stop."
        raise SessionRefusedError(TITLE, happened, "Read its report now, or wait until it has ended.")
    if not consent.discards_result:
        happened = (
            f"The server keeps one result, that of a session of {duration(round(earlier.lasted_s * 1000))}{since}."
        )
        raise SessionRefusedError(TITLE, happened, "Agree to lose that result, or keep it with the report first.")


def _raise(error: ServerError, rule: str) -> NoReturn:
    verdict = capability_from(error).verdict
    if verdict is Verdict.DENIED:
        raise SessionError(TITLE, f"The user may not do this: {error.text}", f"The ACL rule +{rule} allows it.")
    if verdict is Verdict.UNKNOWN_COMMAND:
        raise SessionError(TITLE, "This server has no hot-key sessions.", "Redis 8.6 and later have them.")
    raise SessionError(TITLE, f"The server answered: {error}")
