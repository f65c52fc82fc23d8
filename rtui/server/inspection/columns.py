"""Replies to the same questions about many keys, as columns without holes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from rtui.server.facts.answers import Expected
from rtui.server.scan.page import is_temporary
from rtui.server.wire.capability import is_key_refusal
from rtui.server.wire.errors import ServerBusyError, ServerError
from rtui.server.wire.replies import Reply


@dataclass(slots=True)
class Columns:
    """Keys and, for each question, the answers; None where there is none for any of these keys."""

    keys: Sequence[bytes]
    answers: tuple[Sequence[Reply] | None, ...]


@dataclass(slots=True)
class Sorted:
    """Replies sorted by what was had of each key."""

    parts: list[Columns] = field(default_factory=list)
    """Together all keys that are there; in each part either all keys have an answer to a question or none has."""
    gone: int = 0
    """Keys that are not there any more, or whose name another one of another type has now."""
    errors: dict[int, ServerError] = field(default_factory=dict)
    """By the place of a question, an error that its command was answered with and that is not about one key."""
    unread: Counter[int] = field(default_factory=Counter)
    """By the place of a question, answers that can't be what was asked for."""


def sort_replies(keys: Sequence[bytes], replies: Sequence[Reply], asked: Sequence[Expected]) -> Sorted:
    """Turn replies, key by key and for each key question by question, into columns.

    Raises ServerBusyError when one of them says that the server can't answer just now: then all are to be asked again.
    """
    width = len(asked)
    answers = tuple(replies[place::width] for place in range(width))
    if all(question.all_fit(column) for question, column in zip(asked, answers, strict=True)):
        return Sorted([Columns(keys, answers)])
    return _sort_each(keys, answers, asked)


def _sort_each(keys: Sequence[bytes], answers: tuple[Sequence[Reply], ...], asked: Sequence[Expected]) -> Sorted:
    """The same, key by key."""
    found = Sorted()
    parts: dict[tuple[bool, ...], tuple[list[bytes], list[list[Reply]]]] = {}
    for index, key in enumerate(keys):
        row = [column[index] for column in answers]
        _learn_errors(found, row)
        if any(map(_says_gone, asked, row)):
            found.gone += 1
            continue
        has = tuple(question.fits(reply) for question, reply in zip(asked, row, strict=True))
        found.unread.update(
            place for place, reply in enumerate(row) if not (has[place] or isinstance(reply, ServerError))
        )
        names, columns = parts.setdefault(has, ([], [[] for _ in asked]))
        names.append(key)
        for column, reply in zip(columns, row, strict=True):
            column.append(reply)
    for has, (names, columns) in parts.items():
        kept = tuple(column if is_there else None for column, is_there in zip(columns, has, strict=True))
        found.parts.append(Columns(names, cast(tuple[Sequence[Reply] | None, ...], kept)))
    return found


def _learn_errors(found: Sorted, row: Sequence[Reply]) -> None:
    for place, reply in enumerate(row):
        if isinstance(reply, ServerError):
            if is_temporary(reply):
                raise ServerBusyError(reply.text)
            if not (is_key_refusal(reply) or _is_gone(reply)):
                found.errors.setdefault(place, reply)


def _says_gone(question: Expected, reply: Reply) -> bool:
    return _is_gone(reply) if isinstance(reply, ServerError) else question.says_gone(reply)


def _is_gone(error: ServerError) -> bool:
    return error.code == "WRONGTYPE" or "no such key" in error.text.lower()
