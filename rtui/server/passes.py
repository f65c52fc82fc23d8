"""One pass over the keyspace after another: with a filter, without one, or again; one runs at a time.

A filter of names or types has its keys scanned into a store of their own. The pass over all keys waits meanwhile, and
is shown again and goes on when the filter is cleared.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

from rtui.keyspace.store.store import NamespaceStore
from rtui.server.keyspace_pass import KeyspacePass
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import Cost
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import end_task, start_supervised


class NewPass(Protocol):
    """Makes a pass that fills an empty store."""

    def __call__(self, store: NamespaceStore, *, control: RunControl, only: ScanFilter) -> KeyspacePass:
        """Return a pass that has not begun, over the keys that a filter lets through."""


class Passes:
    """The pass that is shown, and the one over all keys where that waits."""

    def __init__(
        self,
        store: NamespaceStore,
        new_pass: NewPass,
        only: ScanFilter,
        pace: Pace,
        failed: Callable[[RtuiError], None],
    ) -> None:
        """`failed` is called with why another pass could not begin."""
        self.store = store
        """What the pass that is shown fills; that of a filter is another one."""
        self.only = only
        """The filter that was chosen last."""
        self._new_pass, self._failed = new_pass, failed
        self.shown = new_pass(store, control=RunControl(pace), only=only)
        """The pass whose keys are shown."""
        self._unfiltered: KeyspacePass | None = None
        """The pass over all keys, suspended while a filter shows some of them; None while no filter does."""
        self._revision = 0
        self._spent = Cost()
        """Of passes that have ended."""
        self._suspensions = 0
        """How many tasks run that the scan is suspended for."""
        self._replacing: asyncio.Task[None] | None = None
        self._is_rescan = False
        self._next_resumes: bool | None = None
        """Whether the next pass goes on from a saved one; None when no other pass is wanted."""

    @property
    def revision(self) -> int:
        """Grows with every change of a pass or its store."""
        return self._revision + self._spent.commands + self.store.revision + self.shown.revision

    @property
    def cost(self) -> Cost:
        """What all passes have cost so far."""
        return self._spent + self.shown.cost + (Cost() if self._unfiltered is None else self._unfiltered.cost)

    @property
    def control(self) -> RunControl:
        """Pauses, resumes and paces the scan; another pass, such as of a filter, has another one."""
        return self.shown.control

    @property
    def over_all_keys(self) -> KeyspacePass:
        """The pass that waits for a filter to be cleared, else the one that is shown, filtered or not."""
        return self.shown if self._unfiltered is None else self._unfiltered

    @property
    def keeps_all_keys(self) -> bool:
        """Whether the pass over all keys waits while a filter shows some: without the filter it goes on, not anew."""
        return self._unfiltered is not None

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the scan while something else takes the server's time, also one that begins meanwhile."""
        self._suspensions += 1
        self.control.suspend()
        try:
            yield
        finally:
            self._suspensions -= 1
            if not self._suspensions:
                self.control.unsuspend()

    async def replace(self, only: ScanFilter, *, resume: bool, is_rescan: bool = False) -> None:
        """Replace the pass by another one into the emptied store; of several calls the last one counts.

        It is done in a task of its own, since the caller may be cancelled; one pass runs at a time.
        """
        self.only = only
        self._is_rescan = is_rescan
        self._next_resumes = resume
        if self._replacing is None or self._replacing.done():
            self._replacing = start_supervised(self._replace(), name="rtui new pass", failed=self._failed)
        await asyncio.shield(self._replacing)

    async def _replace(self) -> None:
        """End the pass that runs, and begin the one that was wanted last.

        The pass over all keys is suspended while a filter shows some of them from an empty store, then goes on.
        """
        while self._next_resumes is not None:
            if self._unfiltered is None and self.shown.only.is_open and not self.only.is_open:
                self.control.suspend()
                self._unfiltered = self.shown
                self._revision += self.shown.revision + self.store.revision
                self.store = NamespaceStore(self.store.separators, budget_bytes=self.store.budget_bytes)
            else:
                await self.shown.end()
                self._spent += self.shown.cost
                self._revision += self.shown.revision
            resume, self._next_resumes = self._next_resumes, None
            pace = self.control.pace
            if self._unfiltered is not None and self.only.is_open and not self._is_rescan:
                self._show_unfiltered(self._unfiltered, pace)
                continue
            self.store.reset()
            self.shown = self._new_pass(self.store, control=RunControl(pace), only=self.only)
            if self._suspensions:
                self.control.suspend()
            self.shown.begin(resume=resume)
            self._revision += 1

    def _show_unfiltered(self, unfiltered: KeyspacePass, pace: Pace) -> None:
        """Show the pass over all keys again, which goes on."""
        self._revision += self.store.revision + 1
        self.shown, self._unfiltered = unfiltered, None
        self.store = unfiltered.store
        self.control.pace = pace
        if not self._suspensions:
            self.control.unsuspend()

    async def end(self) -> None:
        """End all passes, saving where they stand."""
        self._next_resumes = None
        await end_task(self._replacing)
        await self.shown.end()
        if self._unfiltered is not None:
            await self._unfiltered.end()
