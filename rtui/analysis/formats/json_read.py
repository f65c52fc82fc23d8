"""Reading a report back from JSON. Nothing in the file is trusted: not its types, sizes, numbers or texts."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from rtui.analysis.formats.json_form import FORMAT, REPORT
from rtui.analysis.formats.json_shapes import ReportFormatError
from rtui.analysis.report.document import SCHEMA, Report
from rtui.keyspace.text.display import display_text

__all__ = ["LARGEST_FILE_BYTES", "ReportFormatError", "read_json"]

LARGEST_FILE_BYTES: Final = 256 * 1024 * 1024
"""No file above this is read: a report of the largest budget of nodes is far below."""


def read_json(text: str | bytes) -> Report:
    """Return the report in a file. ReportFormatError, with what is wrong and where, for everything else."""
    if len(text) > LARGEST_FILE_BYTES:
        raise ReportFormatError(f"The file is larger than {LARGEST_FILE_BYTES // 1024**2} MiB, no report is")
    found = _parsed(text)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ReportFormatError(f'This is not a report of rtui: it has no "format": "{FORMAT}"')
    schema = found.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ReportFormatError('The report does not say which version it is: "schema" should be a whole number')
    if schema > SCHEMA:
        raise ReportFormatError(
            f"The report was written by a newer rtui: its schema is {min(schema, 10**6):,}, "
            f"and this version reads up to {SCHEMA}. Update rtui to open it"
        )
    return REPORT.read(found, "")


def _parsed(text: str | bytes) -> Any:
    """Return what the JSON says."""
    try:
        return json.loads(text, parse_constant=_refused)
    except RecursionError as error:
        raise ReportFormatError("The file is nested too deep for a report") from error
    except UnicodeDecodeError as error:
        raise ReportFormatError(f"The file is not UTF-8: byte {error.start:,} is no part of a character") from error
    except json.JSONDecodeError as error:
        what = display_text(error.msg, limit=100)
        raise ReportFormatError(f"The file is not JSON: {what} in line {error.lineno:,}") from error
    except ReportFormatError:
        raise
    except ValueError as error:
        raise ReportFormatError("The file holds a number of far too many digits") from error


def _refused(name: str) -> NoReturn:
    """Refuse what Python takes for a number and JSON does not know."""
    raise ReportFormatError(f"The file is not JSON: {name} is no number")
