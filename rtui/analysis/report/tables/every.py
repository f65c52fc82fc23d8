"""All tables of a report, in the order in which a report file has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.expiry import about_to_expire, cliffs, no_ttl, ttl_histogram
from rtui.analysis.report.tables.keys import big_keys, hot_keys, hot_slots
from rtui.analysis.report.tables.namespaces import outline
from rtui.analysis.report.tables.slots import cluster_of, slot_tags, slots
from rtui.analysis.report.tables.table import Table
from rtui.analysis.report.tables.types import encodings, frequency_histogram, idle_histogram, keysizes, types

CLUSTER_NODES: Final = 3
"""Primaries of the cluster that a standalone server is imagined as: the fewest there can be."""

_SLOTS_SHOWN: Final = 20


def tables(report: Report) -> list[Table]:
    """Return the tables of a report file below its head; some may have no rows."""
    return [
        outline(report),
        types(report),
        encodings(report),
        big_keys(report),
        replace(big_keys(report, "length"), note=""),
        *hot_keys(report),
        hot_slots(report),
        cliffs(report),
        about_to_expire(report),
        ttl_histogram(report),
        no_ttl(report),
        idle_histogram(report),
        frequency_histogram(report),
        slots(report, _SLOTS_SHOWN),
        slot_tags(report),
        *([cluster_of(report, CLUSTER_NODES)] if _is_one_node(report) else []),
        keysizes(report),
    ]


def _is_one_node(report: Report) -> bool:
    """Tell whether a cluster has to be imagined, and there are keys to imagine in it."""
    return not report.head.server.cluster_enabled and any(report.summary.slots.keys)
