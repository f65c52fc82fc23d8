"""One search for keys: the names that a query lets through, the facts that it needs, and the matches as they come.

Where the names of all keys are held already, they are searched here and the server is asked for facts alone; else a
scan brings them, filtered by the server as far as one glob and one type can. What is asked about the keys is up to
`inspection.key_finder`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, wilson
from rtui.analysis.humanize import Mark
from rtui.analysis.query.matches import Matches, Order
from rtui.analysis.query.names import NameFilter
from rtui.analysis.query.places import PlaceError, ShardPlace, on_slots, wanted_slots
from rtui.analysis.query.plan import LARGE, Plan, PlanCost, plan_of
from rtui.analysis.query.query import EVERYTHING, Query
from rtui.analysis.query.terms import Fact
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.held_names import HeldNames
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import DEFAULT_SEPARATORS, Separators
from rtui.server import guard
from rtui.server.deployment.nodes import Deployment, ServerNode
from rtui.server.deployment.scanned import ScannedCluster
from rtui.server.inspection.key_finder import KeyFinder
from rtui.server.inspection.key_rights import before_length
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.scan.cluster_scan import repeats_note
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.cursor_proof import known_dialect, prove_cursors
from rtui.server.scan.node import ScanNode, with_slots
from rtui.server.scan.pace import MIN_COUNT, Pace
from rtui.server.scan.page import key_count
from rtui.server.scan.progress import Cost, Progress, ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import CALL_US, can_sample, sample
from rtui.server.scan.scan import Scan
from rtui.server.wire.capability import Capabilities, Feature
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection, State
from rtui.server.wire.errors import ConnectionLost, RtuiError
from rtui.server.wire.supervised_tasks import end_task, failure_of, for_each, start_supervised

SAMPLE_KEYS: Final = 5_000
"""Names that tell how many of a large keyspace a query lets through."""

AROUND: Final = 100
"""Commands that a search sends at most besides its SCANs and what it asks about keys."""

FED_AHEAD: Final = 4_000
"""With so many keys waiting to be asked about, no further names are searched."""

FED_POLL_S: Final = 0.005
"""How often it is looked whether there are fewer."""

SCANS: Final = (Feature.SCAN, Feature.SCAN_TYPE)
"""What is not needed where all names are held."""

LIMIT_REACHED: Final = SafeText("as many matches as were wanted have been found")
"""Why a search was stopped that ends there."""

TWICE: Final = SafeText("The server resized its table during the scan: beyond the keys listed, some may count twice.")


async def _size_of(connection: Connection) -> int | None:
    """Return how many keys a server counts; None where it does not say or can't be reached."""
    try:
        (reply,) = await connection.run(guard.dbsize())
    except ConnectionLost:
        return None
    return key_count(reply)


def _shards(deployment: Deployment) -> list[ShardPlace]:
    """Return the shards of a cluster by their first slots; none for a server alone."""
    shards = () if deployment.topology is None else deployment.topology.shards
    return [ShardPlace((one.primary.label, *(node.label for node in one.replicas)), one.slots) for one in shards]


class UnansweredTermError(RtuiError):
    """A term that needs a command which the server or the user's rights refuse."""

    def __init__(self, happened: str, remedy: str) -> None:
        super().__init__("The query can't be answered", happened, remedy)


@dataclass(frozen=True, slots=True)
class FindOptions:
    """How to search."""

    separators: tuple[bytes, ...] = DEFAULT_SEPARATORS
    columns: tuple[Fact, ...] = ()
    """Facts of the matches that are wanted, besides those that the query needs."""
    limit: int = 10_000
    """Matches that are kept; all are counted."""
    order: Order | None = None
    """What decides which are kept; None for the first that are found."""
    stops_at_limit: bool = False
    """Whether it ends once so many are found."""
    pace: Pace = Pace.GENTLE
    budget_s: float | None = None
    """It ends after so many seconds with what it has."""


