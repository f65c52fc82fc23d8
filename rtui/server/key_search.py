"""A search for keys as a screen shows it: prepared, begun when its cost is agreed to, and kept after its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Final, Protocol

from rtui.analysis.humanize import Mark
from rtui.analysis.query.matches import Order
from rtui.analysis.query.plan import LARGE
from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.display import SafeText
from rtui.server.find import FindRun
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.connection import State
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import end_task, start_supervised

LISTED: Final = 10_000
"""Matches that are listed: the first ones that are found."""

TOP_LISTED: Final = 1_000
"""Matches that are listed where they are the first by a fact."""


class Stage(Enum):
    """How far a search is."""

    PREPARING = "finding out what it costs"
    ASKING = "waiting for the user to agree to its cost"
    RUNNING = "under way"
    OVER = "over"


class Search(Protocol):
    """What a screen shows of a search."""

    query: Query
    order: Order | None
    """What decides which matches are listed; None for the first that are found."""
    columns: tuple[Fact, ...]
    """Facts that are asked of the matches, besides those that the query needs."""
    control: RunControl
    """Pauses, resumes, stops and paces it."""

    @property
    def as_of_s(self) -> float | None:
        """When all that it searches was asked, in seconds since the epoch; None where it asks the server now."""

    @property
    def revision(self) -> int:
        """Grows with every change."""

    @property
    def stage(self) -> Stage:
        """How far it is."""

    @property
    def plan(self) -> SafeText | None:
        """What it asks and costs, without a full stop; None before that is known."""

    @property
    def kept(self) -> Sequence[KeyRecord]:
        """The matches that are listed; without an order, later ones are appended."""

    @property
    def limit(self) -> int:
        """Matches that are listed at most."""

    @property
    def count(self) -> int:
        """All matches so far."""

    @property
    def mark(self) -> Mark:
        """Whether those are all."""

    @property
    def progress(self) -> Progress:
        """How far it is, in names that were looked at."""

    @property
    def link(self) -> State:
        """The connection to the server, and whether that is silent."""

    @property
    def cost(self) -> Cost:
        """What it has cost so far."""

    @property
    def failure(self) -> RtuiError | None:
        """Why it could not begin, or go on."""

    @property
    def notes(self) -> tuple[SafeText, ...]:
        """What a reader of the matches has to know, in sentences."""

    def prepare(self) -> None:
        """Find out what it costs; begin where that is little."""

    def begin(self) -> None:
        """Search, as the user has agreed to what it costs."""

    def sorts_at_once(self, order: Order | None) -> bool:
        """Return whether another search finds the first of all matches in an order without asking the server."""

    async def close(self) -> None:
        """End it; what was found stays."""


class KeySearch:
    """A search by a server."""

    as_of_s: float | None = None

    def __init__(
        self,
        run: FindRun,
        suspended: Callable[[], AbstractContextManager[None]] = nullcontext,
        note: SafeText | None = None,
    ) -> None:
        """`suspended` suspends other work while it runs; `note` is one more sentence for a reader of the matches."""
        self.query, self.order, self.columns = run.query, run.options.order, run.options.columns
        self.control = run.control
        self._run, self._suspended, self._note = run, suspended, note
        self._agreed = asyncio.Event()
        self._is_prepared = self._is_running = self._is_over = False
        self._failure: RtuiError | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def revision(self) -> int:
        """Grows with every change."""
        done = self._is_prepared + self._agreed.is_set() + self._is_running + self._is_over
        return self._run.revision + done + (self._failure is not None)

    @property
    def stage(self) -> Stage:
        """How far it is."""
        if self._is_over:
            return Stage.OVER
        if self._is_running:
            return Stage.RUNNING
        is_asking = self._is_prepared and self._is_costly and not self._agreed.is_set()
        return Stage.ASKING if is_asking else Stage.PREPARING

    @property
    def _is_costly(self) -> bool:
        """Whether the user is asked first."""
        plan, ahead = self._run.plan, self._run.ahead
        if self._run.preparation.bill is not None:
            return True
        is_large = (self._run.preparation.size or 0) >= LARGE
        return is_large and plan is not None and ahead is not None and bool(ahead.scanned or plan.stages)

    @property
    def plan(self) -> SafeText | None:
        """What it asks and costs, without a full stop; None before that is known."""
        plan, ahead = self._run.plan, self._run.ahead
        if plan is None or ahead is None:
            return None
        sentence, bill = plan.sentence(ahead, self.control.pace.value), self._run.preparation.bill
        return sentence if bill is None else SafeText(f"{sentence}; {bill}")

    @property
    def kept(self) -> Sequence[KeyRecord]:
        """The matches that are listed; without an order, later ones are appended."""
        return self._run.matches.kept

    @property
    def limit(self) -> int:
        """Matches that are listed at most."""
        return self._run.matches.limit

    @property
    def count(self) -> int:
        """All matches so far."""
        return self._run.count

    @property
    def mark(self) -> Mark:
        """Whether those are all."""
        return self._run.mark if self._is_over and self._failure is None else Mark.AT_LEAST

    @property
    def link(self) -> State:
        """The connection to the server, and whether that is silent."""
        return self._run.link

    @property
    def progress(self) -> Progress:
        """How far it is, in names that were looked at."""
        if self._failure is not None:
            return Progress(ScanState.FAILED, None, self._run.progress.keys, reason=self._failure.happened)
        return self._run.progress

    @property
    def cost(self) -> Cost:
        """What it has cost so far."""
        return self._run.cost

    @property
    def failure(self) -> RtuiError | None:
        """Why it could not begin, or go on."""
        return self._failure or self._run.failure

    @property
    def notes(self) -> tuple[SafeText, ...]:
        """What a reader of the matches has to know, in sentences."""
        return (*([] if self._note is None else [self._note]), *self._run.notes)

    def prepare(self) -> None:
        """Find out what it costs; begin where that is little."""
        if self._task is None:
            self._task = start_supervised(self._work(), name="rtui key search", failed=self._failed)

    def begin(self) -> None:
        """Search, as the user has agreed to what it costs."""
        self._agreed.set()

    def sorts_at_once(self, order: Order | None) -> bool:
        """Return False: the server is asked."""
        return False

    async def close(self) -> None:
        """End it; what was found stays."""
        task, self._task = self._task, None
        await end_task(task)
        self._is_over = True

    async def _work(self) -> None:
        try:
            await self._run.prepare()
            self._is_prepared = True
            if self._is_costly:
                await self._agreed.wait()
            self._is_running = True
            with self._suspended():
                await self._run.run()
        except RtuiError as failure:
            self._failed(failure)
        finally:
            self._is_over = True

    def _failed(self, failure: RtuiError) -> None:
        self._failure = failure
