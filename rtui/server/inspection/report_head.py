"""The server in a report: its identity, the coverage of the figures, and its own figures of all keys.

The head of the report holds the notes on its figures. The server itself has histograms of the sizes of all keys (`INFO
keysizes`) and a bound on their memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import structs

from rtui import __version__
from rtui.analysis import humanize
from rtui.analysis.report.document import (
    ColumnReport,
    ColumnState,
    CostReport,
    Coverage,
    CoverageKind,
    Head,
    KeySizes,
    Scope,
    ServerReport,
    Stats,
)
from rtui.analysis.report.figures import Counted
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server import guard, wall_clock
from rtui.server.facts.first_answers import REPLICA_NOTE
from rtui.server.guard.evidence import counts_sizes
from rtui.server.health.info import parse_key_sizes
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.sample_pass import ClusterSamplePass, SamplePass
from rtui.server.scan.parted_scan import PartedScan
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.scan import Scan
from rtui.server.wire.capability import Capabilities, CommandRunner, Querier
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply
from rtui.server.wire.identity import ServerIdentity, parse_identity, parse_info, possible_number
from rtui.server.wire.target import DumpFile

if TYPE_CHECKING:
    from rtui.server.inspection.pipeline import InspectionPipeline


def coverage_of(
    counted: Counted,
    work: Scan | PartedScan | SamplePass | ClusterSamplePass | None,
    progress: Progress,
    *,
    size: int | None,
    why_ended: str | None,
) -> Coverage:
    """Return the coverage of the counted keys; `work` is the scan or sample, `size` the number of keys, if known."""
    is_sample, is_done = isinstance(work, SamplePass | ClusterSamplePass), progress.state is ScanState.DONE
    is_whole = is_done and not is_sample
    says_why = not is_done and (progress.state.is_over or not is_sample)
    seen = counted.keys + counted.unread_keys
    return Coverage(
        CoverageKind.ESTIMATE if is_sample else CoverageKind.EXACT if is_whole else CoverageKind.PARTIAL,
        counted.keys,
        None if is_sample else 1.0 if is_whole else progress.fraction,
        work.population if isinstance(work, SamplePass | ClusterSamplePass) else seen if is_whole else size,
        vanished=counted.vanished_keys,
        unread=counted.unread_keys,
        repeats_possible=isinstance(work, Scan | PartedScan) and is_done and work.repeats_possible,
        reason=str(progress.reason or why_ended or "it is running") if says_why else "",
    )


SAMPLED_NOTE: Final = (
    "The bytes of a collection come from five of its elements, as MEMORY USAGE does by default on this server: "
    "where elements differ much in size they are an estimate."
)


ON_DISK_NOTE: Final = "MEMORY USAGE of this server tells what a key takes on disk: all sizes of keys are sizes on disk."


PROMOTED_NOTE: Final = (
    "A replica was asked at first: idle times and frequencies may be its own, without what clients read on the primary."
)
"""The note on figures that a replica reported, before it was promoted or left for its primary."""


def keys_refused(stats: Stats, unread: int) -> tuple[SafeText, ...]:
    """Return the note on keys of unknown type after a finished pass over all keys; empty without such keys.

    `unread` keys were not queried, since their names are too long.
    """
    known = [count for _, count in stats.types if isinstance(count, int)]
    if not isinstance(stats.keys, int) or len(known) < len(stats.types) or not 0 < sum(known) < stats.keys - unread:
        return ()
    refused = stats.keys - unread - sum(known)
    one = f"The type of {refused:,} {'key is' if refused == 1 else 'keys is'} not known, nor what else is asked"
    return (SafeText(f"{one}: the user may not have been allowed to read these keys (ACL key patterns)."),)


def dump_notes(dump: DumpFile, server: ServerIdentity) -> Iterator[str]:
    """Yield whose memory figures these are, and how many keys are not shown."""
    used = dump.used_memory_bytes
    held = "" if used is None else f", which used {humanize.size(used)}"
    by = f"; the dump is of {display_text(dump.server, limit=60)}{held}" if dump.server else ""
    yield f"Memory is as {server.full_name} holds it{by}."
    if dump.missing:
        yield f"{dump.missing[:1].upper()}{dump.missing[1:]}."


WHOLE_CLUSTER: Final = "cluster"
"""The role of a server that stands for all nodes of a cluster."""


def server_report(connection: Connection, plan: InspectionPlan | None = None) -> ServerReport:
    """Return the server's identity and memory; with a plan, of the server that the plan is for."""
    server, target, no_touch = connection.server, connection.target, connection.no_touch
    if plan is not None:
        no_touch = plan.no_touch
        server = server if server.is_like(plan.server) else plan.server
    return ServerReport(
        label=target.label,
        product=server.product_name or "",
        version=server.version_text or "",
        role="" if target.dump is not None else server.role or "",
        db=target.db,
        run_id=server.run_id or "",
        cluster_enabled=bool(server.cluster_enabled),
        maxmemory_policy=server.maxmemory_policy or "",
        used_memory_bytes=server.used_memory_bytes,
        maxmemory_bytes=server.maxmemory_bytes or None,
        no_touch=str(no_touch),
    )


