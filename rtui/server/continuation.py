"""An analysis over several runs of rtui: what of it is of earlier runs, and what is saved for a later one.

An analysis that is left lists no more keys. As soon as all is known of those that are listed, no key is half counted:
positions and counts are of the same keys. So a later run begins with both and delivers each key once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from rtui.analysis.aggregate.saved import SavedAggregates
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.files import reason_of
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.sample_pass import ClusterSamplePass, SamplePass
from rtui.server.options import AnalysisOptions
from rtui.server.saved_analysis import AnalysisFile, Asked, NotResumableError, SavedAnalysis, asked_by
from rtui.server.scan.node import ScanNode
from rtui.server.scan.page import SizeSnapshot
from rtui.server.scan.progress import Cost, ScanState
from rtui.server.scan.scan import Scan
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import RtuiError


class Continuation:
    """The part of one run in an analysis of several."""

    def __init__(self, connection: Connection, options: AnalysisOptions, saved: SavedAnalysis | None) -> None:
        """`saved` is what earlier runs have left."""
        self.saved = saved
        self.began_at_s = time.time() if saved is None else saved.began_at_s
        """When the first run began."""
        self.notes: list[SafeText] = []
        """What a reader of the figures has to know of earlier runs."""
        self.file: AnalysisFile | None = None
        """Where the analysis is saved once all is known of the keys that are listed; None for one to the end."""
        self.is_saved = False
        """Whether it was saved there."""
        self.why_not_saved: SafeText | None = None
        """Why it could not be, though it was to be."""
        self.connection = connection
        """To the server that the cursors are of."""
        self._options = options

    @property
    def cost(self) -> Cost:
        """What earlier runs have cost."""
        return Cost() if self.saved is None else self.saved.cost

    def forget(self) -> None:
        """Begin anew: what earlier runs have found is of another run of the server."""
        self.saved, self.began_at_s, self.notes = None, time.time(), []

    def why_not(self, work: Scan | SamplePass | ClusterSamplePass | None) -> SafeText | None:
        """Return why this can't be left and go on in a later run, None where it can."""
        asked = asked_by(self._options, self.connection.server.run_id, self.connection.target.db)
        if not isinstance(asked, Asked):
            return asked
        if not isinstance(work, Scan):
            return SafeText("There is nothing yet to go on from.")
        if not work.dialect.is_ordered:
            return SafeText(
                "It is not known how this server counts its cursors, so there is no position to go on from."
            )
        return None

    def node(self, node: ScanNode) -> ScanNode:
        """Return a node that goes on where the scan was left; raises an RtuiError if its cursors are others."""
        saved = self.saved
        if saved is None or node.dialect.value != saved.dialect:
            raise RtuiError("It can't go on", SafeText("The server counts its cursors in another way than before."))
        stopped, now = (_minute(at_s) for at_s in (saved.saved_at_s, time.time()))
        self.notes = [display_text(note, limit=1_000) for note in saved.notes]
        self.notes.append(
            SafeText(
                f"The analysis stopped at {stopped} and went on at {now} UTC: what is counted of keys that it had seen "
                "before is of the time when they were asked."
            )
        )
        return replace(node, saved=saved.ranges, run_id=saved.asked.run_id)

    def content(
        self,
        work: Scan | SamplePass | ClusterSamplePass | None,
        pipeline: InspectionPipeline,
        aggregates: SavedAggregates,
        *,
        cost: Cost,
        before: SizeSnapshot | None,
        notes: Sequence[str],
    ) -> SavedAnalysis:
        """Return all that is written down; raises an RtuiError with the reason if that can't be gone on from."""
        asked = asked_by(self._options, self.connection.server.run_id, self.connection.target.db)
        if not isinstance(work, Scan) or work.state is ScanState.FAILED or not isinstance(asked, Asked):
            why = None if work is None else work.progress.reason
            raise RtuiError("The analysis can't be saved", why or SafeText("It had not begun."))
        if work.run_id != asked.run_id:
            raise RtuiError("The analysis can't be saved", SafeText("The server was restarted meanwhile."))
        all_notes = (*map(str, self.notes), *map(str, pipeline.plan.changes), *notes)
        return SavedAnalysis(
            asked=asked,
            columns=pipeline.plan.columns,
            began_at_s=self.began_at_s,
            saved_at_s=time.time(),
            fraction=work.progress.fraction,
            dialect=work.dialect.value,
            cost=cost,
            before=before,
            notes=tuple(dict.fromkeys(all_notes)),
            inspection=pipeline.saved(),
            ranges=work.saved_ranges(),
            aggregates=aggregates,
        )

    async def save(self, content: SavedAnalysis) -> None:
        """Write it down in a thread; raises an RtuiError with the reason."""
        if self.file is not None:
            try:
                await asyncio.to_thread(self.file.save, content)
            except (OSError, NotResumableError) as error:
                raise RtuiError("The analysis can't be saved", display_text(reason_of(error))) from None
            self.is_saved = True


def _minute(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M}"
