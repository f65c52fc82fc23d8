"""Files of version 1 are still opened: `v1` holds the made reports as that version wrote them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rtui.analysis.formats.json_read import read_json
from tests.analysis.formats.made import MADE

V1 = Path(__file__).parent / "v1"


@pytest.mark.parametrize("name", MADE)
def test_a_file_of_version_1_is_read_as_the_report_that_it_was(name: str) -> None:
    assert read_json(gzip.decompress((V1 / f"{name}.json.gz").read_bytes())) == MADE[name]
