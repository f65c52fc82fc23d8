"""What is wrong with servers in a word, and samples of what they say of themselves anyway."""

from __future__ import annotations

from collections.abc import Mapping

from rtui.analysis.findings.server import headline, server_findings
from rtui.analysis.health.possible import with_possible
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import Severity
from rtui.server.browsing_status import Trouble
from rtui.server.health import info
from rtui.server.wire.replies import Reply


def sample_of_info(replies: Mapping[str, Reply], node: SafeText, at_ms: int) -> Sample:
    """Return what a node has said in INFO, by section, as a sample."""
    by_source = {Source(f"INFO {section}"): reply for section, reply in replies.items() if isinstance(reply, bytes)}
    fields: dict[str, int | float | str] = {}
    for source, reply in by_source.items():
        fields |= info.parse_fields(source, reply)
    return with_possible(
        Sample(
            at_ms=at_ms,
            node=node,
            info=fields,
            databases=info.parse_databases(by_source.get(Source.INFO_KEYSPACE)),
            replicas=info.parse_replicas(by_source.get(Source.INFO_REPLICATION)),
            sources=tuple(source for source in Source if source in by_source),
        )
    )


def wrong_with(views: Mapping[SafeText, HealthView]) -> tuple[dict[SafeText, SafeText], Trouble | None]:
    """Return what is wrong with each node in a word, those without left out, and the gravest of all; None for nothing.

    The rules that look over time judge once there are samples enough.
    """
    judged = {node: server_findings(view) for node, view in views.items()}
    found = {node: one for node, one in judged.items() if one.findings}
    if not found:
        return {}, None
    worst = max(found.values(), key=lambda one: one.findings[0].severity is Severity.ERROR)
    others = {one.rule for each in found.values() for one in each.findings} - {worst.findings[0].rule}
    trouble = Trouble(headline(worst), worst.findings[0].severity is Severity.ERROR, len(others))
    return {node: headline(one) for node, one in found.items()}, trouble
