"""Commands that a lane does not send: it answers them itself, with an error.

A server writes each attempt of a user at a denied command into its ACL LOG, so a command that it has denied once is not
sent again, on this lane. Others are never sent: those that the profile says are disabled, and those that this kind of
server must not get.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, cast

from rtui.server.guard.command import Command
from rtui.server.guard.compatible import CompatibleServer
from rtui.server.guard.names import CommandNames
from rtui.server.wire.errors import ConnectionLost, fail_quietly
from rtui.server.wire.replies import NOT_SENT, Reply, ServerError

_DISABLED: Final = "the profile says that this command is disabled on the server"


class Refusals:
    """The error replies of commands that are not to be sent on one lane."""

    def __init__(self, names: CommandNames) -> None:
        self.disabled = {name: ServerError(f"NOPERM {_DISABLED}") for name in names.disabled()}
        """By the names of commands that the profile says are disabled."""
        self.denied = dict(self.disabled)
        """By the names of commands that this user may not run, those too."""

    def of(self, commands: Sequence[Command], compatible: CompatibleServer | None) -> list[ServerError | None]:
        """Return for each command the error that stands for its reply, None for one that may be sent.

        `compatible` is the server, where it is neither Redis nor Valkey and some commands would harm it.
        """
        return [self._of(command, compatible) for command in commands]

    def _of(self, command: Command, compatible: CompatibleServer | None) -> ServerError | None:
        denied = self.denied.get(command.name)
        if denied is not None or compatible is None or type(command) is not Command:
            return denied
        why = compatible.refusal(command)
        return None if why is None else ServerError(f"{NOT_SENT} {why}")

    def learn(self, commands: Sequence[Command], replies: Sequence[Reply]) -> None:
        """Learn from the replies to a write which commands this user may not run."""
        if len(commands) == len(replies):  # one reply each
            for command, reply in zip(commands, replies, strict=True):
                if isinstance(reply, ServerError) and reply.denies_command:
                    self.denied[command.name] = reply

    def forget(self) -> None:
        """Forget which commands the server has denied, so that they are sent again."""
        self.denied = dict(self.disabled)


def with_errors(
    sent: asyncio.Future[list[Reply]], commands: Sequence[Command], refused: Sequence[ServerError | None]
) -> asyncio.Future[list[Reply]]:
    """Return a future of the replies to all commands: `sent` has those to the ones that are not refused."""
    done: asyncio.Future[list[Reply]] = sent.get_loop().create_future()

    def answer(replied: asyncio.Future[list[Reply]]) -> None:
        if done.done():
            return
        error = replied.exception()
        if error is not None:
            fail_quietly(done, cast(ConnectionLost, error))
            return
        replies = iter(replied.result())
        errors = [error for command, error in zip(commands, refused, strict=True) for _ in range(command.replies)]
        done.set_result([next(replies) if error is None else error for error in errors])

    sent.add_done_callback(answer)
    return done
