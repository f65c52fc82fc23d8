from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color

from rtui.server.browse_options import BrowseOptions
from rtui.tui.app import RtuiApp
from rtui.tui.css import all_css
from rtui.tui.themes import INK_DEFAULTS, ThemeError, load_themes, read_theme, shipped_folder, try_theme
from tests.tui.fixed_session import FixedSession

SHIPPED = sorted(shipped_folder().glob("*.toml"))
COLOURS = ("rtui-dark", "rtui-light", "rtui-high-contrast")
LEAST_CONTRAST = {"rtui-dark": 4.5, "rtui-light": 4.5, "rtui-high-contrast": 7.0}
"""What WCAG 2 asks for: AA, and AAA for the theme that says so."""

READ = ["ink-muted", "ink-strong", *(name for name in INK_DEFAULTS if name.startswith("type-"))]
"""What carries words; faint ink carries rules and signs."""


def luminance(colour: Color) -> float:
    channels = [value / 255 for value in (colour.r, colour.g, colour.b)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Color, other: Color) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_themes_pass_their_own_trial(path: Path) -> None:
    try_theme(path, read_theme(path), all_css())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_themes_set_every_variable_of_ours(path: Path) -> None:
    assert set(INK_DEFAULTS) - set(read_theme(path).variables) <= {"cursor-ink"}


@pytest.mark.parametrize("name", COLOURS)
def test_what_is_read_stands_out_from_what_it_stands_on(name: str) -> None:
    theme = {theme.name: theme for theme in load_themes(all_css, Path("/nowhere")).themes}[name]
    texts = [*(theme.variables[variable] for variable in READ), theme.foreground, theme.primary, theme.warning,
             theme.error, theme.success]  # fmt: skip
    for text in texts:
        for ground in (theme.background, theme.surface, theme.panel, theme.variables["cursor"]):
            assert text is not None
            assert ground is not None
            least = LEAST_CONTRAST[name] if ground != theme.variables["cursor"] else 3.0
            assert contrast(Color.parse(text), Color.parse(ground)) >= least, (text, ground)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("primary = ", "Invalid value"),
        ("dark = true", "no primary colour"),
        ('primary = "#fff"\ncolour = "red"', "unknown setting colour"),
        ('primary = "#fff"\ndark = "yes"', "dark must be true or false"),
        ('primary = "no colour"', ""),
        ('primary = "#fff"\n[variables]\ncursor = "red; color: blue"', ""),
        ('primary = "#fff"\n[variables]\nscrollbar = "[bold]"', ""),
        ('primary = "#fff"\n[variables]\ncursor = 3', "texts only"),
        ('primary = "#fff"\nname = "[red]"', "name"),
    ],
    ids=["syntax", "no-primary", "unknown", "type", "colour", "injection", "markup", "number", "name"],
)
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
    monkeypatch.setattr("rtui.tui.themes.user_folder", lambda: tmp_path)
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
