"""The page on how the code is laid out names files that are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import rtui

ROOT = Path(rtui.__file__).parent
MAP = (ROOT / "README.md").read_text("utf-8")
ROOMS = "keyspace|registry|table|values|analysis|server|tui|cli|demo|tests|themes"
NAMED = sorted(set(re.findall(rf"`((?:{ROOMS})/[\w/.-]*)`", MAP)))


def test_the_map_names_many() -> None:
    assert len(NAMED) > 20


@pytest.mark.parametrize("name", NAMED)
def test_what_the_map_names_is_there(name: str) -> None:
    folder = ROOT.parent if name.startswith(("tests/", "themes/")) else ROOT
    assert (folder / name).exists()


def test_every_room_is_on_the_map() -> None:
    rooms = {path.parent for path in ROOT.rglob("*.py")} - {ROOT}
    for room in rooms:
        assert f"{room.name}" in MAP, room


def test_every_room_is_installed() -> None:
    rooms = {path.parent.relative_to(ROOT.parent) for path in ROOT.rglob("__init__.py")}
    settings = tomllib.loads((ROOT.parent / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert set(settings["packages"]) == {".".join(room.parts) for room in rooms} | {"rtui._themes", "rtui.help"}
    patterns = {Path(pattern).suffix for pattern in settings["package-data"]["*"]}
    code = {".py", ".pyc", ".pyx", ".pxd", ".c", ".so"}
    assert {path.suffix for path in ROOT.rglob("*.*")} - code <= patterns
