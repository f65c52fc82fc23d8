"""Reports read back from files, and what is said when one can't be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any, Final

import click

from rtui.analysis.forms.json_read import LARGEST_FILE_BYTES, ReportFormatError, read_json
from rtui.analysis.report import Report
from rtui.keyspace.display import display_text

STANDARD_INPUT: Final = "-"
"""The name that means standard input."""


class UnreadableReport(click.ClickException):
    """A file that is missing, can't be read or is no report; exit code 2."""

    exit_code = 2

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{display_text(name)}: {display_text(reason)}.")

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it as all failures are."""
        click.echo(f"rtui: The report can't be read\n  {self.message}", err=True)


def read_report(name: str) -> Report:
    """Read the report in a file, or on STANDARD_INPUT. Raises UnreadableReport."""
    try:
        if name == STANDARD_INPUT:
            data = sys.stdin.buffer.read(LARGEST_FILE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(LARGEST_FILE_BYTES + 1)
        return read_json(data)
    except OSError as error:
        raise UnreadableReport(name, error.strerror or type(error).__name__) from None
    except ReportFormatError as error:
        raise UnreadableReport(name, str(error)) from None
