"""What an analysis leaves behind on a server: nothing."""

from __future__ import annotations

from typing import Any

import redis

from rtui.analysis.columns import EVERYTHING
from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.server.guard.command import find_spec
from tests.monitor import Recorder, escapes_quotes
from tests.oracles.analysed import report_on
from tests.oracles.keyspaces import grown
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.guard.harmless import is_harmless
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.tour import PLANTED_IDLE_S, minimal_user, plant_idle, usage

KEYS = 600

TOP = 40


def dumps(client: redis.Redis) -> dict[bytes, bytes]:
    """The value of every key as the server writes it down. Asking counts as an access."""
    keys: Any = sorted(client.scan_iter(count=1_000))
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.dump(key)
    return dict(zip(keys, pipeline.execute(), strict=True))


def changes(server: Server) -> int:
    """How often the server's data has been written to."""
    info: Any = server.admin.info("persistence")
    changed: int = info["rdb_changes_since_last_save"]
    return changed


async def test_by_the_minimal_user(server: Server) -> None:
    grown(server.admin, keys=KEYS, seed=11)
    every_type.fill(server, server.admin)
    plant_idle(server)
    user, password = minimal_user(server)
    server.admin.execute_command("ACL", "LOG", "RESET")
    written = changes(server)
    with Recorder(server) as recorder:
        async with DelayProxy(server.port) as proxy:
            target = target_of(server, port=proxy.port, user=user, password=password)
            whole = await report_on(target, top=TOP, columns=EVERYTHING)
            sampled = await report_on(target, top=TOP, estimate_keys=100)
            sent = proxy.commands()
    assert (whole.head.coverage.kind, sampled.head.coverage.kind) == (CoverageKind.EXACT, CoverageKind.ESTIMATE)
    assert changes(server) == written
    assert server.admin.execute_command("ACL", "LOG") == []
    nothing_is_denied(whole)
    for argv in sent:
        assert find_spec(argv) is not None, argv
        assert is_harmless(argv), argv
    seen = {one.argv for one in recorder.commands if one.client.startswith("127.0.0.1:")}
    if escapes_quotes(server):
        assert {argv for argv in seen if argv[0] not in {b"AUTH", b"HELLO"}} <= set(map(tuple, sent))
    idle = usage(server, "IDLETIME")
    touched = {key for key, seconds in idle.items() if seconds < PLANTED_IDLE_S}
    asked = {record.key for report in (whole, sampled) for record in report.summary.big.by_memory}
    assert touched <= (set() if every_type.has_no_touch(server) else asked)
    before = dumps(server.admin)
    await report_on(target_of(server, user=user, password=password))
    assert dumps(server.admin) == before


def nothing_is_denied(report: Report) -> None:
    states = {column.state for column in report.head.columns.values()}
    assert ColumnState.DENIED not in states
