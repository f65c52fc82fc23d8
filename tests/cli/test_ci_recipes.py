"""What the help page about CI says: its YAML is read as GitHub and pre-commit read it, its lines are run by bash.

`rtui` in these lines is a script that has this process run the command line and passes on what that prints, so that
not every line starts Python anew.
"""

from __future__ import annotations

import json
import os
import re
import select
import shlex
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
        """Run a command to its end and return its exit code."""
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
        taken = TextIOWrapper(printed, "utf-8", write_through=True)
        sys.stdin, sys.stdout = given, taken
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
