"""Tasks of Dask: the report of one pass, whatever becomes of workers and nodes; nothing shown of what they pass on."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from rtui.analysis.columns import EVERYTHING
from rtui.analysis.formats.json import read_json
from rtui.analysis.report.document import CoverageKind, Report, Scope
from rtui.cli.main import run
from rtui.keyspace.text.segments import Separators
from rtui.server.analysis.keys_report import opened, report_of
from rtui.server.analysis.scale import Call, Gathered, Sealed, collect_node, file_of, merged
from rtui.server.guard.command import MASK, Secret
from rtui.server.options import AnalysisOptions, DaskOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.errors import ExitCode
from rtui.server.wire.target import Target
from rtui.table.aggregates import Aggregates, Collected
from tests.clusters import cluster_of
from tests.conftest import require
from tests.made_report import head
from tests.server.analysis.test_cluster_analysis import analysing
from tests.server.analysis.test_cluster_analysis import report_of as report_on
from tests.server.analysis.test_workers import MANY, MINUTE_S, PASSWORD, SEED, assert_same, planted, uncovered
from tests.server.targets import eventually, impatient, target_of
from tests.servers import CHECKOUT, Certificates, certificates, wait_until
from tests.table.naive import table_of

LOCAL = DaskOptions(workers=3)

NODES = 6

DUMPS = Path("shared", "data", "dumps")
"""Beside the checkout, or further up."""

SCHEDULER = """
import asyncio, logging, sys
from distributed import LocalCluster, Security
names = ("ca_file", "client_cert", "client_key", "scheduler_cert", "scheduler_key", "worker_cert", "worker_key")
security = Security(require_encryption=True, **{f"tls_{name}": path for name, path in zip(names, sys.argv[1:])})
async def main():
    async with LocalCluster(n_workers=3, threads_per_worker=1, protocol="tls://", host="127.0.0.1", security=security,
                            dashboard_address="127.0.0.1:0", asynchronous=True, local_directory=sys.argv[8]) as cluster:
        print(cluster.scheduler_address, flush=True)
        await asyncio.to_thread(sys.stdin.read)
if __name__ == "__main__":
    asyncio.run(main())
"""


class Scheduler(NamedTuple):
    """A scheduler of others with three workers, which demands TLS."""

    address: str
    tls: Certificates

    @property
    def files(self) -> dict[str, Path]:
        tls = self.tls
        return {"tls_ca_file": tls.ca, "tls_client_cert": tls.client_cert, "tls_client_key": tls.client_key}

    @property
    def options(self) -> list[str]:
        pairs = zip(("--dask-ca", "--dask-cert", "--dask-key"), map(str, self.files.values()), strict=True)
        return ["--dask", self.address, *chain.from_iterable(pairs)]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    tls, folder = certificates(), tmp_path_factory.mktemp("dask")
    program = folder / "scheduler.py"
    program.write_text(SCHEDULER)
    files = [str(one) for one in (tls.ca, tls.client_cert, tls.client_key, *[tls.cert, tls.key] * 2)]
    command = [sys.executable, str(program), *files, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("tls://")
        yield Scheduler(address, tls)
        process.stdin.close()


def tasks_of(parent: int) -> list[int]:
    """The processes of workers that a process has started."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                above = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                words = (folder / "cmdline").read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            if above == parent and b"spawn_main" in words:
                found.append(int(folder.name))
    return sorted(found)


def sums(*names: str) -> Collected:
    found = Aggregates(Separators((b":",)), scope=Scope(), started_at_s=1_760_000_000.0)
    found.fold(rows(*names))
    return found.collected()


def rows(*names: str) -> pl.DataFrame:
    table = table_of([{"key": one.encode(), "type": "string", "memory_bytes": 100} for one in names])
    return table.with_columns(asked_ms=pl.lit(1_760_000_000_000, pl.Int64()))


def test_a_merge_leaves_results_as_they_are_so_that_it_can_be_done_again() -> None:
    parts = [Sealed(Gathered(sums(f"a:{number}", "b"), {number: "found"})) for number in range(3)]
    parts.append(Sealed(Gathered(None, {3: "lost"})))
    once, again = (merged(parts).opened() for _ in range(2))
    assert once.sums.keys == again.sums.keys == once.sums.partial.keys == again.sums.partial.keys == 6
    assert once.found == {0: "found", 1: "found", 2: "found", 3: "lost"}
    assert merged(parts[-1:]).opened().sums is None


def test_a_sealed_message_shows_nothing_and_is_whole() -> None:
    target = Target("db.internal", password=Secret(PASSWORD))
    sealed = Sealed(Call("run", 0, collect_node, (target, b"user:4711")))
    for shown in (repr(sealed), str(sealed), f"{sealed!r} {[sealed]}"):
        assert MASK in shown
        assert not any(word in shown for word in (PASSWORD, "4711", "internal"))
    arrived = pickle.loads(pickle.dumps(sealed)).opened()  # noqa: S301 - as Dask does
    assert arrived.arguments[0].password.reveal() == PASSWORD
    assert sys.getsizeof(sealed) > len(PASSWORD)


