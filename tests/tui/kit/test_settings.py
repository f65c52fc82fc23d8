"""The settings file: what it can say, what is said of one that is wrong, and what writing leaves alone."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ANSI_COLOR_NAMES, ColorSystem
from rich.color import Color as RichColor
from rich.console import Console
from textual.color import Color

from rtui.server.options import BrowseOptions
from rtui.tui.app import RtuiApp
from rtui.tui.browse.columns import TreeColumn
from rtui.tui.kit.command import CHOSEN_KEYS, choose_keys
from rtui.tui.kit.settings import SettingsError, SettingsFile, TreeColumnName, current_values, setting_names
from rtui.tui.kit.themes import (
    VARIABLE_DEFAULTS,
    Palette,
    ThemeError,
    load_themes,
    palette_of,
    read_theme,
    shipped_folder,
    try_theme,
)
from rtui.tui.navigation import all_commands, all_css, command_sets
from tests.tui.browsing import browsing
from tests.tui.fixed_session import FixedSession
from tests.tui.palettes import contrast


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


SHIPPED = sorted(shipped_folder().glob("*.toml"))
COLOURS = ("rtui-dark", "rtui-light", "rtui-high-contrast")
LEAST_CONTRAST = {"rtui-dark": 4.5, "rtui-light": 4.5, "rtui-high-contrast": 7.0}
"""What WCAG 2 asks for: AA, and AAA for the theme that says so."""

READ = ["ink-muted", "ink-strong", *(name for name in VARIABLE_DEFAULTS if name.startswith("type-"))]
"""What carries words on any row; faint ink carries them on the quiet grounds only."""


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_themes_pass_their_own_trial(path: Path) -> None:
    try_theme(path, read_theme(path), all_css())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_themes_set_every_variable_of_ours(path: Path) -> None:
    assert set(VARIABLE_DEFAULTS) - set(read_theme(path).variables) <= {"cursor-ink"}


def written_theme(name: str, palette: str) -> dict[str, str]:
    """What the file of a theme says for a palette."""
    found: dict[str, str] = tomllib.loads((shipped_folder() / f"{name}.toml").read_text("utf-8"))[f"palette-{palette}"]
    return found


FILES = ("dark", "light", "high-contrast")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("palette", ["256", "16"])
def test_every_colour_is_chosen_for_every_palette(name: str, palette: str) -> None:
    wanted = {*VARIABLE_DEFAULTS, "primary", "success", "warning", "error", "foreground", "background", "surface",
              "panel", "block-cursor-foreground", "block-cursor-background"}  # fmt: skip
    assert not wanted - set(written_theme(name, palette))


@pytest.mark.parametrize("name", FILES)
def test_the_256_colours_are_shown_as_they_were_chosen(name: str) -> None:
    values = {key: value for key, value in written_theme(name, "256").items() if value.startswith("#")}
    assert len(values) > 40
    shown = Shown(f"rtui-{name}", Palette.XTERM)
    assert {key: shown[key].hex.lower() for key in values} == values


@pytest.mark.parametrize("name", FILES)
def test_the_sixteen_are_those_of_the_terminal_and_its_grounds_the_first_eight(name: str) -> None:
    for key, value in written_theme(name, "16").items():
        is_ansi = value.startswith("ansi_") and value.removeprefix("ansi_") in ANSI_COLOR_NAMES
        assert is_ansi or key.endswith("text-style"), key
    grounds = ("background", "surface", "panel", "cursor", "cursor-blurred", "hover", "fill", "heat-1", "heat-2",
               "heat-3", "heat-4", "heat-5", "heat-on", "block-cursor-background")  # fmt: skip
    for key in grounds:
        assert not written_theme(name, "16")[key].startswith("ansi_bright"), key


LIT = ("cursor", "cursor-blurred", "hover")
"""The rows that lie under the cursor or the mouse."""

SHOWN_BY = {Palette.TRUE: None, Palette.XTERM: ColorSystem.EIGHT_BIT}
"""What Rich turns the colours of a theme into before they reach such a terminal."""


class Shown:
    """The colours of a theme as a terminal shows them, by the name of a variable or of a field of the theme."""

    def __init__(self, name: str, palette: Palette) -> None:
        themes = load_themes(all_css, Path("/nowhere"), palette).themes
        self._theme = {theme.name: theme for theme in themes}[name]
        self._system = SHOWN_BY[palette]

    def __getitem__(self, name: str) -> Color:
        text = self._theme.variables.get(name) or getattr(self._theme, name.replace("-", "_"))
        colour = Color.parse(text)
        if self._system is None:
            return colour
        shown = RichColor.from_rgb(*colour.rgb).downgrade(self._system).get_truecolor()
        return Color(shown.red, shown.green, shown.blue)

    def contrast(self, text: str, ground: str) -> float:
        return contrast(self[text].rgb, self[ground].rgb)


@pytest.fixture(params=[(name, palette) for name in COLOURS for palette in SHOWN_BY], ids=str)
def shown(request: pytest.FixtureRequest) -> Shown:
    return Shown(*request.param)


GROUNDS = ("background", "surface", "panel")
WORDS = (*READ, "foreground", "primary", "warning", "error", "success")


@pytest.mark.parametrize("palette", SHOWN_BY, ids=str)
@pytest.mark.parametrize("name", COLOURS)
def test_what_is_read_stands_out_from_what_it_stands_on(name: str, palette: Palette) -> None:
    shown = Shown(name, palette)
    faint = [
        (text, ground, round(shown.contrast(text, ground), 2))
        for text in WORDS
        for ground in (*GROUNDS, *LIT)
        if shown.contrast(text, ground) < (LEAST_CONTRAST[name] if ground in GROUNDS else 4.5)
    ]
    assert not faint
    assert all(shown.contrast("ink-faint", ground) >= 4.5 for ground in GROUNDS)
    assert shown.contrast("block-cursor-foreground", "block-cursor-background") >= 4.5


DEVIATIONS = [name for name in VARIABLE_DEFAULTS if name.startswith("dev-")]


def test_bars_and_the_marks_of_the_map_can_be_seen_wherever_they_stand(shown: Shown) -> None:
    hidden = [
        (sign, ground, round(shown.contrast(sign, ground), 2))
        for sign, grounds in (("bar", (*GROUNDS, *LIT)), *((name, ("background",)) for name in DEVIATIONS))
        for ground in grounds
        if shown.contrast(sign, ground) < 3.0
    ]
    assert not hidden


def test_what_lies_on_a_filled_area_can_be_read(shown: Shown) -> None:
    assert shown.contrast("heat-ink", "heat-1") >= 4.5
    for heat in ("heat-2", "heat-3"):
        assert shown.contrast("heat-mid-ink", heat) >= 4.5, heat
    for heat in ("heat-4", "heat-5"):
        assert shown.contrast("heat-hot-ink", heat) >= 4.5, heat
    assert shown.contrast("heat-on-ink", "heat-on") >= 4.5
    for ink in ("foreground", *(name for name in VARIABLE_DEFAULTS if name.startswith("type-"))):
        assert shown.contrast(ink, "fill") >= 4.5, ink


def test_what_differs_in_meaning_differs_in_colour(shown: Shown) -> None:
    types = [shown[name] for name in VARIABLE_DEFAULTS if name.startswith("type-")]
    assert len(set(types)) == len(types)
    assert len({shown["success"], shown["warning"], shown["error"], shown["foreground"]}) == 4
    assert len({*[shown[f"heat-{level}"] for level in range(1, 6)], shown["heat-on"]}) == 6
    assert len({shown[name] for name in DEVIATIONS}) == len(DEVIATIONS)


def test_the_cursor_is_seen_to_lie_on_its_row(shown: Shown) -> None:
    grounds = [shown["background"], shown["cursor"], shown["cursor-blurred"]]
    assert len(set(grounds)) == len(grounds)
    assert shown["background"] != shown["hover"]


@pytest.mark.parametrize(
    ("environment", "palette", "theme"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, Palette.TRUE, "rtui-dark"),
        ({"TERM": "xterm-256color"}, Palette.XTERM, "rtui-dark"),
        ({"TERM": "tmux-256color"}, Palette.XTERM, "rtui-dark"),
        ({"TERM": "linux"}, Palette.ANSI, "rtui-dark"),
        ({"TERM": "xterm"}, Palette.ANSI, "rtui-dark"),
        ({"TERM": "dumb"}, Palette.ANSI, "rtui-dark"),
    ],
    ids=["truecolor", "ssh", "tmux", "linux-console", "old-xterm", "dumb"],
)
def test_a_terminal_starts_with_a_theme_that_it_can_show(
    environment: dict[str, str], palette: Palette, theme: str
) -> None:
    assert palette_of(Console(_environ=environment, force_terminal=True, legacy_windows=False)) is palette
    assert RtuiApp(BrowseOptions(), FixedSession(), palette=palette).theme == theme


def test_a_theme_that_was_asked_for_is_taken_whatever_the_terminal_shows() -> None:
    app = RtuiApp(BrowseOptions(theme="rtui-light"), FixedSession(), palette=Palette.ANSI)
    assert app.theme == "rtui-light"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("primary = ", "Invalid value"),
        ("dark = true", "missing required field `primary`"),
        ('primary = "#fff"\ncolour = "red"', "unknown field `colour`"),
        ('primary = "#fff"\ndark = "yes"', "Expected `bool`, got `str` - at `$.dark`"),
        ('primary = "no colour"', ""),
        ('primary = "#fff"\n[variables]\ncursor = "red; color: blue"', ""),
        ('primary = "#fff"\n[variables]\nscrollbar = "[bold]"', ""),
        ('primary = "#fff"\n[variables]\ncursor = 3', "Expected `str`, got `int`"),
        ('primary = "#fff"\nname = "[red]"', "name"),
        ('primary = "#fff"\n[palette-256]\ncursor = 3', "Expected `str`, got `int`"),
        ('primary = "#fff"\npalette-256 = 3', "Expected `object`, got `int` - at `$.palette-256`"),
    ],
    ids=[
        "syntax", "no-primary", "unknown", "type", "colour", "injection", "markup", "number", "name", "few-number",
        "few-no-table",
    ],
)  # fmt: skip
def test_a_bad_file_is_one_error_that_names_it(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    found = load_themes(all_css, tmp_path)
    assert [error.path.name for error in found.errors] == ["mine.toml"]
    assert reason in str(found.errors[0])
    assert {theme.name for theme in found.themes} >= {"rtui-dark", "rtui-light"}


def test_bytes_that_are_no_text_are_an_error_too(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ThemeError):
        read_theme(tmp_path / "mine.toml")


async def test_a_good_theme_of_the_user_can_be_chosen_and_a_bad_one_is_one_toast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "good.toml").write_text('name = "mine"\nprimary = "#123456"\n')
    (tmp_path / "bad.toml").write_text('primary = "no colour at all"\n')
    monkeypatch.setattr("rtui.tui.kit.themes.user_folder", lambda: tmp_path)
    app = RtuiApp(BrowseOptions(theme="mine"), FixedSession())
    async with app.run_test(notifications=True) as pilot:
        await pilot.pause()
        assert app.theme == "mine"
        assert [notice.message for notice in app._notifications if "bad.toml" in notice.message]
        assert len(app._notifications) == 1


async def test_an_unknown_theme_leaves_the_default() -> None:
    app = RtuiApp(BrowseOptions(theme="[b]none"), FixedSession())
    async with app.run_test(notifications=True) as pilot:
        await pilot.pause()
        assert app.theme == "rtui-dark"
