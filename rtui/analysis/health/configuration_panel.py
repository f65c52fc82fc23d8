"""The settings that explain what is seen: values, the defaults of that version, what each does, what of it shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rtui.analysis.health.panel import Panel
from rtui.analysis.health.sample import Source
from rtui.analysis.health.settings import SETTINGS
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Column, Row, Table, Unit, cell_reason
from rtui.keyspace.text.display import SafeText, display_text

_NAME: Final = Column("setting", "setting", Unit.TEXT, 30)
_VALUE: Final = Column("value", "value", Unit.TEXT, 16)
_DEFAULT: Final = Column("default", "default", Unit.TEXT, 16, "Of this version")
_CHANGED: Final = Column("changed", "", Unit.TEXT, 7, "Whether it is not the default")
_ABOUT: Final = Column("about", "what it does", Unit.TEXT)

_VALUE_LIMIT: Final = 200
_EMPTY: Final = "(empty)"


def configuration_panel(view: HealthView) -> Panel:
    """Return a table of the settings, those that are not as by default first."""
    told = view.told(Source.SETTINGS)
    if told is None:
        why = cell_reason(view.unknown(Source.SETTINGS))
        return Panel("configuration", "Configuration", notes=(SafeText(f"CONFIG GET: {why}"),))
    rows = sorted(_rows(view, told.settings), key=lambda row: row[3] != "changed")
    columns = (_NAME, _VALUE, _DEFAULT, _CHANGED, _ABOUT)
    return Panel("configuration", "Configuration", tables=(Table("settings", "Settings", columns, tuple(rows)),))


def _rows(view: HealthView, values: dict[str, str]) -> Iterator[Row]:
    for name, setting in SETTINGS.items():
        value = values.get(name)
        if value is not None:
            default = setting.default_of(view.latest)
            yield name, _shown(value), default or _EMPTY, "changed" if value != default else "", setting.about


def _shown(value: str) -> SafeText:
    return display_text(value, limit=_VALUE_LIMIT) or SafeText(_EMPTY)
