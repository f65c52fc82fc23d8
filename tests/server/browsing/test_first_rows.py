"""What overviews cost is counted whole: of nodes that are asked side by side, and when a scan begins again."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.keyspace.store.store import NamespaceStore
from rtui.server.browsing.first_rows import Overviews
from rtui.server.deployment.nodes import Deployment
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.run_control import RunControl
from tests.clusters import TestCluster
from tests.server.scanned import numbered
from tests.server.targets import target_of


@pytest.mark.parametrize("cluster", ["redis-7.0"], indirect=True)
async def test_what_is_asked_of_all_nodes_is_counted(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(numbered(3_000))
    deployment = Deployment(target_of(cluster.members[0].server))
    await deployment.open()
    try:
        nodes = [ScanNode(one.connection, size=1_000) for one in await deployment.scanned()]
        before = sum(one.connection.sent.commands for one in nodes)
        overviews = Overviews(deployment, NamespaceStore(), RunControl(Pace.FULL), ScanFilter(None, None))
        await overviews.take(nodes, 3_000)
        sent = sum(one.connection.sent.commands for one in nodes) - before
    finally:
        await deployment.close()
    assert overviews.cost.commands == sent > 3
    overviews.forget()
    assert overviews.cost.commands == sent
