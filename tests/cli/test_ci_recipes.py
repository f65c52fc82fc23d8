"""The files and pages for others' CI: read by the formats' own readers, run by bash."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path

import cfgv
import pytest
import yaml
from pre_commit.clientlib import CONFIG_SCHEMA

from rtui.cli.main import run
from tests.servers import CHECKOUT, Server

PAGE = (CHECKOUT / "rtui/help/ci.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
WORKFLOW = yaml.safe_load(BLOCKS[".github/workflows/keyspace.yml"])
HOOKS = yaml.safe_load(BLOCKS[".pre-commit-config.yaml"])

REGISTRY = """
[rules]
ttl-unexpected = "warn"
[[pattern]]
pattern = "order:<id>"
ttl = "none"
"""

SHIM = r"""#!/bin/sh
cat > "$RTUI_TEST/in.$$"
{ printf '%s\0' "$$" "$@"; printf '\0'; } > "$RTUI_TEST/asked"
read -r code < "$RTUI_TEST/code"
cat "$RTUI_TEST/out"
exit "$code"
"""


@dataclass(frozen=True)
class Shell:
    """Runs commands in a folder; `rtui` is run here."""

    folder: Path
    exchange: Path

    def run(self, command: Sequence[str]) -> int:
        environment = {**os.environ, "PATH": f"{self.exchange}:{os.environ['PATH']}", "RTUI_TEST": str(self.exchange)}
        asked = os.open(self.exchange / "asked", os.O_RDWR)
        with subprocess.Popen(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL) as process:
            ended = os.pidfd_open(process.pid)
            try:
                while True:
                    ready, _, _ = select.select([asked, ended], [], [], 60)
                    assert ready, "neither has the command ended nor does it ask for rtui"
                    if asked not in ready:
                        break
                    words = b""
                    while not words.endswith(b"\0\0"):
                        words += os.read(asked, 65_536)
                    self._answer([word.decode() for word in words[:-2].split(b"\0")])
            except BaseException:
                process.kill()
                raise
            finally:
                os.close(ended)
                os.close(asked)
        return process.returncode

    def _answer(self, words: list[str]) -> None:
        streams, printed = (sys.stdin, sys.stdout), BytesIO()
        given = TextIOWrapper(BytesIO((self.exchange / f"in.{words[0]}").read_bytes()))
        told = TextIOWrapper(printed, "utf-8", write_through=True)  # which closes `printed` when nothing holds it
        sys.stdin, sys.stdout = given, told
        try:
            code = run(words[1:])
        finally:
            sys.stdin, sys.stdout = streams
        (self.exchange / "out").write_bytes(printed.getvalue())
        (self.exchange / "code").write_text(f"{code}\n")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, valkey: Server) -> Shell:
    """A folder with a registry, and the server as RTUI_URL."""
    exchange, folder = tmp_path / "exchange", tmp_path / "repository"
    for one in (exchange, folder):
        one.mkdir()
    os.mkfifo(exchange / "asked")
    os.mkfifo(exchange / "code")
    (exchange / "rtui").write_text(SHIM)
    (exchange / "rtui").chmod(0o755)
    (folder / "rtui.toml").write_text(
        '[[pattern]]\npattern = "order:<id>"\nttl = "none"\n[rules]\nttl-unexpected = "warn"\n'
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RTUI_URL", valkey.url)
    for number in range(20):
        valkey.admin.set(f"order:{number}", "x")
    return Shell(folder, exchange)


def test_the_workflow_is_one() -> None:
    assert set(WORKFLOW) == {"name", True, "permissions", "jobs"}, "`on` is a truth value in YAML 1.1"
    assert set(WORKFLOW[True]) == {"schedule", "workflow_dispatch"}
    assert all(re.fullmatch(r"(\S+ ){4}\S+", one["cron"]) for one in WORKFLOW[True]["schedule"])
    assert WORKFLOW["permissions"] == {"contents": "read", "security-events": "write"}
    (job,) = WORKFLOW["jobs"].values()
    assert job["env"] == {"RTUI_URL": "${{ secrets.RTUI_URL }}"}
    for step in job["steps"]:
        assert len({"uses", "run"} & set(step)) == 1
        assert set(step) <= {"uses", "run", "with", "if"}
        assert re.fullmatch(r"[\w-]+(/[\w-]+)+@v\d+", step.get("uses", "a/b@v1"))


def night(shell: Shell) -> list[int]:
    """Run the steps of the workflow as far as none fails; return their exit codes."""
    codes: list[int] = []
    lines = [step["run"] for step in WORKFLOW["jobs"]["keyspace"]["steps"] if "run" in step]
    assert lines[0] == "pip install redis-rtui"
    for line in lines[1:]:
        codes.append(shell.run(["bash", "-e", "-c", line]))
        if codes[-1]:
            break
    return codes


def test_nights_of_the_workflow(shell: Shell, valkey: Server) -> None:
    before = shell.folder / "before.json"
    assert night(shell) == [0, 0, 0, 0]
    first = before.read_bytes()
    valkey.admin.set("order:lock", "x")
    assert night(shell) == [0, 1], "a lock without TTL is an error"
    (one_run,) = json.loads((shell.folder / "rtui.sarif").read_bytes())["runs"]
    assert [result["ruleId"] for result in one_run["results"]] == ["lock-without-ttl"]
    valkey.admin.delete("order:lock")
    valkey.admin.expire("order:7", 3_600)
    assert night(shell) == [0, 0, 1], "a TTL that should not be is a warning, but a new one"
    assert before.read_bytes() == first


def test_hooks_before_a_commit(shell: Shell, valkey: Server) -> None:
    cfgv.validate(HOOKS, CONFIG_SCHEMA)
    (hooks,) = [repository["hooks"] for repository in HOOKS["repos"]]

    def commit() -> list[int]:
        return [shell.run(shlex.split(hook["entry"])) for hook in hooks]

    (baseline,) = re.findall(r"`(rtui report -o \S+)`", PAGE.partition("# .pre-commit")[0].rpartition("Before each")[2])
    assert shell.run(shlex.split(baseline)) == 0
    assert commit() == [0, 0]
    valkey.admin.expire("order:7", 3_600)
    assert commit() == [1, 1]


FILES = CHECKOUT / ".github"
ACTION = yaml.safe_load((FILES / "actions/check/action.yml").read_text("utf-8"))
GITLAB = yaml.safe_load((FILES / "packaging/gitlab-ci.yml").read_text("utf-8"))
CRON_JOB = yaml.safe_load((FILES / "packaging/cronjob.yaml").read_text("utf-8"))
SERVICE = FILES / "packaging/rtui-report.service"


def test_the_page_calls_the_action_with_inputs_that_it_has() -> None:
    steps = yaml.safe_load(BLOCKS[".github/workflows/check.yml"])["jobs"]["check"]["steps"]
    (step,) = (one for one in steps if "with" in one)
    assert step["uses"].partition("/.github/")[2].startswith("actions/check@")
    assert set(step["with"]) <= set(ACTION["inputs"])


@pytest.mark.parametrize("given", ["server", "report"])
def test_the_action_checks_and_writes_a_summary(
    given: str, shell: Shell, valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    valkey.admin.set("order:lock", "x")
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(name, str(shell.exchange / name))
    monkeypatch.setenv("RUNNER_TEMP", str(shell.exchange))
    if given == "report":
        assert shell.run(["rtui", "report", "-o", "keys.json"]) == 0
        monkeypatch.delenv("RTUI_URL")
    for name, value in {"REPORT": "keys.json" if given == "report" else "", "REGISTRY": "", "FAIL_ON": "error"}.items():
        monkeypatch.setenv(name, value)
    (step,) = (one for one in ACTION["runs"]["steps"] if one.get("id") == "check")
    assert set(step["env"]) == {"RTUI_URL", "REPORT", "REGISTRY", "FAIL_ON"}
    # as GitHub runs `shell: bash`
    assert shell.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]) == 1
    outputs = dict(line.split("=", 1) for line in (shell.exchange / "GITHUB_OUTPUT").read_text().splitlines())
    assert outputs["exit-code"] == "1"
    (one_run,) = json.loads(Path(outputs["sarif"]).read_bytes())["runs"]
    assert "lock-without-ttl" in {result["ruleId"] for result in one_run["results"]}
    assert "lock-without-ttl" in (shell.exchange / "GITHUB_STEP_SUMMARY").read_text()


def test_the_job_of_gitlab_writes_what_it_keeps(shell: Shell, valkey: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    valkey.admin.set("order:lock", "x")
    job = GITLAB["keyspace"]
    monkeypatch.setenv("FAIL_ON", job["variables"]["FAIL_ON"])
    install, *lines = job["script"]
    assert install.startswith("pip install")
    assert [shell.run(["sh", "-ec", line]) for line in lines] == [0, 1]
    kept = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    assert all((shell.folder / name).is_file() for name in kept)


def nightly_scripts() -> dict[str, list[str]]:
    """The commands of the CronJob and of the service for systemd."""
    (container,) = CRON_JOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    (line,) = re.findall(r"^ExecStart=(.*?[^\\])\n", SERVICE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return {
        "cron job": [*container["command"], *container["args"]],
        "service": shlex.split(line.replace("\\\n", " ").replace("%%", "%")),
    }


@pytest.mark.parametrize("name", ["cron job", "service"])
def test_nights_of_others_end_with_the_exit_code_of_diff(name: str, shell: Shell, valkey: Server) -> None:
    script = nightly_scripts()[name]
    assert shell.run(script) == 0
    assert shell.run(script) == 0
    before = (shell.folder / "before.json").read_bytes()
    valkey.admin.set("order:lock", "x")
    assert shell.run(script) == 1
    assert (shell.folder / "before.json").read_bytes() == before, "compared again with the last night that was fine"
    valkey.admin.delete("order:lock")
    assert shell.run(script) == 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_units() -> None:
    units = [SERVICE, SERVICE.with_suffix(".timer")]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
