"""A comparison as JSON, with units in the names; `null` is not known, and in `high` that nothing bounds it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

from rtui.analysis.report.change import Bound, Change, Interval, Reading
from rtui.analysis.report.comparison import Comparison, NamespaceChange
from rtui.analysis.report.document import Head
from rtui.analysis.report.thresholds import Judgement
from rtui.keyspace.text.display import quoted

COMPARISON_FORMAT: Final = "rtui diff"
"""What the file says it is."""

COMPARISON_SCHEMA: Final = 1
"""Version of this document; it grows with every change that an older reader would misread."""


def comparison_json(
    comparison: Comparison, judgements: Sequence[Judgement] = (), *, depth: int | None = None, top: int | None = None
) -> str:
    """Return all namespaces down to a level, depth first, in ASCII; `top` keeps the first so many only."""
    changes = list(comparison.root.walk(depth))
    document = {
        "format": COMPARISON_FORMAT,
        "schema": COMPARISON_SCHEMA,
        "before": _head(comparison.before),
        "after": _head(comparison.after),
        "notes": list(comparison.notes),
        "levels_compared": comparison.levels,
        "total": _record(changes[0]),
        "namespaces": [_record(change) for change in changes[1:][:top]],
        "namespaces_left_off": 0 if top is None else max(0, len(changes) - 1 - top),
        "fail_on": [{"expression": one.expression, "outcome": one.outcome.value, "why": one.why} for one in judgements],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _head(head: Head) -> dict[str, Any]:
    server = head.server
    return {
        "made_at_epoch_s": head.made_at_s,
        "server": server.label,
        "product": server.product,
        "version": server.version,
        "db": server.db,
        "coverage": head.coverage.kind.value,
        "inspected_keys": head.coverage.keys,
    }


def _record(change: NamespaceChange) -> dict[str, Any]:
    return {
        "namespace": change.label,
        "namespace_quoted": quoted(change.raw),
        "kind": change.path[-1].kind.value if change.path else "all",
        "level": change.level,
        "fate": change.fate.value,
        "keys": _change(change.keys),
        "memory_bytes": _change(change.memory),
        "no_ttl_share": _change(change.no_ttl),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "verdict": change.direction.value,
        "before": _reading(change.before),
        "after": _reading(change.after),
        "difference": _interval(change.difference()),
        "growth": _interval(change.growth()),
    }


def _reading(found: Reading | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"value": found.value, "low": _bound(found.low), "high": _bound(found.high), "is_present": found.is_present}


def _interval(found: Interval | None) -> dict[str, Any] | None:
    return None if found is None else {"low": _bound(found.low), "high": _bound(found.high)}


def _bound(bound: Bound) -> int | float | None:
    """A JSON number, whole where it is; infinity has none."""
    number = float(bound)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
