"""What a rule finds in the samples of a server: the same Finding as of keys, about a node in place of a namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rtui.analysis.findings.finding import Amount, Finding
from rtui.analysis.health.sample import Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.query.behind import Behind
from rtui.keyspace.text.display import SafeText


@dataclass(frozen=True, slots=True)
class ServerFinder:
    """What looks for the violations of one rule about servers."""

    rule: str
    look: Callable[[HealthView], Iterator[Finding]]
    word: str
    """What is wrong, in a word or two for a title: `fragmented`."""
    fields: tuple[str, ...] = ()
    """Fields of INFO without which it can't be judged."""
    source: Source | None = None
    """The source that these fields, or what else it goes by, are from."""
    applies: Callable[[HealthView], bool] = lambda _view: True
    """Whether there is what it is about, such as replicas, two samples, a report; else it is not looked at."""
    needs_more: bool = False
    """Whether it is not looked at where samples over time, settings or a report are lacking: it may be broken then."""


def of_server(
    view: HealthView,
    rule: str,
    title: str,
    *,
    command: str,
    where: str = "",
    memory: float | None = None,
    keys: Amount | None = None,
    behind: Behind | None = None,
    evidence: Iterable[str] = (),
    example_keys: tuple[bytes, ...] = (),
) -> Finding:
    """Return a finding; texts are safe, `where` is the node unless given, `command` is a line for redis-cli."""
    return Finding(
        rule=rule,
        severity=view.levels.severity(rule),
        title=SafeText(title),
        where=SafeText(f"{view.latest.node} {where}".strip()),
        keys=keys,
        memory=None if memory is None else Amount(round(memory)),
        find_behind=lambda: behind,
        find_command=lambda: SafeText(command),
        evidence=tuple(map(SafeText, evidence)),
        example_keys=example_keys,
    )
