from __future__ import annotations

import pytest

from rtui.analysis.facts import LfuSettings
from rtui.server.facts.keys import lfu_settings, parse_setting
from rtui.server.guard.command import Secret
from rtui.server.wire.capability import Capabilities, Verdict
from rtui.server.wire.errors import Reply, ServerError
from tests.server.raw_commands import raw
from tests.server.targets import connected, target_of
from tests.servers import Server


async def settings_of(server: Server, capabilities: Capabilities | None = None, **login: object) -> LfuSettings:
    async with connected(target_of(server, **login)) as connection:
        return await lfu_settings(connection, capabilities or Capabilities())


async def test_as_they_are_set(server: Server) -> None:
    admin = server.admin
    for setting, value in (("maxmemory-policy", "allkeys-lfu"), ("lfu-log-factor", 3), ("lfu-decay-time", 0)):
        admin.config_set(setting, value)
    assert await settings_of(server) == LfuSettings(3, 0, assumed=False)


async def test_a_server_without_counters_is_not_asked(server: Server) -> None:
    capabilities = Capabilities()
    assert await settings_of(server, capabilities) == LfuSettings()
    assert capabilities["CONFIG GET"].verdict is Verdict.UNTRIED


async def test_defaults_where_asking_is_denied(server: Server) -> None:
    server.admin.config_set("maxmemory-policy", "allkeys-lfu")
    server.admin.config_set("lfu-log-factor", 3)
    raw(server, "ACL", "SETUSER", "few", "on", ">word", "~*", "+@all", "-config")
    capabilities = Capabilities()
    found = await settings_of(server, capabilities, user="few", password=Secret("word"))
    assert found == LfuSettings(assumed=True)
    assert capabilities["CONFIG GET"].verdict is Verdict.DENIED


@pytest.mark.parametrize(
    "reply",
    [None, [], [b"lfu-log-factor"], [b"a", b"-1"], [b"a", b"9" * 30], [b"a", b"x"], 5, ServerError("ERR no")],
    ids=repr,
)
def test_odd_replies_tell_nothing(reply: Reply) -> None:
    assert parse_setting(reply) is None
