"""Asking about keys: what is known to be refused is not sent again, and refusals are remembered."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Protocol

from rtui.server.capability import Capabilities, Verdict, is_key_refusal
from rtui.server.errors import ServerError
from rtui.server.guard import Command
from rtui.server.handshake import NoTouch
from rtui.server.identity import ServerIdentity
from rtui.server.own_reads import OwnReads
from rtui.server.reply import Reply
from rtui.server.unknowns import concerns_command


class Looks(Protocol):
    """What questions about keys need of a connection."""

    @property
    def server(self) -> ServerIdentity:
        """What the server has said of itself."""

    @property
    def no_touch(self) -> NoTouch:
        """Whether reading leaves idle times and frequencies alone."""

    def run(self, *commands: Command) -> Awaitable[list[Reply]]:
        """Send the commands in one write; the replies in order, error replies as values."""


class Reads(Looks, Protocol):
    """What looking into values needs of a connection."""

    @property
    def own_reads(self) -> OwnReads:
        """The keys that rtui has read where the server counts that as a use."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A connection and what is known of its rights."""

    connection: Looks
    capabilities: Capabilities
    own_reads: OwnReads = field(default_factory=OwnReads)
    """The keys that rtui has read where the server counts that as a use."""

    @property
    def touches(self) -> bool:
        """Whether reading a length or a value counts as an access."""
        return self.connection.no_touch is not NoTouch.ON

    async def run(self, *commands: Command) -> list[Reply]:
        """Send single commands in one write; one that is known to be refused is answered by its refusal, unsent."""
        refused = {
            command.name: ServerError(self.capabilities.reason(command.name))
            for command in commands
            if not self.capabilities.may(command.name)
        }
        sent = [command for command in commands if command.name not in refused]
        answers = iter(await self.connection.run(*sent) if sent else [])
        replies = [refused[command.name] if command.name in refused else next(answers) for command in commands]
        self.learn([command.name for command in commands], replies)
        return replies

    def learn(self, names: list[str], replies: list[Reply]) -> None:
        """Remember what a reply says about its command, and that the user may read some keys only."""
        for name, reply in zip(names, replies, strict=True):
            if isinstance(reply, ServerError):
                if concerns_command(reply) or is_key_refusal(reply):
                    self.capabilities.note(name, reply)
            elif self.capabilities.verdict(name) is Verdict.UNTRIED:
                self.capabilities.note(name, reply)
