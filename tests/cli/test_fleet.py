"""`rtui fleet`: which servers are asked, its formats and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtui.cli.fleet import FORMATS
from rtui.cli.main import run
from rtui.demo.load import DEMO_FLEET
from rtui.server.files import config_folder
from rtui.server.wire.errors import ExitCode
from tests.servers import Server, free_port


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.cli.fleet.ROUND_S", 0.05)


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
    monkeypatch.setattr("rtui.cli.fleet.require_terminal", lambda _why: None)
    monkeypatch.setattr("rtui.cli.output.Output.is_terminal", property(lambda output: output.path is None))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    target = f"127.0.0.1:{valkey.port}"
    assert asked([target], capsys)[1] == ""
    assert len(shown) == 1
    for words in (["--format", "text"], ["--group-by", "team"]):
        assert asked([target, *words], capsys)[1].startswith("1 server: ")
    assert len(shown) == 1
