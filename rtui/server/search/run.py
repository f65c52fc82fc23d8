"""One search for keys: the names that pass the query, the facts that it needs, and the matches as they come.

If the names of all keys are held already, they are searched here and the server is asked for facts alone; else a scan
brings them, filtered by the server as far as one glob and one type can. `key_finder` decides on the queries about keys.
`KeyColumn` reads one fact of all keys directly in a namespace, to sort them by.
"""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import ceil, inf
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.humanize import Mark
from rtui.analysis.query.plan import FACT_US, Plan, names_beside, wanted_slots
from rtui.analysis.query.query import EVERYTHING, Matches, Query, in_quotes
from rtui.analysis.query.terms import GLOB, TEXT, Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.types import NO_TYPE
from rtui.server import guard, wall_clock
from rtui.server.deployment.nodes import Deployment, ScannedCluster, ServerNode
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.options import FindOptions
from rtui.server.scan.cluster_scan import repeats_note
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.node import ScanNode, with_slots
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanNote, ScanState
from rtui.server.scan.scan import Scan
from rtui.server.search.key_finder import KeyFinder
from rtui.server.search.search import FindPreparation, Search, Stage
from rtui.server.search.values import ValueSearch
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection, State
from rtui.server.wire.errors import ConnectionLost, RtuiError
from rtui.server.wire.supervised_tasks import end_task, failure_of, start_supervised

FED_AHEAD: Final = 4_000
"""Keys waiting to be asked about from which no further names are searched."""

FED_POLL_S: Final = 0.005

LIMIT_REACHED: Final = SafeText("the limit was reached")
"""Why a search was stopped that ends there."""

TWICE: Final = SafeText("The server resized its table during the scan: beyond the keys listed, some may count twice.")


