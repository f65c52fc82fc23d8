"""Commands that run in the process of the tests leave no signal handled as theirs."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from rtui.server.user.ending_signals import ENDING


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Signals mean in the next test what they meant in this one."""
    before = {one: signal.getsignal(one) for one in ENDING}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)
