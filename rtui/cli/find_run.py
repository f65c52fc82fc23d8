"""Runs the search of `rtui find`: its cost ahead, its progress bar, Ctrl-C, its output.

Found keys are written as they come: lines of text, a JSON object, CSV, or bare names with NULs. Text has a line for
each key: its facts in columns, then its name, made safe to show. In JSON and CSV a name is text, in JSON null where it
is no UTF-8; beside it `key_quoted` has every byte, as `redis-cli --quoted-input` reads it. In CSV the last row is of no
key, and says whether these are all keys.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from signal import Signals
from typing import Any, Final

import click

from rtui.analysis import humanize
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.formats.csv_and_json import csv_text, guarded, utf8_text
from rtui.analysis.humanize import Mark
from rtui.analysis.query.plan import LARGE
from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import CoverageKind, KeyRecord
from rtui.cli.connection import in_shell
from rtui.cli.output import writes_unicode
from rtui.cli.run import ConnectionWatch, Interrupts, ProgressBar, connected, running
from rtui.keyspace.text.display import Display, SafeText, display, quoted
from rtui.server.options import FindOptions
from rtui.server.scan.progress import ScanState
from rtui.server.search.run import LIMIT_REACHED, KeySearch
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target

WRITE_S: Final = 0.1
"""How often found keys are written."""


FORECAST_S: Final = 3.0
"""The time before the first forecast: by then the speed is known, which depends on the server's load."""

START_S: Final = 1.0
"""The time in which a search is slower: COUNT grows while the cost of a key is learnt."""

OFF: Final = 1.25
"""A forecast that is off by more than this factor is renewed."""


class Forecast:
    """When a search will be over by its speed so far: said once it is known, and again where it turns out otherwise."""

    def __init__(self, run: KeySearch, now_s: float) -> None:
        """`now_s` and other times are seconds of one monotonic clock; the search begins now."""
        self._run, self._began_s = run, now_s
        self._due_s = now_s + FORECAST_S
        self._said_s: float | None = None
        self._start: tuple[float, float] | None = None
        """The time of the first measurement, and the fraction done then."""

    def due(self, now_s: float) -> SafeText | None:
        """Return the sentence that is due; None where nothing new is known, or it is over soon."""
        progress, options, matches = self._run.progress, self._run.options, self._run.matches
        elapsed_s, fraction = now_s - self._began_s, progress.fraction
        if elapsed_s < START_S or fraction is None or progress.state is not ScanState.RUNNING:
            return None
        if self._start is None:
            self._start = now_s, fraction
        start_s, done = self._start
        if now_s < self._due_s or fraction <= done:
            return None
        self._due_s = now_s + elapsed_s
        whole_s = elapsed_s + (1 - fraction) * (now_s - start_s) / (fraction - done)
        if options.stops_at_limit and matches.listed:
            whole_s = min(whole_s, elapsed_s * options.limit / matches.listed)
        if options.budget_s is not None:
            whole_s = min(whole_s, options.budget_s)
        said_s, is_soon = self._said_s, whole_s - elapsed_s < START_S
        if is_soon or (said_s is not None and max(whole_s / said_s, said_s / whole_s) < OFF):
            return None
        self._said_s = whole_s
        pace = self._run.control.pace.value
        return SafeText(f"Takes about {humanize.seconds(round(whole_s))} at {pace} pace, by its speed so far.")


@dataclass(frozen=True, slots=True)
class Result:
    """How a search ended."""

    notes: tuple[SafeText, ...] = ()
    """The notes on it, sentences."""
    failure: RtuiError | None = None
    """Why it could not go on."""
    ended_by: Signals | None = None
    """The signal by which the user ended it."""


def find(
    target: Target, query: Query, options: FindOptions, output: FoundKeys, *, log: CommandLog | None = None
) -> Result:
    """Connect, search, write and disconnect; what is sent is kept in `log`.

    Raises ReaderGone, OutputError, and as `connected`.
    """
    return asyncio.run(_find(target, query, options, output, log))


