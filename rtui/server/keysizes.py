"""The histograms of sizes that Redis 8 keeps of all keys: `INFO keysizes`."""

from __future__ import annotations

import re
from typing import Final

from rtui.analysis.report import KeySizes
from rtui.server import guard
from rtui.server.asking import Asking, Looks
from rtui.server.capability import Capabilities
from rtui.server.identity import parse_fields
from rtui.server.reply import Reply

_NAME: Final = re.compile(r"db([0-9]{1,10})_(distrib_[a-z0-9_]{1,50})", re.ASCII)
_BIN: Final = re.compile(r"([0-9]{1,4})([KMGTPE]?)=([0-9]{1,19})", re.ASCII)
_UNITS: Final = {unit: 1 << 10 * power for power, unit in enumerate(("", *"KMGTPE"))}


async def key_sizes(connection: Looks, capabilities: Capabilities, db: int) -> tuple[KeySizes, ...]:
    """Ask for the histograms of one database; none where the server keeps none or denies INFO.

    Strings are counted by bytes, the other types by elements. Raises ConnectionLost.
    """
    (reply,) = await Asking(connection, capabilities).run(guard.info("keysizes"))
    return parse_key_sizes(reply, db)


def parse_key_sizes(reply: Reply, db: int) -> tuple[KeySizes, ...]:
    """Read `db0_distrib_strings_sizes:0=1,1=4,2K=7`: lower bounds in binary units and keys, lowest first."""
    found = []
    for field, value in parse_fields(reply).items():
        name = _NAME.fullmatch(field)
        if name is not None and int(name[1]) == db and (bins := _bins(value)):
            found.append(KeySizes(name[2], bins))
    return tuple(found)


def _bins(text: str) -> tuple[tuple[int, int], ...]:
    matches = (_BIN.fullmatch(one) for one in text.split(","))
    return tuple(sorted((int(one[1]) * _UNITS[one[2]], int(one[3])) for one in matches if one is not None))
