"""Places where something is wrong: how they are called, and lines for redis-cli to look at them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import Node, NodeKind
from rtui.analysis.report.members import Figure
from rtui.keyspace.text.display import SafeText, display, display_text, quoted
from rtui.keyspace.text.glob import escape_glob
from rtui.keyspace.text.java_names import HEADER, MARK, raw_name

_PURPOSE_LIMIT: Final = 120
_NAMED: Final = 3

FOLDED: Final = re.compile(rb"\{[a-z0-9*]+\}")
"""A part of a pattern's name that stands for any text: `{id}`, `{*}`."""

_PLAIN: Final = re.compile(r"[!#-&(-~]+")
"""Characters that redis-cli reads as themselves with and without quotes: printable ASCII but spaces and quotes."""


MOST_NODES: Final = 64
"""Namespaces below another that are searched for examples of its keys."""

MOST_EXAMPLES: Final = 8
"""Keys of one namespace that are taken as examples."""


def least(figure: Figure | None) -> float:
    """Return the lower bound of a number; 0 if it is unknown."""
    if figure is None:
        return 0
    return figure.low if isinstance(figure, Estimate) else figure


def most(figure: Figure) -> float:
    """Return the upper bound of a number."""
    return figure.high if isinstance(figure, Estimate) else figure


def is_one_pattern(path: Sequence[Node]) -> bool:
    """Whether keys end here, and all for the same: no rest of names, no level that was cut off."""
    leaf = path[-1]
    is_of_any = any(node.kind is NodeKind.OTHER or node.is_of_names for node in path)
    return not leaf.children and not leaf.separator and not is_of_any


def below(root: Node) -> Iterator[tuple[Node, ...]]:
    """Yield the paths of all namespaces and patterns, without the whole keyspace."""
    return (path for path in root.walk() if len(path) > 1)


def glob_of(path: Sequence[Node]) -> bytes:
    """Return a glob for a namespace or pattern; it may match other keys, too."""
    parts: list[bytes] = []
    for node in path:
        if node.kind is NodeKind.OTHER:
            return b"".join(parts) + b"*"
        if node.name == MARK and node.kind is NodeKind.LITERAL and len(parts) <= 2:
            parts.append(HEADER + b"??")
            continue
        literals = FOLDED.split(node.name) if node.kind is NodeKind.PATTERN else [node.name]
        parts.append(b"*".join(map(escape_glob, literals)))
        parts.append(escape_glob(node.separator))
    return b"".join(parts) + (b"*" if path[-1].separator or len(path) == 1 else b"")


def example_keys(path: Sequence[Node]) -> tuple[bytes, ...]:
    """Return a few keys of a namespace or pattern, as far as the report has examples of them."""
    found: list[bytes] = []
    for below_it in islice(path[-1].walk(tuple(path[:-1])), MOST_NODES):
        node = below_it[-1]
        if node.kind is NodeKind.LITERAL and not node.separator and not node.children and len(below_it) > 1:
            found.append(raw_name(b"".join(one.name + one.separator for one in below_it)))
        found += node.examples[:1] if node.children or len(below_it) > len(path) else node.examples
    return tuple(found[:MOST_EXAMPLES])


def such_as(path: Sequence[Node], is_one: Callable[[Node], bool]) -> Iterator[SafeText]:
    """Yield a line that names keys of a namespace, of parts of which all keys are meant (`is_one`), else of any."""
    parts = islice(path[-1].walk(tuple(path[:-1])), MOST_NODES)
    meant = [key for part in parts if len(part) > 1 and is_one(part[-1]) for key in example_keys(part)]
    keys = list(dict.fromkeys(meant or example_keys(path)))[:_NAMED]
    if keys:
        names = ", ".join(display(key, limit=_PURPOSE_LIMIT) or "(empty name)" for key in keys)
        yield SafeText(f"{'such as' if meant else 'among keys such as'} {names}")


def purpose_text(purpose: str, owner: str) -> SafeText:
    """Return the purpose and owner of keys; empty if neither is written down."""
    parts = [purpose or "no purpose is written down", *([f"owner {owner}"] if owner else [])]
    return display_text(" · ".join(parts), limit=_PURPOSE_LIMIT) if purpose or owner else SafeText("")


def scan_line(glob: bytes) -> SafeText:
    """Return a line for a POSIX shell that lists the keys of a glob."""
    text = glob.decode("latin-1")
    option, written = ("--pattern", text) if _PLAIN.fullmatch(text) else ("--quoted-pattern", quoted(glob))
    return SafeText(f"redis-cli --scan {option} {shlex.quote(written)}")


def key_line(command: str, key: bytes) -> SafeText:
    """Return a line for a POSIX shell with one command on one key."""
    return SafeText(f"redis-cli --quoted-input {command} {shlex.quote(quoted(key))}")
