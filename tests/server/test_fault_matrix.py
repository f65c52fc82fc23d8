"""Each command of the closed list, answered in each wrong way, under everything that asks the server.

Whatever is answered: the work ends, or waits and says for what; it says why; a fact that was not told is unknown and
never a number; nothing is left running; and once the server answers again, the same work is done in full.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rtui.analysis.columns import EVERYTHING
from rtui.analysis.facts import Unknown
from rtui.analysis.health.sample import Source
from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.deployment.nodes import Deployment
from rtui.server.facts.key_facts import key_facts, key_preview, row_facts
from rtui.server.facts.keys import lfu_settings
from rtui.server.facts.preview.page import Find, Page
from rtui.server.facts.preview.places import find_place
from rtui.server.facts.preview.value_reader import ValueReader
from rtui.server.guard.acl import NOT_OF_SERVERS
from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.command import Secret
from rtui.server.guard.evidence import Consent
from rtui.server.guard.spec import MODULE_GROUPS, CommandGroup
from rtui.server.health.probe import HealthProbe
from rtui.server.hot.hotkeys import SessionError, start_session
from rtui.server.hot.report import hot_report
from rtui.server.inspection.report_head import key_sizes
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import RtuiError
from tests.made_sample import ONLY_WITH_OTHERS
from tests.proxy import FAULTS, Fault, FaultProxy, Words
from tests.server import every_type
from tests.server.hot.test_counted_source import summary_of
from tests.server.targets import impatient, numbered, plant, target_of
from tests.servers import ADMIN, Server

KEYS = 120
"""Enough for an estimate of 50 keys."""

OPEN_S = 0.2
"""A server that says that it loads its data is waited for no longer."""

ONE_SLOT = b"{slot}:"
"""How names begin that one command may hold on a node of a cluster."""

LIMIT_S = 20.0
"""No work takes so long; a test that does hangs."""

Work = Callable[[FaultProxy, Server], Awaitable[None]]
"""Does something through a proxy and checks what has come of it, whatever that is."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.wire.opening.FIRST_PAUSE_S", 0.0005)


def opening_s(proxy: FaultProxy) -> float:
    """How long a connection may take to open: one to a server that loads its data is waited for until then."""
    return OPEN_S if proxy.fault is not None and proxy.fault[1].is_passing else LIMIT_S


def connection_to(proxy: FaultProxy, server: Server) -> Connection:
    """A connection that is not open yet and soon gives up."""
    return Connection(impatient(target_of(server, port=proxy.port), direct_s=0.3, reply_s=0.3))


@asynccontextmanager
async def opened(proxy: FaultProxy, server: Server) -> AsyncIterator[Connection | None]:
    """An open connection, None where it can't be opened, which says why."""
    connection = connection_to(proxy, server)
    try:
        try:
            async with asyncio.timeout(opening_s(proxy)):
                await connection.open()
        except RtuiError as failed:
            assert failed.happened
            yield None
        except TimeoutError:
            assert opening_s(proxy) < LIMIT_S
            yield None
        else:
            yield connection
    finally:
        await connection.close()


async def settled(progress: Callable[[], Progress]) -> Progress:
    """Wait until it is over, or waits for something that it names."""
    while True:
        now = progress()
        if now.state.is_over or (now.state is ScanState.WAITING and now.reason):
            return now
        await asyncio.sleep(0.001)


def check_ended(now: Progress) -> None:
    """What is over for another reason than that all is done says which."""
    assert now.state in (ScanState.DONE, ScanState.STOPPED) or now.reason
    assert "fault of rtui" not in (now.reason or "")


def is_known(fact: object) -> bool:
    return not isinstance(fact, Unknown)


# what asks the server


