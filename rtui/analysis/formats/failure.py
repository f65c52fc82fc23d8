"""Why a command has failed, in formats for machines: what reads its output finds the error there, and not nothing.

SARIF has a run without results that was not successful, JUnit a test with an error, JSON an object with `error` in
place of all else, CSV a row whose `coverage` is `failed`, TOML a table `error`, which no registry may have, and the
text format of Prometheus a comment. Other formats are for people, who read standard error.
"""

from __future__ import annotations

import json
import time
from typing import Final

from rtui import __version__
from rtui.analysis.formats.csv_and_json import csv_text
from rtui.analysis.formats.junit import failure_junit
from rtui.analysis.formats.sarif import failure_sarif

_FORMATS: Final = {"check": "rtui findings"}
"""How the JSON of a command is called, where that is not by its name."""

_CSV_NAMES: Final = {"find": ("key", "key_quoted")}
"""The columns of a command that are there whatever is asked."""


def failure_text(form: str, command: str, title: str, happened: str, exit_code: int) -> str:
    """Return the document; empty for formats that are for people. Texts have to be safe."""
    why = f"{title}: {happened}"
    error = {"title": title, "happened": happened, "exit_code": exit_code}
    text = ""
    match form:
        case "sarif":
            text = failure_sarif(why, exit_code)
        case "junit":
            text = failure_junit(command, title, happened, time.time())
        case "csv":
            names = _CSV_NAMES.get(command, ())
            text = csv_text([(*names, "coverage", "notes"), (*[""] * len(names), "failed", why)])
        case "prom":
            text = f"# rtui {command} has failed. {why}\n"
        case "toml":
            text = "".join(["[error]\n", *(f"{name} = {json.dumps(value)}\n" for name, value in error.items())])
        case "json":
            document = {"format": _FORMATS.get(command, f"rtui {command}"), "rtui": __version__, "error": error}
            text = json.dumps(document, indent=2) + "\n"
    return text