def head(
    connection: Connection,
    pipelines: Sequence[InspectionPipeline],
    *,
    scope: Scope,
    coverage: Coverage,
    cost: Cost,
    notes: Sequence[SafeText],
    is_whole_cluster: bool = False,
) -> Head:
    """Return the head of a report made now; `pipelines` are those of all nodes, `notes` those of the run.

    `is_whole_cluster`: the nodes are all nodes of their cluster, even if it has only one.
    """
    plans = [pipeline.plan for pipeline in pipelines]
    is_one, plan = len(plans) == 1, plans[0]
    server, columns = server_report(connection, plan if is_one else None), joined_columns(plans)
    if not is_one:
        server = structs.replace(server, **_sums([one.server for one in plans]), role=WHOLE_CLUSTER)
    texts = [*dict.fromkeys(str(change) for one in plans for change in one.changes), *map(str, notes)]
    if (dump := connection.target.dump) is not None:
        texts += dump_notes(dump, connection.server)
    unread: Counter[str] = sum((pipeline.unread for pipeline in pipelines), Counter())
    for name, count in sorted(unread.items()):
        answers = "answer" if count == 1 else "answers"
        texts.append(f"{count:,} {answers} to {name} made no sense: these facts are unknown.")
    own_reads = sum(pipeline.own_read_keys for pipeline in pipelines)
    if own_reads == 1:
        texts.append("The idle time of 1 key is that before rtui itself read it.")
    elif own_reads:
        texts.append(f"The idle times of {own_reads:,} keys are those before rtui itself read them.")
    if columns["memory"].state is ColumnState.COMPLETE:
        if any(one.server.compatible is not None and one.server.compatible.sizes_on_disk for one in plans):
            texts.append(ON_DISK_NOTE)
        elif any(not counts_sizes(one.server.product, one.server.version) for one in plans):
            texts.append(SAMPLED_NOTE)
    if any(one.server.role == "replica" for one in plans):
        texts.append(f"{REPLICA_NOTE[:1].upper()}{REPLICA_NOTE[1:]}.")
    elif any(one.has_asked_replica for one in plans):
        texts.append(PROMOTED_NOTE)
    if is_one and not is_whole_cluster and plan.server.cluster_note is not None:
        texts.append(f"Only what this node holds: {plan.server.cluster_note}.")
    return Head(
        made_at_s=wall_clock.now_s(),
        server=server,
        scope=scope,
        coverage=coverage,
        cost=cost_report(cost),
        columns=columns,
        notes=tuple(texts),
        rtui_version=__version__,
    )


def _sums(servers: Sequence[ServerIdentity]) -> dict[str, int | None]:
    """Return the sums over all nodes of their memory, and of its limits; None if one is unknown."""
    names = ("used_memory_bytes", "maxmemory_bytes")
    of_all = {name: [getattr(server, name) for server in servers] for name in names}
    return {name: sum(sizes) or None if all(sizes) else None for name, sizes in of_all.items()}