async def browse(proxy: FaultProxy, server: Server) -> None:
    browsing = BrowsingSession(
        BrowseOptions(target_of(server), pace="full", resume=False),
        state_folder=Path(server.folder),
        deployment=Deployment.over(connection_to(proxy, server)),
    )
    try:
        try:
            async with asyncio.timeout(opening_s(proxy)):
                await browsing.start()
        except (RtuiError, TimeoutError):
            return
        now = await settled(lambda: browsing.status.progress)
        check_ended(now)
        status = browsing.status
        if now.state is ScanState.DONE:
            assert browsing.store.keys == KEYS or status.notes
        assert status.total is None or not isinstance(status.total, int) or status.total >= 0
        proxy.heal()
        if now.state is ScanState.DONE:
            return
        browsing.connection.retry_now()
        await browsing.rescan()
        while browsing.status.progress.state is not ScanState.DONE:
            assert browsing.status.progress.state is not ScanState.FAILED
            await asyncio.sleep(0.001)
        assert browsing.store.keys == KEYS
    finally:
        await browsing.close()


async def details(proxy: FaultProxy, server: Server) -> None:
    names = sorted(server.admin.scan_iter(count=1000))
    wanted = [name for name in names if not name.startswith(b"key:")] or names[:1]
    if proxy.fault is not None:
        words = b" ".join(proxy.fault[0])
        wanted = [name for name in wanted if words in ASKED.get(name, ())] or wanted
    async with opened(proxy, server) as connection:
        if connection is None:
            return
        capabilities = Capabilities()
        for ask in (_facts_of_rows, _facts_and_values):
            try:
                await ask(proxy, connection, wanted, capabilities)
            except RtuiError as failed:
                assert failed.happened


ASKED: dict[bytes, set[bytes]] = {}
"""The commands that a look at each key takes: while one of them is answered wrongly, only such keys are looked at."""


async def _facts_of_rows(
    proxy: FaultProxy, connection: Connection, names: list[bytes], capabilities: Capabilities
) -> None:
    for row in await row_facts(connection, names, capabilities):
        for fact in (row.ttl_ms, row.memory_bytes):
            assert not isinstance(fact, int) or fact >= 0


async def _facts_and_values(
    proxy: FaultProxy, connection: Connection, names: list[bytes], capabilities: Capabilities
) -> None:
    for name in names:
        seen_before, proxy.seen = proxy.seen, set()
        facts = await key_facts(connection, name, capabilities)
        for fact in (facts.length, facts.memory_bytes, facts.idle_s, facts.ttl_ms):
            assert not isinstance(fact, int) or fact >= 0
        await key_preview(connection, facts, capabilities=capabilities)
        if proxy.fault is None:
            ASKED.setdefault(name, set()).update(proxy.seen)
        proxy.seen |= seen_before


PLACES = ("1", "#1", "member7", "1..2", "[a..[b", "field3", "2026-11-22")
"""What may be typed to go to a place in a value: each is one in some type, and none in others."""


async def look_inside(proxy: FaultProxy, server: Server) -> None:
    """Search values, and go to places in them."""
    async with opened(proxy, server) as connection:
        if connection is None:
            return
        capabilities = Capabilities()
        for name in [b"hash:table", b"set:table", b"zset:skiplist"]:
            try:
                facts = await key_facts(connection, name, capabilities)
                found = await key_preview(connection, facts, Page(find=Find(b"member7")), capabilities=capabilities)
                assert found.looked_at is None or found.looked_at >= 0
                for text in PLACES:
                    place = await find_place(ValueReader(Querier(connection, capabilities), facts), text, 1e9)
                    assert isinstance(place, Page | Unknown)
            except RtuiError as failed:
                assert failed.happened


