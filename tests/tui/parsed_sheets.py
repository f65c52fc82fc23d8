"""Style sheets that all applications of a test process have together: parsing takes a fifth of opening one."""

from __future__ import annotations

from typing import Any, Final

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

PARSED: Final[LRUCache[tuple[object, ...], list[RuleSet]]] = LRUCache(2_000)
"""The rules of each source under each set of variables; nothing changes rules once they are parsed."""

_parse_rules = Stylesheet._parse_rules


def parse_once(sheet: Stylesheet, css: str, *args: Any, **options: Any) -> list[RuleSet]:
    """In place of `Stylesheet._parse_rules`: parse what no application has parsed yet with the same variables."""
    key = (css, args, tuple(options.items()), tuple(sheet._variables.items()))
    rules = PARSED.get(key)
    if rules is None:
        PARSED[key] = rules = _parse_rules(sheet, css, *args, **options)
    return rules
