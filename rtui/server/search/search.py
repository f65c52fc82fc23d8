"""A search for keys as a screen shows it: prepared, begun when its cost is agreed to, and kept after its end.

The plan is made from the query by the rights of the user and the size of the database. In a large database a sample of
names tells how many of them pass, so that the number of queries about these can be estimated.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from enum import Enum
from functools import partial
from typing import Final

from rtui.analysis.estimates import Estimate, wilson
from rtui.analysis.humanize import Mark
from rtui.analysis.query.deciding import NameFilter
from rtui.analysis.query.plan import LARGE, PlaceError, Plan, PlanCost, ShardPlace, on_slots, plan_of
from rtui.analysis.query.query import EVERYTHING, MatchOrder, Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server import guard
from rtui.server.deployment.nodes import Deployment, ServerNode
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.options import FindOptions
from rtui.server.scan.node_scan import known_dialect, prove_cursors
from rtui.server.scan.pace import MIN_COUNT, Pace
from rtui.server.scan.page import key_count
from rtui.server.scan.progress import Cost, Progress
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import CALL_US, can_sample, sample
from rtui.server.search.candidates import before_length, command_of
from rtui.server.wire.capability import Capabilities, Feature
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection, State
from rtui.server.wire.errors import ConnectionLost, RtuiError
from rtui.server.wire.supervised_tasks import end_task, for_each, start_supervised

LISTED: Final = 10_000
"""Matches that are listed: the first ones that are found."""

TOP_LISTED: Final = 1_000
"""Matches that are listed where they are the first by a fact."""


class Stage(Enum):
    """How far a search is."""

    PREPARING = "estimating its cost"
    ASKING = "waiting for confirmation"
    RUNNING = "running"
    OVER = "over"


class Search(ABC):
    """A search, which sends nothing before it is prepared; `revision` grows with every change."""

    as_of_s: float | None = None
    """When the searched facts were read, in seconds since the epoch; None for a search on the server."""

    def __init__(
        self, query: Query, order: MatchOrder | None, columns: Sequence[Fact], limit: int, pace: Pace = Pace.GENTLE
    ) -> None:
        """`columns` are facts to read of the matches, besides those that the query needs.

        `order` decides which matches are listed, at most `limit`; without one the first matches found are.
        """
        self.query, self.order, self.columns, self.limit = query, order, tuple(columns), limit
        self.control = RunControl(pace)
        self._agreed = asyncio.Event()
        self._is_over = False
        self._failure: RtuiError | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    @abstractmethod
    def revision(self) -> int:
        """Grows with every change."""

    @property
    @abstractmethod
    def stage(self) -> Stage:
        """How far it is."""

    @property
    @abstractmethod
    def plan(self) -> SafeText | None:
        """The search in words, with its cost, without a full stop; None before it is known."""

    @property
    @abstractmethod
    def kept(self) -> Sequence[KeyRecord]:
        """The matches that are listed; without an order, later ones are appended."""

    @property
    @abstractmethod
    def count(self) -> int:
        """All matches so far."""

    @property
    @abstractmethod
    def mark(self) -> Mark:
        """Whether those are all."""

    @property
    @abstractmethod
    def progress(self) -> Progress:
        """How far it is, in names or rows that were looked at."""

    @property
    @abstractmethod
    def link(self) -> State:
        """The connection to the server, and whether that is silent."""

    @property
    def cost(self) -> Cost:
        return Cost()

    @property
    def failure(self) -> RtuiError | None:
        """Why it could not begin, or go on."""
        return self._failure

    @property
    @abstractmethod
    def notes(self) -> tuple[SafeText, ...]:
        """Notes on the matches, as sentences."""

    def prepare(self) -> None:
        """Find out the cost of the search; begin at once if it is low."""
        if self._task is None:
            self._task = start_supervised(self._work(), name="rtui search", failed=self._failed)

    def begin(self) -> None:
        self._agreed.set()

    def sorts_at_once(self, _order: MatchOrder | None) -> bool:
        """Return whether another search finds the first of all matches in an order without asking the server."""
        return False

    async def close(self) -> None:
        """End it; the matches found stay."""
        await end_task(self._task)
        self._is_over = True

    @abstractmethod
    async def _work(self) -> None:
        """Prepare and search; sets `_is_over` at the end."""

    def _failed(self, failure: RtuiError) -> None:
        self._failure = failure


SAMPLE_KEYS: Final = 5_000
"""Names in the sample that estimates the share of a large keyspace that passes a query."""

AROUND: Final = 100
"""Commands that a search sends at most besides its SCANs and its queries about keys."""

SCANS: Final = (Feature.SCAN, Feature.SCAN_TYPE)
"""Features that are not needed if all names are held."""


async def size_of(connection: Connection) -> int | None:
    """Return the server's number of keys; None if it is refused or can't be reached."""
    try:
        (reply,) = await connection.run(guard.dbsize())
    except ConnectionLost:
        return None
    return key_count(reply)


def shards_of(deployment: Deployment) -> list[ShardPlace]:
    """Return the shards of a cluster by their first slots; empty for a single server."""
    shards = () if deployment.topology is None else deployment.topology.shards
    return [ShardPlace((one.primary.label, *(node.label for node in one.replicas)), one.slots) for one in shards]


class UnansweredTermError(RtuiError):
    """A term that needs a command which the server or the user's rights refuse."""

    def __init__(self, happened: str, remedy: str) -> None:
        super().__init__("The query can't be answered", happened, remedy)


