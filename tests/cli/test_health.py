"""`rtui health` and `rtui fleet`: samples of servers as lines, in files, out of files, and their exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from rich.cells import cell_len

from rtui.analysis.findings.server import panels
from rtui.analysis.formats.samples import read_samples
from rtui.analysis.health.view import HealthView
from rtui.cli.fleet import FORMATS
from rtui.cli.health import SECTIONS
from rtui.cli.main import run
from rtui.demo.load import DEMO_FLEET
from rtui.server.files import config_folder
from rtui.server.wire.errors import ExitCode
from tests.clusters import TestCluster
from tests.made_sample import made_sample
from tests.servers import CHECKOUT, Server, free_port


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have two samples be taken a tenth of a second apart instead of a second, and fleets be asked at once again."""
    for module in ("rtui.cli.health_run", "rtui.server.health.watch"):
        monkeypatch.setattr(f"{module}.LEAST_EVERY_S", 0.1)
    monkeypatch.setattr("rtui.cli.fleet.ROUND_S", 0.05)


def lines_of(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_sample_of_a_server(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", server.url, "--format", "jsonl"]) == 0
    header, sample = lines_of(capsys.readouterr().out)
    assert (header["format"], header["server"]) == ("rtui samples", f"127.0.0.1:{server.port}")
    assert sample["node"] == f"127.0.0.1:{server.port}"
    assert sample["sources"]


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
def test_a_sample_of_each_node(cluster: TestCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", cluster.members[0].server.url, "--format", "jsonl"]) == 0
    _, *samples = lines_of(capsys.readouterr().out)
    assert {one["node"] for one in samples} == {f"127.0.0.1:{one.server.port}" for one in cluster.members}


def test_a_file_that_is_read_again(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "samples.jsonl"
    assert run(["health", valkey.url, "-o", str(path)]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert capsys.readouterr().out == ""
    assert run(["health", str(path), "--format", "jsonl"]) == 0
    assert capsys.readouterr().out == path.read_text()
    assert run(["health", valkey.url, "-o", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err
    with path.open("a") as file:
        file.write('{"at_ms":')
    assert run(["health", str(path)]) == 0
    assert "line 3 can't be read" in capsys.readouterr().err


def test_addresses_are_masked(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    valkey.admin.config_set("slowlog-log-slower-than", 0)
    valkey.admin.ping()
    assert run(["health", valkey.url, "--mask", "--format", "jsonl"]) == 0
    header, sample = capsys.readouterr().out.splitlines()
    (found,) = read_samples([header.encode(), sample.encode()]).nodes.values()
    assert found[0].clients
    assert found[0].slow
    for address in (*(one.address for one in found[0].clients), *(one.address for one in found[0].slow)):
        assert address.startswith(b"client-")


def test_samples_until_a_signal(valkey: Server) -> None:
    command = [sys.executable, "-m", "rtui", "health", valkey.url, "--watch", "1", "--format", "jsonl"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, env={**os.environ}) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    (samples,) = read_samples(lines).nodes.values()
    assert len(samples) == 2


def test_a_file_can_not_be_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text('{"format":"rtui samples","schema":2,"rtui":"1","began_ms":1,"server":"a"}\n')
    assert run(["health", str(path), "--watch", "5"]) == 2
    path.write_text('{"format":"rtui samples","schema":2}\n')
    assert run(["health", str(path)]) == 2
    assert "not a file of samples" in capsys.readouterr().err


def test_a_healthy_server_has_nothing_wrong(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.admin.set("a", "b")
    assert run(["health", server.url, "--fail-on", "warn"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].endswith("no problems")
    assert "not checked" not in text


def test_a_snapshot_that_can_not_be_written(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    settings = valkey.admin.config_get("d*")
    in_the_way = Path(str(settings["dir"])) / str(settings["dbfilename"])
    in_the_way.mkdir()
    try:
        valkey.admin.bgsave()
        while valkey.admin.info("persistence")["rdb_bgsave_in_progress"]:
            pass
        assert run(["health", valkey.url, "--fail-on", "error"]) == 1
        assert re.search(r"^error  .*\(persistence-failing\)$", capsys.readouterr().out, re.MULTILINE)
        assert run(["health", valkey.url, "--format", "prom"]) == 0
        assert 'rule="persistence-failing",severity="error"' in capsys.readouterr().out
        assert run(["health", valkey.url, "--format", "md"]) == 0
        assert "persistence failing" in capsys.readouterr().out
    finally:
        in_the_way.rmdir()
        valkey.admin.save()
        in_the_way.unlink()


def test_slow_scripts_are_told_by_their_namespace(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    make_slow(valkey)
    assert run(["health", valkey.url, "--fail-on", "warn"]) == 1
    assert "EVAL of shop:user:<id>:cart took over 10ms 3 times" in capsys.readouterr().out


def test_a_registry_sets_the_rules(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rtui.toml"
    path.write_text('[rules]\neviction-policy = { severity = "error", policies = ["volatile-ttl"] }\n')
    assert run(["health", valkey.url, "--registry", str(path), "--fail-on", "error"]) == 1
    assert "The eviction policy is noeviction; expected is volatile-ttl" in capsys.readouterr().out
    assert run(["health", valkey.url, "--no-registry", "--fail-on", "error"]) == 0


def test_one_json_document(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    valkey.admin.set("a", "b")
    assert run(["health", valkey.url, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["schema"]) == ("rtui health", 1)
    (node,) = document["nodes"]
    assert node["node"] == f"127.0.0.1:{valkey.port}"
    figures = {one["id"]: one for panel in node["panels"] for one in panel["figures"]}
    assert figures["used_memory"]["unit"] == "bytes"
    assert figures["used_memory"]["value"] > 0
    first, last = figures["used_memory"]["history"]  # two samples, so that rates are known
    assert 0 < first <= last == figures["used_memory"]["value"]
    assert figures["commands"]["value"] >= 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.jsonl", '{"format":"rtui samples"'),
        ("a.dat", '{"format":"rtui samples"'),
        ("a.json", '{\n "format": "rtui health"'),
        ("a.md", "# rtui health"),
        ("a.html", "<!doctype html>"),
        ("a.prom", "# HELP redis_up"),
        ("a.sarif", '{\n  "$schema"'),
        ("a.xml", "<?xml"),
        ("a.txt", "127.0.0.1:"),
    ],
)
def test_the_ending_of_the_file_says_the_format(name: str, begins: str, valkey: Server, tmp_path: Path) -> None:
    path = tmp_path / name
    assert run(["health", valkey.url, "-o", str(path)]) == 0
    assert path.read_text().startswith(begins)


def test_a_file_for_a_collector_is_replaced_each_time(valkey: Server, tmp_path: Path) -> None:
    path = tmp_path / "rtui.prom"
    path.write_text("")
    path.chmod(0o644)
    command = [sys.executable, "-m", "rtui", "health", valkey.url, "--watch", "1", "-o", str(path)]
    with subprocess.Popen(command, cwd=CHECKOUT, env={**os.environ}) as process:
        seen = set[int]()
        while len(seen) < 3 and process.poll() is None:
            seen.add(path.stat().st_ino)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert "redis_memory_used_bytes" in path.read_text()


@pytest.fixture
def earlier(valkey: Server, tmp_path: Path) -> str:
    """Samples of the server before anything was wrong with it."""
    path = tmp_path / "before.jsonl"
    assert run(["health", valkey.url, "-o", str(path)]) == 0
    return str(path)


def make_slow(server: Server) -> None:
    spin = "local n = 0; for i = 1, 3000000 do n = n + i end; return redis.call('GET', KEYS[1])"
    server.admin.config_set("slowlog-log-slower-than", 0)
    for number in range(3):
        server.admin.eval(spin, 1, f"shop:user:{number}:cart")
    server.admin.config_set("slowlog-log-slower-than", 10_000)


def test_what_has_changed_since_a_file(valkey: Server, earlier: str, capsys: pytest.CaptureFixture[str]) -> None:
    make_slow(valkey)
    after = str(Path(earlier).with_name("after.jsonl"))
    assert run(["health", valkey.url, "-o", after]) == 0
    for fate, place, since in (("new", valkey.url, earlier), ("gone", earlier, after)):
        assert run(["health", place, "--since", since]) == 0
        text = capsys.readouterr().out
        assert f"Findings: {fate} (1)" in text
        assert "since  " in text
        assert "EVAL of shop:user:<id>:cart" in text
    for form, said in (("md", "### Findings: new (1)"), ("html", "Findings: new (1)")):
        assert run(["health", valkey.url, "--since", earlier, "--format", form]) == 0
        assert said in capsys.readouterr().out
    assert run(["health", valkey.url, "--since", earlier, "--format", "json"]) == 0
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert {one["rule"]: one["fate"] for one in node["compared"]["findings"]}["command-slow"] == "new"
    used = next(one for panel in node["panels"] for one in panel["figures"] if one["id"] == "used_memory")
    assert used["change"]["difference"]["low"] == used["value"] - used["then"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("thresholds", "code", "said"),
    [
        (["used_memory>1B"], 1, "reached: used_memory>1B (it is "),
        (["used_memory>1TiB", "used_memory>+10000%", "new-findings>5"], 0, ""),
        (["new-findings>0"], 1, "reached: new-findings>0 (it is 1 new)"),
        (["new-errors>0"], 0, ""),
        (["used_memory>-99%"], 1, "reached"),
        (["used_memry>1"], 3, "no metric has the id used_memry, but there is used_memory"),
        (["nobody used_memory>1B"], 3, "no node is called nobody"),
        (["used_memory>5s"], 3, "used_memory has no unit s"),
        (["commands>1M", "commands<1M"], 1, "reached: commands<1M"),
        (["used_memry>1", "used_memory>1B"], 1, "reached"),
        (["nothing"], 2, "nothing: write it like"),
        (["new-things>1"], 2, "new-things is neither a metric nor one of"),
        (["new-findings>+1"], 2, "without sign or unit"),
    ],
)
def test_thresholds(  # noqa: PLR0917 - fixtures
    thresholds: list[str], code: int, said: str, valkey: Server, earlier: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    make_slow(valkey)
    options = [part for threshold in thresholds for part in ("--fail-on", threshold)]
    assert run(["health", valkey.url, "--since", earlier, *options]) == code
    assert said in capsys.readouterr().err


def test_a_rate_takes_two_samples(earlier: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", earlier, "--fail-on", "commands>1"]) == 3
    assert "a rate needs two samples" in capsys.readouterr().err


def test_a_change_needs_earlier_samples(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["health", "127.0.0.1:1", "--fail-on", "used_memory>+1%"]) == 2
    assert "--since" in capsys.readouterr().err
    assert run(["health", "127.0.0.1:1", "--since", str(tmp_path / "none")]) == 2
    assert "it has no samples" in capsys.readouterr().err


def test_rules_about_keys_go_by_the_latest_report(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    valkey.admin.config_set("maxmemory", 100 << 20)
    valkey.admin.config_set("maxmemory-policy", "allkeys-lru")
    valkey.admin.set("lock:1", "x")
    rule = "(eviction-of-lasting)"
    assert run(["health", valkey.url, "--report", "latest"]) == 2
    assert "No report of" in capsys.readouterr().err
    assert run(["health", valkey.url]) == 0
    assert rule not in capsys.readouterr().out
    path = tmp_path / "keys.json"
    assert run(["report", valkey.url, "-o", str(path)]) == 0
    capsys.readouterr()
    for options in ([], ["--report", "latest"], ["--report", str(path)], ["--report", f"127.0.0.1:{valkey.port}@1"]):
        assert run(["health", valkey.url, *options]) == 0
        text = capsys.readouterr().out
        assert rule in text
        assert "keys   2" in text
    assert run(["health", valkey.url, "--report", "none"]) == 0
    assert rule not in capsys.readouterr().out
    samples = tmp_path / "samples.jsonl"
    assert run(["health", valkey.url, "-o", str(samples)]) == 0
    assert run(["health", str(samples)]) == 0
    assert rule in capsys.readouterr().out


def test_findings_for_what_shows_tests_and_code(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    make_slow(valkey)
    assert run(["health", valkey.url, "--format", "junit", "--fail-on", "warn"]) == 1
    suite = fromstring(capsys.readouterr().out)  # noqa: S314 - of our own
    assert [one.get("type") for one in suite.iter("failure")] == ["warn"]
    assert run(["health", valkey.url, "--format", "sarif"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert [one["ruleId"] for one in found["results"]] == ["command-slow"]


def fits(text: str) -> bool:
    return len(text.splitlines()) <= 45 and max(map(cell_len, text.splitlines())) <= 80


def test_a_summary_fits_on_a_screen(
    valkey: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert run(["health", valkey.url]) == 0
    healthy = capsys.readouterr().out
    assert fits(healthy)
    make_slow(valkey)
    valkey.admin.config_set("maxmemory", "1mb")
    valkey.admin.config_set("maxclients", 40)
    path = tmp_path / "rtui.toml"
    path.write_text('[rules]\neviction-policy = { severity = "error", policies = ["volatile-ttl"] }\n')
    assert run(["health", valkey.url, "--registry", str(path)]) == 0
    text = capsys.readouterr().out
    assert fits(text)
    assert text.index("\nerror  ") < text.index("\nwarn   ")
    for summary in (healthy, text):
        for word in (f"127.0.0.1:{valkey.port} · valkey", "Metrics\n", "used_memory", "maxmemory_policy", "--section"):
            assert word in summary
        assert "\nSettings\n" not in summary


def test_sections_say_the_rest(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    make_slow(valkey)
    assert run(["health", valkey.url, "--section", "slow", "--section", "findings"]) == 0
    text = capsys.readouterr().out
    assert "\nSlow\n" in text
    assert "EVAL of shop:user:<id>:cart" in text
    assert "\nMemory\n" not in text
    assert run(["health", valkey.url, "--section", "all"]) == 0
    whole = capsys.readouterr().out
    for title in ("Memory", "Load", "Slow", "Persistence", "Replication", "Clients", "Settings"):
        assert f"\n{title}\n" in whole
    assert len(re.findall(r"^  maxmemory-policy ", whole, re.MULTILINE)) == 1, "the settings are one table"
    assert run(["health", valkey.url, "--section", "slow", "--format", "json"]) == 2
    assert "--section is for text and md" in capsys.readouterr().err
    assert run(["health", valkey.url, "--section", "slowlog"]) == 2


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
def test_a_summary_of_a_cluster_fits_on_a_screen(cluster: TestCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", cluster.members[0].server.url]) == 0
    text = capsys.readouterr().out
    assert fits(text)
    for member in cluster.members:
        assert len(re.findall(rf"^  127.0.0.1:{member.server.port} ", text, re.MULTILINE)) == 1


def test_sections_are_the_panels() -> None:
    assert ("findings", *(panel.id for panel in panels(HealthView((made_sample(),)))), "all") == SECTIONS


def asked(line: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = run(["fleet", *line])
    out, err = capsys.readouterr()
    return code, out, err


def test_servers_of_arguments_files_and_profiles(
    valkey: Server, redis70: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles, gone = config_folder() / "profiles.toml", free_port()
    profiles.parent.mkdir(parents=True, exist_ok=True)
    profiles.write_text(f'[cache]\nport = {valkey.port}\nlabels = {{ team = "shop" }}\n')
    profiles.chmod(0o600)
    targets = tmp_path / "targets"
    targets.write_text(f"127.0.0.1:{redis70.port} team=mail\n127.0.0.1:{gone} team=mail\n")
    line = ["--targets", str(targets), "--profiles", "*", "--format", "json"]
    code, out, err = asked(line, capsys)
    found = {one["server"]: one for one in json.loads(out)["servers"]}
    assert code == ExitCode.SERVER, err
    assert {name: one["state"] for name, one in found.items()} == {
        "cache": "ok",
        f"127.0.0.1:{redis70.port}": "ok",
        f"127.0.0.1:{gone}": "down",
    }
    assert found["cache"]["labels"] == {"team": "shop"}
    code, out, _ = asked(["--label", "team=shop", *line[:-2]], capsys)
    assert (code, out.partition(":")[0]) == (0, "1 server")
    code, out, _ = asked([], capsys)
    assert (code, out.partition(":")[0]) == (0, "1 server")
    code, out, _ = asked([f"127.0.0.1:{redis70.port}", "--profiles", "*", "--group-by", "team"], capsys)
    assert (code, "By team" in out, "(none)" in out) == (0, True, True)


def test_exit_codes_are_those_of_check(
    valkey: Server, redis70: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [f"127.0.0.1:{valkey.port}", f"127.0.0.1:{redis70.port}"]
    registry = tmp_path / "rtui.toml"
    registry.write_text('[rules]\neviction-policy = { severity = "error", policies = ["volatile-ttl"] }\n')
    code, out, _ = asked([*both, f"127.0.0.1:{free_port()}", "--registry", str(registry)], capsys)
    assert code == ExitCode.FOUND
    assert "2 of 2: " in out
    redis70.admin.acl_setuser("app", enabled=True, nopass=True, commands=["+@all", "-info"], keys=["*"])
    line = ["--user", "app", "-a", "any", "-p", str(redis70.port), "--registry", str(registry)]
    code, out, err = asked(line, capsys)
    assert (code, out.splitlines()[0]) == (ExitCode.UNKNOWN, "1 server: 1 not fully judged")
    assert "not checked: " in err


@pytest.mark.parametrize(
    "line",
    [[], ["--label", "team", "a"], ["a", ""], ["--targets", "/nonexistent"], ["a", "--key-askpass"], ["slot:3", "b"]],
)
def test_what_is_not_understood(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = asked(line, capsys)
    assert (code, out) == (ExitCode.USAGE, "")
    assert err


def test_no_password_is_written(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = tmp_path / "targets"
    targets.write_text(
        f"redis://app:hunter2@127.0.0.1:{valkey.port} a=b\nredis://app:hunter2@127.0.0.1:{free_port()}\n"
    )
    targets.chmod(0o600)
    for form in FORMATS:
        code, out, err = asked(["--targets", str(targets), "--format", form], capsys)
        assert code == ExitCode.SERVER
        assert "hunter2" not in out + err


@pytest.mark.parametrize("command", ["fleet", "health", "report"])
def test_metrics_without_their_extra(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.cli.output.find_spec", lambda _name: None)
    assert run([command, "127.0.0.1:1", "--format", "openmetrics"]) == ExitCode.USAGE
    assert "redis-rtui[metrics]" in capsys.readouterr().err


@pytest.mark.slow
def test_the_demo_has_a_server_in_trouble_and_one_that_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(["--demo", "--format", "json"], capsys)
    states = {one["server"]: one["state"] for one in json.loads(out)["servers"]}
    assert (code, states["search"], len(states)) == (ExitCode.SERVER, "down", len(DEMO_FLEET) + 1)


def test_a_terminal_gets_the_screen_unless_a_format_is_named(
    valkey: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []

    def show(targets: object, *_: object) -> int:
        shown.append(targets)
        return 0

    monkeypatch.setattr("rtui.cli.fleet._shown", show)
    monkeypatch.setattr("rtui.cli.options.require_terminal", lambda _why: None)
    monkeypatch.setattr("rtui.cli.output.Output.is_terminal", property(lambda output: output.path is None))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    target = f"127.0.0.1:{valkey.port}"
    assert asked([target], capsys)[1] == ""
    assert len(shown) == 1
    for words in (["--format", "text"], ["--group-by", "team"]):
        assert asked([target, *words], capsys)[1].startswith("1 server: ")
    assert len(shown) == 1
