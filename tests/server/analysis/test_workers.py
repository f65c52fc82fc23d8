"""An analysis in several processes: the report of one process, whatever becomes of processes, nodes and slots."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.columns import ALL_COLUMNS
from rtui.analysis.formats.json import read_json, write_json
from rtui.analysis.report.document import CoverageKind, Report
from rtui.cli.main import run
from rtui.keyspace.slots import SLOTS, key_slot
from rtui.keyspace.text.display import SafeText
from rtui.registry.load import read_registry
from rtui.server.analysis.key_pass import ClusterPart
from rtui.server.analysis.run import AnalysisRun
from rtui.server.analysis.worker_process import PROGRAM
from rtui.server.analysis.workers import ServerTurns, Work, Worker, divided, packed, serve
from rtui.server.guard.command import Secret
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.parted_scan import PartedScan
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target
from tests.clusters import TestCluster, cluster_of
from tests.conftest import require
from tests.grammar import Grammar
from tests.server.analysis.test_cluster_analysis import analysing, report_of
from tests.server.scan.test_cluster_scan import disturb, fill
from tests.server.targets import eventually, impatient, target_of
from tests.servers import CHECKOUT, Server, free_port, wait_until

WORKERS = 3

MANY = 200_000
"""Keys that a gentle pass takes seconds for, also while this process waits for a processor."""

HALF = MANY // 2
"""As many as are enough where what disturbs the pass begins with its first key."""

PASSING = frozenset(
    {
        *("made_at_s", "asked_at_s", "age_s", "cost", "server_us", "used_memory_bytes"),
        *("ttl_ms", "ttl_range_s", "soonest_expiry_s", "query"),
    }
)
"""Fields of a report that differ from pass to pass."""

SEED = Random().getrandbits(32)

MINUTE_S = 60

LISTING = 100
"""After so many SCANs its keys are being listed: to find out what may be asked takes fewer."""


def children(of: int) -> list[int]:
    """The processes that a process has started, and that run rtui."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                words = (folder / "cmdline").read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            if parent == of and b"rtui.server.analysis.workers\0serve\0" in words:
                found.append(int(folder.name))
    return sorted(found)


