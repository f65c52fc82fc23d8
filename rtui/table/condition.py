"""A condition on the rows of the key table, as expressions: true, false, or null where a needed fact is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl


@dataclass(frozen=True, slots=True)
class Condition:
    """What rows have to be like; without any part, all rows are."""

    names: tuple[pl.Expr, ...] = ()
    """About `name`, `raw` and `slot`, never null; those that cost least first."""
    facts: pl.Expr | None = None
    """About all other columns; null where it can't be decided by what is known."""
    columns: tuple[str, ...] = ()
    """The columns of `facts`."""

    @property
    def expression(self) -> pl.Expr:
        """All of it as one expression."""
        parts = [*([] if self.facts is None else [self.facts]), *self.names]
        return pl.all_horizontal(*parts) if parts else pl.lit(True)

    def undecided(self) -> pl.Expr:
        """Return the column whose null keeps a row from being decided, the first one of several."""
        return pl.coalesce(pl.when(pl.col(column).is_null()).then(pl.lit(column)) for column in self.columns)


EVERY_ROW: Final = Condition()
"""All rows."""
