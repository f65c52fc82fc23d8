"""What Enter on a row of a table leads to: the key that it names, or a sentence that says what the row stands for."""

from __future__ import annotations

from typing import Final

from rtui.analysis.report import NodeKind
from rtui.analysis.tables.place import Path, label
from rtui.analysis.tables.table import Subject
from rtui.keyspace.display import SafeText
from rtui.tui.shown import display

NAME_LIMIT: Final = 60
"""Characters of a name that a sentence has room for."""


def key_of(subject: Subject) -> bytes | None:
    """Return the key that a row is about, None where it is about many or about something else.

    `shop:config` in a table of namespaces is a key: no segment of it is a pattern, and no separator ends it.
    """
    if isinstance(subject, bytes):
        return subject
    if not isinstance(subject, tuple) or not subject or subject[-1].separator:
        return None
    return label(subject) if all(step.kind is NodeKind.LITERAL for step in subject) else None


def meaning(subject: Subject, title: SafeText) -> SafeText:
    """Return what a row stands for that leads nowhere; `title` is that of its table."""
    if isinstance(subject, tuple):
        return _meaning_of_path(subject)
    if isinstance(subject, int):
        return SafeText(f"Slot {subject} only counts its keys: the report does not keep their names.")
    return SafeText(f"A row of “{title}” only adds up keys: the report does not keep their names.")


def _meaning_of_path(path: Path) -> SafeText:
    """Return what a namespace or pattern stands for."""
    name = display(label(path), limit=NAME_LIMIT)
    kinds = {step.kind for step in path}
    if NodeKind.OTHER in kinds:
        return SafeText("This row adds up what was too much to be kept apart: it has no names of its own.")
    if NodeKind.PATTERN in kinds:
        return SafeText(f"{name} is a pattern: it stands for all names that differ only there, and lists none of them.")
    return SafeText(f"{name} is a namespace: the Memory panel shows what it holds.")