def is_running(process: int) -> bool:
    """Whether a process is there, and is not just waiting to be asked how it ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def planted(cluster: TestCluster, keys: int, seed: int) -> list[bytes]:
    """Write keys with names of the grammar that live for days, or for ever; return the names."""
    names = [*dict.fromkeys(name for _, name in islice(Grammar(seed, 60).drawn(3 * keys), 3 * keys))][:keys]
    random, now_s = Random(seed), int(time.time())
    moments = [now_s // 86_400 * 86_400 + days * 86_400 + 30 for days in (3, 15, 200)]  # in the middle of a minute
    owners = {
        slot: one.server.admin for one in cluster.members if one.slots for slot in range(one.slots[0], one.slots[1] + 1)
    }
    pipelines = {id(owner): owner.pipeline(transaction=False) for owner in owners.values()}
    for name in names:
        pipeline = pipelines[id(owners[key_slot(name)])]
        size = int(2 ** random.uniform(0, 12))
        if random.random() < 0.7:
            pipeline.set(name, b"x" * size)
        else:
            pipeline.hset(name, mapping={f"f{number}": "v" for number in range(1 + size % 40)})
        if random.random() < 0.5:
            pipeline.expireat(name, random.choice(moments))
    for pipeline in pipelines.values():
        pipeline.execute()
    return names


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a report in JSON says, each with its place, but for what differs from pass to pass."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name not in PASSING:
                yield from leaves(one, f"{path}.{name}")
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from leaves(one, f"{path}[{at}]")
    else:
        yield path, value


def assert_same(found: Report, expected: Report, *, without: str = "") -> None:
    """Compare reports field by field, but for places that begin with something."""
    one, other = (dict(leaves(json.loads(write_json(report)))) for report in (found, expected))
    places = [place for place in (*one, *(other.keys() - one)) if not (without and re.match(without, place))]
    assert {
        place: (one.get(place), other.get(place)) for place in places if one.get(place) != other.get(place)
    } == {}, f"seed {SEED}"


@contextmanager
def of_equal_use(version: str) -> Iterator[TestCluster]:
    """A cluster in which a key counts as used twice at most, whenever it is asked: a pass may use the largest ones."""
    policy = ("--maxmemory-policy", "allkeys-lfu", "--lfu-decay-time", "0", "--lfu-log-factor", "100000000")
    with cluster_of(require(version), *policy) as found:
        yield found


REGISTRY = """
[[pattern]]
pattern = "<what>:<id>"
placeholders = { id = "int", what = "word" }
type = "string"
size = "<=1K"
ttl = "<=10d"
[[pattern]]
pattern = "<what>:<sort>:<**>"
placeholders = { what = "word", sort = "word" }
[naming]
case = ["lower"]
longest = 20
"""


@pytest.mark.slow
@pytest.mark.sampled("version")
@pytest.mark.parametrize("version", ["redis-7.0", "valkey-9.1"])
async def test_the_report_is_that_of_one_process(version: str) -> None:
    with of_equal_use(version) as cluster:
        names = planted(cluster, 4_000, SEED)
        target = target_of(cluster.members[1].server)
        asked: list[dict[str, Any]] = [
            {"registry": read_registry(REGISTRY)},
            {"match": b"*e*", "key_type": b"hash", "depth": 2, "separators": (b":", b"-")},
        ]
        for options in asked:
            if version == "redis-7.0":  # the end of a pass counts as a use of the largest keys there
                await report_of(target, columns=ALL_COLUMNS, **options)
            alone = await report_of(target, columns=ALL_COLUMNS, **options)
            report = await report_of(target, columns=ALL_COLUMNS, workers=WORKERS, **options)
            assert report.head.coverage.kind is CoverageKind.EXACT
            assert "match" in options or report.head.coverage.keys == len(names)
            assert_same(report, alone)


@given(st.dictionaries(st.text(max_size=3), st.none() | st.integers(0, 10**9), min_size=1), st.integers(1, 9))
def test_nodes_are_divided_evenly(sizes: dict[str, int | None], most: int) -> None:
    lists = divided(sizes, most)
    assert sorted(one for some in lists for one in some) == sorted(sizes)
    assert len(lists) == min(most, len(sizes))
    assert all(lists)
    known = [sum(sizes[one] or 0 for one in some) for some in lists]
    if None not in sizes.values():
        assert max(known) - min(known) <= max(size or 0 for size in sizes.values())


@asynccontextmanager
async def under_way(server: Server, lost_s: float = 80.0) -> AsyncIterator[AnalysisRun]:
    """A gentle analysis in several processes, which has found keys before the block and ends after it."""
    target = impatient(target_of(server), lost_s=lost_s)
    async with analysing(target, pace=Pace.GENTLE, workers=WORKERS) as analysis:
        running = asyncio.create_task(analysis.run(reports_meanwhile=False))
        await eventually(lambda: analysis.progress.keys)
        yield analysis
        await running


@pytest.fixture(scope="module")
def full() -> Iterator[TestCluster]:
    """A cluster whose keys nothing changes."""
    with cluster_of(require("valkey-9.1")) as found:
        found.fill(b"key:%d" % number for number in range(MANY))
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_two_processes_for_three_nodes(cluster: TestCluster) -> None:
    names = fill(cluster)
    async with analysing(target_of(cluster.members[0].server), workers=2) as analysis:
        running = asyncio.create_task(analysis.run(reports_meanwhile=False))
        seen = set[int]()
        while not running.done():
            seen.update(children(os.getpid()))
            await asyncio.sleep(0.01)
        await running
    assert len(seen) == 2
    assert not children(os.getpid())
    assert analysis.report is not None
    assert analysis.report.head.coverage.keys == len(names)
    assert analysis.progress.state is ScanState.DONE
    assert analysis.progress.keys == len(names)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_every_key_counts_once_though_slots_move_between_processes_and_a_primary_dies(
    cluster: TestCluster,
) -> None:
    names = {b"key:%d" % number for number in range(MANY)}
    cluster.fill(names)
    async with under_way(cluster.members[1].server) as analysis:
        await asyncio.to_thread(disturb, cluster, names)
    assert analysis.report is not None
    coverage, found = analysis.report.head.coverage, analysis.report.cluster
    assert (coverage.kind, coverage.reason) == (CoverageKind.EXACT, "")
    assert (coverage.keys, coverage.vanished, coverage.repeats_possible) == (len(names), 0, False)
    assert found is not None
    assert found.uncovered == ()
    held = {cluster.node_id(primary): primary.admin.dbsize() for primary in cluster.primaries}
    assert {node.id: node.keys for node in found.nodes} == held
    assert cluster.members[0].id not in held
    assert analysis.report.summary.slots.owned == ((0, SLOTS - 1),)


def uncovered(report: Report) -> dict[str, str]:
    """By node why slots of it were not covered."""
    assert report.cluster is not None
    return {one.node: one.reason for one in report.cluster.uncovered}


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["redis-7.0"], indirect=True)
async def test_processes_that_are_killed_lose_their_nodes_and_the_report_names_them(cluster: TestCluster) -> None:
    cluster.fill(b"key:%d" % number for number in range(HALF))
    async with under_way(cluster.members[0].server) as analysis:
        os.kill(children(os.getpid())[0], signal.SIGKILL)
    report = analysis.report
    assert report is not None
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    ((label, why),) = uncovered(report).items()
    assert why == "Its worker process was killed by SIGKILL"
    lost = next(one.server for one in cluster.members if label == f"{one.server.host}:{one.server.port}")
    assert report.head.coverage.keys == HALF - lost.admin.dbsize()
    assert report.cluster is not None
    assert [node.keys is None for node in report.cluster.nodes] == [
        node.label == label for node in report.cluster.nodes
    ]
    async with under_way(cluster.members[0].server) as analysis:
        for process in children(os.getpid()):
            os.kill(process, signal.SIGKILL)
    assert analysis.progress.state is ScanState.FAILED
    assert "killed by SIGKILL" in (analysis.progress.reason or "")
    assert analysis.report is not None
    assert (analysis.report.head.coverage.keys, len(uncovered(analysis.report))) == (0, 3)


@pytest.mark.slow
@pytest.mark.sampled("version")
@pytest.mark.parametrize("version", ["redis-7.0", "valkey-9.1"])
async def test_a_node_that_is_lost_in_the_middle_is_named(version: str) -> None:
    with cluster_of(require(version)) as cluster:
        for member in cluster.members:
            member.server.admin.config_set("cluster-require-full-coverage", "no")
        cluster.fill(b"key:%d" % number for number in range(HALF))
        lost = cluster.members[2].server
        held = lost.admin.dbsize()
        async with under_way(cluster.members[0].server, lost_s=3.0) as analysis:
            lost.stop()
    report = analysis.report
    assert report is not None
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    assert {*uncovered(report)} == {f"{lost.host}:{lost.port}"}
    assert HALF - held <= report.head.coverage.keys < HALF


@pytest.mark.slow
async def test_what_a_stop_leaves_is_partial(full: TestCluster) -> None:
    async with under_way(full.members[0].server) as analysis:
        analysis.control.stop(SafeText("the 2 s budget was used up"))
    assert analysis.report is not None
    coverage = analysis.report.head.coverage
    assert coverage.kind is CoverageKind.PARTIAL
    assert 0 < coverage.keys < MANY
    assert coverage.fraction is not None
    assert 0 < coverage.fraction < 1
    assert coverage.reason.startswith("the 2 s budget was used up")
    assert coverage.keys == analysis.report.summary.root.stats.keys


@contextmanager
def started(cluster: TestCluster, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A report on the command line by several processes, in a group of its own, that lists keys by now."""
    primaries = [one.server for one in cluster.members if one.slots]
    server = primaries[0]
    words = ["report", f"{server.host}:{server.port}", "--workers", str(WORKERS), "--no-keep", "--format", "json"]
    words += ["--replicas", "never"]
    for one in primaries:
        one.admin.config_resetstat()
    with subprocess.Popen(
        [sys.executable, "-m", "rtui", *words, *arguments],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
    ) as process:
        wait_until(lambda: max(map(scans, primaries)) >= LISTING or process.poll() is not None, str, MINUTE_S)
        yield process