def test_a_file_has_its_name_once_it_is_whole() -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    with file_of("memory://night/keys", 7) as begin:
        begin(1.5, lambda: None).close()
        again = begin(1.5, lambda: None)  # as a pass that begins anew
        again.append(rows("a"))
        assert not [one for one in files.ls("/night/keys", detail=False) if one.endswith(".parquet")]
        again.end(head())
    assert [one.rpartition("/")[2] for one in files.ls("/night/keys", detail=False)] == ["node-0007.parquet"]
    with pytest.raises(OSError, match="full"), file_of("memory://night/keys", 8) as begin:
        begin(1.5, lambda: None).close()
        raise OSError("full")
    assert len(files.ls("/night/keys")) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--dask", "tcp://10.0.0.5:8786"], "without TLS"),
        (["--dask", "10.0.0.5:8786"], "names of keys and credentials go to a scheduler"),
        (["--dask", "local:0"], "from 1 to 256"),
        (["--dask", "local:x"], "from 1 to 256"),
        (["--dask", "local", "--dask-ca", "ca.pem"], "certificates of its own"),
        (["--dask-key", "key.pem"], "belong to --dask tls://HOST:PORT"),
        (["--dask", "local", "--workers", "2"], "either --dask or --workers"),
        (["--dask", "local", "--estimate", "1000"], "either --dask or --estimate"),
        (["--dask", "local", "--log", "x"], "nothing of what tasks send"),
    ],
)
def test_what_is_refused_before_anything_is_sent(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "127.0.0.1:1", *options]) == ExitCode.USAGE
    assert said in " ".join(capsys.readouterr().err.split())


def test_without_the_extra_its_name_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr("rtui.cli.options.find_spec", lambda name: None if name == "distributed" else known(name))
    assert run(["merge", "a.parquet", "--dask", "local"]) == ExitCode.USAGE
    assert "pip install 'redis-rtui[scale]'" in capsys.readouterr().err


@pytest.mark.slow
async def test_three_processes_inspect_six_nodes_though_one_is_killed_on_the_way(
    request: pytest.FixtureRequest,
) -> None:
    if not request.config.getoption("--thorough"):
        pytest.skip("only with --thorough: a minute")
    with cluster_of(require("valkey-9.1"), primaries=NODES) as cluster:
        names = planted(cluster, 6_000, SEED)
        cluster.fill(more := [b"key:%d" % number for number in range(MANY)])
        target = target_of(cluster.members[1].server)
        alone = await report_on(target, columns=EVERYTHING)
        async with analysing(target, columns=EVERYTHING, dask=LOCAL, pace=Pace.GENTLE) as analysis:
            running = asyncio.create_task(analysis.run(reports_meanwhile=False))
            await eventually(lambda: analysis.progress.keys)
            assert len(tasks_of(os.getpid())) == LOCAL.workers
            assert sockets_are_of_loopback(os.getpid())
            os.kill(tasks_of(os.getpid())[0], signal.SIGKILL)
            await running
        report = analysis.report
        assert report is not None
        assert (report.head.coverage.kind, report.head.coverage.keys) == (CoverageKind.EXACT, len({*names, *more}))
        assert_same(report, alone, without=r"\.head\.(scope\.pace|columns)|.*(idle|frequency|hot)")
        assert not tasks_of(os.getpid())


def sockets_are_of_loopback(process: int) -> bool:
    """Whether all sockets on which a process and its children listen are those of loopback."""
    listening = {
        line.split()[9]: line.split()[1]
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    }
    held = {
        str(one.readlink())[8:-1]
        for of in (process, *tasks_of(process))
        for one in Path(f"/proc/{of}/fd").iterdir()
        if one.is_symlink() and str(one.readlink()).startswith("socket:")
    }
    return all(address.startswith("0100007F") for inode, address in listening.items() if inode in held)


def exported(words: list[str], folder: Path) -> Report:
    """The report of what a process writes into a folder."""
    command = [sys.executable, "-m", "rtui", *words, "-o", f"{folder}/"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:19]) == (ExitCode.FINE, "rtui: 3,000 keys in")
    assert len([*folder.glob("node-*.parquet")]) == len([*folder.iterdir()]) == NODES
    return report_of([opened(folder)], AnalysisOptions())