async def _analyse(proxy: FaultProxy, server: Server, estimate_keys: int | None) -> None:
    options = AnalysisOptions(pace=Pace.FULL, estimate_keys=estimate_keys, columns=EVERYTHING)
    async with opened(proxy, server) as connection:
        if connection is None:
            return
        analysis = AnalysisRun(connection, options)
        running = asyncio.create_task(analysis.run())
        now = await settled(lambda: analysis.progress)
        check_ended(now)
        analysis.control.stop()
        await running
        check_ended(analysis.progress)
        report = analysis.report
        assert report is not None or analysis.progress.state is ScanState.FAILED
        if report is not None and now.state is ScanState.DONE:
            keys = report.head.coverage.keys
            assert keys == ((estimate_keys and keys) or KEYS) or report.head.notes
            assert estimate_keys is None or keys > 0 or report.head.notes
        elif report is not None:
            assert report.head.coverage.kind is not CoverageKind.EXACT
            assert report.head.coverage.reason
        proxy.heal()
        connection.retry_now()
        if now.state is ScanState.DONE:
            return
        await connection.online()
        await connection.refresh()  # who it is may have been garbage, too
        again = AnalysisRun(connection, options)
        await again.run()
        assert again.progress.state is ScanState.DONE, again.progress
        assert again.report is not None
        # a sample draws about as many keys as are wanted: the same ones may be drawn again
        assert again.report.head.coverage.keys >= (10 if estimate_keys else KEYS)


async def inspect(proxy: FaultProxy, server: Server) -> None:
    await _analyse(proxy, server, None)


async def estimate(proxy: FaultProxy, server: Server) -> None:
    await _analyse(proxy, server, 50)


async def hot_keys(proxy: FaultProxy, server: Server) -> None:
    async with opened(proxy, server) as connection:
        if connection is None:
            return
        capabilities = Capabilities()
        try:
            lfu = await lfu_settings(connection, capabilities)
            await key_sizes(connection, capabilities, 0)
            with contextlib.suppress(SessionError):
                await start_session(connection, Consent(duration_s=1, sample_ratio=10, discards_result=True))
            report = await hot_report(connection, capabilities, summary_of(), lfu=lfu, now_s=1e9, looked_since_s=None)
        except RtuiError as failed:
            assert failed.happened
            return
        assert all(hot.value >= 0 for one in report.lists for hot in one.keys)
        assert all(value >= 0 for load in report.slots for value in load.values.values())


async def health(proxy: FaultProxy, server: Server) -> None:
    delay(server)
    async with opened(proxy, server) as connection:
        if connection is None:
            return
        try:
            sample = await HealthProbe(connection, SafeText("server")).sample()
        except RtuiError as failed:
            assert failed.happened
            return
        assert not set(sample.sources) & set(sample.missing)
        assert {*sample.sources, *sample.missing} >= set(Source) - ONLY_WITH_OTHERS


def delay(server: Server) -> None:
    """Have the server keep a delay of some milliseconds."""
    if not server.admin.execute_command("LATENCY", "LATEST"):
        server.admin.config_set("latency-monitor-threshold", 1)
        server.admin.eval("local n = 0 for i = 1, 3000000 do n = n + i end", 0)


async def connect(proxy: FaultProxy, server: Server) -> None:
    """With all that a handshake may hold, in both protocols."""
    for protocol in (2, 3):
        target = target_of(server, port=proxy.port, db=1, user=ADMIN, password=Secret(server.password))
        connection = Connection(impatient(replace(target, protocol=protocol), direct_s=0.3, reply_s=0.3))
        try:
            async with asyncio.timeout(opening_s(proxy)):
                await connection.open()
        except RtuiError as failed:
            assert failed.title
        except TimeoutError:
            assert opening_s(proxy) < LIMIT_S
        finally:
            await connection.close()


# the matrix

WORKS: dict[str, Work] = {
    "connect": connect, "browse": browse, "details": details, "look inside": look_inside, "inspect": inspect,
    "estimate": estimate, "hot keys": hot_keys, "health": health,
}  # fmt: skip


PARTS = 5
"""Without `--thorough` each command is answered with every fifth fault, and each fault answers every fifth command."""


ELSEWHERE = frozenset((b"CLUSTER SLOTS", b"COMMAND INFO", b"READONLY", b"SRANDMEMBER", b"VRANDMEMBER", b"ZLEXCOUNT"))
"""Commands that only other servers, names, policies, replicas and values are sent, with tests of their own."""


