"""The arrows between the packages go one way: cli → tui → server → analysis, values → registry → keyspace."""

from __future__ import annotations

import ast
import json
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import rtui

SOURCE = Path(rtui.__file__).parent

LAYERS = ("keyspace", "registry", "table", "values", "analysis", "server", "tui", "cli")
"""Lowest first: a package may use those before it."""

DEMO = "demo"
"""The package beside the layers: only cli and tui use it."""

FREE = frozenset({"", "__init__", "__main__"})
"""Modules directly in the package that belong to no layer: the version and the way in."""

ALLOWED = {
    "keyspace": {"keyspace"},
    "registry": {"keyspace", "registry"},
    "table": {"keyspace", "table"},
    "values": {"keyspace", "values"},
    "analysis": {"keyspace", "registry", "table", "analysis"},
    "server": {"keyspace", "registry", "table", "values", "analysis", "server"},
    "tui": {"keyspace", "registry", "table", "values", "analysis", "server", "tui", DEMO},
    "cli": {"keyspace", "registry", "table", "values", "analysis", "server", "tui", "cli", DEMO},
    DEMO: {"keyspace", "registry", "table", "values", "analysis", "server", DEMO},
}
"""What each package may import of rtui."""

PURE: dict[str, frozenset[str]] = {
    "keyspace": frozenset(),
    "registry": frozenset({"msgspec", "typing_extensions"}),
    "values": frozenset({"backports", "brotli", "compression", "cramjam", "lz4"}),
    "analysis": frozenset({"_polars_runtime_32", "msgspec", "numpy", "polars", "re2", "typing_extensions"}),
}
"""Packages that use the standard library and these libraries only, and nothing of it that waits.

msgspec brings in typing_extensions where that is installed. `compression` is in the standard library of Python 3.14."""

WAITING = frozenset(
    {"asyncio", "concurrent", "multiprocessing", "selectors", "socket", "ssl", "subprocess", "threading"}
)
"""Modules of the standard library that no pure package imports itself."""

THIRD_PARTY = frozenset({"textual", "rich", "redis", "hiredis", "click", "platformdirs"})
"""What is installed with rtui."""

FORBIDDEN = {
    "keyspace": THIRD_PARTY | {"asyncio"},
    "registry": THIRD_PARTY | {"asyncio"},
    "table": THIRD_PARTY,
    "values": THIRD_PARTY | {"asyncio"},
    "analysis": THIRD_PARTY | {"asyncio"},
    "server": {"textual", "rich", "click"},
    DEMO: {"textual", "rich", "click", "redis"},
    "tui": {"click", "redis"},
    "cli": {"redis"},
}
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


def _parsed(path: Path) -> ast.Module:
    """The syntax tree of a file; Python 3.11 counts the depth of two trees that are made at once as one, and fails."""
    try:
        return ast.parse(path.read_bytes())
    except SystemError:
        return ast.parse(path.read_bytes())


@cache
def imports(path: Path) -> list[tuple[int, str]]:
    """The line and the full name of everything that a file imports, wherever in it the import stands."""
    found: list[tuple[int, str]] = []
    package = ("rtui", *path.relative_to(SOURCE).with_suffix("").parts[:-1])
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return found


def test_every_package_has_its_place() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert packages == {*LAYERS, DEMO}
    assert set(ALLOWED) == packages == set(FORBIDDEN)
    assert {path.stem for path in SOURCE.glob("*.py")} <= FREE


@pytest.mark.parametrize("package", [*LAYERS, DEMO])
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


@pytest.mark.parametrize("package", [*LAYERS, DEMO])
def test_imports_obey_the_order(package: str) -> None:
    """Also those inside functions and under TYPE_CHECKING, which no interpreter gets to see by itself."""
    wrong = []
    for path in sorted((SOURCE / package).rglob("*.py")):
        for line, name in imports(path):
            parts = name.split(".")
            inside = parts[0] == "rtui" and len(parts) > 1
            if (inside and (SOURCE / parts[1]).is_dir() and parts[1] not in ALLOWED[package]) or (
                package in PURE and not inside and parts[0] not in (sys.stdlib_module_names | PURE[package]) - WAITING
            ):
                wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {name}")
    assert not wrong


def test_only_tui_imports_textual() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, name in imports(path)
        if name.partition(".")[0] == "textual" and path.relative_to(SOURCE).parts[0] != "tui"
    ]
    assert not wrong


def test_redis_py_asks_what_a_deployment_is_made_of_and_nothing_else() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, name in imports(path)
        if name.partition(".")[0] == "redis" and not path.is_relative_to(SOURCE / "server" / "deployment")
    ]
    assert not wrong


def test_a_single_server_does_without_redis_py() -> None:
    others = [name for name in modules("server") if not name.startswith("rtui.server.deployment.")]
    assert "redis" not in brought_in_by(*others)


@pytest.mark.parametrize("module", sorted(LIGHT))
def test_what_answers_at_once_stays_light(module: str) -> None:
    if not (SOURCE / Path(*module.split(".")[1:]).with_suffix(".py")).exists():
        pytest.skip(f"{module} is not there")
    tops = {name.partition(".")[0] for name in brought_in_by(module)}
    assert not tops & {"textual", "rich", "redis", "hiredis", "asyncio"}


def test_the_check_of_imports_sees_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "server" / "preview"
    folder.mkdir(parents=True)
    file = folder / "one.py"
    lines = ("import os", "from rtui.tui import app", "from . import two", "from ..lane import Lane")
    file.write_text("\n".join((*lines, "def f():", "    import textual.app")))
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    assert imports(file) == [
        (1, "os"),
        (2, "rtui.tui.app"),
        (3, "rtui.server.preview.two"),
        (4, "rtui.server.lane.Lane"),
        (6, "textual.app"),
    ]
