"""What rtui finds on a server that a test drives into a state: samples by a clock of the test, findings, and panels."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from rtui.analysis.findings.finding import Finding
from rtui.analysis.findings.server import ServerHealth, server_health
from rtui.analysis.health.panel import Line, Panel, State
from rtui.analysis.health.sample import Sample
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import ParameterValue, RuleLevels
from rtui.server.analysis.run import AnalysisRun
from rtui.server.health.probe import HealthProbe
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from tests.server.targets import connected, target_of
from tests.servers import Server

Given = Mapping[str, Mapping[str, ParameterValue]]
"""Parameters of rules, by rule, in place of the usual ones."""

UNHURRIED: Final[Given] = {"command-slow": {"longest": 10_000.0}}
"""A machine that does much else holds commands up for many milliseconds, which the server tells as their time."""


class Looking:
    """Somebody who looks at a server: samples are taken when a test says so, as if `every_s` had passed."""

    def __init__(self, probe: HealthProbe, given: Given, every_s: float) -> None:
        self.samples: list[Sample] = []
        self.report: Report | None = None
        self._probe, self._levels, self._every_s = probe, RuleLevels(parameters=given), every_s

    async def look(self, *, after_s: float | None = None) -> Sample:
        clock = self._probe._clock
        assert isinstance(clock, Clock)
        clock.now_s += self._every_s if after_s is None else after_s
        self._probe.ask_everything()
        self.samples.append(await self._probe.sample())
        return self.samples[-1]

    async def analyse(self) -> Report:
        """Have a report of the keys, in which what belongs to them is looked up."""
        run = AnalysisRun(self._probe.connection, AnalysisOptions(pace=Pace.FULL))
        await run.run()
        self.report = run.report
        assert self.report is not None
        return self.report

    @property
    def now_s(self) -> float:
        return self._probe._clock()

    @property
    def view(self) -> HealthView:
        return HealthView(tuple(self.samples), self.report, levels=self._levels)

    @property
    def health(self) -> ServerHealth:
        return server_health(self.view)

    @property
    def broken(self) -> list[str]:
        """The rules that something was found by, the worst first."""
        return [one.rule for one in self.health.found.findings]

    def found(self, rule: str) -> list[Finding]:
        """The findings of a rule, which name a command to look further."""
        found = [one for one in self.health.found.findings if one.rule == rule]
        assert all(one.command.startswith("redis-cli ") for one in found)
        return found

    def finding(self, rule: str) -> Finding:
        (found,) = self.found(rule)
        return found

    def panel(self, panel_id: str) -> Panel:
        (found,) = [one for one in self.health.panels if one.id == panel_id]
        return found

    def line(self, panel_id: str, line_id: str) -> Line:
        (found,) = [one for one in self.panel(panel_id).lines if one.id == line_id]
        return found

    def wrong(self, panel_id: str, line_id: str, state: State = State.WARN) -> Line:
        """A figure that its rule says is wrong: it tells so, what to do, and where the threshold comes from."""
        found = self.line(panel_id, line_id)
        assert found.state is state, (found.state, found.value, self.broken)
        assert found.said.startswith(next(one.title for one in self.health.found.findings if one.rule == found.rule))
        assert found.remedy
        assert found.source
        return found

    def table(self, panel_id: str, table_id: str) -> Table:
        (found,) = [one for one in self.panel(panel_id).tables if one.id == table_id]
        return found


def number(line: Line) -> float:
    """The value of a figure that is known."""
    assert isinstance(line.value, int | float), line
    return line.value


class Clock:
    """Seconds that go on when a test says so, from now on."""

    def __init__(self) -> None:
        self.now_s = time.time()

    def __call__(self) -> float:
        return self.now_s


@asynccontextmanager
async def looking(
    server: Server, given: Given | None = None, *, every_s: float = 30.0, user: Mapping[str, Any] | None = None
) -> AsyncIterator[Looking]:
    """Look at a server, with these parameters of rules in place of the usual ones; none is slow unless they say so."""
    clock = Clock()
    async with connected(target_of(server, **(user or {}))) as connection:
        probe = HealthProbe(connection, SafeText("server"), clock=clock, monotonic=clock)
        yield Looking(probe, {**UNHURRIED, **(given or {})}, every_s)


@contextlib.contextmanager
def raw_clients(server: Server, count: int, sends: bytes = b"PING\r\n") -> Iterator[list[socket.socket]]:
    """So many connections without a library, which have sent something and read nothing."""
    sockets = []
    for _ in range(count):
        one = socket.socket(socket.AF_UNIX)
        one.connect(server.socket)
        with contextlib.suppress(BrokenPipeError):  # it was refused already
            one.sendall(sends)
        sockets.append(one)
    try:
        yield sockets
    finally:
        for one in sockets:
            one.close()
