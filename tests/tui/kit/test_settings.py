"""The settings file: what it can say, what is said of one that is wrong, and what writing leaves alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.tui.browse.columns import TreeColumn
from rtui.tui.kit.command import CHOSEN_KEYS, choose_keys
from rtui.tui.kit.settings import SettingsError, SettingsFile, TreeColumnName, current_values, setting_names
from rtui.tui.navigation import all_commands, command_sets
from tests.tui.browsing import browsing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rtui" / "settings.toml"


def written(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path: Path, text: str | bytes) -> str:
    with pytest.raises(SettingsError) as caught:
        SettingsFile(written(path, text))
    return caught.value.happened


def test_no_file_means_what_holds_by_default(path: Path) -> None:
    assert dict(current_values(SettingsFile(path).settings)) == {
        "theme": None,
        "ascii": False,
        "panel": None,
        "colouring": "ttl",
        "tree.columns": None,
        "tree.width": None,
        "tree.sort": "keys",
        "rows.keep": None,
        "rows.files": False,
    }
    assert not path.exists()


def test_what_was_chosen_is_there_again(path: Path) -> None:
    file = SettingsFile(path)
    file.choose("theme", "rtui-light")
    file.choose("tree.columns", ("keys", "TTL"))
    file.choose("keys.browse.filter", "ctrl+f")
    file.flush()
    again = SettingsFile(path).settings
    assert again == file.settings
    assert (again.theme, again.tree.columns, again.keys) == ("rtui-light", ("keys", "TTL"), {"browse.filter": "ctrl+f"})


def test_a_choice_can_be_forgotten(path: Path) -> None:
    file = SettingsFile(written(path, 'theme = "a"\npanel = "big"\n'))
    file.choose("theme", None)
    file.choose("tree.columns", None)
    file.flush()
    assert path.read_text() == 'panel = "big"\n\n[tree]\n'


def test_comments_and_order_stay(path: Path) -> None:
    text = '# mine\npanel = "big" # always\n\n[tree]\n# few\ncolumns = ["keys"]\n'
    file = SettingsFile(written(path, text))
    file.choose("tree.columns", ("keys", "type"))
    file.flush()
    assert path.read_text() == text.replace('["keys"]', '["keys", "type"]')


def test_two_that_run_at_once_keep_each_others_choices(path: Path) -> None:
    one, other = SettingsFile(path), SettingsFile(path)
    one.choose("theme", "rtui-light")
    one.flush()
    other.choose("panel", "big")
    other.flush()
    settings = SettingsFile(path).settings
    assert (settings.theme, settings.panel) == ("rtui-light", "big")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('thene = "x"', "there is no setting thene. Did you mean theme?"),
        ('[tree]\ncolums = ["keys"]', "there is no setting tree.colums. Did you mean tree.columns?"),
        (
            '[tree]\ncolumns = ["kyes"]',
            "tree.columns can't be kyes. Did you mean keys? It can be keys, share, bar, bytes,",
        ),
        ('ascii = "yes"', "ascii: expected `bool`, got `str`."),
        ("theme = ", "is not TOML"),
        (b'theme = "\xff"', "is not UTF-8"),
        ("#" * ((1 << 20) + 1), "is over 1,048,576 bytes"),
    ],
)
def test_what_is_wrong_is_named(path: Path, text: str | bytes, said: str) -> None:
    assert said in refused(path, text)


def test_a_wrong_file_is_left_alone_and_said(path: Path) -> None:
    file = SettingsFile.opened(written(path, "theme = 1\n"))
    assert file.failure is not None
    file.choose("panel", "big")
    file.flush()
    assert file.settings.panel == "big"
    assert path.read_text() == "theme = 1\n"


def test_a_file_that_became_wrong_meanwhile_is_left_alone_and_said(path: Path) -> None:
    file = SettingsFile(path)
    written(path, "theme = 1\n")
    file.choose("panel", "big")
    file.flush()
    assert file.failure is not None
    assert path.read_text() == "theme = 1\n"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    file = SettingsFile.opened(tmp_path / "file" / "settings.toml")
    file.choose("panel", "big")
    file.flush()
    assert file.failure is not None
    assert "Not a directory" in file.failure


@given(st.sampled_from(sorted(setting_names())), st.text(max_size=8))
def test_a_value_is_taken_or_refused_with_a_sentence(name: str, value: str) -> None:
    file = SettingsFile()
    try:
        file.choose(name, value)
    except SettingsError as error:
        assert error.happened.endswith(".")
    else:
        assert dict(current_values(file.settings)).get(name) == value


def test_the_columns_are_those_of_the_tree() -> None:
    assert get_args(TreeColumnName) == tuple(map(str, TreeColumn))


async def test_it_is_written_while_a_loop_runs(path: Path) -> None:
    file = SettingsFile(path)
    for theme in ("a", "b", "c"):
        file.choose("theme", theme)
        await asyncio.sleep(0)
    await file.close()
    assert SettingsFile(path).settings.theme == "c"


def test_keys_of_commands_that_are_not_there_are_named() -> None:
    assert list(choose_keys({"browse.filtr": "x"}, command_sets())) == [
        "There is no command browse.filtr. Did you mean browse.filter?"
    ]
    assert CHOSEN_KEYS == {}


def test_a_key_of_two_commands_is_said() -> None:
    try:
        assert list(choose_keys({"browse.filter": ["p", "/"]}, command_sets())) == [
            "The key p is that of browse.filter and scan.pause."
        ]
        shown = {command.name: command.key_text for command in all_commands()}
        assert shown["browse.filter"] == "p /"
    finally:
        CHOSEN_KEYS.clear()


async def test_the_user_has_other_keys(path: Path) -> None:
    text = 'ascii = true\ntheme = "rtui-light"\n[tree]\ncolumns = ["keys"]\n[keys]\n"browse.filter" = ["F"]\n'
    async with browsing(settings=SettingsFile(written(path, text))) as browser:
        app = browser.screen.app
        assert app.theme == "rtui-light"
        assert "F Find" in browser.footer
        await browser.press("slash")
        assert browser.has_keyboard(browser.screen.tree_pane.key_tree)
        await browser.press("F")
        assert browser.has_keyboard(browser.screen.filter_input)
        await browser.press("escape")
        assert browser.screen.tree_pane.key_tree.columns == {TreeColumn.KEYS}
        app.theme = "rtui-dark"
        await browser.settled()
        await browser.screen.settings.close()
    assert SettingsFile(path).settings.theme == "rtui-dark"