def scans(server: Server) -> int:
    """How many SCANs a server was sent since its statistics began."""
    return int(server.admin.info("commandstats").get("cmdstat_scan", {"calls": 0})["calls"])


def wait_until_none_is_running(processes: list[int]) -> None:
    wait_until(lambda: not any(map(is_running, processes)), lambda: f"{processes} run", MINUTE_S)


@pytest.mark.slow
def test_processes_end_with_the_one_that_has_started_them(full: TestCluster) -> None:
    with started(full) as process:
        workers = children(process.pid)
        assert len(workers) == WORKERS
        process.kill()
        process.wait()
        wait_until_none_is_running(workers)


@pytest.mark.slow
@pytest.mark.sampled("sent")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_to_all_ends_it_in_order(full: TestCluster, sent: signal.Signals) -> None:
    with started(full) as process:
        workers = children(process.pid)
        os.killpg(process.pid, sent)
        out, said = process.communicate(timeout=MINUTE_S)
        wait_until_none_is_running(workers)
    assert process.returncode == 128 + sent, said
    assert b"Traceback" not in said
    coverage = read_json(out).head.coverage
    assert (coverage.kind, coverage.reason[:18]) == (CoverageKind.PARTIAL, "it was interrupted")
    assert 0 < coverage.keys < MANY


