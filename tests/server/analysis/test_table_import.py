"""What counts keys in tables is imported when a pass begins, with few threads, and not where it would crash."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rtui.server.analysis.table_import import MOST_THREADS, NOT_THIS_PROCESSOR
from tests.servers import Server

OLD_PROCESSOR = """
import sys, importlib.util
(folder,) = importlib.util.find_spec("polars").submodule_search_locations
spec = importlib.util.spec_from_file_location("polars._cpu_check", folder + "/_cpu_check.py")
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)
class Flags(dict):
    def __contains__(self, name): return True
    def __missing__(self, name): return name != "avx2"
check._read_cpu_flags = Flags
sys.modules["polars._cpu_check"] = check
"""
"""Makes Polars find a processor without AVX2."""

THREADS = "import polars, sys; print('threads', polars.thread_pool_size(), file=sys.stderr)"


def report(server: Server, before: str = "", after: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A report of the table, in a fresh interpreter that runs code before and after it."""
    run = f"from rtui.cli.main import run; code = run(['report', '--no-keep', '-s', {server.socket!r}])"
    given = {name: value for name, value in os.environ.items() if not name.startswith("POLARS_")}
    return subprocess.run(
        [sys.executable, "-c", f"{before}\n{run}\n{after}\nimport sys; sys.exit(code)"],
        env={**given, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_processor_without_avx2_is_told_what_to_install(valkey: Server) -> None:
    valkey.client().set("a:1", "x")
    done = report(valkey, OLD_PROCESSOR)
    assert done.returncode == 4
    assert NOT_THIS_PROCESSOR in done.stderr
    assert "polars[rtcompat]" in NOT_THIS_PROCESSOR
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("environment", "threads"), [({}, MOST_THREADS), ({"POLARS_MAX_THREADS": "3"}, 3)])
def test_few_threads_unless_they_are_set(valkey: Server, environment: dict[str, str], threads: int) -> None:
    valkey.client().set("a:1", "x")
    done = report(valkey, after=THREADS, **environment)
    assert done.returncode == 0
    assert f"threads {threads}" in done.stderr
