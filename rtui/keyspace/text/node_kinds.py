"""The kinds of nodes in the tree of patterns."""

from __future__ import annotations

from enum import StrEnum


class NodeKind(StrEnum):
    """The keys that a node stands for."""

    LITERAL = "literal"
    """Keys with exactly this segment here."""
    PATTERN = "pattern"
    """Keys whose segment is an identifier, differs in a number or is one of too many: `{id}`, `page_{n}`, `{*}`."""
    OTHER = "other"
    """Keys beyond the budget of nodes."""

    __hash__ = str.__hash__  # that of an enumeration is a function in Python, and paths are hashed by the thousand
