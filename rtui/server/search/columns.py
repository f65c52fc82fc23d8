"""One fact of all keys directly in a namespace, to sort them by, read at the pace of a scan."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import ceil, inf
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.query.plan import FACT_US
from rtui.analysis.query.query import EVERYTHING
from rtui.analysis.query.terms import Fact
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.server import wall_clock
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import FindOptions
from rtui.server.scan.pace import Pace
from rtui.server.search.run import KeySearch
from rtui.server.wire.supervised_tasks import end_task, start_supervised

FACTS: Final = {
    Sort.MEMORY: Fact.MEMORY,
    Sort.MEAN: Fact.MEMORY,
    Sort.TTL: Fact.TTL,
    Sort.IDLE: Fact.IDLE,
    Sort.TYPE: Fact.TYPE,
}
"""The fact that an order sorts by."""

NEVER: Final = 1e300
"""The weight of a key that never expires: after all that do, before keys with an unknown time to live."""

POLL_S: Final = 0.05
"""Seconds between looks at the replies so far."""


def weight(fact: Fact, value: Any, asked_at_s: float = 0.0) -> float:
    """Return the sort weight of a key's fact, least first; infinite if the fact is unknown.

    `value` of a time to live is as of `asked_at_s`; types sort by their names.
    """
    if value is None:
        return inf
    if fact is Fact.TYPE:
        return float(int.from_bytes(value[:6].ljust(6, b"\0"), "big"))  # exact
    if fact is Fact.TTL:
        return NEVER if value <= NO_EXPIRY else asked_at_s + value / 1000
    return float(-value)


class KeyWeights(ABC):
    """Finds the fact of all keys directly in a namespace that they are to be sorted by; `run` it once."""

    failure: SafeText | None = None
    """Why some keys could not be read."""

    def __init__(self, node: Namespace, sort: Sort) -> None:
        self.node = node
        self.of = node.key_total
        """Keys to read or to find."""
        self.weights: dict[bytes, float] = {}
        """Sort weights by the last segment of the name, as far as known; infinite for an unknown fact."""
        self._fact = FACTS[sort]

    @abstractmethod
    async def run(self) -> None:
        """Ask about all keys, or look for them in the rows of the analysis."""


class KeyColumn(KeyWeights):
    """Asks the server, or each key's node."""

    def __init__(
        self,
        deployment: Deployment,
        store: NamespaceStore,
        node: Namespace,
        sort: Sort,
        *,
        pace: Pace,
        suspended: Callable[[], AbstractContextManager[None]] = nullcontext,
        clock: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        """`suspended` suspends other work while it runs, so that both together keep to the pace."""
        super().__init__(node, sort)
        self._suspended = suspended
        options = FindOptions(store.separators.values, columns=(self._fact,), limit=2 * self.of + 1_000, pace=pace)
        self._run = KeySearch(deployment, EVERYTHING, options, held=HeldNames(store, node, is_direct=True), clock=clock)

    async def run(self) -> None:
        """Ask about all keys; when cancelled, nothing more is sent."""
        with self._suspended():
            finding = start_supervised(self._run.run(), name="rtui key column", failed=lambda failure: None)
            try:
                while not finding.done():
                    await asyncio.wait([finding], timeout=POLL_S)
                    self._take()
            finally:
                self._run.control.stop()
                await end_task(finding)
                self.failure = None if self._run.failure is None else self._run.failure.happened

    def _take(self) -> None:
        """Keep the weights of the replies so far, and drop the records."""
        skipped = len(self.node.path())
        for record in self._run.matches.drain():
            value = getattr(record, self._fact.field)
            self.weights[record.key[skipped:]] = weight(self._fact, value, record.asked_at_s)


def cost_sentence(keys: int, sort: Sort, pace: Pace) -> SafeText:
    """Return the commands needed to sort `keys` keys and the time they take, without a full stop."""
    fact = FACTS[sort]
    commands = [Fact.TYPE.command, fact.command] if fact is Fact.MEMORY else [fact.command]
    seconds = keys * len(commands) * FACT_US / 1e6 / pace.limits.duty
    takes = f", about {humanize.seconds(ceil(seconds))} at {pace.value} pace" if seconds >= 1 else ""
    return SafeText(f"{' and '.join(commands)} of {humanize.keys(keys)}{takes}")
