"""One search for keys: the names that a query lets through, the facts that it needs, and the matches as they come.

Where the names of all keys are held already, they are searched here and the server is asked for facts alone; else a
scan brings them, filtered by the server as far as one glob and one type can. What is asked about the keys is up to
`inspection.key_finder`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, wilson
from rtui.analysis.humanize import Mark
from rtui.analysis.query.matches import Matches, Order
from rtui.analysis.query.names import NameFilter
from rtui.analysis.query.plan import LARGE, Plan, PlanCost, plan_of
from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.keyspace.store.held_names import HeldNames
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import DEFAULT_SEPARATORS, Separators
from rtui.server import guard
from rtui.server.inspection.key_finder import KeyFinder
from rtui.server.inspection.key_rights import before_length
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.scan.cursor import Dialect, dialect_of
from rtui.server.scan.node import ScanNode, owned_slots
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import key_count
from rtui.server.scan.progress import Cost, Progress, ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import CALL_US, can_sample, sample
from rtui.server.scan.scan import Scan
from rtui.server.wire.capability import Capabilities, Feature
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection, State
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import end_task, failure_of, start_supervised

SAMPLE_KEYS: Final = 5_000
"""Names that tell how many of a large keyspace a query lets through."""

FED_AHEAD: Final = 4_000
"""With so many keys waiting to be asked about, no further names are searched."""

FED_POLL_S: Final = 0.005
"""How often it is looked whether there are fewer."""

SCANS: Final = (Feature.SCAN, Feature.SCAN_TYPE)
"""What is not needed where all names are held."""

LIMIT_REACHED: Final = SafeText("as many matches as were wanted have been found")
"""Why a search was stopped that ends there."""

TWICE: Final = SafeText("The server resized its table during the scan: beyond the keys listed, some may count twice.")


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
    """One search over a connection that is open; `run` it once. Everything else may be called at any time.

    `prepare` may be awaited before, to say what it costs: it asks for the size of the database, and on a large one for
    a sample of its names.
    """

    def __init__(
        self,
        connection: Connection,
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
        self._connection, self._held, self._clock = connection, held, clock
        self._separators = Separators(options.separators)
        self._names = NameFilter(query, self._separators)
        self._capabilities = Capabilities()
        self._allowed = InspectionPlan(self._capabilities, connection.server, connection.no_touch)
        self.finder: KeyFinder | None = None
        """Counts what was looked at, excluded, and could not be decided; None before it runs."""
        self._scan: Scan | None = None
        self._other_cost = Cost()
        self._failure: RtuiError | None = None
        self._is_ended = False

    @property
    def revision(self) -> int:
        """Grows with every match and every change of state."""
        seen = 0 if self.finder is None else self.finder.seen + self.finder.undecided.total() + self.finder.vanished
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
        return is_short or bool(self.finder is not None and self.finder.undecided)

    @property
    def progress(self) -> Progress:
        """How far it is, in names that were looked at."""
        seen = 0 if self.finder is None else self.finder.seen
        if self._failure is not None:
            return Progress(ScanState.FAILED, None, seen, reason=self._failure.happened)
        if self._held is None and self._scan is not None:
            now = replace(self._scan.progress, keys=seen)
            return replace(now, state=ScanState.RUNNING) if now.state.is_over and not self._is_ended else now
        if self._is_ended:
            return Progress(ScanState.STOPPED if self.control.is_stopped else ScanState.DONE, 1.0, seen)
        if self.control.is_held:
            return Progress(ScanState.PAUSED, None, seen)
        if self.finder is None:
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
    def notes(self) -> tuple[SafeText, ...]:
        """What a reader of the matches has to know, in sentences."""
        notes: list[SafeText] = []
        finder = self.finder
        if self._held is not None and self.held_at_s is not None:
            at = humanize.moment(self.held_at_s)
            notes.append(SafeText(f"The names are those of {at}; later keys are not found."))
        if self._held is not None and self._held.missing:
            notes.append(SafeText(f"{humanize.keys(self._held.missing)} of which no name is kept were not searched."))
        if finder is not None:
            for fact, count in finder.undecided.most_common():
                why = finder.reasons.get(fact, SafeText("there was no answer"))
                terms = " ".join(str(term) for term in self.query.about(fact))
                notes.append(SafeText(f"{humanize.keys(count)} could not be decided for {terms}: {why}."))
            if finder.vanished:
                verb = "was gone when it was" if finder.vanished == 1 else "were gone when they were"
                notes.append(SafeText(f"{humanize.keys(finder.vanished)} {verb} asked about."))
            if finder.rights.touched:
                counted = humanize.counted(finder.rights.touched, "length")
                notes.append(SafeText(f"{counted} were asked, which this server counts as a use of the keys."))
        if self._scan is not None and self._held is None:
            scanned = self._scan.progress.notes
            notes += [TWICE if note is ScanNote.REPEATS else SafeText(note.value) for note in scanned]
        return tuple(notes)

    @for_purpose(Purpose.FIND)
    async def prepare(self) -> None:
        """Find out what may be asked and what it costs; raises an RtuiError where it can't be done."""
        connection = self._connection
        await connection.online()
        if self._held is not None and not self._needs_facts:
            self._decide_plan()
            return
        connection.forget_denied()
        await self._capabilities.probe(connection, without=SCANS if self._held is not None else ())
        if self._capabilities.allows(Feature.DBSIZE):
            (reply,) = await connection.run(guard.dbsize())
            self.size = key_count(reply)
        self._decide_plan()
        self._check_rights()
        plan = self.plan
        assert plan is not None  # noqa: S101 - just decided
        matching = await self._estimate_matching() if plan.stages else None
        self.ahead = self._ahead(plan, matching)

    @property
    def _needs_facts(self) -> bool:
        return bool(self.query.facts or self.options.columns)

    def _decide_plan(self) -> None:
        scans_types = self._held is None and self._capabilities.allows(Feature.SCAN_TYPE)
        self.plan = plan_of(
            self.query,
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
        if self._names.is_open or not is_large or not can_sample(dialect_of(self._connection.server)):
            return None
        assert self.size is not None  # noqa: S101 - large
        lane = await self._connection.bulk()
        taken = await sample(lane, self.control, keys=SAMPLE_KEYS)
        self._other_cost += Cost(commands=taken.calls, keys=len(taken.keys), server_us=taken.calls * CALL_US)
        drawn = len(taken.keys)
        if not drawn:
            return None
        passing = len(self._names.keep(list(taken.keys)))
        return wilson(passing, drawn, population=max(drawn, self.size)).scaled(self.size)

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
        self.finder = KeyFinder(
            plan, self._allowed, self._names, self.matches, own_reads=self._connection.own_reads, clock=self._clock
        )
        self.matches.on_listed = self._listed
        if self._held is None:
            await self._scan_names(plan, self.finder)
        else:
            await self._search_held(self.finder)

    def _listed(self) -> None:
        """End it where no more matches are wanted."""
        if self.options.stops_at_limit and self.matches.listed >= self.options.limit and not self.control.is_stopped:
            self.control.stop(LIMIT_REACHED)

    async def _scan_names(self, plan: Plan, finder: KeyFinder) -> None:
        dialect = dialect_of(self._connection.server)
        node = ScanNode(self._connection, dialect, size=self.size, queries=finder)
        if dialect is Dialect.SLOTTED:
            node = replace(node, slots=await owned_slots(self._connection))
        match, key_type = plan.server.match, plan.server.key_type
        self._scan = Scan([node], lambda keys: None, self.control, match=match, key_type=key_type)
        await self._scan.run()
        self._raise_failed(self._scan)

    def _raise_failed(self, scan: Scan) -> None:
        if scan.state is ScanState.FAILED:
            raise RtuiError("The search broke off", scan.progress.reason or "The scan of the names has failed.")

    async def _search_held(self, finder: KeyFinder) -> None:
        """Search the names that are held, and ask about those that pass."""
        if not self._needs_facts:
            await self._feed(finder)
            return
        finder.is_fed = True
        feeding = start_supervised(self._feed(finder), name="rtui held names", failed=self._fail)
        node = ScanNode(self._connection, Dialect.STANDALONE, spans=(), queries=finder)
        self._scan = Scan([node], lambda keys: None, self.control)
        try:
            await self._scan.run()
        finally:
            await end_task(feeding)
        self._raise_failed(self._scan)

    def _fail(self, failure: RtuiError) -> None:
        self._failure = failure
        self.control.stop(failure.happened)

    async def _feed(self, finder: KeyFinder) -> None:
        assert self._held is not None  # noqa: S101 - only then
        try:
            for page in self._held.pages():
                finder.add_page(page)
                await self.control.yield_loop(has_waited=False)
                if self.control.is_held:
                    await self.control.wait_while_held()
                while finder.unsent > FED_AHEAD and not self.control.is_stopped:
                    await self.control.sleep(FED_POLL_S)
                if self.control.is_stopped:
                    break
        finally:
            finder.is_fed = False