@pytest.mark.slow
def test_a_second_one_ends_it_at_once(full: TestCluster) -> None:
    with started(full) as process:
        first, *others = children(process.pid)
        for worker in others:
            os.kill(worker, signal.SIGSTOP)  # they can't end in order
        os.killpg(process.pid, signal.SIGINT)
        wait_until_none_is_running([first])
        assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        out, said = process.communicate(timeout=MINUTE_S)
        wait_until_none_is_running(others)
    assert (process.returncode, said.strip()) == (130, b"")
    assert b'"namespaces"' not in out


PASSWORD = "pa55word-that-nobody-else-has"  # noqa: S105 - of a test


@pytest.mark.slow
@pytest.mark.sampled("version")
@pytest.mark.parametrize("version", ["redis-7.0", "valkey-9.1"])
def test_no_password_is_to_be_seen_of_a_process(version: str, tmp_path: Path) -> None:
    with cluster_of(require(version)) as cluster:
        cluster.fill(b"key:%d" % number for number in range(HALF))
        for member in cluster.members:
            member.server.admin.acl_setuser(
                "reader", enabled=True, passwords=[f"+{PASSWORD}"], commands=["+@all"], keys=["*"]
            )
            member.server.admin.acl_setuser("default", enabled=False)
        log = tmp_path / "commands.log"
        with started(cluster, "--user", "reader", "--log", str(log), REDISCLI_AUTH=PASSWORD) as process:
            workers = children(process.pid)
            assert len(workers) == WORKERS
            for worker in workers:
                for name in ("cmdline", "environ"):
                    shown = Path(f"/proc/{worker}/{name}").read_bytes()
                    assert shown
                    assert PASSWORD.encode() not in shown
                    assert b"REDISCLI_AUTH" not in shown
            out, said = process.communicate(timeout=MINUTE_S)
    assert process.returncode == 0, said
    assert read_json(out).head.coverage.keys == HALF
    assert PASSWORD not in log.read_text()
    lanes = {json.loads(line)["connection"] for line in log.read_text().splitlines()}
    assert {f"worker {number} bulk 1" for number in (1, 2, 3)} <= lanes


