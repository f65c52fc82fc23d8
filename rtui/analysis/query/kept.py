"""The rows that an analysis has kept, and which queries they answer: those about what it has asked of all keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rtui.analysis.columns import Asked, Columns
from rtui.analysis.query.behind import scope_of
from rtui.analysis.query.expressions import COLUMN_OF
from rtui.analysis.query.matches import Order
from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import Scope
from rtui.keyspace.text.display import SafeText
from rtui.table.rows import KeptRows

_ASKED_OF: Final[dict[Fact, Callable[[Columns], Asked]]] = {
    Fact.TTL: lambda columns: columns.ttl,
    Fact.MEMORY: lambda columns: columns.memory,
    Fact.IDLE: lambda columns: columns.idle,
    Fact.FREQUENCY: lambda columns: columns.idle,
    Fact.LENGTH: lambda columns: columns.length,
    Fact.ENCODING: lambda columns: columns.encoding,
}
"""Of which keys an analysis asks a fact; it always asks the type."""


@dataclass(frozen=True, slots=True)
class PassRows:
    """The rows of an analysis, and what it asked of which keys."""

    rows: KeptRows
    scope: Scope

    def why_not(self, query: Query, order: Order | None = None) -> SafeText | None:
        """Return why a query can't be answered by the rows, as a sentence; None where it can."""
        if self.rows.why_none:
            hint = "" if self.rows.may_use_files else "; the setting rows.files keeps them in files"
            return SafeText(f"The server is asked: no rows of the analysis are kept, since {self.rows.why_none}{hint}.")
        narrower = [term for term in scope_of(self.scope).terms if term not in query.terms]
        if narrower:
            terms = " ".join(str(term) for term in narrower)
            return SafeText(f"The server is asked: the analysis was of {terms} only.")
        for fact in (*query.facts, *([] if order is None or order.fact is Fact.NAME else [order.fact])):
            if not self.knows(fact):
                is_of_some = COLUMN_OF[fact] in self.rows.known
                which = "some keys only" if is_of_some else "no key"
                return SafeText(f"The server is asked: the analysis knows {fact.command} of {which}.")
        return None

    def knows(self, fact: Fact) -> bool:
        """Return whether it was asked of all keys, and answered for some."""
        asked_of = _ASKED_OF.get(fact)
        is_of_all = asked_of is None or asked_of(self.scope.columns) is Asked.ALL
        return is_of_all and COLUMN_OF[fact] in self.rows.known
