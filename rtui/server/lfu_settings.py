"""The settings that say how access counters grow and fall, read where the user may."""

from __future__ import annotations

from typing import Final

from rtui.analysis.facts import DEFAULT_LFU_DECAY_MINUTES, DEFAULT_LFU_LOG_FACTOR, LfuSettings
from rtui.server import guard
from rtui.server.asking import Asking, Looks
from rtui.server.capability import Capabilities
from rtui.server.reply import Reply

_HIGHEST: Final = (1 << 31) - 1
"""The largest value that servers take for either."""


async def lfu_settings(connection: Looks, capabilities: Capabilities) -> LfuSettings:
    """Read both settings; the defaults are assumed where that is refused. Raises ConnectionLost.

    A server whose policy keeps no counters is not asked.
    """
    if connection.server.is_lfu is False:
        return LfuSettings()
    asking = Asking(connection, capabilities)
    factor, decay = await asking.run(guard.config_get("lfu-log-factor"), guard.config_get("lfu-decay-time"))
    return _settings(parse_setting(factor), parse_setting(decay))


def _settings(log_factor: int | None, decay_minutes: int | None) -> LfuSettings:
    return LfuSettings(
        DEFAULT_LFU_LOG_FACTOR if log_factor is None else log_factor,
        DEFAULT_LFU_DECAY_MINUTES if decay_minutes is None else decay_minutes,
        assumed=log_factor is None or decay_minutes is None,
    )


def parse_setting(reply: Reply) -> int | None:
    """Give the number in a reply of name and value; None for an error or anything else."""
    match reply:
        case [bytes(), bytes(text)] if text.isdigit() and len(text) <= len(str(_HIGHEST)) and int(text) <= _HIGHEST:
            return int(text)
    return None