SENT: dict[tuple[Work, str], list[Words]] = {}
"""What each work sends to each server, once that is known."""


async def sent_by(work: Work, server: Server) -> list[Words]:
    """The commands of the closed list that some work sends to a server that answers.

    Those that make a connection ready are sent by all of it: connecting stands for them.
    """
    known = SENT.get((work, server.url))
    if known is not None:
        return known
    async with FaultProxy(server.port) as proxy:
        await work(proxy, server)
    groups = set(CommandGroup) if work is connect else set(CommandGroup) - {CommandGroup.CONNECTION}
    specs = dict.fromkeys((spec.words, spec.group) for spec in TABLE if b" ".join(spec.words) in proxy.seen)
    SENT[work, server.url] = found = [words for words, group in specs if group in groups]
    return found


def fill(server: Server) -> None:
    types = every_type.fill(server, server.client())
    plant(server, numbered(KEYS - len(types)))
    assert server.admin.dbsize() == KEYS


async def strike(work: Work, server: Server, proxy: FaultProxy, words: Words, fault: Fault) -> None:
    """Do some work while one command is answered with a fault; it has to end by itself and leave no task behind."""
    if not fault.concerns(words):
        return
    proxy.strike(words, fault)
    try:
        async with asyncio.timeout(LIMIT_S):
            await work(proxy, server)
    except Exception as error:
        error.add_note(f"{b' '.join(words).decode()} answered with {fault.name}")
        raise
    left = {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("rtui")}
    assert not left, (words, fault.name)


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No task may end by an exception that nobody foresaw: these are logged."""
    yield
    assert not [record for record in caplog.records if record.name == "rtui" and record.levelno >= logging.ERROR]


@pytest.mark.sampled("fault")
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("name", WORKS)
async def test_whatever_a_command_is_answered_the_work_ends_and_says_why(
    name: str, fault: Fault, redis810: Server, pytestconfig: pytest.Config
) -> None:
    work = WORKS[name]
    fill(redis810)
    commands = await sent_by(work, redis810)
    assert commands
    every = 1 if pytestconfig.getoption("--thorough") else PARTS
    async with FaultProxy(redis810.port) as proxy:
        for words in commands[FAULTS.index(fault) % every :: every]:
            await strike(work, redis810, proxy, words, fault)


@pytest.mark.sampled("fault")
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_the_same_of_what_only_a_cluster_is_asked(
    fault: Fault, cluster_node: Server, pytestconfig: pytest.Config
) -> None:
    plant(cluster_node, numbered(KEYS, ONE_SLOT))
    works = (browse, hot_keys, estimate)
    every = 1 if pytestconfig.getoption("--thorough") else len(works)
    for work in works[FAULTS.index(fault) % every :: every]:
        async with FaultProxy(cluster_node.port) as proxy:
            for words in await sent_by(work, cluster_node):
                if words[0] == b"CLUSTER":
                    await strike(work, cluster_node, proxy, words, fault)


@pytest.mark.slow
async def test_the_matrix_holds_every_command_but_those_of_modules_and_of_other_servers(
    redis62: Server, redis810: Server, valkey: Server, cluster_node: Server
) -> None:
    struck: set[Words] = set()
    fill(redis810)
    fill(valkey)
    plant(cluster_node, numbered(KEYS, ONE_SLOT))
    for server in (redis810, valkey):
        for work in WORKS.values():
            struck.update(await sent_by(work, server))
    every_type.fill(redis62, redis62.client())
    struck.update(await sent_by(details, redis62))
    for work in (browse, hot_keys, estimate):
        struck.update(await sent_by(work, cluster_node))
    left = {
        b" ".join(spec.words)
        for spec in TABLE
        if spec.words not in struck and spec.group not in MODULE_GROUPS | NOT_OF_SERVERS
    }
    assert sorted(left) == sorted(ELSEWHERE)
