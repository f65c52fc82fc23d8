"""Replies to the same questions about many keys, as columns without holes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from rtui.server.capability import is_key_refusal
from rtui.server.errors import ServerError
from rtui.server.reply import Reply

GONE_TTL: Final = -2
"""What PTTL says of a key that is not there."""

GONE_TYPE: Final = b"none"
"""What TYPE says of a key that is not there."""

Kinds = tuple[type, ...]
"""What each question answers when all is well: bytes or int."""


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


def sort_replies(keys: Sequence[bytes], replies: Sequence[Reply], kinds: Kinds) -> Sorted:
    """Turn replies, key by key and for each key question by question, into columns."""
    width = len(kinds)
    answers = tuple(replies[place::width] for place in range(width))
    if all(map(_is_clean, answers, kinds)):
        return Sorted([Columns(keys, answers)])
    return _sort_each(keys, answers, kinds)


def _is_clean(answers: Sequence[Reply], kind: type) -> bool:
    """Whether every answer is of its kind and none says that the key is gone."""
    if set(map(type, answers)) != {kind}:
        return False
    return GONE_TTL not in answers if kind is int else GONE_TYPE not in answers


def _sort_each(keys: Sequence[bytes], answers: tuple[Sequence[Reply], ...], kinds: Kinds) -> Sorted:
    """The same, key by key."""
    found = Sorted()
    parts: dict[tuple[bool, ...], tuple[list[bytes], list[list[Reply]]]] = {}
    for index, key in enumerate(keys):
        row = [column[index] for column in answers]
        if any(map(_says_gone, row)):
            found.gone += 1
            continue
        has = tuple(type(reply) is kind for reply, kind in zip(row, kinds, strict=True))
        for place, reply in enumerate(row):
            if isinstance(reply, ServerError) and not is_key_refusal(reply):
                found.errors.setdefault(place, reply)
        names, columns = parts.setdefault(has, ([], [[] for _ in kinds]))
        names.append(key)
        for column, reply in zip(columns, row, strict=True):
            column.append(reply)
    for has, (names, columns) in parts.items():
        kept = tuple(column if is_there else None for column, is_there in zip(columns, has, strict=True))
        found.parts.append(Columns(names, cast(tuple[Sequence[Reply] | None, ...], kept)))
    return found


def _says_gone(reply: Reply) -> bool:
    if reply is None or reply in (GONE_TTL, GONE_TYPE):
        return True
    return isinstance(reply, ServerError) and (reply.code == "WRONGTYPE" or "no such key" in reply.text.lower())