def test_a_secret_goes_through_no_pickler_but_that_of_the_pipe() -> None:
    target = Target(password=Secret(PASSWORD))
    assert PASSWORD.encode() in packed(target)


@pytest.mark.slow
def test_a_cluster_in_tls(tmp_path: Path) -> None:
    with cluster_of(require("redis-7.0"), tls=True) as cluster:
        cluster.fill(b"key:%d" % number for number in range(900))
        seed = cluster.members[0].server
        assert seed.tls is not None
        path = tmp_path / "report.json"
        assert (
            run(["report", seed.url, "--cacert", str(seed.tls.ca), "--workers", "3", "-o", str(path), "--no-keep"]) == 0
        )
        report = read_json(path.read_bytes())
    assert (report.head.coverage.kind, report.head.coverage.keys) == (CoverageKind.EXACT, 900)


async def test_one_server_takes_no_process(valkey: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    valkey.admin.set("a", "b")

    def started_one(*_: object, **__: object) -> None:
        raise AssertionError("no process is started for one server")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started_one)
    report = await report_of(target_of(valkey), workers=WORKERS)
    assert (report.head.coverage.kind, report.head.coverage.keys) == (CoverageKind.EXACT, 1)


def test_an_estimate_has_no_use_for_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "127.0.0.1:1", "--estimate", "1000", "--workers", "2"]) == 2
    assert "Give either --estimate or --workers" in capsys.readouterr().err


def test_browsing_says_which_commands_have_workers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["127.0.0.1:1", "--workers", "2"]) == 2
    said = capsys.readouterr().err
    assert "--workers" in said
    assert "rtui report, check and patterns" in said


async def test_a_process_that_cannot_begin_says_why() -> None:
    part = ClusterPart(Target(port=free_port()), frozenset({"a"}), frozenset({1}))
    worker = Worker(0, part, PartedScan(RunControl(), [1]), ServerTurns(), CommandLog())
    await worker.start()
    try:
        with pytest.raises(RtuiError) as failed:
            await worker.run(AnalysisOptions())
    finally:
        await worker.end()
    assert failed.value.happened == f"Nothing listens on 127.0.0.1:{part.target.port}."


def test_a_process_ends_with_its_pipe() -> None:
    """So it does where the system does not end it with its parent."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        part = ClusterPart(Target(port=mute.getsockname()[1]), frozenset({"a"}), frozenset({1}))
        words = [sys.executable, "-c", PROGRAM, str(os.getpid()), serve.__module__, serve.__name__, *sys.path]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            process.stdin.write(packed(Work(part, AnalysisOptions(), dict(os.environ), (700, 10, 10), logs=False)))
            process.stdin.flush()
            connection, _ = mute.accept()
            with connection:
                process.stdin.close()
                assert process.wait(MINUTE_S) == 1


async def test_one_process_at_a_time_lists_the_keys_of_a_server() -> None:
    class Asking:
        """A worker that notes its turns."""

        def __init__(self) -> None:
            self.turns: list[object] = []
            self.send = self.turns.append

    turns, workers = ServerTurns(), [Asking(), Asking(), Asking()]
    first, second, other = [
        asyncio.create_task(turns.give(server, worker))  # type: ignore[arg-type]
        for server, worker in zip(("a:1", "a:1", "b:1"), workers, strict=True)
    ]
    await eventually(lambda: workers[0].turns and workers[2].turns)
    assert not workers[1].turns
    first.cancel()
    await eventually(lambda: workers[1].turns)
    for task in (second, other):
        task.cancel()
    await asyncio.gather(first, second, other, return_exceptions=True)
