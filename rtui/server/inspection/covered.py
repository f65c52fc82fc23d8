"""How much of a keyspace the figures of a pass rest on."""

from __future__ import annotations

from typing import Final

from rtui.analysis.aggregates import Aggregates
from rtui.analysis.report import Coverage, CoverageKind
from rtui.keyspace.display import SafeText
from rtui.server.inspection.sample_pass import SamplePass
from rtui.server.progress import Progress, ScanState
from rtui.server.scan import Scan

UNDER_WAY: Final = SafeText("it is under way")
"""Why a report is partial while its pass runs."""


def covered(
    findings: Aggregates,
    work: Scan | SamplePass | None,
    progress: Progress,
    *,
    size: int | None,
    why_ended: SafeText | None,
) -> Coverage:
    """Return what the figures in `findings` rest on.

    `work` is what finds them, None before it began; `size` the keys that are meant, if known; `why_ended` says why
    somebody ended it.
    """
    is_sample, is_done = isinstance(work, SamplePass), progress.state is ScanState.DONE
    is_whole = is_done and not is_sample
    says_why = not is_done and (progress.state.is_over or not is_sample)
    keys = findings.summed_keys
    seen = keys + findings.unread_keys
    return Coverage(
        CoverageKind.ESTIMATE if is_sample else CoverageKind.EXACT if is_whole else CoverageKind.PARTIAL,
        keys,
        None if is_sample else 1.0 if is_whole else progress.fraction,
        work.population if isinstance(work, SamplePass) else seen if is_whole else size,
        vanished=findings.vanished,
        unread=findings.unread_keys,
        repeats_possible=isinstance(work, Scan) and is_done and work.repeats_possible,
        reason=str(progress.reason or why_ended or UNDER_WAY) if says_why else "",
    )
