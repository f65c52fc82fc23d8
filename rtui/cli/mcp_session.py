"""The session of `rtui mcp`: answers the tools of `mcp_tools` about one server, in pages, within budgets.

Calls run one after the other. A long one, a search or an analysis, is paused when the budget of its call is used up,
and the next call of it goes on where it stands: so nothing is sent between two calls but a PING now and then.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from rtui.analysis import humanize
from rtui.analysis.facts import Unknown
from rtui.analysis.findings.contents import findings, with_registry
from rtui.analysis.findings.finding import Found
from rtui.analysis.formats.csv_and_json import field_name
from rtui.analysis.formats.findings import finding_record, unjudged_records
from rtui.analysis.formats.health import health_document
from rtui.analysis.formats.result_rows import FIELD_NAMES, StatementRows, json_values
from rtui.analysis.health.sample import Sample, SampleHistory
from rtui.analysis.health.view import HealthView
from rtui.analysis.humanize import Mark
from rtui.analysis.query.hints import read_with_hints
from rtui.analysis.query.query import EVERYTHING, MatchOrder
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import CoverageKind, KeyRecord, Report
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.slots import common_tag
from rtui.analysis.report.tables.table import Table
from rtui.cli import mcp_tools as api
from rtui.cli.mcp_tools import RefusedError, cell_of_value, fact_value, figure_value, safe
from rtui.cli.slot import Owner, owners_of, slot_document
from rtui.keyspace.slots import explain, key_slot
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import EscapeSyntaxError, display, display_text, quoted, unescape
from rtui.keyspace.text.segments import Separators
from rtui.registry.registry import Registry
from rtui.server import wall_clock
from rtui.server.analysis.run import ESTIMATE_KEYS, AnalysisRun
from rtui.server.analysis.statements import StatementProcess, answer, read, statement_process
from rtui.server.deployment.nodes import Deployment
from rtui.server.facts.keys import KeyQuestions
from rtui.server.facts.preview.page import Preview
from rtui.server.files import rows_folder
from rtui.server.health.watch import LEAST_EVERY_S, HealthWatch
from rtui.server.options import KEPT_ROWS, AnalysisOptions, FindOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost
from rtui.server.scan.run_control import RunControl
from rtui.server.search.run import KeySearch
from rtui.server.search.search import size_of
from rtui.server.wire.connection import Lost
from rtui.server.wire.supervised_tasks import end_task
from rtui.table.kept_rows import PassRows

WINDOW_EXACT: Final = 4096
"""A part of a string that is no longer has its bytes beside its text."""

LONG_NAMES_BYTES: Final = 64 << 20
"""The memory for long names that have been listed."""

MOST_KEPT: Final = 32
"""Answers that can be paged through; the one that was not asked for longest makes room."""

FOUND_KEPT: Final = 100_000
"""Matches of one search that can be paged through; all are counted."""

CALL_S: Final = 40.0
"""The time after which a call returns what it has: clients give up after a minute."""

POLL_S: Final = 0.005
"""How often a run is compared with its budget."""

LOST_S: Final = 5.0
"""How long a call waits for a lost connection."""

SETTLE_S: Final = 3.0
"""How long a paused analysis is given to add up what it has read."""


@dataclass(slots=True)
class Kept:
    """An answer that is paged through."""

    tool: str
    items: Callable[[], Sequence[Any]]
    """All items so far; later ones come behind them."""
    record: Callable[[Any], dict[str, Any]]
    """Makes an item."""
    data: Callable[[list[dict[str, Any]]], Struct]
    """Makes the data of an answer with these items."""
    notes: Callable[[], Sequence[str]] = tuple
    more: Callable[[], Awaitable[object]] | None = None
    """Gets more items; None where these are all."""
    is_over: Callable[[], bool] = lambda: True
    task: asyncio.Task[None] | None = None
    """What goes on with it; ends when the answer makes room."""


@dataclass(slots=True)
class _Names:
    """All names of the keyspace, as far as they are read."""

    search: KeySearch
    store: NamespaceStore
    task: asyncio.Task[None]
    as_of_s: float = field(default_factory=wall_clock.now_s)


@dataclass(slots=True)
class _Analysis:
    """The latest analysis."""

    run: AnalysisRun | None
    task: asyncio.Task[None] | None
    report: Report | None = None
    """Of a file of keys."""
    rows: PassRows | None = None
    is_estimate: bool = False
    found: tuple[Report, Found] | None = None
    """The findings of a report."""


class Tools:
    """Answers calls about one server, or a file of keys, within a running event loop, until it is closed."""

    def __init__(
        self,
        deployment: Deployment | None,
        limits: api.Limits,
        *,
        separators: tuple[bytes, ...] = (b":",),
        pace: Pace = Pace.GENTLE,
        registry: Registry | None = None,
        file_report: tuple[Report, PassRows | None] | None = None,
    ) -> None:
        """`deployment` is open; without one there is a `file_report`."""
        self.budget = api.Budget(limits)
        self._deployment_or_none = deployment
        self._separators, self._pace, self._registry = separators, pace, registry
        self._turn = asyncio.Lock()
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._number = 0
        self._long_names: OrderedDict[str, bytes] = OrderedDict()
        self._long_bytes = 0
        self._names: _Names | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._analysis: _Analysis | None = None
        self._resources = AsyncExitStack()
        self._statements: StatementProcess | None = None
        self._call_until_s = 0.0
        self._counts_writes = True
        if file_report is not None:
            self._analysis = _Analysis(None, None, *file_report)
        if deployment is not None:
            self._keys = KeyQuestions(deployment, wall_clock.now_s)
            self._keys.forget_if_new()
            deployment.home.on_change.append(self._keys.forget_if_new)
            deployment.log.on_replies.append(self._count_write)

    async def close(self) -> None:
        for task in self._tasks:
            await end_task(task)
        await self._resources.aclose()

    @property
    def _deployment(self) -> Deployment:
        if self._deployment_or_none is None:
            raise RefusedError("The target is a file of keys.", f"It answers {', '.join(sorted(api.OFFLINE))}.")
        return self._deployment_or_none

    def _count_write(self, commands: Sequence[object], _replies: Sequence[object], seconds: float) -> None:
        """Count the time of single commands: what a write takes beyond the way there and back, at most."""
        if self._counts_writes and self._deployment_or_none is not None:
            way_s = self._deployment_or_none.home.round_trip_s
            self.budget.take(max(1e-5 * len(commands), seconds - way_s), 0)

    async def call(self, name: str, given: Mapping[str, Any]) -> api.Answer[Any]:
        """Answer a call; raises an RtuiError."""
        tool = api.TOOLS.get(name)
        if tool is None:
            raise RefusedError(f"There is no tool {display_text(name, limit=64)}.", f"There is {', '.join(api.TOOLS)}.")
        try:
            arguments = msgspec.convert(dict(given), tool.arguments)
        except msgspec.ValidationError as error:
            raise RefusedError(f"Wrong arguments: {display_text(str(error), limit=300)}.") from None
        async with self._turn:
            self.budget.begin()
            self._call_until_s = time.monotonic() + CALL_S
            if name not in api.OFFLINE:
                await self._online()
            cursor = getattr(arguments, "cursor", None)
            if cursor is not None:
                return await self._page(name, cursor, getattr(arguments, "limit", api.MOST_ITEMS))
            made: Kept | Struct = await getattr(self, f"_{name}")(arguments)
            if isinstance(made, Kept):
                self._number += 1
                self._kept[f"c{self._number}"] = made
                while len(self._kept) > MOST_KEPT:
                    _, left = self._kept.popitem(last=False)
                    if left.task is not None:
                        left.task.cancel()
                return await self._page(name, f"c{self._number}:0", getattr(arguments, "limit", api.MOST_ITEMS))
            return self._answer(made)

    def _answer(
        self, data: Struct, notes: Sequence[str] = (), left: int | None = 0, cursor: str | None = None
    ) -> api.Answer[Any]:
        shown = safe(msgspec.to_builtins(data))
        return api.Answer(api.NOTICE, shown, [safe(one) for one in notes], left, cursor, self.budget.document())

    async def _online(self) -> None:
        """Wait for a lost connection; raises RefusedError where it does not come back."""
        home = self._deployment.home
        if home.is_online:
            return
        home.retry_now()
        try:
            async with asyncio.timeout(LOST_S):
                await home.online()
        except TimeoutError:
            raise self._lost() from None

    def _lost(self) -> RefusedError:
        state = self._deployment.home.state
        reason = state.reason.happened if isinstance(state, Lost) and state.reason is not None else "No answer comes."
        return RefusedError(f"The connection to the server is lost. {reason}", "The next call tries again.")

    async def _page(self, tool: str, cursor: str, limit: int) -> api.Answer[Any]:
        """Return the items from a cursor on, as many as one answer holds."""
        name, _, offset = cursor.partition(":")
        kept = self._kept.get(name)
        if kept is None or kept.tool != tool or not (offset.isascii() and offset.isdecimal() and len(offset) < 16):
            remedy = f"The last {MOST_KEPT} answers can be paged through; leave the cursor out to begin anew."
            raise RefusedError(f"There is no such cursor of {tool}.", remedy)
        self._kept.move_to_end(name)
        start = int(offset)
        if kept.more is not None and start + limit > len(kept.items()):
            await kept.more()
        items, size, found = kept.items(), 0, list[dict[str, Any]]()
        for item in islice(items, start, start + limit):
            found.append(safe(kept.record(item)))
            size += len(msgspec.json.encode(found[-1]))
            if size > api.PAGE_BYTES:
                break
        after = start + len(found)
        is_over, left = kept.is_over(), max(0, len(items) - after)
        following = None if is_over and not left else f"{name}:{after}"
        return self._answer(kept.data(found), kept.notes(), left if is_over else None, following)

    async def _work(self, task: asyncio.Task[None], control: RunControl, spent: Callable[[], tuple[Cost, int]]) -> str:
        """Let a run go on until it is over, or the budget of this call is used up; return why it is paused."""
        lost_since: float | None = None
        (cost, keys), self._counts_writes, why = spent(), False, ""
        control.resume()
        try:
            while not task.done() and not why:
                await asyncio.wait([task], timeout=POLL_S)
                (now, now_keys), now_s = spent(), time.monotonic()
                self.budget.take((now.server_us - cost.server_us) / 1e6, now_keys - keys)
                cost, keys = now, now_keys
                home = self._deployment.home
                lost_since = None if home.is_online else lost_since or now_s
                if lost_since is not None and now_s - lost_since > LOST_S:
                    raise self._lost()
                if (used_up := self.budget.used_up) is not None:
                    why = f"the budget is used up: {used_up}"
                elif now_s > self._call_until_s:
                    why = f"a call returns after {CALL_S:g} s"
        finally:
            self._counts_writes = True
            if not task.done():
                control.pause()
        return why

    # names

    def _given(self, text: str) -> bytes:
        """Return the bytes of a name that a call gives; raises RefusedError."""
        if (known := self._long_names.get(text)) is not None:
            return known
        try:
            raw = text.encode()
            return unescape(raw) if len(raw) > 1 and raw.startswith(b'"') and raw.endswith(b'"') else raw
        except (EscapeSyntaxError, UnicodeEncodeError) as error:
            raise RefusedError(
                f"The name can't be read: {display_text(str(error), limit=200)}.", 'Give key_quoted, as in "a\\x00b".'
            ) from None

    def _exact(self, name: bytes) -> str:
        r"""Return the bytes of a name as `redis-cli --quoted-input` reads them; of a long one a stand-in for them."""
        if len(name) <= api.EXACT_BYTES:
            return quoted(name)
        stand_in = f"sha256:{hashlib.sha256(name).hexdigest()}"
        if stand_in not in self._long_names:
            self._long_names[stand_in] = name
            self._long_bytes += len(name)
        self._long_names.move_to_end(stand_in)
        while self._long_bytes > LONG_NAMES_BYTES and len(self._long_names) > 1:
            self._long_bytes -= len(self._long_names.popitem(last=False)[1])
        return stand_in

    def _name(self, name: bytes, field: str = "key") -> dict[str, Any]:
        return {field: display(name), f"{field}_quoted": self._exact(name)}

    # tools

    async def _overview(self, _: api.NoArguments) -> Struct:
        deployment = self._deployment
        server = await deployment.home.refresh()
        nodes = await deployment.scanned(only_primaries=True)
        sizes = [await size_of(node.connection) for node in nodes]
        is_known = None not in sizes
        rights = self._keys.home.capabilities
        await rights.probe(deployment.home)
        return api.OverviewData(
            server=deployment.home.target.label,
            product=server.full_name,
            version=server.version_text,
            role=server.role,
            db=deployment.home.target.db,
            keys=sum(size for size in sizes if size is not None) if is_known else None,
            keys_unknown=None if is_known else "DBSIZE is refused, or a node does not answer",
            used_memory_bytes=server.used_memory_bytes,
            maxmemory_bytes=server.maxmemory_bytes,
            maxmemory_policy=server.maxmemory_policy,
            ops_per_s=server.ops_per_s,
            uptime_s=server.uptime_s,
            nodes=[
                {"node": node.label, "slots": None if node.slots is None else list(map(list, node.slots)), "keys": size}
                for node, size in zip(nodes, sizes, strict=True)
                if deployment.is_cluster
            ],
            refused=[f"{name}: {one.reason}" for name, one in rights.refused.items()],
        )

    async def _list_keys(self, asked: api.ListArguments) -> Kept:
        if self._names is None or asked.refresh:
            if self._names is not None:
                await end_task(self._names.task)
            options = FindOptions(self._separators, limit=sys.maxsize, pace=self._pace)
            search = KeySearch(self._deployment, EVERYTHING, options)
            store = NamespaceStore(Separators(self._separators))
            self._names = _Names(search, store, self._started(search.run()))
        names, prefix = self._names, self._given(asked.namespace)
        why = await self._more_names(names)
        items: list[tuple[bytes, int | None]] = []
        count = 0
        if (node := await _listed(names.store, names.store.swapped([prefix])[0])) is not None:
            count, path = node.count, node.path()
            of = node.labels
            found = [(label, node.count_at(at)) for at, label in enumerate(of)]
            items += [(path + label, keys) for label, keys in sorted(found, key=lambda one: (-one[1], one[0]))]
            items += (
                [(path + name, None) for name in sorted(node.keys[at] for at in range(node.key_total))]
                if (node.keys is not None)
                else []
            )

        def record(item: tuple[bytes, int | None]) -> dict[str, Any]:
            name, keys = names.store.swapped([item[0]])[0], item[1]
            return self._name(name) if keys is None else {**self._name(name, "namespace"), "keys": keys}

        def data(found: list[dict[str, Any]]) -> Struct:
            complete = names.search.mark is Mark.EXACT and names.task.done()
            return api.ListData(**self._name(prefix, "namespace"), keys=count, complete=complete,
                            as_of_epoch_s=names.as_of_s, items=found)  # fmt: skip

        notes = [*names.search.notes, *([f"Not all names are read: {why}. Call it again to go on."] if why else [])]
        return Kept("list_keys", lambda: items, record, data, lambda: notes)

    async def _more_names(self, names: _Names) -> str:
        """Read more names, as far as the budget goes; return why not all."""
        if names.task.done():
            return ""
        search, store = names.search, names.store

        def spent() -> tuple[Cost, int]:
            store.add([one.key for one in search.matches.drain()])
            return search.cost, search.progress.keys

        why = await self._work(names.task, search.control, spent)
        spent()
        if search.failure is not None:
            self._names = None
            raise search.failure
        store.repeats_possible = True
        for _ in store.settle():
            await asyncio.sleep(0)
        names.as_of_s = wall_clock.now_s()
        return why

    def _started(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work, name="rtui mcp")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _find_keys(self, asked: api.FindArguments) -> Kept:
        reading = read_with_hints(asked.query)
        if reading.problems:
            raise RefusedError(" ".join(one.sentence for one in reading.problems), "rtui help terms lists the terms.")
        query = reading.query
        order = None
        if asked.sort is not None:
            order = MatchOrder(Fact(asked.sort), is_descending=asked.descending)
        columns = list(dict.fromkeys([*query.facts, *map(Fact, asked.facts), *([] if order is None else [order.fact])]))
        columns = [one for one in columns if one not in (Fact.NAME, Fact.VALUE)]
        most = FOUND_KEPT if order is None else 1_000
        options = FindOptions(self._separators, tuple(columns), most, order, pace=self._pace)
        search = KeySearch(self._deployment, query, options)
        await search.preparation.prepare()
        task, stopped = self._started(search.run()), [""]

        async def more() -> None:
            if not task.done():
                stopped[0] = await self._work(task, search.control, lambda: (search.cost, search.progress.keys))
            if search.failure is not None:
                raise search.failure

        def record(one: KeyRecord) -> dict[str, Any]:
            facts = {FIELD_NAMES[fact]: fact_value(getattr(one, fact.field)) for fact in columns}
            return {**self._name(one.key), **facts, "slot": key_slot(one.key)}

        def notes() -> list[str]:
            said: list[str] = [*(hint.sentence for hint in query.hints), *search.notes]
            if stopped[0]:
                said.append(f"The search is not over: {stopped[0]}. Its cursor goes on.")
            if search.count > most:
                said.append(f"Only {most:,} of the keys can be listed; narrow the query for others.")
            return said

        def data(found: list[dict[str, Any]]) -> Struct:
            complete = task.done() and search.mark is Mark.EXACT
            return api.FindData(display_text(str(query), limit=1000), search.count, complete, found)

        return Kept("find_keys", lambda: search.matches.kept, record, data, notes, more, task.done, task)

    async def _look_at_key(self, asked: api.LookArguments) -> Kept:
        key = self._given(asked.key)
        facts = await self._keys.key_facts(key)
        pages: list[Preview] = []
        rows: list[dict[str, Any]] = []
        decoded: dict[str, Any] = {}

        async def more() -> None:
            following = pages[-1].next_page if pages else None
            if pages and following is None:
                return
            page = await self._keys.preview(facts, following)
            self.budget.take(0, 0 if pages else 1)
            pages.append(page)
            titles = [column.title for column in page.columns]
            rows.extend(dict(zip(titles, map(cell_of_value, row), strict=True)) for row in page.rows)
            if page.window is not None:
                rows.append(
                    {
                        "offset": page.window.offset_bytes,
                        "value": cell_of_value(page.window.data, api.MOST_TEXT, WINDOW_EXACT),
                    }
                )
                if len(pages) == 1:
                    decoded.update(await asyncio.to_thread(_decoded, page))

        def data(found: list[dict[str, Any]]) -> Struct:
            first, known = pages[0], {
                "type": facts.type, "encoding": facts.encoding, "length": facts.length,
                "memory_bytes": facts.memory_bytes, "ttl_ms": facts.ttl_ms, "idle_s": facts.idle_s,
                "frequency": facts.frequency,
            }  # fmt: skip
            told: dict[str, Any] = {name: fact_value(value) for name, value in known.items()}
            told |= {"slot": key_slot(key), "asked_at_epoch_s": facts.asked_at_s}
            told |= {"node": facts.node, "node_role": facts.node_role} if facts.node else {}
            value: dict[str, Any] = {"kind": first.kind.value, "total": fact_value(first.total)}
            value |= {"refusal": fact_value(first.refusal)} if first.refusal is not None else {}
            value |= {"summary": {name: cell_of_value(one) for name, one in first.summary}} if first.summary else {}
            value |= {"decoded": decoded} if decoded else {}
            exists = None if isinstance(facts.type, Unknown) and not facts.is_gone else not facts.is_gone
            return api.LookData(**self._name(key), exists=exists, facts=told, value=value, items=found)

        def notes() -> list[str]:
            touched = ["Reading counted as an access to the key."] if facts.touched or pages[0].touched else []
            offers = [one.said for one in pages[-1].offers]
            return [*facts.notes, *touched, *(note for page in pages for note in page.notes), *offers]

        def is_over() -> bool:
            return bool(pages) and pages[-1].next_page is None

        return Kept("look_at_key", lambda: rows, lambda row: row, data, notes, more, is_over)

    async def _analysed(self, *, refresh: bool = False, estimate: bool | None = None) -> tuple[_Analysis, str]:
        """Begin an analysis, or go on with it as far as the budget goes; return it, and why it is paused."""
        now = self._analysis
        if now is not None and now.run is None:
            return now, ""
        if now is None or refresh or (estimate is not None and estimate != now.is_estimate):
            if now is not None:
                await end_task(now.task)
                if now.run is not None:
                    now.run.forget_rows()
            await self._online()
            options = AnalysisOptions(
                separators=self._separators,
                pace=self._pace,
                registry=self._registry,
                estimate_keys=ESTIMATE_KEYS if estimate else None,
                keep_rows=KEPT_ROWS,
                rows_folder=rows_folder(),
            )
            run = AnalysisRun(self._deployment.home, options, deployment=self._deployment)
            now = self._analysis = _Analysis(run, self._started(run.run()), is_estimate=bool(estimate))
        assert now.run is not None and now.task is not None  # noqa: S101 - it is no file
        run, task = now.run, now.task
        why = "" if task.done() else await self._work(task, run.control, lambda: (run.cost, run.progress.keys))
        if why:
            await _settled(run)
        now.report, now.rows = run.report, run.rows
        if now.report is None:
            self._analysis = None if task.done() else now
            raise RefusedError(
                f"Nothing was inspected: {run.progress.reason or why or 'the server gave no key'}.",
                "Call it again to go on." if why else "",
            )
        return now, why

    def _found(self, now: _Analysis) -> Found:
        report = now.report
        assert report is not None  # noqa: S101 - it was made
        if now.found is None or now.found[0] is not report:
            levels = None if self._registry is None else self._registry.rules
            now.found = report, with_registry(findings(report, levels), report, self._registry)
        return now.found[1]

    async def _analyse(self, asked: api.AnalyseArguments) -> Kept:
        now, why = await self._analysed(refresh=asked.refresh, estimate=asked.estimate)
        report = now.report
        assert report is not None  # noqa: S101 - it was made
        head, made = report.head, {one.id: one for one in tables(report) if one.rows}
        if asked.table is not None and asked.table not in made:
            raise RefusedError(
                f"There is no table {display_text(asked.table, limit=64)}.", f"There is {', '.join(made)}."
            )
        table = None if asked.table is None else made[asked.table]
        stats = report.summary.root.stats
        total = {
            "keys": figure_value(stats.keys), "memory_bytes": figure_value(stats.memory_bytes),
            "memory_known_keys": stats.memory_known_keys, "no_ttl_keys": figure_value(stats.no_ttl_keys),
            "types": {display(name): figure_value(keys) for name, keys in stats.types},
        }  # fmt: skip

        def data(found: list[dict[str, Any]]) -> Struct:
            missing = {name: f"{one.state.value}: {one.reason}" for name, one in head.columns.items() if one.reason}
            return api.AnalyseData(
                **_coverage(report),
                made_at_epoch_s=head.made_at_s,
                facts_missing=missing,
                total=total,
                tables={one.id: f"{one.title} ({humanize.counted(len(one.rows), 'row')})" for one in made.values()},
                items=found,
            )

        notes = [*head.notes, *_paused(why), *([table.note] if table is not None and table.note else [])]
        rows = () if table is None else table.rows
        return Kept("analyse", lambda: rows, lambda row: self._row(cast(Table, table), row), data, lambda: notes)

    def _row(self, table: Table, row: Sequence[Any]) -> dict[str, Any]:
        """Return a row of a table: names with their bytes, figures as they are known."""
        found: dict[str, Any] = {}
        for cell, column in zip(row, table.columns, strict=True):
            name = field_name(column)
            if isinstance(cell, bytes):
                found |= self._name(cell, name)
            elif isinstance(cell, tuple):
                found[name] = {display(one): figure_value(figure) for one, figure in cell}
            else:
                value = round(cell * 1000) if name == "ttl_ms" and isinstance(cell, int | float) else cell
                found[name] = figure_value(value)
        return found

    async def _findings(self, _: api.PageArguments) -> Kept:
        now, why = await self._analysed()
        report = cast(Report, now.report)
        found = await asyncio.to_thread(self._found, now)

        def data(items: list[dict[str, Any]]) -> Struct:
            return api.FindingsData(**_coverage(report), not_judged=unjudged_records(found), items=items)

        notes = [*found.notes, *_paused(why)]
        notes += [f"{one.places:,} more places violate {one.rule}." for one in found.unlisted]
        return Kept("findings", lambda: found.findings, finding_record, data, lambda: notes)

    async def _health(self, asked: api.HealthArguments) -> Kept:
        watch, histories = HealthWatch(self._deployment, every_s=LEAST_EVERY_S), dict[str, SampleHistory]()

        def add(sample: Sample) -> None:
            histories.setdefault(sample.node, SampleHistory()).add(sample)

        watch.on_sample.append(add)
        await watch.look()
        await asyncio.sleep(LEAST_EVERY_S)
        await watch.look()
        report = None if self._analysis is None else self._analysis.report
        views = [HealthView.of(one.samples, report, self._registry) for one in histories.values()]
        failures: dict[str, str] = {one.label: one.failure for one in watch.nodes if one.failure is not None}
        document = health_document(views, failures=failures)
        items: list[dict[str, Any]] = []
        panels = list(dict.fromkeys(panel["id"] for node in document["nodes"] for panel in node["panels"]))
        if asked.panel is not None and asked.panel not in panels:
            raise RefusedError(
                f"There is no panel {display_text(asked.panel, limit=64)}.", f"There is {', '.join(panels)}."
            )
        for node in document["nodes"]:
            if asked.panel is None:
                shown = ("node", "about", "headline", "at_epoch_s", "findings", "not_judged")
                items.append({**{name: node[name] for name in shown}, "panels": panels})
                continue
            for panel in (one for one in node["panels"] if one["id"] == asked.panel):
                items += [{"node": node["node"], "figure": one} for one in panel["figures"]]
                items += [
                    {"node": node["node"], "table": one["id"], "row": row}
                    for one in panel["tables"]
                    for row in one["rows"]
                ]
        notes = [
            note for node in document["nodes"] for panel in node["panels"] if panel["id"] == asked.panel
            for note in panel["notes"]
        ]  # fmt: skip
        return Kept(
            "health", lambda: items, lambda one: one, lambda found: api.HealthData(document["failures"], found),
            lambda: [*watch.notes, *notes],
        )  # fmt: skip

    async def _slot(self, asked: api.SlotArguments) -> Struct:
        names = [self._given(one) for one in asked.keys]
        owners = dict[int, Owner]()
        if self._deployment_or_none is not None:
            await self._online()
            owners = await owners_of(self._deployment_or_none, {key_slot(name) for name in names})
        common = common_tag(names, Separators(self._separators))
        document = slot_document(names, owners, common)
        for name, record in zip(names, document["keys"], strict=True):
            record |= {**self._name(name), **self._name(explain(name).hashed, "hashed")}
        if common is not None:
            document["common_tag"] = {**self._name(common.tag, "tag"), "slot": common.slot,
                                      "keys": [self._name(name) for name in common.names]}  # fmt: skip
        return api.SlotData(**document)

    async def _sql(self, asked: api.SqlArguments) -> Kept:
        statement = read(asked.statement)
        now, why = await self._analysed()
        if self._statements is None:
            self._statements = await self._resources.enter_async_context(statement_process())
        report = cast(Report, now.report)
        given = await answer(self._statements, statement, report, now.rows, registry=self._registry)
        table, notes = given.rows, [*given.notes, *_paused(why)]

        def data(found: list[dict[str, Any]]) -> Struct:
            rows = StatementRows(statement.text, tuple(table.columns), (), given.is_cut, given.notes)
            columns: list[str] = [display_text(name, limit=200) for name in table.columns]
            return api.SqlData(columns, rows.coverage.value, table.height, given.is_cut, found)

        def record(at: int) -> dict[str, Any]:
            row = json_values(table.columns, table.row(at))
            if isinstance(name := row.get("key_quoted"), str) and len(name) > api.EXACT_BYTES:
                with suppress(EscapeSyntaxError):
                    row["key_quoted"] = self._exact(unescape(name.encode()))
            return row

        return Kept("sql", lambda: range(table.height), record, data, lambda: notes)


async def _settled(run: AnalysisRun) -> None:
    """Wait until the report of a paused analysis has all that was read, but not for long."""
    for _ in range(round(SETTLE_S / POLL_S)):
        if run.report is not None and run.report.head.coverage.counted_keys >= run.progress.keys:
            return
        await asyncio.sleep(POLL_S)


def _paused(why: str) -> list[str]:
    return [f"The analysis is not over: {why}. Call it again to go on."] if why else []


def _coverage(report: Report) -> dict[str, Any]:
    coverage = report.head.coverage
    reason = coverage.reason
    if coverage.kind is CoverageKind.PARTIAL and not reason:
        reason = "not every key is inspected yet"
    return {"coverage": coverage.kind.value, "coverage_reason": reason, "inspected_keys": coverage.keys}


async def _listed(store: NamespaceStore, prefix: bytes) -> Namespace | None:
    """Return the namespace with this prefix, divided; None where no key is below it."""
    node = store.root
    await _open(store, node)
    for name, separator in store.separators.segments(prefix):
        if not name and not separator:
            break
        ends = [separator] if separator else store.separators.values
        label = next((name + end for end in ends if name + end in node.listed_children()), None)
        if label is None:
            return None
        node = node.child(label)
        await _open(store, node)
    return node


async def _open(store: NamespaceStore, node: Namespace) -> None:
    for _ in store.open(node):
        await asyncio.sleep(0)


_LINE: Final = re.compile(r"\n *")
"""A line break and the indentation of JSON, in whose texts line breaks are escaped."""


def _decoded(page: Preview) -> dict[str, Any]:
    """Return the string of a page as its decoders read it; empty for plain text."""
    from rtui.values import decode, node_json  # noqa: PLC0415 - all decoders

    assert page.window is not None  # noqa: S101 - it is a string
    found = decode(page.window.data, is_whole=page.next_page is None and not page.window.offset_bytes)
    if len(found.chain) == 1 and found.chain[0] in ("text", "hex"):
        return {}
    text = _LINE.sub("", node_json(found.root, may_be_cut=True) or "")
    return {
        "by": found.title,
        "text": display_text(text, limit=api.MOST_TEXT),
        "cut": found.truncated or len(text) > api.MOST_TEXT,
        "notes": [display_text(one, limit=1000) for one in found.notes],
    }
