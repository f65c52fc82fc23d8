"""Writes found keys as they come: lines of text, a JSON object, CSV, or bare names with NULs.

Text has a line for each key: its facts in columns, then its name, made safe to show. In JSON and CSV a name is text,
in JSON null where it is no UTF-8; beside it `key_quoted` has every byte, as `redis-cli --quoted-input` reads it.
In CSV the last row is of no key, and says whether these are all keys.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from rtui.analysis import humanize
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.formats.csv_and_json import csv_text, guarded
from rtui.analysis.query.matches import FIELD_OF
from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import CoverageKind, KeyRecord
from rtui.keyspace.text.display import Display, SafeText, display, quoted

LONGEST_NAME: Final = 1 << 20
"""Longer names are shortened in text."""

_WIDTHS: Final = {
    Fact.TYPE: 9,
    Fact.TTL: 8,
    Fact.IDLE: 8,
    Fact.FREQUENCY: 4,
    Fact.ENCODING: 10,
    Fact.MEMORY: 9,
    Fact.LENGTH: 11,
}
"""Of the columns of text; a longer value pushes the name to the right."""

_LEFT: Final = frozenset({Fact.TYPE, Fact.ENCODING})

FIELD_NAMES: Final = {**FIELD_OF, Fact.TYPE: "type"}
"""Names of facts in JSON and CSV, with their units."""

_COVERAGE: Final = ("coverage", "notes")
"""The last columns of CSV: empty for keys, filled in the row after them."""


class FoundKeys:
    """The output of one search."""

    def __init__(
        self,
        send: Callable[[str | bytes], object],
        form: str,
        query: Query,
        facts: Sequence[Fact],
        *,
        counts_only: bool = False,
        is_terminal: bool = False,
    ) -> None:
        """`send` writes; `form` is text, json, csv or raw; `facts` are the columns besides the name."""
        self._form, self._query, self._facts, self._counts_only = form, query, facts, counts_only
        self.is_terminal = is_terminal
        self._send = send
        self._display = Display(ascii_only=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8")
        self._is_begun = False
        self._written = 0

    def write(self, records: Sequence[KeyRecord]) -> None:
        """Write some keys; raises ReaderGone and OutputError."""
        if self._counts_only:
            return
        self._begin()
        match self._form:
            case "raw":
                text: str | bytes = b"".join(one.key + b"\0" for one in records)
            case "json":
                text = "".join(f"{self._comma(at)}    {self._json(one)}" for at, one in enumerate(records))
            case "csv":
                text = csv_text([self._csv_row(one) for one in records])
            case _:
                text = "".join(f"{self._line(one)}\n" for one in records)
        self._written += len(records)
        self._send(text)

    def end(self, count: int, *, is_exact: bool, notes: Sequence[SafeText]) -> None:
        """Write what comes after all keys; unless `is_exact` there are at least `count`."""
        is_whole = is_exact and (self._counts_only or self._written == count)
        coverage = [(CoverageKind.EXACT if is_whole else CoverageKind.PARTIAL).value, " ".join(notes)]
        if self._counts_only and self._form != "json":
            self._send(f"{count}\n" if self._form != "csv" else csv_text([["count", *_COVERAGE], [count, *coverage]]))
            return
        self._begin()
        if self._form == "csv":
            self._send(csv_text([["" for _ in ("key", "key_quoted", *self._facts)] + coverage]))
        elif self._form == "json":
            counts = {"listed": self._written, "count": count if is_exact else None, "at_least": count}
            end = {**counts, "complete": is_exact, "notes": list(notes)}
            closing = "" if self._counts_only else "\n  ],\n"
            self._send(f"{closing}  {json.dumps(end)[1:-1]}\n}}\n")

    def _begin(self) -> None:
        if self._is_begun:
            return
        self._is_begun = True
        if self._form == "json":
            self._send(f'{{\n  "format": "rtui find", "query": {json.dumps(str(self._query))},\n')
            if not self._counts_only:
                self._send('  "keys": [')
        elif self._form == "csv":
            self._send(csv_text([["key", "key_quoted", *(FIELD_NAMES[fact] for fact in self._facts), *_COVERAGE]]))
        elif self._form == "text" and self.is_terminal and self._facts:
            self._send(f"{self._columns(lambda fact: SafeText(fact.value))}{Fact.NAME.value}\n")

    def _comma(self, at: int) -> str:
        return ",\n" if self._written or at else "\n"

    def _line(self, record: KeyRecord) -> str:
        def cell(fact: Fact) -> SafeText:
            return fact_text(fact, getattr(record, FIELD_OF[fact]), self._display)

        return f"{self._columns(cell)}{self._display.name(record.key, limit=LONGEST_NAME)}"

    def _columns(self, cell: Callable[[Fact], SafeText]) -> str:
        """Return the cells of a line in columns, each with the space behind it."""
        texts = []
        for fact in self._facts:
            text, width = cell(fact), _WIDTHS[fact]
            texts.append(f"{text:<{width}}  " if fact in _LEFT else f"{text:>{width}}  ")
        return "".join(texts)

    def _json(self, record: KeyRecord) -> str:
        try:
            name: str | None = record.key.decode()
        except UnicodeDecodeError:
            name = None
        values = {FIELD_NAMES[fact]: _plain(getattr(record, FIELD_OF[fact])) for fact in self._facts}
        return json.dumps({"key": name, "key_quoted": quoted(record.key), **values})

    def _csv_row(self, record: KeyRecord) -> list[Any]:
        values = [_plain(getattr(record, FIELD_OF[fact])) for fact in self._facts]
        texts = ["" if value is None else guarded(value) if isinstance(value, str) else value for value in values]
        return [guarded(display(record.key, limit=LONGEST_NAME)), quoted(record.key), *texts, "", ""]


def _plain(value: bytes | int | None) -> str | int | None:
    return display(value) if isinstance(value, bytes) else value


def fact_text(fact: Fact, value: bytes | int | None, shown: Display) -> SafeText:
    """Return a fact as people read it; a dash where it is not known."""
    if value is None:
        return humanize.NOTHING if not shown.ascii_only else SafeText("-")
    if isinstance(value, bytes):
        return shown.name(value)
    match fact:
        case Fact.TTL:
            return SafeText("no TTL") if value == NO_EXPIRY else humanize.duration(value)
        case Fact.IDLE:
            return humanize.seconds(value)
        case Fact.MEMORY:
            return humanize.size(value)
    return humanize.count(value)
