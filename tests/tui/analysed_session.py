"""The fixed session after a pass over its keys: a report that was really added up, of facts by the keys' names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from rtui.analysis.report.document import Coverage, CoverageKind, Head, Report, Scope, ServerReport
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.table.naive import add_batch
from tests.tui.analyse.analysing import READY, FixedAnalysis
from tests.tui.fixed_session import ASKED_AT_S, COMPLETE, FixedSession, keys, kind_of, memory_of, ttl_of


def report_of(names: Sequence[bytes], kind: CoverageKind = CoverageKind.EXACT) -> Report:
    """The report of a pass over these keys, as far as `kind` says."""
    scope = Scope()
    found = Aggregates(Separators(), scope=scope, started_at_s=ASKED_AT_S)
    by_type: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for name in names:
        by_type[kind_of(name)].append(name)
    for key_type, some in by_type.items():
        ttls = [ttl if isinstance(ttl := ttl_of(name), int) else -1 for name in some]
        idle = [len(name) * 86_400 for name in some]
        sizes = [memory_of(name) for name in some]
        add_batch(found, InspectedBatch(key_type, some, ttls, sizes, idle), ASKED_AT_S)
    coverage = Coverage(kind, len(names), None if kind is CoverageKind.PARTIAL else 1.0, len(names))
    return Report(Head(ASKED_AT_S, ServerReport("10.0.0.5:6379"), scope, coverage), finish(found.summary()))


def analysed_session(
    status: BrowsingStatus = COMPLETE, *, age_s: float | None = 725.0, kind: CoverageKind = CoverageKind.EXACT
) -> FixedSession:
    """A session whose keys were all analysed `age_s` seconds ago; None: they still are."""
    session = FixedSession(status)
    with_report(session, report_of([name for name in keys() if name != b"gone"], kind), age_s=age_s)
    return session


def with_report(session: FixedSession, report: Report, *, age_s: float | None = None) -> None:
    """Give a session the report of an analysis."""
    session.analysis = FixedAnalysis(report, replace(READY, age_s=age_s))


def scoped(report: Report, **scope: object) -> Report:
    """The same report of another scope."""
    return structs.replace(report, head=structs.replace(report.head, scope=structs.replace(report.head.scope, **scope)))