class FindRun:
    """One search over a deployment that is open, of a cluster over all nodes; `run` it once.

    Everything else may be called at any time.

    `prepare` may be awaited before, to say what it costs: it asks for the size of the database, and on a large one for
    a sample of its names.
    """

    def __init__(
        self,
        deployment: Deployment,
        query: Query,
        options: FindOptions = FindOptions(),
        *,
        held: HeldNames | None = None,
        held_at_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`held` are the names of all keys as they were `held_at_s`, in seconds since the epoch.

        Raises RegexError where an expression can't be used.
        """
        self.query = query
        self.options = options
        self.control = RunControl(options.pace)
        """Pauses, resumes, stops and paces it."""
        self.matches = Matches(options.limit, options.order)
        self.plan: Plan | None = None
        """What is asked; None before it is prepared."""
        self.ahead: PlanCost | None = None
        """What that costs at most."""
        self.size: int | None = None
        """Keys of the database, where that is known."""
        self.held_at_s = held_at_s
        connection = deployment.home
        self._deployment, self._connection, self._held, self._clock = deployment, connection, held, clock
        self._separators = Separators(options.separators)
        self._not_placed: PlaceError | None = None
        """Why there is no such place in the cluster as the query names."""
        try:
            self._asked = on_slots(query, _shards(deployment))
        except PlaceError as error:
            self._asked, self._not_placed = EVERYTHING, error
        self._names = NameFilter(self._asked, self._separators)
        self._capabilities = Capabilities()
        self._allowed = InspectionPlan(self._capabilities, connection.server, connection.no_touch)
        """What may be asked of the server that the user named; the nodes of a cluster have plans of their own."""
        self._nodes: Sequence[ServerNode] = ()
        self.finders: dict[str, KeyFinder] = {}
        """By the node's id, "" being the only server: each counts what was looked at, and what could not be decided."""
        self._sizes: dict[str, int | None] = {}
        """Keys of each node, where that is known."""
        self._scan: Scan | None = None
        self._other_cost = Cost()
        self._failure: RtuiError | None = None
        self._is_ended = False

    @property
    def revision(self) -> int:
        """Grows with every match and every change of state."""
        seen = sum(one.seen + one.undecided.total() + one.vanished for one in self.finders.values())
        return self.matches.revision + self.control.revision + seen + self._is_ended + (self.plan is not None)

    @property
    def count(self) -> int:
        """Matches so far."""
        return self.matches.count

    @property
    def mark(self) -> Mark:
        """Whether that is all of them."""
        return Mark.EXACT if self.progress.state is ScanState.DONE and not self._misses else Mark.AT_LEAST

    @property
    def _misses(self) -> bool:
        """Whether there may be matches that were not found though it is done."""
        is_short = self._held is not None and self._held.missing > 0
        return is_short or any(one.undecided for one in self.finders.values())

    @property
    def progress(self) -> Progress:
        """How far it is, in names that were looked at."""
        seen = sum(one.seen for one in self.finders.values())
        if self._failure is not None:
            return Progress(ScanState.FAILED, None, seen, reason=self._failure.happened)
        if self._held is None and self._scan is not None:
            now = replace(self._scan.progress, keys=seen)
            return replace(now, state=ScanState.RUNNING) if now.state.is_over and not self._is_ended else now
        if self._is_ended:
            return Progress(ScanState.STOPPED if self.control.is_stopped else ScanState.DONE, 1.0, seen)
        if self.control.is_held:
            return Progress(ScanState.PAUSED, None, seen)
        if not self.finders:
            return Progress(ScanState.READY if self.plan is None else ScanState.SAMPLING, None, seen)
        return Progress(ScanState.RUNNING, min(1.0, seen / self.size) if self.size else None, seen)

    @property
    def failure(self) -> RtuiError | None:
        """Why it could not go on."""
        return self._failure

    @property
    def link(self) -> State:
        """The connection to the server, and whether that is silent."""
        return self._connection.link

    @property
    def cost(self) -> Cost:
        """What it has cost so far."""
        return self._other_cost if self._scan is None else self._other_cost + self._scan.cost

    @property
    def bill(self) -> SafeText | None:
        """What it costs at most, without a full stop, where the server bills commands; None where it does not."""
        compatible, ahead, commands = self._connection.server.compatible, self.ahead, None
        if compatible is None or ahead is None or not (ahead.scanned is None or ahead.scanned or ahead.commands):
            return None
        if ahead.scanned is not None and ahead.commands is not None:
            commands = AROUND + ahead.scanned // MIN_COUNT + ahead.commands
        said = compatible.bill(commands)
        return None if said is None else SafeText(said)

    @property
    def notes(self) -> tuple[SafeText, ...]:
        """What a reader of the matches has to know, in sentences."""
        notes: list[SafeText] = []
        if self._held is not None and self.held_at_s is not None:
            at = humanize.moment(self.held_at_s)
            notes.append(SafeText(f"The names are those of {at}; later keys are not found."))
        if self._held is not None and self._held.missing:
            notes.append(SafeText(f"{humanize.keys(self._held.missing)} of which no name is kept were not searched."))
        finders = self.finders.values()
        reasons = {fact: why for one in finders for fact, why in one.reasons.items()}
        for fact, count in sum((one.undecided for one in finders), Counter[Fact]()).most_common():
            why = reasons.get(fact, SafeText("there was no answer"))
            terms = " ".join(str(term) for term in self.query.about(fact))
            notes.append(SafeText(f"{humanize.keys(count)} could not be decided for {terms}: {why}."))
        if vanished := sum(one.vanished for one in finders):
            verb = "was gone when it was" if vanished == 1 else "were gone when they were"
            notes.append(SafeText(f"{humanize.keys(vanished)} {verb} asked about."))
        if touched := sum(one.rights.touched for one in finders):
            counted = humanize.counted(touched, "length")
            notes.append(SafeText(f"{counted} were asked, which this server counts as a use of the keys."))
        if self._scan is not None and self._held is None:
            scanned = self._scan.progress.notes
            notes += [TWICE if note is ScanNote.REPEATS else SafeText(note.value) for note in scanned]
            if self._scan.most_repeated:
                notes.append(repeats_note(self._scan.most_repeated))
            if self._scan.uncovered_reason:
                notes.append(self._scan.uncovered_reason)
        return tuple(notes)

    @for_purpose(Purpose.FIND)
    async def prepare(self) -> None:
        """Find out what may be asked and what it costs; raises an RtuiError where it can't be done."""
        if self._not_placed is not None:
            quoted = 'In quotes, as in "node:5", it is searched for in the names of keys.'
            raise UnansweredTermError(str(self._not_placed), quoted)
        connection = self._connection
        await connection.online()
        if self._held is not None and not self._needs_facts:
            self._decide_plan()
            return
        connection.forget_denied()
        await self._capabilities.probe(connection, without=SCANS if self._held is not None else ())
        self._nodes = await self._deployment.scanned(only_primaries=self._only_primaries)
        if self._capabilities.allows(Feature.DBSIZE):
            sizes = await for_each([node.connection for node in self._nodes], _size_of)
            self._sizes = {node.id: size for node, size in zip(self._nodes, sizes, strict=True)}
            self.size = None if None in sizes else sum(size for size in sizes if size is not None)
        self._decide_plan()
        self._check_rights()
        plan = self.plan
        assert plan is not None  # noqa: S101 - just decided
        matching = await self._estimate_matching() if plan.stages else None
        self.ahead = self._ahead(plan, matching)

    @property
    def _only_primaries(self) -> bool:
        """Whether replicas won't do: they do not know of uses, and what they lack of listed keys may have moved."""
        used = {Fact.IDLE, Fact.FREQUENCY}
        return self._held is not None or not used.isdisjoint((*self.query.facts, *self.options.columns))

    @property
    def _needs_facts(self) -> bool:
        return bool(self.query.facts or self.options.columns)

    def _decide_plan(self) -> None:
        scans_types = self._held is None and self._capabilities.allows(Feature.SCAN_TYPE)
        self.plan = plan_of(
            self._asked,
            self._separators,
            columns=self.options.columns,
            is_listed=self._held is not None,
            scans_types=scans_types,
            before_length=before_length(self._allowed),
        )
        self.ahead = self._ahead(self.plan, None)

    def _ahead(self, plan: Plan, matching: Estimate | None) -> PlanCost:
        return plan.cost(
            self.size,
            matching=matching,
            server_share=self.control.pace.limits.duty,
            is_listed=self._held is not None,
            matches=self.options.limit,
        )

    def _check_rights(self) -> None:
        """Raise UnansweredTermError where a fact is refused for all keys: nothing could be found then."""
        assert self.plan is not None  # noqa: S101 - decided before
        features = {
            Fact.TYPE: Feature.TYPE,
            Fact.TTL: Feature.PTTL,
            Fact.IDLE: Feature.OBJECT_IDLETIME,
            Fact.FREQUENCY: Feature.OBJECT_FREQ,
            Fact.ENCODING: Feature.OBJECT_ENCODING,
            Fact.MEMORY: Feature.MEMORY_USAGE,
        }
        for fact in self.plan.stages:
            feature = features.get(fact)
            if feature is None or self._capabilities.allows(feature):
                continue
            is_first = fact in before_length(self._allowed)
            by_type = () if is_first else (*self.query.about(Fact.MEMORY), *self.query.about(Fact.LENGTH))
            needed = self.query.about(fact) or by_type
            if not needed:
                continue
            terms = " ".join(str(term) for term in needed)
            raise UnansweredTermError(
                f"{terms} needs {fact.command}: {self._capabilities[feature].reason}.",
                "rtui acl prints the rights that rtui needs." if "NOPERM" in self._capabilities[feature].reason else "",
            )

    async def _estimate_matching(self) -> Estimate | None:
        """Return about how many names pass, from a sample; None where that is not worth its cost, or can't be."""
        is_large = self.size is not None and self.size >= LARGE
        if self._names.is_open or not is_large:
            return None

        def prove(node: ServerNode) -> Awaitable[int]:
            return prove_cursors(node.connection, self._sizes.get(node.id))

        self._other_cost += Cost(commands=sum(await for_each(self._nodes, prove)))
        if not all(can_sample(known_dialect(node.connection)) for node in self._nodes):
            return None
        assert self.size is not None  # noqa: S101 - large
        taken = await for_each(self._nodes, partial(self._sample_node, size=self.size))
        drawn = sum(len(keys) for keys in taken)
        if not drawn:
            return None
        passing = sum(len(self._names.keep(keys)) for keys in taken)
        return wilson(passing, drawn, population=max(drawn, self.size)).scaled(self.size)

    async def _sample_node(self, node: ServerNode, size: int) -> list[bytes]:
        """Return names of one node, as many of the sample as its share of all keys is."""
        wanted = round(SAMPLE_KEYS * (self._sizes.get(node.id) or 0) / size)
        if not wanted:
            return []
        async with self.control.turn(node.connection):
            taken = await sample(await node.connection.bulk(), self.control, keys=wanted)
        self._other_cost += Cost(commands=taken.calls, keys=len(taken.keys), server_us=taken.calls * CALL_US)
        return list(taken.keys)

    @for_purpose(Purpose.FIND)
    async def run(self) -> None:
        """Do all of it; a failure is in `progress` and `failure`, only cancellation is raised."""
        alarm = None
        if self.options.budget_s is not None:
            why = SafeText(f"the {self.options.budget_s:g} s that it was given were over")
            alarm = asyncio.get_running_loop().call_later(self.options.budget_s, self.control.stop, why)
        try:
            self._failure = await failure_of(self._find(), name="rtui search")
        finally:
            if alarm is not None:
                alarm.cancel()
            self._is_ended = True

    async def _find(self) -> None:
        if self.plan is None:
            await self.prepare()
        plan = self.plan
        assert plan is not None  # noqa: S101 - prepared
        nodes = self._nodes = self._nodes or await self._deployment.scanned(only_primaries=self._only_primaries)
        self.finders = {node.id: self._finder_of(node.connection, plan) for node in nodes}
        self.matches.on_listed = self._listed
        if self._held is None:
            await self._scan_names(plan)
        else:
            await self._search_held()

    def _finder_of(self, connection: Connection, plan: Plan) -> KeyFinder:
        """Return what finds the keys of one server, by what that and its user's rights allow; matches go together."""
        allowed = self._allowed
        if self._deployment.is_cluster:
            allowed = InspectionPlan(Capabilities(), connection.server, connection.no_touch)
        return KeyFinder(plan, allowed, self._names, self.matches, own_reads=connection.own_reads, clock=self._clock)

    def _listed(self) -> None:
        """End it where no more matches are wanted."""
        if self.options.stops_at_limit and self.matches.listed >= self.options.limit and not self.control.is_stopped:
            self.control.stop(LIMIT_REACHED)

    async def _scan_names(self, plan: Plan) -> None:
        finders = partial(self._finder_on, plan)
        cluster = ScannedCluster(self._deployment, finders, only_primaries=self._only_primaries)
        nodes = cluster.scan_nodes(self._nodes, self._sizes)
        whole = cluster if self._deployment.is_cluster else None
        if whole is None:
            nodes = [await with_slots(nodes[0])]
        match, key_type = plan.server.match, plan.server.key_type
        self._scan = Scan(
            *(nodes, lambda keys: None, self.control),
            match=match,
            key_type=key_type,
            cluster=whole,
            only_slots=wanted_slots(self._asked),
        )
        await self._scan.run()
        self._raise_failed(self._scan)

    def _finder_on(self, plan: Plan, node: ServerNode) -> KeyFinder:
        """Return what finds the keys of a node, also of one that comes in the middle of the search."""
        return self.finders.setdefault(node.id, self._finder_of(node.connection, plan))

    def _raise_failed(self, scan: Scan) -> None:
        if scan.state is ScanState.FAILED:
            raise RtuiError("The search broke off", scan.progress.reason or "The scan of the names has failed.")

    async def _search_held(self) -> None:
        """Search the names that are held, and ask about those that pass, each key at its node."""
        if not self._needs_facts:
            await self._feed()
            return
        for finder in self.finders.values():
            finder.is_fed = True
        feeding = start_supervised(self._feed(), name="rtui held names", failed=self._fail)
        nodes = [
            ScanNode(one.connection, Dialect.STANDALONE, one.id, spans=(), queries=self.finders[one.id])
            for one in self._nodes
        ]
        self._scan = Scan(nodes, lambda keys: None, self.control)
        try:
            await self._scan.run()
        finally:
            await end_task(feeding)
        self._raise_failed(self._scan)

    def _fail(self, failure: RtuiError) -> None:
        self._failure = failure
        self.control.stop(failure.happened)

    def _by_finder(self, names: Sequence[bytes]) -> Iterator[tuple[KeyFinder, Sequence[bytes]]]:
        """Divide names by the nodes that serve their slots; what no node serves goes to the first, which says so."""
        first, *others = self.finders.values()
        if not others:
            yield first, names
            return
        divided: dict[int, list[bytes]] = {}
        finders = {id(one): one for one in self.finders.values()}
        owners = {} if self._deployment.topology is None else self._deployment.topology.owners
        for name in names:
            finder = self.finders.get(owners.get(key_slot(name), ""), first)
            divided.setdefault(id(finder), []).append(name)
        for at, some in divided.items():
            yield finders[at], some

    async def _feed(self) -> None:
        assert self._held is not None  # noqa: S101 - only then
        try:
            for page in self._held.pages():
                for finder, names in self._by_finder(page):
                    finder.add_page(names)
                await self.control.yield_loop(has_waited=False)
                if self.control.is_held:
                    await self.control.wait_while_held()
                while max(one.unsent for one in self.finders.values()) > FED_AHEAD and not self.control.is_stopped:
                    await self.control.sleep(FED_POLL_S)
                if self.control.is_stopped:
                    break
        finally:
            for finder in self.finders.values():
                finder.is_fed = False
