from __future__ import annotations

import pytest

from tests.conftest import Pool
from tests.servers import Server


@pytest.fixture(params=["redis-8.6", "redis-8.10"])
def session_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """A Redis with hot-key sessions, empty; each version that has them."""
    name: str = request.param
    return pool.take(name, name)
