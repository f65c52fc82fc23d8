"""A company's usage rules with a table of all keys: `business:sub-business:id`, underscores inside a part.

Planted: keys missing from the table, locks that never expire, a name of 1,024 bytes, one too short to read, quotes,
spaces and line breaks in names, and the old version of a key that was to be retired. A good day has none of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Final

from rtui.analysis.report.members import MINUTE_S
from rtui.demo.writes import Write, WriteGroup, text, until

UNKNOWN: Final = (
    "u1000flw",
    "tmp_fix_2019",
    "ecm:migration:cursor",
    "object-type:1000",
    "ecm:report:export_job:17",
    "comment:1234:reply.to",
)


def write_groups(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """Yield about `keys` keys; the top of the module lists the defects planted among them, unless the day `is_good`."""
    if is_good:
        return until(keys, WriteGroup(), (WriteGroup([_one_on_good_day(random, serial)]) for serial in count(1)))
    writes: list[Write] = [text(name, "nobody knows") for name in UNKNOWN]
    writes += [text("ecm:archive:".ljust(1_024, "x"), "a name of 1,024 bytes")]
    bad_names = ("two words", 'a"quote', "line\nbreak")
    writes += [text(f"ecm:product:{bad}:1", "a name that breaks the rules") for bad in bad_names]
    return until(keys, WriteGroup(writes), (WriteGroup([_one(random, serial)]) for serial in count(1)))


def _one(random: Random, serial: int) -> Write:
    product = f"P{random.getrandbits(36):011d}"
    kind = random.random()
    if kind < 0.62:
        request = f"R2026{serial:010d}"
        ttl_s = random.uniform(MINUTE_S, 30 * MINUTE_S)
        return text(f"ecm:handholdIdCardInfo:retry:{request}", random.randrange(1, 6), ttl_s=ttl_s)
    if kind < 0.66:
        return text(f"ecm:product:create:{serial}", 1, ttl_s=5)
    if kind < 0.80:
        return text(
            f"lock:product:verify:{product}", f"reviewer-{serial % 40}", ttl_s=random.uniform(30, 10 * MINUTE_S)
        )
    if kind < 0.90:
        is_stuck = random.random() < 0.25
        key = f"lock:redis:create_pre_loan_stage_handler:{product}"
        return text(key, f"node-{serial % 6}", ttl_s=None if is_stuck else 30)
    return text(f"ecm:product:lock:verify:{product}", f"reviewer-{serial % 40}")


def _one_on_good_day(random: Random, serial: int) -> Write:
    product = f"P{random.getrandbits(36):011d}"
    kind = random.random()
    if kind < 0.7:
        key, ttl_s = f"ecm:handholdIdCardInfo:retry:R2026{serial:010d}", random.uniform(MINUTE_S, 30 * MINUTE_S)
        return text(key, random.randrange(1, 6), ttl_s=ttl_s)
    if kind < 0.8:
        return text(f"lock:redis:create_pre_loan_stage_handler:{product}", f"node-{serial % 6}", ttl_s=30)
    key = f"lock:product:verify:{product}" if kind < 0.9 else f"ecm:product:lock:verify:{product}"
    return text(key, f"reviewer-{serial % 40}", ttl_s=random.uniform(30, 10 * MINUTE_S))