def cost_report(cost: Cost) -> CostReport:
    return CostReport(**{name: getattr(cost, name) for name in CostReport.__struct_fields__})


def joined_columns(plans: Sequence[InspectionPlan]) -> dict[str, ColumnReport]:
    """Return which keys each fact was read of at the nodes of these plans; if they differ, of some."""
    if len(plans) == 1:
        return plans[0].column_reports()
    found = [plan.column_reports() for plan in plans]
    return {name: joined_column([one[name] for one in found], "node") for name in found[0]}


def joined_column(columns: Sequence[ColumnReport], of: str) -> ColumnReport:
    """Return which keys a fact was read of, at several nodes or in several files; `of` is the noun."""
    differing = Counter((column.state, column.reason) for column in columns)
    if len(differing) == 1:
        return columns[0]
    reasons = (
        f"{reason or state} at {count:,} of {len(columns):,} {of}s"
        for (state, reason), count in differing.items()
        if state is not ColumnState.COMPLETE
    )
    return ColumnReport(ColumnState.SOME, "; ".join(reasons))


async def key_sizes(connection: CommandRunner, capabilities: Capabilities, db: int) -> tuple[KeySizes, ...]:
    """Ask for the histograms of one database; empty if the server keeps none or denies INFO.

    Strings are counted by bytes, the other types by elements. Raises ConnectionLost.
    """
    (reply,) = await Querier(connection, capabilities).run(guard.info("keysizes"))
    return parse_key_sizes(reply, db)


def joined_key_sizes(of_nodes: Sequence[tuple[KeySizes, ...]]) -> tuple[KeySizes, ...]:
    """Return the histograms of all nodes, joined by name; empty if a node keeps none."""
    if len(of_nodes) == 1:
        return of_nodes[0]
    counted: dict[str, Counter[int]] = {}
    for one in (one for sizes in of_nodes for one in sizes):
        counted.setdefault(one.name, Counter()).update(dict(one.bins))
    return tuple(KeySizes(name, tuple(sorted(bins.items()))) for name, bins in counted.items()) if all(of_nodes) else ()


TABLE_ENTRY_BYTES: Final = 32
"""Bytes of a key that MEMORY USAGE counts and `used_memory_dataset` does not: its entry in the table of keys.

Measured with keys of sixteen kinds on eight servers: 31 bytes at most, except for shared integers.
"""

EMBEDDED_ENTRY_BYTES: Final = 8
"""The same for Valkey from 8.1 on, where keys lie in the table: 4 bytes at most."""


async def memory_bound(connection: Connection, capabilities: Capabilities) -> int | None:
    """Ask how many bytes all keys have at most; None where INFO is denied. Raises ConnectionLost."""
    memory, keyspace = await Querier(connection, capabilities).run(guard.info("memory"), guard.info("keyspace"))
    server = connection.server
    is_embedded = server.product == "valkey" and (server.version or ()) >= (8, 1)
    entry_bytes = EMBEDDED_ENTRY_BYTES if is_embedded else TABLE_ENTRY_BYTES
    return parse_memory_bound(memory, keyspace, connection.target.db, entry_bytes)


def parse_memory_bound(memory: Reply, keyspace: Reply, db: int, entry_bytes: int = TABLE_ENTRY_BYTES) -> int | None:
    """Return a bound in bytes on the memory of the keys, from INFO memory and INFO keyspace; None if unknown.

    Keys cannot have more memory than the server uses beyond its startup memory; nor more than its data set of all
    databases, with the entries of this database's keys.
    """
    fields = parse_info(memory)
    used, dataset = possible_number(fields, "used_memory"), possible_number(fields, "used_memory_dataset")
    if used is None:
        return None
    bound = max(0, used - (possible_number(fields, "used_memory_startup") or 0))
    databases = parse_identity((keyspace,)).databases
    if dataset and databases is not None:
        bound = min(bound, dataset + entry_bytes * databases.get(db, 0))
    return bound
