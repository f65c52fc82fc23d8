"""Fills one namespace, of which only the count was kept, by a scan for its prefix."""

from __future__ import annotations

from collections.abc import Callable

from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore, Refill
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.scan.node import ScanNode
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import Cost, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.errors import RtuiError


async def refill(
    store: NamespaceStore,
    namespace: Namespace,
    node: ScanNode,
    only: ScanFilter,
    control: RunControl,
    *,
    spend: Callable[[Cost], object],
) -> None:
    """Scan for the keys below `namespace` that pass the filter; broken off, it is as it was.

    `spend` gets what it has cost, however it ends. Raises an RtuiError with the reason when the scan fails.
    """
    filling = Refill(store, namespace)
    passes = only.names()

    def take(keys: list[bytes]) -> None:
        filling.add(keys if passes is None else [key for key in keys if passes(key)])

    scan = Scan([node], take, control, match=prefix_pattern(namespace.path()), kind=only.kind)
    try:
        await scan.run()
    finally:
        spend(scan.cost)
        if scan.state is ScanState.DONE:
            filling.done()
        else:
            filling.abandon()
    if scan.state is ScanState.FAILED:
        raise RtuiError("The namespace can't be listed", scan.progress.reason or "The scan of it has failed.")