async def _find(
    target: Target, query: Query, options: FindOptions, output: FoundKeys, log: CommandLog | None
) -> Result:
    async with connected(target, log) as (deployment, interrupts):
        deployment.require_replicas()
        run = KeySearch(deployment, query, options)
        await run.preparation.prepare()
        _say_cost(run)
        interrupts.stop = partial(run.control.stop, SafeText("it was interrupted"))
        watch = ConnectionWatch(deployment.home, run.control.stop)
        await _write_while_running(run, output, interrupts)
    notes = (*run.notes, *(in_shell(one) for one in query.doubts if not run.count), summary(run))
    output.end(run.count, is_exact=run.mark is Mark.EXACT, notes=(*map(in_shell, query.hints), *notes))
    failure = run.failure
    if failure is None and watch.failure is not None:
        failure = RtuiError("The search broke off", watch.failure)
    return Result(notes, failure, interrupts.sent)


async def _write_while_running(run: KeySearch, output: FoundKeys, interrupts: Interrupts) -> None:
    """Run the search and write its keys now and then; sorted ones at the end."""
    loop = asyncio.get_running_loop()
    forecast = Forecast(run, loop.time())
    async with running(run.run(), "rtui search") as task:
        with ProgressBar() as bar:
            bar.is_shown = bar.is_shown and not output.is_terminal
            while not task.done():
                if bar.is_shown:
                    bar.show(run.progress, run.cost, run.control.pace, is_ending=interrupts.sent is not None)
                if run.options.order is None:
                    output.write(run.matches.drain())
                if (sentence := forecast.due(loop.time())) is not None:
                    bar.say(f"rtui: {sentence}")
                await asyncio.wait([task], timeout=WRITE_S)
    output.write(run.matches.drain())


def _say_cost(run: KeySearch) -> None:
    """Print on standard error the questions of a search of a large keyspace, and the bill where commands are billed."""
    plan, ahead = run.preparation.plan, run.preparation.ahead
    if plan is not None and ahead is not None and (run.preparation.size or 0) >= LARGE:
        sentence = plan.sentence(replace(ahead, seconds=None))
        click.echo(f"rtui: {sentence[:1].upper()}{sentence[1:]}.", err=True)
    if run.preparation.bill is not None:
        click.echo(f"rtui: {run.preparation.bill}.", err=True)


def summary(run: KeySearch) -> SafeText:
    """Return how many keys there are, and why they may be not all: `≥ 1,204 keys; the search is incomplete, …`."""
    count, listed, limit = run.count, run.matches.listed, run.options.limit
    progress, why = run.progress, run.control.stop_reason
    if progress.state is ScanState.STOPPED and why == LIMIT_REACHED:
        more = "there are more" if count > listed else "there may be more"
        return SafeText(f"{humanize.keys(listed)} shown; {more} (--limit {limit}).")
    text = f"{humanize.keys(count, run.mark)}"
    if count > limit > 0:
        text += f"; {'' if run.options.order is None else 'the first '}{limit:,} of them are shown (--limit {limit})"
    if progress.state in {ScanState.STOPPED, ScanState.FAILED}:
        text += "; the search is incomplete" + ("" if why is None else f", since {why}")
    return SafeText(f"{text}.")


LONGEST_NAME: Final = 1 << 20
"""Longer names are shortened in text."""

_WIDTHS: Final = {
    Fact.TYPE: 9,
    Fact.TTL: 8,
    Fact.IDLE: 8,
    Fact.FREQUENCY: 4,
    Fact.ENCODING: 10,
    Fact.MEMORY: 9,
    Fact.LENGTH: 11,
}
"""Of the columns of text; a longer value pushes the name to the right."""

_LEFT: Final = frozenset({Fact.TYPE, Fact.ENCODING})

FIELD_NAMES: Final = {**{fact: fact.field for fact in Fact}, Fact.TYPE: "type"}
"""Names of facts in JSON and CSV, with their units."""

_COVERAGE: Final = ("coverage", "notes")
"""The last columns of CSV: empty for keys, filled in the row after them."""


