"""Entries for types that modules bring: their sizes and descriptions, never their contents."""

from __future__ import annotations

from typing import Final

from rtui.server.guard.shape import Key
from rtui.server.guard.spec import Group, Spec, Version

_SIZE: Final = "a size, without the content"
_DESCRIPTION: Final = "a description, without the content"


def _module(
    words: str,
    group: Group,
    why: str,
    *,
    since: Version = (4, 0),
    valkey: Version | None = None,
    cost: str = "constant, as its manual says",
    in_bulk: bool = False,
) -> Spec:
    return Spec(
        (words.encode(),),
        (Key(),),
        group,
        cost,
        why,
        since_redis=since,
        since_valkey=valkey,
        touches=True,
        counts=True,
        is_optional=True,
        has_write_key_spec=True,
        in_bulk=in_bulk,
    )


_VALKEY_MODULES: Final = (8, 0)
"""The first Valkey that its JSON and Bloom modules are made for."""

_VECTORS: Final = (8, 0)
"""The first Redis with vector sets."""

MODULES: Final = (
    _module("VCARD", Group.VECTORS, _SIZE, since=_VECTORS, cost="constant; 2 µs", in_bulk=True),
    _module("VINFO", Group.VECTORS, _DESCRIPTION, since=_VECTORS, cost="constant; 4 µs"),
    _module("JSON.TYPE", Group.JSON, _DESCRIPTION, valkey=_VALKEY_MODULES),
    _module("JSON.OBJLEN", Group.JSON, _SIZE, valkey=_VALKEY_MODULES),
    _module("JSON.ARRLEN", Group.JSON, _SIZE, valkey=_VALKEY_MODULES),
    _module("JSON.STRLEN", Group.JSON, _SIZE, valkey=_VALKEY_MODULES),
    _module("TS.INFO", Group.TIMESERIES, _DESCRIPTION),
    _module("BF.INFO", Group.BLOOM, _DESCRIPTION, valkey=_VALKEY_MODULES),
    _module("CF.INFO", Group.BLOOM, _DESCRIPTION),
    _module("CMS.INFO", Group.BLOOM, _DESCRIPTION),
    _module("TOPK.INFO", Group.BLOOM, _DESCRIPTION),
    _module("TDIGEST.INFO", Group.BLOOM, _DESCRIPTION),
)
"""What describes values of module types."""
