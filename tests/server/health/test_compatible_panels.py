"""Compatible servers: a whole session of looking at their health sends nothing forbidden, and makes up no figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.analysis.facts import Unknown
from rtui.analysis.health.panel import Panel, State
from tests.fakes.base import FakeKey, FakeServer
from tests.fakes.servers import ALL
from tests.server.browsing.test_session import browsing
from tests.server.targets import eventually

KEYS = {b"shop:product:%d" % at: FakeKey() for at in range(20)}


@pytest.fixture(autouse=True)
def quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server asked for what it says anyway as soon as it has answered."""
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.02)


def texts(panel: Panel) -> dict[str, object]:
    """The figures of a panel that are known."""
    return {
        line.id: line.value for line in panel.lines if not isinstance(line.value, Unknown) and line.value is not None
    }


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
async def test_a_session_at_a_compatible_server(kind: type[FakeServer], tmp_path: Path) -> None:
    async with kind(KEYS) as fake, browsing(fake.target, tmp_path) as session:
        health = session.health
        await eventually(lambda: bool(health.nodes))
        health.begin()
        await eventually(lambda: health.nodes and health.panels(health.nodes[0]) and fake.sent(b"CONFIG") != [])
        health.ask_now()
        (node,) = health.nodes
        await eventually(lambda: health.first_at_s(node) != health.asked_at_s(node))
        panels = {panel.id: panel for panel in health.panels(node)}
        health.end()
        assert len(panels) == 7
        assert health.failure(node) is None
        assert session.status.trouble is None
    states = {line.state for panel in panels.values() for line in panel.lines}
    assert states <= {State.PLAIN, State.NORMAL, State.UNKNOWN}
    known = {line_id: value for panel in panels.values() for line_id, value in texts(panel).items()}
    numbers = {line_id: value for line_id, value in known.items() if isinstance(value, int | float)}
    assert numbers == {}, "it tells no number"
    assert known.get("role") in ({"primary"} if "role" in kind.more_info else {None})
    assert known.get("maxmemory_policy") == kind.more_info.get("maxmemory_policy")
