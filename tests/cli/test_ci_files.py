"""Files for others' CI: the action, GitLab's job, the CronJob and the units of systemd, their scripts run by shells."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cli.test_ci_recipes import BLOCKS, Shell
from tests.cli.test_ci_recipes import shell as shell  # noqa: PLC0414 - a fixture
from tests.servers import CHECKOUT, Server

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
