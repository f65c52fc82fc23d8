"""Holds two summaries of the same keys against each other, field by field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rtui.analysis.estimates import Estimate

ROUNDING = 1e-9
"""How far figures may be off that rest on sums of squares, which a table adds up in floating point."""


def assert_same(one: Any, other: Any, path: str = "summary") -> None:
    """Compare everything; numbers with a point but for their rounding."""
    if path.endswith(".distinct"):
        _same_distinct(one, other, path)
    elif isinstance(one, Estimate | float) or isinstance(other, Estimate | float):
        low, high = ((a.low, a.value, a.high) if isinstance(a, Estimate) else a for a in (one, other))
        assert type(one) is type(other), path
        assert low == pytest.approx(high, rel=ROUNDING, nan_ok=True), path
    elif isinstance(one, msgspec.Struct):
        assert type(one) is type(other), path
        for name in one.__struct_fields__:
            assert_same(getattr(one, name), getattr(other, name), f"{path}.{name}")
    elif isinstance(one, tuple | list) and len(one) == len(other):
        for at, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{path}[{at}]")
    elif isinstance(one, dict) and one.keys() == other.keys():
        for key in one:
            assert_same(one[key], other[key], f"{path}[{key!r}]")
    else:
        assert one == other, path


def _same_distinct(one: Any, other: Any, path: str) -> None:
    """Counts of different segments up to 255 are exact; above, each is an estimate by other hashes."""
    if isinstance(one, Estimate) and isinstance(other, Estimate):
        assert 0.75 < one.value / other.value < 1.33, path
    else:
        assert one == other, path
