"""Whether what was listed can still hold, on servers that end, begin anew, are emptied and change places."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from rtui.server.browsing.session import BrowsingSession
from rtui.server.options import BrowseOptions
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Online
from rtui.server.wire.identity import Outdated, ServerIdentity, ServerStamp, outdated_by_size
from tests.server.targets import eventually, target_of
from tests.servers import Server

KEYS = 200


@dataclass
class Reached:
    server: ServerIdentity
    generation: int


def reached(run_id: str | None, generation: int, uptime_s: int | None = None) -> Reached:
    return Reached(ServerIdentity(run_id=run_id, uptime_s=uptime_s), generation)


SEEN = ServerStamp(at_s=1_000.0, run_id="a", generation=1)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (reached("a", 1), None),
        (reached("a", 2), None),
        (reached("b", 2, 3), Outdated.RESTARTED),
        (reached("b", 2, None), Outdated.RESTARTED),
        (reached("b", 2, 9_000), Outdated.REPLACED),
        (reached(None, 1), None),
        (reached(None, 2), Outdated.UNSURE),
    ],
)
def test_another_run_of_the_server_is_told_from_another_server(now: Reached, expected: Outdated | None) -> None:
    assert SEEN.outdated(now.server, now.generation, 1_060.0) is expected


@pytest.mark.parametrize(
    ("listed", "then", "now", "expected"),
    [
        (200, None, None, None),
        (200, 200, 200, None),
        (200, 200, 150, None),
        (200, 200, 0, Outdated.EMPTIED),
        (200, 0, 0, Outdated.EMPTIED),
        (200, 200, 99, Outdated.SHRANK),
        (200, 200, 401, Outdated.GREW),
        (200, 1_000, 1_000, None),
        (12, 12, 5, None),
        (0, 0, 1, Outdated.GREW),
        (0, 0, 0, None),
    ],
)
def test_only_a_change_of_the_size_tells(listed: int, then: int | None, now: int | None, expected: Outdated) -> None:
    assert outdated_by_size(listed, then, now) is expected


@pytest.fixture(autouse=True)
def frequent_refreshes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.02)


def outdated(session: BrowsingSession) -> Outdated | None:
    return session.status.outdated


async def scanned(server: Server, folder: Path) -> BrowsingSession:
    server.admin.mset({f"user:{number}": "x" for number in range(KEYS)})
    session = BrowsingSession(BrowseOptions(target_of(server)), state_folder=folder)
    await session.start()
    await eventually(lambda: session.status.complete and session.status.progress.state is ScanState.DONE)
    return session


async def test_after_a_restart_nothing_that_is_listed_holds_until_it_is_scanned_again(
    server: Server, tmp_path: Path
) -> None:
    session = await scanned(server, tmp_path)
    try:
        assert outdated(session) is None
        generation = session.status.generation
        server.stop()
        await eventually(lambda: not isinstance(session.status.link, Online))
        server.start()
        await eventually(lambda: isinstance(session.status.link, Online))
        assert outdated(session) is Outdated.RESTARTED
        assert session.status.generation > generation
        assert session.status.progress.keys == KEYS
        await session.rescan()
        await eventually(lambda: session.status.progress.state is ScanState.DONE)
        assert outdated(session) is None
        assert session.status.progress.keys == 0
    finally:
        await session.close()


async def test_a_connection_that_comes_back_to_the_same_run_leaves_everything_valid(
    valkey: Server, tmp_path: Path
) -> None:
    session = await scanned(valkey, tmp_path)
    try:
        generation = session.status.generation
        valkey.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await eventually(lambda: session.status.generation > generation and isinstance(session.status.link, Online))
        assert outdated(session) is None
    finally:
        await session.close()


async def test_a_server_that_does_not_tell_its_run_may_have_been_restarted(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-info")
    session = await scanned(valkey, tmp_path)
    try:
        valkey.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await eventually(lambda: outdated(session) is Outdated.UNSURE)
    finally:
        await session.close()


async def test_an_emptied_database_and_one_that_grew(valkey: Server, tmp_path: Path) -> None:
    session = await scanned(valkey, tmp_path)
    try:
        await eventually(lambda: session.passes.shown.size_since == KEYS)
        valkey.admin.flushall()
        await eventually(lambda: outdated(session) is Outdated.EMPTIED)
        valkey.admin.mset({f"user:{number}": "x" for number in range(3 * KEYS)})
        await eventually(lambda: outdated(session) is Outdated.GREW)
        await session.rescan()
        await eventually(lambda: session.status.progress.state is ScanState.DONE)
        await eventually(lambda: session.passes.shown.size_since is not None)
        assert outdated(session) is None
    finally:
        await session.close()


async def test_keys_that_appear_in_an_empty_database(valkey: Server, tmp_path: Path) -> None:
    session = BrowsingSession(BrowseOptions(target_of(valkey)), state_folder=tmp_path)
    await session.start()
    try:
        await eventually(lambda: session.passes.shown.size_since == 0)
        assert outdated(session) is None
        valkey.admin.set("first", "x")
        await eventually(lambda: outdated(session) is Outdated.GREW)
    finally:
        await session.close()


async def test_a_paused_scan_of_a_server_that_was_restarted(valkey: Server, tmp_path: Path) -> None:
    """Either its rows are told to be of before, or it has found out itself and dropped them."""
    session = await scanned(valkey, tmp_path)
    valkey.admin.mset({f"user:{number}": "x" for number in range(20_000)})
    try:
        await session.rescan()
        session.control.pause()
        await eventually(lambda: session.status.progress.state is ScanState.PAUSED and session.store.keys)
        valkey.restart()
        await eventually(lambda: outdated(session) is Outdated.RESTARTED or not session.store.keys)
        session.control.resume()
        await eventually(lambda: session.status.progress.state is ScanState.DONE)
        assert outdated(session) is None
        assert session.store.keys == 0
    finally:
        await session.close()
