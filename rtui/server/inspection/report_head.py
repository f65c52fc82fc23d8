"""The head of a report: which server was asked, what the figures rest on, what it cost, and what to know about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rtui import __version__
from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.report.document import (
    ColumnReport,
    ColumnState,
    CostReport,
    Coverage,
    CoverageKind,
    Head,
    Scope,
    ServerReport,
)
from rtui.keyspace.text.display import SafeText
from rtui.server.facts.key_facts import REPLICA_NOTE
from rtui.server.guard.evidence import counts_sizes
from rtui.server.inspection.plan import Plan
from rtui.server.inspection.sample_pass import SamplePass
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.scan import Scan
from rtui.server.wire.connection import Connection

UNDER_WAY: Final = SafeText("it is under way")
"""Why a report is partial while its pass runs."""


def coverage_of(
    findings: Aggregates,
    work: Scan | SamplePass | None,
    progress: Progress,
    *,
    size: int | None,
    why_ended: SafeText | None,
) -> Coverage:
    """Return what the figures in `findings` rest on.

    `work` is what finds them, None before it began; `size` the number of keys of the keyspace, if known; `why_ended` is
    why it was stopped.
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
        vanished=findings.vanished_keys,
        unread=findings.unread_keys,
        repeats_possible=isinstance(work, Scan) and is_done and work.repeats_possible,
        reason=str(progress.reason or why_ended or UNDER_WAY) if says_why else "",
    )


SAMPLED_NOTE: Final = (
    "The bytes of a collection come from five of its elements, as MEMORY USAGE does by default on this server: "
    "where elements differ much in size they are an estimate."
)
"""The note on sizes of a server that samples elements for them."""


def server_report(connection: Connection, plan: Plan | None = None) -> ServerReport:
    """Return what is known of the server; with a plan, of the one that the plan is for."""
    server, target, no_touch = connection.server, connection.target, connection.no_touch
    if plan is not None:
        no_touch = plan.no_touch
        server = server if server.is_like(plan.server) else plan.server
    return ServerReport(
        label=target.label,
        product=server.product_name or "",
        version=server.version_text or "",
        role=server.role or "",
        db=target.db,
        run_id=server.run_id or "",
        cluster_enabled=bool(server.cluster_enabled),
        maxmemory_policy=server.maxmemory_policy or "",
        used_memory_bytes=server.used_memory_bytes,
        maxmemory_bytes=server.maxmemory_bytes or None,
        no_touch=str(no_touch),
    )


def cost_report(cost: Cost) -> CostReport:
    """Return the cost as a report states it."""
    return CostReport(
        commands=cost.commands,
        bytes_in=cost.bytes_in,
        bytes_out=cost.bytes_out,
        server_us=cost.server_us,
        is_measured=cost.is_measured,
        elapsed_s=cost.elapsed_s,
    )


def columns_report(plan: Plan, *, encoding_every: int) -> dict[str, ColumnReport]:
    """Return for each fact whether it was asked and of how many keys."""
    columns = plan.columns()
    if encoding_every > 1 and columns["encoding"].state is ColumnState.COMPLETE:
        columns["encoding"] = ColumnReport(ColumnState.SOME, f"every {encoding_every}th key of a type was asked")
    return columns


def unread_notes(unread: Mapping[str, int]) -> tuple[SafeText, ...]:
    """Return a note for each command that was answered with what can't be the fact."""
    return tuple(
        SafeText(f"{count:,} {'answer' if count == 1 else 'answers'} to {name} made no sense: these facts are unknown.")
        for name, count in sorted(unread.items())
    )


def own_read_notes(keys: int) -> tuple[SafeText, ...]:
    """Return a note where the last use of keys was that rtui read them."""
    if not keys:
        return ()
    one = "The idle time of 1 key is that before rtui itself read it."
    more = f"The idle times of {keys:,} keys are those before rtui itself read them."
    return (SafeText(one if keys == 1 else more),)


def head(
    connection: Connection,
    plan: Plan,
    *,
    scope: Scope,
    coverage: Coverage,
    cost: Cost,
    columns: dict[str, ColumnReport],
    notes: Sequence[SafeText],
    made_at_s: float,
) -> Head:
    """Return the head of a report."""
    server = server_report(connection, plan)
    texts = [*map(str, plan.changes), *map(str, notes)]
    if columns["memory"].state is ColumnState.COMPLETE and not counts_sizes(plan.server.product, plan.server.version):
        texts.append(SAMPLED_NOTE)
    if server.role == "replica":
        texts.append(f"{REPLICA_NOTE[:1].upper()}{REPLICA_NOTE[1:]}.")
    if plan.server.cluster_note is not None:
        texts.append(f"Only what this node holds: {plan.server.cluster_note}.")
    return Head(
        made_at_s=made_at_s,
        server=server,
        scope=scope,
        coverage=coverage,
        cost=cost_report(cost),
        columns=columns,
        notes=tuple(texts),
        rtui_version=__version__,
    )
