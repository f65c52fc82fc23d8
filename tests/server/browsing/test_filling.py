"""A server that is filled while it is browsed: what there is shows at once, in the end everything is there once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from tests.server.targets import eventually
from tests.servers import Server


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 1, 30_000])
async def test_every_key_is_seen_once_although_it_came_late(valkey: Server, tmp_path: Path, before: int) -> None:
    valkey.admin.mset({f"early:{number}": "x" for number in range(before)} or {"only": "x"})
    filling = True
    browsing = BrowsingSession(
        BrowseOptions(Target(port=valkey.port), is_filling=lambda: filling, resume=False), state_folder=tmp_path
    )
    await browsing.start()
    try:
        async with asyncio.timeout(20):
            await eventually(lambda: browsing.store.keys > 0)
            assert browsing.status.complete is False
            valkey.admin.mset({f"late:{number}": "x" for number in range(30_000)})
            filling = False
            await eventually(lambda: browsing.store.complete)
        assert browsing.store.keys == valkey.admin.dbsize()
    finally:
        await browsing.close()
