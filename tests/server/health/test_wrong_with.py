"""What stands in the title bar of what a server says of itself anyway: nothing that can't be is judged."""

from __future__ import annotations

import pytest

from rtui.analysis.health.fields import FIELDS, FieldUnit
from rtui.analysis.health.possible import range_of
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import SafeText
from rtui.server.health.info import sample_of_info
from rtui.server.health.session import wrong_with

SECTIONS = ("server", "clients", "memory", "persistence", "stats", "replication", "cluster")
NODE = SafeText("10.0.0.5:6379")


@pytest.mark.parametrize("said", ["-5", "18446744073709551615", "nan", "1e400", "4102444799", "250.5%", "abc"])
def test_what_can_not_be_is_no_trouble(said: str) -> None:
    replies = {
        section: "".join(
            f"{one.name}:{said}\r\n"
            for one in FIELDS.values()
            if one.source == f"INFO {section}" and one.name != "role"
        ).encode()
        for section in SECTIONS
    }
    sample = sample_of_info(replies, NODE, 1_700_000_000_000)
    figures = {name: value for name, value in sample.info.items() if FIELDS[name].unit is not FieldUnit.TEXT}
    assert all(value in range_of(FIELDS[name]) for name, value in figures.items())
    _, trouble = wrong_with({NODE: HealthView((sample,))})
    assert trouble is None or figures, "it is of figures that can be"
    assert trouble is None or "saved" not in trouble.word
