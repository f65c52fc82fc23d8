"""What importing a package brings in, in an interpreter of its own: nothing from above, and just its own libraries.

That each import statement goes one way, wherever in a file it stands, the contracts in `pyproject.toml` say.
"""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import rtui

SOURCE = Path(rtui.__file__).parent

LAYERS = ("keyspace", "registry", "values", "analysis", "table", "server", "tui", "cli")
"""Lowest first: a package may use those before it."""

DEMO, EMBEDDED = "demo", "embedded"
"""The packages beside the layers: only cli, tui and, of the second one, the demo use them."""

ALLOWED = {
    "keyspace": {"keyspace"},
    "registry": {"keyspace", "registry"},
    "table": {"keyspace", "registry", "analysis", "table"},
    "values": {"keyspace", "values"},
    "analysis": {"keyspace", "registry", "analysis"},
    "server": {"keyspace", "registry", "table", "values", "analysis", "server"},
    "tui": {"keyspace", "registry", "table", "values", "analysis", "server", "tui", DEMO, EMBEDDED},
    "cli": {"keyspace", "registry", "table", "values", "analysis", "server", "tui", "cli", DEMO, EMBEDDED},
    DEMO: {"keyspace", "registry", "table", "values", "analysis", "server", DEMO, EMBEDDED},
    EMBEDDED: {"keyspace", "registry", "table", "values", "analysis", "server", EMBEDDED},
}
"""What each package may import of rtui."""

PURE: dict[str, frozenset[str]] = {
    "keyspace": frozenset(),
    "registry": frozenset({"msgspec", "typing_extensions"}),
    "values": frozenset({"backports", "brotli", "compression", "cramjam", "lz4"}),
    "analysis": frozenset({"msgspec", "prometheus_client", "re2", "typing_extensions"}),
}
"""Packages that use the standard library and these libraries only.

msgspec brings in typing_extensions where that is installed. `compression` is in the standard library of Python 3.14."""

THIRD_PARTY = frozenset({"textual", "rich", "redis", "hiredis", "click", "platformdirs"})
"""What is installed with rtui."""

FORBIDDEN = {
    "keyspace": THIRD_PARTY | {"asyncio"}, "registry": THIRD_PARTY | {"asyncio"}, "table": THIRD_PARTY,
    "values": THIRD_PARTY | {"asyncio"}, "analysis": THIRD_PARTY | {"asyncio"},
    "server": {"textual", "rich", "click"}, DEMO: {"textual", "rich", "click", "redis"},
    EMBEDDED: {"textual", "rich", "click", "redis"}, "tui": {"click", "redis"}, "cli": {"redis"},
}  # fmt: skip
"""What importing any module of a package must not bring in."""

LIGHT = frozenset({"rtui.cli.main", "rtui.cli.slot"})
"""Modules that answer at once: they bring in neither the terminal toolkit nor a way to a server."""


def modules(package: str) -> list[str]:
    """Return the names of all modules of a package, itself first."""
    folder = SOURCE / package
    names = [info.name for info in pkgutil.walk_packages([str(folder)], f"rtui.{package}.")]
    return [f"rtui.{package}", *names]


@cache
def brought_in_by(*names: str) -> frozenset[str]:
    """Import modules in a fresh interpreter and return the names of everything that is loaded then."""
    program = (
        "import importlib, json, sys\n"
        "for name in json.loads(sys.argv[1]): importlib.import_module(name)\n"
        "json.dump(list(sys.modules), sys.stdout)"
    )
    command = [sys.executable, "-c", program, json.dumps(names)]
    result = subprocess.run(command, cwd=SOURCE.parent, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return frozenset(json.loads(result.stdout))


@pytest.mark.parametrize("package", [*LAYERS, DEMO, EMBEDDED])
def test_a_package_brings_in_nothing_from_above(package: str) -> None:
    loaded = brought_in_by(*modules(package))
    assert f"rtui.{package}" in loaded
    assert {name.split(".")[1] for name in loaded if name.startswith("rtui.")} <= ALLOWED[package]
    assert not {name.partition(".")[0] for name in loaded} & FORBIDDEN[package]


@pytest.mark.parametrize("package", sorted(PURE))
def test_a_pure_package_brings_in_its_libraries_only(package: str) -> None:
    more = brought_in_by(*modules(package)) - brought_in_by()
    found = {name.partition(".")[0] for name in more if not name.startswith("_sysconfigdata_")}
    assert found <= sys.stdlib_module_names | {"rtui"} | PURE[package]


def test_a_single_server_does_without_redis_py() -> None:
    others = [name for name in modules("server") if not name.startswith("rtui.server.deployment.")]
    assert "redis" not in brought_in_by(*others)


@pytest.mark.parametrize("module", sorted(LIGHT))
def test_what_answers_at_once_stays_light(module: str) -> None:
    if not (SOURCE / Path(*module.split(".")[1:]).with_suffix(".py")).exists():
        pytest.skip(f"{module} is not there")
    tops = {name.partition(".")[0] for name in brought_in_by(module)}
    assert not tops & {"textual", "rich", "redis", "hiredis", "asyncio"}