class KeySearch(Search):
    """A search over an open deployment, in a cluster over all nodes; `prepare` it, or `run` it, once.

    To `run` it without asking the user, `preparation.prepare` may be awaited before, to learn its cost.
    """

    def __init__(
        self,
        deployment: Deployment,
        query: Query,
        options: FindOptions,
        *,
        held: HeldNames | None = None,
        held_at_s: float | None = None,
        suspended: Callable[[], AbstractContextManager[None]] = nullcontext,
        note: SafeText | None = None,
        clock: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        """`held` are the names of all keys as they were `held_at_s`, in seconds since the epoch.

        `suspended` suspends other work while it runs; `note` is one more sentence for a reader of the matches.
        Raises RegexError where an expression can't be used.
        """
        super().__init__(query, options.order, options.columns, options.limit, options.pace)
        self._values: ValueSearch | None = None
        if terms := query.about(Fact.VALUE):
            wanted = (*options.columns, Fact.TYPE, Fact.ENCODING, Fact.MEMORY, Fact.LENGTH)
            options = replace(options, columns=tuple(dict.fromkeys(wanted)))
            self._values = ValueSearch(deployment.home, self.control, terms, self._value_found)
        self.options = options
        self.matches = Matches(options.limit, options.order)
        self.held_at_s = held_at_s
        self._deployment, self._held, self._clock = deployment, held, clock
        self._suspended, self._note = suspended, note
        self.preparation = FindPreparation(deployment, query, options, self.control, is_listed=held is not None)
        """The commands it sends, and their cost."""
        self.finders: dict[str, KeyFinder] = {}
        """By the node's id, "" for the only server: each counts names looked at and undecided keys."""
        self._scan: Scan | None = None
        self._beside: dict[bytes, bool | None] = {}
        """Names that are spelt like a glob of the query, and whether they are keys; None if unknown."""
        self._is_named_like_query = False
        """Whether nothing is found, but the only term is written like the name of a key."""
        self._is_prepared = self._is_running = self._is_ended = False

    @property
    def revision(self) -> int:
        seen = sum(one.seen + one.undecided.total() + one.vanished for one in self.finders.values())
        done = self._is_prepared + self._agreed.is_set() + self._is_running + self._is_ended + self._is_over
        is_planned = self.preparation.plan is not None
        return self.matches.revision + self.control.revision + seen + done + is_planned + (self._failure is not None)

    @property
    def stage(self) -> Stage:
        if self._is_over:
            return Stage.OVER
        if self._is_running:
            return Stage.RUNNING
        is_asking = self._is_prepared and self.preparation.is_costly and not self._agreed.is_set()
        return Stage.ASKING if is_asking else Stage.PREPARING

    @property
    def plan(self) -> SafeText | None:
        plan, ahead, bill = self.preparation.plan, self.preparation.ahead, self.preparation.bill
        if plan is None or ahead is None:
            return None
        sentence = plan.sentence(ahead, self.control.pace.value)
        return sentence if bill is None else SafeText(f"{sentence}; {bill}")

    @property
    def kept(self) -> Sequence[KeyRecord]:
        return self.matches.kept

    @property
    def count(self) -> int:
        return self.matches.count

    @property
    def mark(self) -> Mark:
        return Mark.EXACT if self.progress.state is ScanState.DONE and not self._misses else Mark.AT_LEAST

    @property
    def _misses(self) -> bool:
        """Whether there may be matches that were not found though it is done."""
        is_short = self._held is not None and self._held.missing > 0
        unread = self._values is not None and bool(self._values.unread)
        return is_short or unread or any(one.undecided for one in self.finders.values())

    @property
    def progress(self) -> Progress:
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
            return Progress(ScanState.READY if self.preparation.plan is None else ScanState.SAMPLING, None, seen)
        size = self.preparation.size
        return Progress(ScanState.RUNNING, min(1.0, seen / size) if size else None, seen)

    @property
    def link(self) -> State:
        return self._deployment.home.link

    @property
    def cost(self) -> Cost:
        return self.preparation.cost + (Cost() if self._scan is None else self._scan.cost)

    @property
    def notes(self) -> tuple[SafeText, ...]:
        notes = [*([] if self._note is None else [self._note]), *self._deployment.notes]
        if self._held is not None and self.held_at_s is not None:
            at = humanize.moment(self.held_at_s)
            notes.append(SafeText(f"The names are from {at}; newer keys are not found."))
        if self._held is not None and self._held.missing:
            notes.append(
                SafeText(f"{humanize.keys(self._held.missing)} whose names are not in memory were not searched.")
            )
        for name, is_there in self._beside.items():
            if is_there:
                notes.append(
                    SafeText(f"{display(name, limit=200)} is both a glob and the name of a key: both are found.")
                )
            elif is_there is None:
                notes.append(SafeText(f"Whether {display(name, limit=200)} is the name of a key is unknown."))
        if self._is_named_like_query:
            line = str(self.query)
            notes.append(
                SafeText(f"{line} is a term, and the name of a key, which is found in quotes: {in_quotes(line)}.")
            )
        finders = self.finders.values()
        reasons = {fact: why for one in finders for fact, why in one.reasons.items()}
        for fact, count in sum((one.undecided for one in finders), Counter[Fact]()).most_common():
            why = reasons.get(fact, SafeText("no reply"))
            terms = " ".join(str(term) for term in self.query.about(fact))
            notes.append(SafeText(f"{humanize.keys(count)} not checked ({terms}): {why}."))
        notes += () if self._values is None else self._values.notes
        if vanished := sum(one.vanished for one in finders):
            verb = "was" if vanished == 1 else "were"
            notes.append(SafeText(f"{humanize.keys(vanished)} expired or {verb} deleted during the search."))
        if touched := sum(one.rights.touched for one in finders):
            counted = humanize.counted(touched, "length")
            notes.append(SafeText(f"{counted} read; this server counts that as an access to the keys."))
        if self._scan is not None and self._held is None:
            scanned = self._scan.progress.notes
            notes += [TWICE if note is ScanNote.REPEATS else SafeText(note.value) for note in scanned]
            if self._scan.most_repeated:
                notes.append(repeats_note(self._scan.most_repeated))
            if self._scan.uncovered_reason:
                notes.append(self._scan.uncovered_reason)
        return tuple(notes)

    async def _work(self) -> None:
        try:
            await self.preparation.prepare()
            self._is_prepared = True
            if self.preparation.is_costly:
                await self._agreed.wait()
            self._is_running = True
            with self._suspended():
                await self.run()
        except RtuiError as failure:
            self._failure = failure
        finally:
            self._is_over = True

    @for_purpose(Purpose.FIND)
    async def run(self) -> None:
        """Do all of it; a failure is in `progress` and `failure`, only cancellation is raised."""
        alarm = None
        if self.options.budget_s is not None:
            why = SafeText(f"the {self.options.budget_s:g} s budget was used up")
            alarm = asyncio.get_running_loop().call_later(self.options.budget_s, self.control.stop, why)
        try:
            self._failure = await failure_of(self._find(), name="rtui search")
        finally:
            if alarm is not None:
                alarm.cancel()
            self._is_ended = True

    async def _find(self) -> None:
        if self.preparation.plan is None:
            await self.preparation.prepare()
        plan = self.preparation.plan
        assert plan is not None  # noqa: S101 - prepared
        nodes = await self.preparation.asked_nodes()
        self.finders = {node.id: self._finder_of(node.connection, plan) for node in nodes}
        self.matches.on_listed = self._listed
        reading = None
        if self._values is not None:
            reading = start_supervised(self._values.run(), name="rtui values", failed=self._broken_off)
        try:
            if self._held is None:
                await self._scan_names(plan, nodes)
            else:
                await self._search_held(nodes)
        finally:
            await end_task(reading)

    def _finder_of(self, connection: Connection, plan: Plan) -> KeyFinder:
        """Return a key finder for one server, by the rights there; all finders share the matches."""
        prepared, matches = self.preparation, self.matches
        if (values := self._values) is not None:
            matches = Matches(sys.maxsize)  # of all other terms
            matches.on_listed = lambda: values.add(matches.drain())
        allowed = prepared.allowed
        if self._deployment.is_cluster:
            allowed = InspectionPlan(Capabilities(), connection.server, connection.no_touch)
        own_reads, clock = connection.own_reads, self._clock
        finder = KeyFinder(plan, allowed, prepared.names, matches, own_reads=own_reads, clock=clock)
        if values is not None:
            finder.held_elsewhere = lambda: values.keys
        return finder

    def _value_found(self, record: KeyRecord) -> None:
        if not self.matches.knows(record.key):
            self.matches.add_count(1)
            self.matches.add([record])

    def _listed(self) -> None:
        """End the search if no more matches are wanted."""
        if self.options.stops_at_limit and self.matches.listed >= self.options.limit and not self.control.is_stopped:
            self.control.stop(LIMIT_REACHED)

    async def _scan_names(self, plan: Plan, asked: Sequence[ServerNode]) -> None:
        prepared = self.preparation

        def finder_on(node: ServerNode) -> KeyFinder:  # a new one for a node that joins in the middle of the search
            return self.finders.setdefault(node.id, self._finder_of(node.connection, plan))

        cluster = ScannedCluster(self._deployment, finder_on, only_primaries=prepared.only_primaries)
        nodes = cluster.scan_nodes(asked, prepared.sizes)
        whole = cluster if self._deployment.is_cluster else None
        if whole is None:
            nodes = [await with_slots(nodes[0])]
        match, key_type = plan.server.match, plan.server.key_type
        wanted_type = plan.server.key_type
        for name in self.preparation.names.keep(names_beside(plan.query, plan.server.match)):
            found_type = await self._type_of(name)
            self._beside[name] = None if found_type is None else found_type != NO_TYPE
            if found_type not in (None, NO_TYPE) and wanted_type in (None, found_type):
                for finder, some in self._by_finder([name]):
                    finder.beside += some
                    finder.add_page(some)
        self._scan = Scan(
            *(nodes, lambda keys: None, self.control),
            match=match,
            key_type=key_type,
            cluster=whole,
            only_slots=wanted_slots(prepared.asked),
        )
        await self._scan.run()
        self._raise_failed(self._scan)
        line = str(self.query)
        if self.count or len(self.query.terms) != 1 or '"' in line:
            return
        if self.query.terms[0].name not in (TEXT, GLOB) or self.query.terms[0].is_negated:
            self._is_named_like_query = await self._type_of(line.encode()) not in (None, NO_TYPE)

    async def _type_of(self, name: bytes) -> bytes | None:
        """Return the type of a key, by TYPE; None if the server does not tell it."""
        try:
            (reply,) = await (await self._deployment.for_key(name)).run(guard.key_type(name))
        except ConnectionLost:
            return None
        return reply if isinstance(reply, bytes) else None

    def _raise_failed(self, scan: Scan) -> None:
        if scan.state is ScanState.FAILED:
            raise RtuiError("The search broke off", scan.progress.reason or "The scan failed.")

    async def _search_held(self, asked: Sequence[ServerNode]) -> None:
        """Search the names that are held, and query the keys that pass, each at its node."""
        if not self.preparation.needs_facts:
            await self._feed()
            return
        for finder in self.finders.values():
            finder.is_fed = True
        feeding = start_supervised(self._feed(), name="rtui held names", failed=self._broken_off)
        nodes = [
            ScanNode(one.connection, Dialect.STANDALONE, one.id, spans=(), queries=self.finders[one.id])
            for one in asked
        ]
        self._scan = Scan(nodes, lambda keys: None, self.control)
        try:
            await self._scan.run()
        finally:
            await end_task(feeding)
        self._raise_failed(self._scan)

    def _broken_off(self, failure: RtuiError) -> None:
        self._failure = failure
        self.control.stop(failure.happened)

    def _by_finder(self, names: Sequence[bytes]) -> Iterator[tuple[KeyFinder, Sequence[bytes]]]:
        """Divide names by the nodes that serve their slots; names of unserved slots go to the first node."""
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
