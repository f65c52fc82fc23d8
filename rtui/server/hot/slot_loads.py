"""What a node of a cluster counts of its slots: CLUSTER SLOT-STATS."""

from __future__ import annotations

from typing import Final

from rtui.analysis.report import SlotLoad
from rtui.keyspace.slot import SLOTS
from rtui.server import guard
from rtui.server.asking import Asking
from rtui.server.errors import ServerError
from rtui.server.guard.load_entries import MAX_SLOTS
from rtui.server.reply import Reply

_METRICS: Final = frozenset((b"key-count", b"cpu-usec", b"memory-bytes", b"network-bytes-in", b"network-bytes-out"))
"""What a node may count of a slot, as it names it."""

KEYS_ONLY: Final = (
    "This node counts only the keys of its slots; its setting cluster-slot-stats-enabled adds time and traffic."
)
"""Why there is no CPU time by slot."""


async def slot_loads(asking: Asking) -> tuple[tuple[SlotLoad, ...], tuple[str, ...]]:
    """Ask for the most loaded slots, and say what is missing; nothing outside a cluster. Raises ConnectionLost."""
    if not asking.connection.server.cluster_enabled:
        return (), ()
    (reply,) = await asking.run(guard.slot_stats("cpu-usec", limit=MAX_SLOTS))
    if not isinstance(reply, ServerError):
        return parse_slots(reply), ()
    (reply,) = await asking.run(guard.slot_stats("key-count", limit=MAX_SLOTS))
    if not isinstance(reply, ServerError):
        return parse_slots(reply), (KEYS_ONLY,)
    return (), (f"What this node counts of its slots could not be had: {reply}.",)


def parse_slots(reply: Reply) -> tuple[SlotLoad, ...]:
    """Read slots with their counters, those without any load and whatever has another shape left out."""
    rows = reply[:MAX_SLOTS] if isinstance(reply, list) else []
    return tuple(load for row in rows if (load := _load(row)) is not None)


def _load(row: Reply) -> SlotLoad | None:
    if not isinstance(row, list) or len(row) != 2:
        return None
    slot, flat = row
    if not isinstance(slot, int) or not 0 <= slot < SLOTS or not isinstance(flat, list):
        return None
    values = {
        name.decode(): value
        for name, value in zip(flat[::2], flat[1::2], strict=False)
        if isinstance(name, bytes) and name in _METRICS and isinstance(value, int) and value >= 0
    }
    return SlotLoad(slot, values) if any(values.values()) else None
