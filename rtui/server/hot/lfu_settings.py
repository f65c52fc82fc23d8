"""Settings of a server: those by which its access counters grow and fall, and how many databases it has.

Without the first two a counter tells no rate.
"""

from __future__ import annotations

from typing import Final

from rtui.analysis.facts import LfuSettings
from rtui.server import guard
from rtui.server.wire.capability import Capabilities, CommandRunner, Querier
from rtui.server.wire.replies import Reply

_HIGHEST: Final = (1 << 31) - 1
"""The largest value that servers take for either."""


async def lfu_settings(connection: CommandRunner, capabilities: Capabilities) -> LfuSettings:
    """Read both settings of a server that keeps counters; defaults where that is refused. Raises ConnectionLost."""
    if connection.server.is_lfu is False:
        return LfuSettings()
    querier = Querier(connection, capabilities)
    factor, decay = await querier.run(guard.config_get("lfu-log-factor"), guard.config_get("lfu-decay-time"))
    log_factor, decay_minutes = parse_setting(factor), parse_setting(decay)
    return LfuSettings(
        LfuSettings().log_factor if log_factor is None else log_factor,
        LfuSettings().decay_minutes if decay_minutes is None else decay_minutes,
        assumed=log_factor is None or decay_minutes is None,
    )


async def database_count(connection: CommandRunner, capabilities: Capabilities) -> int | None:
    """Read how many databases the server has; None where that is refused. Raises ConnectionLost."""
    (reply,) = await Querier(connection, capabilities).run(guard.config_get("databases"))
    return parse_setting(reply)


def parse_setting(reply: Reply) -> int | None:
    """Return the number in a reply of name and value; None for an error or anything else."""
    match reply:
        case [bytes(), bytes(text)] if text.isdigit() and len(text) <= len(str(_HIGHEST)) and int(text) <= _HIGHEST:
            return int(text)
    return None
