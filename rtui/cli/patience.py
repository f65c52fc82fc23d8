"""How long a lost connection is waited for where nobody looks on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from rtui.keyspace.display import SafeText
from rtui.server.connection import Connection, Lost
from rtui.server.errors import ConnectFailure

PATIENCE_S: Final = 60.0
"""A server that is restarted or fails over is back by then; one that loads its data set is waited for in any case."""


class Patience:
    """Watches a connection within a running event loop, and gives up when it stays lost."""

    def __init__(self, connection: Connection, give_up: Callable[[str], object], patience_s: float) -> None:
        """`give_up` is called with why, a sentence without a full stop."""
        self.failure: SafeText | None = None
        """Why it was given up, a sentence."""
        self._connection = connection
        self._give_up = give_up
        self._patience_s = patience_s
        self._timer: asyncio.TimerHandle | None = None
        connection.on_change.append(self._changed)

    def _changed(self) -> None:
        if not isinstance(self._connection.state, Lost):
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._patience_s, self._over)

    def _over(self) -> None:
        self._timer = None
        state = self._connection.state
        reason = state.reason if isinstance(state, Lost) else None
        if isinstance(reason, ConnectFailure) and reason.kind.passes:
            self._changed()
            return
        why = f"the connection was lost and did not come back within {self._patience_s:g} s"
        said = f" {reason.happened}" if reason else ""
        self.failure = SafeText(f"T{why[1:]}.{said}")
        self._give_up(why)
