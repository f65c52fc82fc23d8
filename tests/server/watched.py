"""A connection whose writes are counted, and before which something may happen at the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rtui.server.guard.command import Command
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply


class Watched(Connection):
    """An open connection, all of whose state it shares; `runs` holds the names of the commands of each write."""

    def __init__(self, connection: Connection) -> None:
        self.__dict__ = connection.__dict__
        self.connection = connection
        self.runs: list[list[str]] = []
        self.before: dict[int, Callable[[], object]] = {}
        """What happens before the write of this number, counted from 0."""

    @property
    def bytes_in(self) -> int:
        """What the interactive lane has received so far."""
        assert self._main is not None
        return self._main.traffic.bytes_in

    def run(self, *commands: Command) -> Awaitable[list[Reply]]:
        happens = self.before.pop(len(self.runs), None)
        if happens is not None:
            happens()
        self.runs.append([command.name for command in commands])
        return super().run(*commands)