@pytest.mark.slow
async def test_each_node_is_exported_and_one_that_does_not_answer_is_named(
    scheduler: Scheduler, tmp_path: Path
) -> None:
    whatever_is_served = ("--cluster-require-full-coverage", "no")
    with cluster_of(require("redis-7.0"), *whatever_is_served, primaries=NODES) as cluster:
        cluster.fill(b"user:%d" % number for number in range(3_000))
        gone = cluster.members[NODES - 1].server
        words = ["export", cluster.members[0].server.url, "--pace", "full", *scheduler.options]
        whole = await asyncio.to_thread(exported, words, tmp_path / "keys")
        assert (whole.head.coverage.kind, whole.head.coverage.keys) == (CoverageKind.EXACT, 3_000)
        os.kill(gone.pid, signal.SIGKILL)
        near = impatient(target_of(cluster.members[0].server), lost_s=3.0)
        found = await report_on(near, dask=DaskOptions(scheduler.address, files=scheduler.files))
    assert found.head.coverage.kind is CoverageKind.PARTIAL
    assert 2_000 < found.head.coverage.keys < 3_000
    assert [*uncovered(found)] == [f"{gone.host}:{gone.port}"]


@pytest.mark.slow
def test_a_scheduler_shows_neither_passwords_nor_names(scheduler: Scheduler) -> None:
    from distributed import Client, Security

    security = Security(**{name: str(path) for name, path in scheduler.files.items()})
    with cluster_of(require("valkey-9.1")) as cluster, Client(scheduler.address, security=security) as client:
        cluster.fill(b"customer:%d" % number for number in range(60_000))
        for member in cluster.members:
            member.server.admin.config_set("requirepass", PASSWORD)
        server = cluster.members[0].server
        words = ["report", f"{server.host}:{server.port}", "--no-keep", "--format", "json", *scheduler.options]
        shown: list[str] = []

        def has_tasks() -> bool:
            shown.append("\n".join(client.run_on_scheduler(state_shown)))
            return "rtui-" in shown[-1] and "processing" in shown[-1]

        with subprocess.Popen(
            [sys.executable, "-m", "rtui", *words],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            env={**os.environ, "REDISCLI_AUTH": PASSWORD},
        ) as process:
            wait_until(has_tasks, str, MINUTE_S)
            while process.poll() is None and len(shown) < 20:
                has_tasks()
            out, _ = process.communicate(timeout=MINUTE_S)
        assert read_json(out).head.coverage.keys == 60_000
        text = f"{''.join(shown)} {client.get_scheduler_logs()} {client.get_worker_logs()}"
        assert PASSWORD not in text
        assert "customer" not in text


def state_shown(dask_scheduler: Any) -> list[str]:
    """All that a scheduler can print of its tasks, events and workers."""
    tasks = [
        f"{one!r} {one.state} {one.run_spec!r} {getattr(one.run_spec, 'args', ())!r} {one.annotations!r} {one.group!r}"
        for one in dask_scheduler.tasks.values()
    ]
    return [*tasks, repr(dask_scheduler.get_events()), repr(dask_scheduler.workers)]


def loadable(most: int) -> list[str]:
    """Public dumps that Valkey loads, with its own types only."""
    others = ("hfe", "module", "issue27", "listoacks", "function", "big_len")
    dumps = (one for above in CHECKOUT.parents for one in (above / DUMPS).glob("*.rdb"))
    found = sorted(str(one) for one in dumps if not any(word in one.name for word in others))
    if len(found) < most:
        pytest.skip("no public dumps here")
    return found[:most]


@pytest.mark.slow
def test_twenty_dumps_are_merged_as_one_after_the_other_though_one_can_not_be_read(
    scheduler: Scheduler, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    require("valkey-9.1")
    dumps = loadable(20 if request.config.getoption("--thorough") else 4)
    one, by_tasks, lacking = (tmp_path / f"{name}.json" for name in ("one", "tasks", "lacking"))
    assert run(["merge", *dumps, "-o", str(one), "--no-registry"]) == ExitCode.FINE
    assert run(["merge", *dumps, "-o", str(by_tasks), "--no-registry", *scheduler.options]) == ExitCode.FINE
    alone, found = (read_json(path.read_bytes()) for path in (one, by_tasks))
    assert found.head.coverage.kind is CoverageKind.EXACT
    sampled = r".*(memory|bytes|mean|max|p\d+|median|by_memory|largest|sizes)"  # MEMORY USAGE draws elements at random
    assert_same(found, alone, without=rf"{sampled}|\.findings")
    broken = tmp_path / "broken.rdb"
    broken.write_bytes(Path(dumps[0]).read_bytes()[:-12])
    capsys.readouterr()
    words = ["merge", *dumps, str(broken), "-o", str(lacking), "--no-registry", *scheduler.options]
    assert run(words) == ExitCode.FINE
    assert "broken.rdb was not read" in capsys.readouterr().err
    coverage = read_json(lacking.read_bytes()).head.coverage
    assert (coverage.kind, coverage.keys) == (CoverageKind.PARTIAL, alone.head.coverage.keys)