class FindPreparation:
    """Decides which commands a search sends to which nodes, and their cost; `prepare` it once, read the rest at any
    time."""

    def __init__(
        self, deployment: Deployment, query: Query, options: FindOptions, control: RunControl, *, is_listed: bool
    ) -> None:
        """`is_listed` says that the names of all keys are held already; raises RegexError for a bad expression."""
        self.plan: Plan | None = None
        """The plan of the search; None before it is prepared."""
        self.ahead: PlanCost | None = None
        """The plan's cost at most; None before it is prepared."""
        self.size: int | None = None
        """Keys of the database, where that is known."""
        self.sizes: dict[str, int | None] = {}
        """Keys of each node by its id, where that is known."""
        self.cost = Cost()
        """Of the sample."""
        connection = deployment.home
        self._deployment, self._connection, self._control = deployment, connection, control
        self._query, self._options, self._is_listed = query, options, is_listed
        self._separators = Separators(options.separators)
        self._not_placed: PlaceError | None = None
        """The error of a place in the query that is not in the cluster."""
        try:
            self.asked = on_slots(query, shards_of(deployment))
        except PlaceError as error:
            self.asked, self._not_placed = EVERYTHING, error
        self.names = NameFilter(self.asked, self._separators)
        self._capabilities = Capabilities()
        self.allowed = InspectionPlan(self._capabilities, connection.server, connection.no_touch)
        """Commands allowed on the server that the user named; the nodes of a cluster have plans of their own."""
        self._nodes: Sequence[ServerNode] = ()

    @property
    def is_costly(self) -> bool:
        """Whether the user is asked before the search begins."""
        if self.bill is not None:
            return True
        if self.plan is None or self.ahead is None or (self.size or 0) < LARGE:
            return False
        return bool(self.ahead.scanned or self.plan.stages)

    @property
    def bill(self) -> SafeText | None:
        """Its price at most, without a full stop, if the server bills commands; else None."""
        compatible, ahead, commands = self._connection.server.compatible, self.ahead, None
        if compatible is None or ahead is None or not (ahead.scanned is None or ahead.scanned or ahead.commands):
            return None
        if ahead.scanned is not None and ahead.commands is not None:
            commands = AROUND + ahead.scanned // MIN_COUNT + ahead.commands
        said = compatible.bill(commands)
        return None if said is None else SafeText(said)

    @for_purpose(Purpose.FIND)
    async def prepare(self) -> None:
        """Find out the rights and the cost of the search; raises an RtuiError if it is not possible."""
        if self._not_placed is not None:
            quoted = 'In quotes, as in "node:5", it is searched for in the names of keys.'
            raise UnansweredTermError(str(self._not_placed), quoted)
        connection = self._connection
        if (terms := self._query.about(Fact.VALUE)) and connection.target.dump is None:
            said = " ".join(map(str, terms))
            happened = f"{said} reads all values as a whole, which would hold up other clients of a server."
            raise UnansweredTermError(happened, f"Search a dump of it: rtui find dump.rdb {said}.")
        await connection.online()
        if self._is_listed and not self.needs_facts:
            self._decide_plan()
            return
        connection.forget_denied()
        await self._capabilities.probe(connection, without=SCANS if self._is_listed else ())
        self._nodes = await self._deployment.scanned(only_primaries=self.only_primaries)
        if self._capabilities.allows(Feature.DBSIZE):
            sizes = await for_each([node.connection for node in self._nodes], size_of)
            self.sizes = {node.id: size for node, size in zip(self._nodes, sizes, strict=True)}
            self.size = None if None in sizes else sum(size for size in sizes if size is not None)
        self._decide_plan()
        self._check_rights()
        plan = self.plan
        assert plan is not None  # noqa: S101 - just decided
        matching = await self._estimate_matching() if plan.stages else None
        self.ahead = self._ahead(plan, matching)

    async def asked_nodes(self) -> Sequence[ServerNode]:
        """Return the nodes to query, as found at the first call."""
        self._nodes = self._nodes or await self._deployment.scanned(only_primaries=self.only_primaries)
        return self._nodes

    @property
    def only_primaries(self) -> bool:
        """Whether replicas won't do: they do not know of uses, and listed keys that they lack may have moved."""
        used = {Fact.IDLE, Fact.FREQUENCY}
        return self._is_listed or not used.isdisjoint((*self._query.facts, *self._options.columns))

    @property
    def needs_facts(self) -> bool:
        """Whether commands are sent about keys, or names are enough."""
        return bool(self._query.facts or self._options.columns)

    def _decide_plan(self) -> None:
        scans_types = not self._is_listed and self._capabilities.allows(Feature.SCAN_TYPE)
        self.plan = plan_of(
            self.asked,
            self._separators,
            columns=self._options.columns,
            is_listed=self._is_listed,
            scans_types=scans_types,
            before_length=before_length(self.allowed),
        )
        self.ahead = self._ahead(self.plan, None)

    def _ahead(self, plan: Plan, matching: Estimate | None) -> PlanCost:
        return plan.cost(
            self.size,
            matching=matching,
            server_share=self._control.pace.limits.duty,
            is_listed=self._is_listed,
            matches=self._options.limit,
        )

    def _check_rights(self) -> None:
        """Raise UnansweredTermError where a fact is refused for all keys: nothing could be found then."""
        assert self.plan is not None  # noqa: S101 - decided before
        for fact in self.plan.stages:
            command = command_of(fact, None)
            if command is None or self._capabilities.allows(command.spec.name):
                continue
            is_first = fact in before_length(self.allowed)
            by_type = () if is_first else (*self._query.about(Fact.MEMORY), *self._query.about(Fact.LENGTH))
            needed = self._query.about(fact) or by_type
            if not needed:
                continue
            terms = " ".join(str(term) for term in needed)
            reason = self._capabilities[command.spec.name].reason
            remedy = "rtui acl prints the permissions that rtui needs." if "NOPERM" in reason else ""
            raise UnansweredTermError(f"{terms} needs {fact.command}: {reason}.", remedy)

    async def _estimate_matching(self) -> Estimate | None:
        """Return about how many names pass, from a sample; None where that is not worth its cost, or can't be."""
        is_large = self.size is not None and self.size >= LARGE
        if self.names.is_open or not is_large:
            return None

        def prove(node: ServerNode) -> Awaitable[int]:
            return prove_cursors(node.connection, self.sizes.get(node.id))

        self.cost += Cost(commands=sum(await for_each(self._nodes, prove)))
        if not all(can_sample(known_dialect(node.connection)) for node in self._nodes):
            return None
        assert self.size is not None  # noqa: S101 - large
        taken = await for_each(self._nodes, partial(self._sample_node, size=self.size))
        drawn = sum(len(keys) for keys in taken)
        if not drawn:
            return None
        passing = sum(len(self.names.keep(keys)) for keys in taken)
        return wilson(passing, drawn, population=max(drawn, self.size)).scaled(self.size)

    async def _sample_node(self, node: ServerNode, size: int) -> list[bytes]:
        """Return names of one node, as many of the sample as its share of all keys is."""
        wanted = round(SAMPLE_KEYS * (self.sizes.get(node.id) or 0) / size)
        if not wanted:
            return []
        async with self._control.turn(node.connection):
            taken = await sample(await node.connection.bulk(), self._control, keys=wanted)
        self.cost += Cost(commands=taken.calls, keys=len(taken.keys), server_us=taken.calls * CALL_US)
        return list(taken.keys)
