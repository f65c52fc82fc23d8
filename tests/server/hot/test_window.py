"""The window of Valkey 9.2, which a scripted server sends."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import cast

import pytest

from rtui.analysis.report.document import HotReport, HotSource
from rtui.server.guard.command import Command
from rtui.server.hot.hotkeys import server_source
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.own_reads import OwnReads

WINDOW: Reply = [[b"key", b"\x1b[31m", b"db", 3, b"qps", 48_200], [b"key", b"b", b"db", 0, b"qps", 7]]
INFO = b"# Hotkeys\r\nhotkeys_last_window_samples:19\r\nhotkeys_last_window_duration_ms:1002\r\n"


class Scripted:
    """Answers by the name of the command."""

    def __init__(self, product: str | None, version: tuple[int, ...] | None, **replies: Reply) -> None:
        self.server = ServerIdentity(product=product, version=version)  # type: ignore[arg-type]
        self.no_touch = NoTouch.ON
        self.own_reads = OwnReads()
        self.asked: list[str] = []
        self._replies = replies

    def run(self, *commands: Command) -> Awaitable[list[Reply]]:
        return self._answer([command.name for command in commands])

    async def _answer(self, names: list[str]) -> list[Reply]:
        self.asked += names
        return [self._replies[name.split(" ")[0].lower()] for name in names]


async def source_of(server: Scripted) -> HotReport:
    return await server_source(Querier(cast(Connection, server), Capabilities()), now_s=0.0)


async def test_a_window() -> None:
    found = await source_of(Scripted("valkey", (9, 2, 0), hotkeys=WINDOW, info=INFO))
    (hot,) = found.lists
    assert found.source is HotSource.SERVER
    assert hot.unit == "queries/s"
    assert [(one.record.key, one.value, one.record.note) for one in hot.keys] == [
        (b"\x1b[31m", 48_200.0, "in database 3"),
        (b"b", 7.0, "in database 0"),
    ]
    assert "the last window of 1s" in found.about


async def test_a_window_whose_length_is_not_told() -> None:
    found = await source_of(Scripted("valkey", (9, 2, 0), hotkeys=WINDOW, info=ServerError("NOPERM no")))
    assert "the last window," in found.about


async def test_tracking_that_is_off_or_saw_nothing() -> None:
    server = Scripted("valkey", (9, 2, 0), hotkeys=[])
    found = await source_of(server)
    assert not found.lists
    assert "hotkeys-top-k" in found.better[0]
    assert server.asked == ["HOTKEYS GET"]


@pytest.mark.parametrize(("product", "version"), [("redis", (8, 4, 9)), ("valkey", (9, 1, 2))])
async def test_servers_that_have_none_are_not_asked(product: str, version: tuple[int, ...]) -> None:
    server = Scripted(product, version)
    found = await source_of(server)
    assert server.asked == []
    assert "has no hot-key report of its own" in found.better[0]


@pytest.mark.parametrize(("product", "version"), [("other", (1, 2, 3)), (None, None), ("redis", None)])
async def test_servers_that_nobody_knows_are_asked(product: str | None, version: tuple[int, ...] | None) -> None:
    unknown = ServerError("ERR unknown command \x1b[31m'HOTKEYS'")
    found = await source_of(Scripted(product, version, hotkeys=unknown))
    assert "unknown command" in found.better[0]
    assert "\x1b" not in found.better[0]


@pytest.mark.parametrize("reply", [5, b"text", [b"odd"], [[1, 2]]], ids=repr)
async def test_a_shape_that_nobody_knows(reply: Reply) -> None:
    found = await source_of(Scripted("redis", (9, 0, 0), hotkeys=reply))
    assert not found.lists
    assert "shape" in found.better[0]
