"""Why a command has failed, in formats for machines: what reads its output finds the error there, and not nothing.

SARIF has a run without results that was not successful, JUnit a test with an error, JSON an object with `error` in
place of all else. Other formats are for people, who read standard error.
"""

from __future__ import annotations

import json
import time
from typing import Final

from rtui import __version__
from rtui.analysis.formats.junit import failure_junit
from rtui.analysis.formats.sarif import failure_sarif

_FORMATS: Final = {"check": "rtui findings"}
"""How the JSON of a command is called, where that is not by its name."""


def failure_text(form: str, command: str, title: str, happened: str, exit_code: int) -> str:
    """Return the document; empty for formats that are for people. Texts have to be safe."""
    if form == "sarif":
        return failure_sarif(f"{title}: {happened}", exit_code)
    if form == "junit":
        return failure_junit(command, title, happened, time.time())
    if form != "json":
        return ""
    error = {"title": title, "happened": happened, "exit_code": exit_code}
    document = {"format": _FORMATS.get(command, f"rtui {command}"), "rtui": __version__, "error": error}
    return json.dumps(document, indent=2) + "\n"
