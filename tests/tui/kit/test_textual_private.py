"""Each private name of Textual that the interface relies on is listed, and is still there."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path

import pytest
import textual

import rtui.tui
from rtui.tui.kit.terminal import CHECKED_VERSION, OVERRIDDEN, USED, PrivateName

FOLDER = Path(rtui.tui.__file__).parent
OWNERS = {private.owner for private in (*OVERRIDDEN, *USED)}


@cache
def trees() -> list[ast.Module]:
    """The interface, parsed."""
    return [ast.parse(path.read_text()) for path in FOLDER.rglob("*.py")]


source_of = cache(inspect.getsource)


def test_the_names_were_checked_on_the_version_that_is_installed() -> None:
    assert textual.__version__ == CHECKED_VERSION


@pytest.mark.parametrize(
    "private", [*OVERRIDDEN, *USED], ids=lambda private: f"{private.owner.__name__}.{private.name}"
)
def test_textual_still_has_the_name(private: PrivateName) -> None:
    sources = [source_of(base) for base in private.owner.__mro__ if base.__module__.startswith("textual")]
    is_set = any(f"self.{private.name}" in source for source in sources)
    assert hasattr(private.owner, private.name) or is_set, private.reason


def test_every_private_name_that_is_used_is_listed() -> None:
    nodes = [node for tree in trees() for node in ast.walk(tree)]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_private(node.attr)}
    ours = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    ours |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    ours |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    listed = {private.name for private in (*OVERRIDDEN, *USED)}
    assert used - ours - listed == set()
    assert listed - used - ours == set()


def test_every_private_method_that_hides_one_of_textual_is_listed() -> None:
    hidden = {
        name
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.bases
        for name in (one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
        if is_private(name) and any(hasattr(owner, name) for owner in OWNERS)
    }
    assert hidden == {private.name for private in OVERRIDDEN}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
