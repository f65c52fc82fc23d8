"""What rtui leaves in what it looks at: nothing in the slow log; and no password of others gets into a sample."""

from __future__ import annotations

from tests.server.health.driven import looking, raw_clients
from tests.servers import Server

ROUNDS = 10
USUAL_S = 0.01
"""slowlog-log-slower-than, as it is by default."""


def worked_s(server: Server) -> float:
    """The processor time of the thread that carries commands out."""
    told = server.admin.info("cpu")
    return float(told["used_cpu_user_main_thread"]) + float(told["used_cpu_sys_main_thread"])


async def test_nothing_of_rtui_is_slow(server: Server) -> None:
    """All commands of a full sample together take less processor time than what goes to the slow log takes alone.

    The slow log itself counts the time on the clock: while the machine does something else, it has entries of any
    command, so it proves nothing here.
    """
    async with looking(server) as looked:
        await looked.look()
        before_s = worked_s(server)
        for _ in range(ROUNDS):
            await looked.look()
        took_s = worked_s(server) - before_s
    assert took_s < ROUNDS * USUAL_S
    assert server.admin.config_get("slowlog-log-slower-than") == {"slowlog-log-slower-than": "10000"}


async def test_what_rtui_sends_is_told_apart_in_the_slow_log(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 0)
    async with looking(server, {"command-slow": {"longest": 0.0}}) as looked:
        await looked.look()
        sample = await looked.look()
    own = [one for one in sample.slow if one.is_own]
    assert "INFO" in {one.name for one in own}
    assert not any("INFO" in one.title for one in looked.health.found.findings if one.rule == "command-slow")
    assert looked.line("slow", "slow_entries_of_rtui").value == len(own)


async def test_passwords_are_not_in_the_log(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 0)
    with raw_clients(server, 1, b"AUTH somebody word-of-a-test\r\n") as (client,):
        assert client.recv(64).startswith(b"-WRONGPASS")
    server.admin.execute_command("ACL", "SETUSER", "somebody", ">word-of-a-test")
    server.admin.config_set("masterauth", "word-of-a-test")
    async with looking(server) as looked:
        sample = await looked.look()
    assert {"ACL", "CONFIG"} <= {one.name for one in sample.slow}
    assert "word-of-a-test" not in repr(sample)
    assert "word-of-a-test" not in repr(looked.health.panels)
