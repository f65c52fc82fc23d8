"""Ranges and the watch over the size of a table, pure and compiled, for tests that hold for both."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TypeAlias, cast

import pytest

from rtui.server.engine import is_built
from rtui.server.scan.cursor import Dialect, TableWatch
from rtui.server.scan.ranges import Ranges

IS_BUILT: Final = is_built()

if os.environ.get("RTUI_REQUIRE_ENGINE") == "1":
    assert IS_BUILT, "the compiled engine was not built"

NewWatch: TypeAlias = Callable[[], TableWatch]


def compiled() -> type[Ranges]:
    """The compiled ranges, which have the interface of the pure ones."""
    from rtui.server.scan.compiled_ranges import CompiledRanges

    return cast("type[Ranges]", CompiledRanges)


def compiled_watch() -> TableWatch:
    """The watch of compiled ranges that nothing else happens to."""
    from rtui.server.scan.compiled_ranges import CompiledRanges

    return cast("TableWatch", CompiledRanges(Dialect.STANDALONE).table)


_NOT_BUILT: Final = pytest.mark.skipif(not IS_BUILT, reason="the compiled engine was not built")

RANGES: Final = [
    pytest.param(Ranges, id="pure"),
    pytest.param(compiled() if IS_BUILT else None, id="compiled", marks=_NOT_BUILT),
]
WATCHES: Final = [pytest.param(TableWatch, id="pure"), pytest.param(compiled_watch, id="compiled", marks=_NOT_BUILT)]

each_kind = pytest.mark.parametrize("kind", RANGES)
each_watch = pytest.mark.parametrize("new_watch", WATCHES)
