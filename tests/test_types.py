"""A Redis type is declared by one entry of `TYPES` and one of `QUERIES`, and everything else follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rtui.analysis.facts import Reason, Unknown
from rtui.keyspace.types import TYPES, MemoryUsage, RedisType, type_of
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.facts.answers import QUERIES, TypeQueries
from rtui.server.facts.key_facts import key_preview
from rtui.server.facts.preview.collections import read_stream
from rtui.server.facts.preview.page import PreviewKind
from rtui.server.guard.evidence import PROBE_KEY
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.user.copying import copied_commands
from rtui.server.wire.target import Target
from rtui.tui.browse.fact_lines import fact_lines
from rtui.tui.kit.styled_text import Role, type_role
from tests.conftest import known
from tests.fakes.servers import MODULE_LENGTH, ModuleServer
from tests.server.targets import connected

ROARING = b"roaring"
KEYS = [b"bitmap:1", b"bitmap:2"]


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Declare a type that nobody has, with a length and a size, and without a reader of its content."""
    roaring = RedisType(
        ROARING,
        "container",
        "containers",
        memory_usage=MemoryUsage.SAMPLED,
        colour="stream",
        redis_cli=(("R.GETINTARRAY",),),
    )
    monkeypatch.setitem(TYPES, ROARING, roaring)
    monkeypatch.setitem(QUERIES, ROARING, TypeQueries(length=guard.hlen))
    yield


@pytest.mark.usefixtures("declared")
async def test_a_declared_type_has_a_length_a_size_a_colour_and_a_command(tmp_path: Path) -> None:
    async with ModuleServer(KEYS, ROARING) as server:
        session = BrowsingSession(BrowseOptions(server.target, pace="full"), state_folder=tmp_path)
        await session.start()
        try:
            rows = await session.keys.row_facts(KEYS)
            facts = await session.keys.key_facts(KEYS[0])
            shown = await key_preview(session.connection, facts)
        finally:
            await session.close()
    assert [row.memory_bytes for row in rows] == [7, 7]
    assert (facts.length, facts.memory_bytes) == (MODULE_LENGTH, 7)
    assert (shown.kind, shown.total) == (PreviewKind.DESCRIPTION, MODULE_LENGTH)
    assert isinstance(shown.refusal, Unknown)
    assert shown.refusal.reason is Reason.UNSUPPORTED
    head = [span for line in fact_lines(facts, 100) for span in line]
    assert any("3 containers" in span.text for span in head)
    assert any(span.text.strip() == "roaring" and span.role is Role.STREAM for span in head)
    assert copied_commands(Target(), facts)[0].line.endswith("R.GETINTARRAY bitmap:1")


@pytest.mark.usefixtures("declared")
async def test_a_report_counts_a_declared_type_in_its_unit() -> None:
    async with ModuleServer(KEYS, ROARING) as server, connected(server.target) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        await analysis.run()
    (of_type,) = known(analysis.report).summary.types
    assert (of_type.name, of_type.unit) == (ROARING, "containers")
    assert known(of_type.length).max == MODULE_LENGTH
    assert {line[2] for line in server.sent(b"MEMORY", b"USAGE")} >= set(KEYS)


async def test_a_type_that_is_not_declared_has_elements_and_no_colour_and_nothing_of_it_is_measured() -> None:
    assert type_of(ROARING) == type_of(None)
    assert type_of(ROARING).units == "elements"
    assert type_role(ROARING) is type_role(None) is Role.OTHER
    async with ModuleServer(KEYS, ROARING) as server, connected(server.target) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        await analysis.run()
    (of_type,) = known(analysis.report).summary.types
    assert (of_type.unit, of_type.length) == ("elements", None)
    assert {line[2] for line in server.sent(b"MEMORY", b"USAGE")} <= {PROBE_KEY}


def test_every_declared_type_has_its_queries_and_a_colour_that_themes_know() -> None:
    assert set(TYPES) == set(QUERIES)
    assert {f"type-{declared.colour}" for declared in TYPES.values()} <= set(Role)
    assert QUERIES[b"stream"].preview is read_stream
