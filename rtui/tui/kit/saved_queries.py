"""Queries under names, which the settings file remembers for each profile or server: `@big` stands for what was saved.

A name is a word of letters, digits, `-` and `_`. In a line, a word of `@` and a name that is known is replaced by the
query; any other word with `@` is a part of a name, as before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rtui.keyspace.text.matching import nearest_word
from rtui.server.wire.target import Target
from rtui.tui.kit.settings import NAMED, Settings, SettingsError, SettingsFile

_NAME: Final = re.compile(NAMED)
_WORD: Final = re.compile(rf"(?<!\S)@({NAMED})(?!\S)")


def place_of(target: Target) -> str:
    """Return what the queries of a server are saved under: its profile, else its address."""
    return target.name or str(target.label)


def saved_queries(settings: Settings, target: Target) -> Mapping[str, str]:
    """Return the queries of a server by their names."""
    return settings.queries.get(place_of(target), {})


def expanded(line: str, saved: Mapping[str, str]) -> str:
    """Return a line with the queries in place of their names."""
    return _WORD.sub(lambda found: saved.get(found[1], found[0]), line)


def unknown_names(line: str, saved: Mapping[str, str]) -> dict[str, str | None]:
    """Return the words of a line that look like the name of a query and are none, each with the nearest name."""
    unknown = [found[1] for found in _WORD.finditer(line) if found[1] not in saved]
    return {name: nearest_word(name, saved) for name in unknown}


def save_query(settings: SettingsFile, target: Target, name: str, line: str) -> None:
    """Remember a query under a name; raises SettingsError for a name that is none."""
    if not _NAME.fullmatch(name):
        raise SettingsError("A name has up to 40 letters, digits, - and _, and no blanks.")
    settings.choose(f"queries.{place_of(target)}.{name}", line)