class FoundKeys:
    """The output of one search."""

    def __init__(
        self,
        send: Callable[[str | bytes], object],
        form: str,
        query: Query,
        facts: Sequence[Fact],
        *,
        counts_only: bool = False,
        is_terminal: bool = False,
    ) -> None:
        """`send` writes; `form` is text, json, csv or raw; `facts` are the columns besides the name."""
        self._form, self._query, self._facts, self._counts_only = form, query, facts, counts_only
        self.is_terminal = is_terminal
        self._send = send
        self._display = Display(ascii_only=not writes_unicode())
        self._is_begun = False
        self._written = 0

    def write(self, records: Sequence[KeyRecord]) -> None:
        """Write some keys; raises ReaderGone and OutputError."""
        if self._counts_only:
            return
        self._begin()
        match self._form:
            case "raw":
                text: str | bytes = b"".join(one.key + b"\0" for one in records)
            case "json":
                commas = (",\n" if self._written or at else "\n" for at in range(len(records)))
                text = "".join(f"{comma}    {self._json(one)}" for comma, one in zip(commas, records, strict=True))
            case "csv":
                text = csv_text([self._csv_row(one) for one in records])
            case _:
                text = "".join(f"{self._line(one)}\n" for one in records)
        self._written += len(records)
        self._send(text)

    def end(self, count: int, *, is_exact: bool, notes: Sequence[SafeText]) -> None:
        """Write the end of the output; unless `is_exact`, `count` is a lower bound."""
        is_whole = is_exact and (self._counts_only or self._written == count)
        coverage = [(CoverageKind.EXACT if is_whole else CoverageKind.PARTIAL).value, " ".join(notes)]
        if self._counts_only and self._form != "json":
            self._send(f"{count}\n" if self._form != "csv" else csv_text([["count", *_COVERAGE], [count, *coverage]]))
            return
        self._begin()
        if self._form == "csv":
            self._send(csv_text([["" for _ in ("key", "key_quoted", *self._facts)] + coverage]))
        elif self._form == "json":
            counts = {"listed": self._written, "count": count if is_exact else None, "at_least": count}
            end = {**counts, "complete": is_exact, "notes": list(notes)}
            closing = "" if self._counts_only else "\n  ],\n"
            self._send(f"{closing}  {json.dumps(end)[1:-1]}\n}}\n")

    def _begin(self) -> None:
        if self._is_begun:
            return
        self._is_begun = True
        if self._form == "json":
            self._send(f'{{\n  "format": "rtui find", "query": {json.dumps(str(self._query))},\n')
            if not self._counts_only:
                self._send('  "keys": [')
        elif self._form == "csv":
            self._send(csv_text([["key", "key_quoted", *(FIELD_NAMES[fact] for fact in self._facts), *_COVERAGE]]))
        elif self._form == "text" and self.is_terminal and self._facts:
            self._send(f"{self._columns(lambda fact: SafeText(fact.value))}{Fact.NAME.value}\n")

    def _line(self, record: KeyRecord) -> str:
        def cell(fact: Fact) -> SafeText:
            return fact_text(fact, getattr(record, fact.field), self._display)

        return f"{self._columns(cell)}{self._display.name(record.key, limit=LONGEST_NAME)}"

    def _columns(self, cell: Callable[[Fact], SafeText]) -> str:
        """Return the cells of a line in columns, each with the space behind it."""
        texts = []
        for fact in self._facts:
            text, width = cell(fact), _WIDTHS[fact]
            texts.append(f"{text:<{width}}  " if fact in _LEFT else f"{text:>{width}}  ")
        return "".join(texts)

    def _json(self, record: KeyRecord) -> str:
        values = {FIELD_NAMES[fact]: _plain(getattr(record, fact.field)) for fact in self._facts}
        return json.dumps({"key": utf8_text(record.key), "key_quoted": quoted(record.key), **values})

    def _csv_row(self, record: KeyRecord) -> list[Any]:
        values = [_plain(getattr(record, fact.field)) for fact in self._facts]
        texts = ["" if value is None else guarded(value) if isinstance(value, str) else value for value in values]
        return [guarded(display(record.key, limit=LONGEST_NAME)), quoted(record.key), *texts, "", ""]


def _plain(value: bytes | int | None) -> str | int | None:
    return display(value) if isinstance(value, bytes) else value


def fact_text(fact: Fact, value: bytes | int | None, shown: Display) -> SafeText:
    """Return a fact as people read it; a dash where it is not known."""
    if value is None:
        return humanize.NOTHING if not shown.ascii_only else SafeText("-")
    if isinstance(value, bytes):
        return shown.name(value)
    match fact:
        case Fact.TTL:
            return SafeText("no TTL") if value == NO_EXPIRY else humanize.duration(value)
        case Fact.IDLE:
            return humanize.seconds(value)
        case Fact.MEMORY:
            return humanize.size(value)
    return humanize.count(value)
