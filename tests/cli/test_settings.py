"""`rtui settings`: printing, setting and forgetting what is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rtui.cli.settings import command

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "rtui"


def run(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(command, args)
    assert result.exit_code == code, result.output
    return result.output


def test_it_prints_all_with_what_each_is_for() -> None:
    run("theme", "rtui-light")
    lines = run().splitlines()
    assert [line.split() for line in lines if line.startswith(("theme", "ascii"))] == [
        ["theme", '"rtui-light"', "Name", "of", "the", "theme;", "--theme", "comes", "first."],
        ["ascii", "false", "(default)", "Draw", "with", "ASCII", "only,", "as", "with", "--ascii."],
    ]


def test_it_sets_prints_and_forgets_one(folder: Path) -> None:
    assert run("--path") == f"{folder / 'settings.toml'}\n"
    run("tree.columns", '["keys", "TTL"]')
    assert '["keys","TTL"]' in run("tree.columns")
    run("keys.browse.filter", '["slash", "ctrl+g"]')
    run("tree.columns", "--reset")
    assert "(default)" in run("tree")
    run("--reset")
    assert '["slash","ctrl+g"]' in run("keys")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("thene", "x"), "There is no setting thene. Did you mean theme?"),
        (("thene",), "There is no setting thene."),
        (("ascii", "maybe"), "ascii: expected `bool`, got `str`."),
        (("rows.keep", "2000000000"), "rows.keep: expected `int` <= 1000000000."),
        (("theme", "x", "--reset"), "Give either a value or --reset."),
        (("keys.browse.filtr", "x"), "There is no command browse.filtr. Did you mean browse.filter?"),
    ],
)
def test_what_cannot_be_is_a_usage_error(args: tuple[str, ...], said: str) -> None:
    assert said in run(*args, code=2)


def test_a_wrong_file_is_a_usage_error(folder: Path) -> None:
    folder.mkdir()
    (folder / "settings.toml").write_text("theme = 1\n")
    assert "theme: expected `str | null`, got `int`." in run(code=2)
