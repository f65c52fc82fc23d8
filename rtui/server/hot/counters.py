"""Hot keys by the access counters or idle times of the keys that were inspected.

Under an LFU policy `OBJECT FREQ` returns a logarithmic counter, which `lfu-log-factor` and `lfu-decay-time` turn into
accesses a minute. Without one the keys that were used last come first, to the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rtui.analysis.facts import DEFAULT_LFU_DECAY_MINUTES, DEFAULT_LFU_LOG_FACTOR, Frequency, IdleBasis, LfuSettings
from rtui.analysis.report.document import HotKey, HotList, HotSource, KeyRecord, Summary
from rtui.server import guard
from rtui.server.wire.capability import Capabilities, CommandRunner, Feature, Querier
from rtui.server.wire.own_reads import OwnReads
from rtui.server.wire.replies import Reply


@dataclass(frozen=True, slots=True)
class Source:
    """A source with its lists, or without any and with the reasons."""

    kind: HotSource = HotSource.NONE
    lists: tuple[HotList, ...] = ()
    about: str = ""
    """What it measures and since when; a safe sentence without a full stop."""
    age_s: float | None = None
    """How old its numbers are."""
    better: tuple[str, ...] = ()
    """Why there is nothing or less than there could be, and what would change that; safe sentences."""


_HIGHEST: Final = (1 << 31) - 1
"""The largest value that servers take for either."""


async def lfu_settings(connection: CommandRunner, capabilities: Capabilities) -> LfuSettings:
    """Read both settings; the defaults are assumed where that is refused. Raises ConnectionLost.

    A server whose policy keeps no counters is not asked.
    """
    if connection.server.is_lfu is False:
        return LfuSettings()
    querier = Querier(connection, capabilities)
    factor, decay = await querier.run(guard.config_get("lfu-log-factor"), guard.config_get("lfu-decay-time"))
    log_factor, decay_minutes = parse_setting(factor), parse_setting(decay)
    return LfuSettings(
        DEFAULT_LFU_LOG_FACTOR if log_factor is None else log_factor,
        DEFAULT_LFU_DECAY_MINUTES if decay_minutes is None else decay_minutes,
        assumed=log_factor is None or decay_minutes is None,
    )


def parse_setting(reply: Reply) -> int | None:
    """Return the number in a reply of name and value; None for an error or anything else."""
    match reply:
        case [bytes(), bytes(text)] if text.isdigit() and len(text) <= len(str(_HIGHEST)) and int(text) <= _HIGHEST:
            return int(text)
    return None


NO_RATE: Final = "lfu-decay-time is 0: access counters never fall, so that they tell no rate and no present."
"""Why counters are not turned into rates."""

ASSUMED: Final = "The rates rest on the defaults of lfu-log-factor and lfu-decay-time, since these could not be read."
"""What is wrong with rates when CONFIG GET is denied."""


READS_COUNT: Final = (
    "Reading a key counts as a use here, since the server has no CLIENT NO-TOUCH or denies it: "
    "what an earlier session of rtui showed, or an earlier report listed as largest, may be here for that alone."
)
"""Why some keys may seem to be in use."""


def counted_source(
    summary: Summary,
    capabilities: Capabilities,
    *,
    lfu: LfuSettings,
    is_lfu_policy: bool | None,
    basis: IdleBasis,
    now_s: float,
    own_reads: OwnReads | None = None,
) -> Source:
    """Rank the hottest keys that were inspected by frequency, else by idle time.

    `own_reads` is what rtui has read where that counts as a use, None where it does not.
    """
    if basis is IdleBasis.WRITE:
        own_reads = None
    counted = [record for record in summary.hottest if record.frequency is not None]
    used = [record for record in summary.hottest if record.idle_s is not None]
    if counted and is_lfu_policy is not False:
        source = _by_frequency(counted, lfu)
    elif used:
        source = _by_idle(used, basis, OwnReads() if own_reads is None else own_reads)
    else:
        refused = [
            f"{feature} can't be used: {capabilities[feature].reason}."
            for feature in (Feature.OBJECT_FREQ, Feature.OBJECT_IDLETIME)
            if not capabilities.allows(feature)
        ]
        return Source(better=tuple(refused) or ("No key was there whose frequency or idle time is known.",))
    if own_reads is not None:
        source = replace(source, better=(*source.better, READS_COUNT))
    asked_at_s = min(record.asked_at_s for record in summary.hottest)
    return replace(source, age_s=max(0.0, now_s - asked_at_s) if asked_at_s else None)


def _by_frequency(records: Sequence[KeyRecord], lfu: LfuSettings) -> Source:
    keys = []
    for record in records:
        frequency = Frequency(record.frequency or 0, lfu)
        rate = frequency.per_minute
        keys.append(HotKey(record, float(frequency.counter if rate is None else rate), frequency.is_saturated))
    keys.sort(key=lambda hot: (-hot.value, hot.record.key))
    if lfu.decay_minutes <= 0:
        counters = (HotList("Access counter", "LFU counter", tuple(keys)),)
        return Source(HotSource.FREQUENCY, counters, "the access counter of each key, 0 to 255", better=(NO_RATE,))
    about = "accesses a minute that hold the access counter where it is"
    if any(hot.at_least for hot in keys):
        about += "; keys at the top of the counter have no rank among themselves"
    lists = (HotList("Accesses", "accesses/min", tuple(keys)),)
    return Source(HotSource.FREQUENCY, lists, about, better=(ASSUMED,) if lfu.assumed else ())


def _by_idle(records: Sequence[KeyRecord], basis: IdleBasis, own_reads: OwnReads) -> Source:
    by_others = [one for one in records if not own_reads.idle(one.key, one.idle_s or 0, one.asked_at_s).is_own_read]
    keys = sorted(
        (HotKey(one, float(one.idle_s or 0)) for one in by_others), key=lambda hot: (hot.value, hot.record.key)
    )
    left_out = len(records) - len(keys)
    use = "write" if basis is IdleBasis.WRITE else "use"
    about = f"time since the last {use}, to the second; keys in use all the time can't be told apart"
    better = "The server keeps no access counters; an LFU maxmemory-policy such as allkeys-lfu would rank keys by use."
    own = (f"{left_out:,} keys are left out: it was rtui itself that used them last.",) if left_out else ()
    own = ("1 key is left out: it was rtui itself that used it last.",) if left_out == 1 else own
    return Source(HotSource.IDLE, (HotList("Last use", "seconds idle", tuple(keys)),), about, better=(*own, better))
