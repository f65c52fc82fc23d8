"""All measurements with one command: `python -m tests.bench.run [NAME…]`; prints one markdown table.

A measurement is a module beside this one with `rows() -> Iterable[Row]`, and `appendix() -> str` if it has a table of
its own; each runs in a process of its own, one after the other.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import tests.bench
from tests.bench import HEADER, Row
from tests.servers import CHECKOUT


def names() -> list[str]:
    """Every module here that measures something, without importing it."""
    found = sorted(module.name for module in pkgutil.iter_modules(tests.bench.__path__))
    folder = Path(tests.bench.__path__[0])
    return [name for name in found if "\ndef rows(" in (folder / f"{name}.py").read_text()]


def machine() -> str:
    """What the figures were measured on."""
    cpu = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory_kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    size = f"{os.cpu_count()} × {cpu}, {memory_kib / 1024**2:.0f} GiB"
    return f"{size}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def measure(name: str) -> dict[str, Any]:
    """Run one module in this process."""
    module = importlib.import_module(f"tests.bench.{name}")
    rows = [row.as_json() for row in module.rows()]
    appendix = module.appendix() if hasattr(module, "appendix") else ""
    return {"rows": rows, "appendix": appendix}


def measure_apart(name: str) -> dict[str, Any] | None:
    """Run one module in a process of its own; None when it failed, with the reason on standard error."""
    print(f"measuring {name} …", file=sys.stderr)
    command = [sys.executable, "-m", "tests.bench.run", "--one", name]
    done = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"{name} failed with code {done.returncode}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(arguments: list[str]) -> int:
    """Measure what is named, or everything."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(arguments[1])))
        return 0
    wanted = arguments or names()
    results = {name: measure_apart(name) for name in wanted}
    print(f"Measured on {machine()}.\n\n{HEADER}")
    for result in results.values():
        for row in result["rows"] if result else ():
            print(Row(**row).as_markdown())
    for result in results.values():
        if result and result["appendix"]:
            print(f"\n{result['appendix']}")
    failed = [name for name, result in results.items() if result is None]
    if failed:
        print(f"\nNot measured: {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
