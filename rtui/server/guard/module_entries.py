"""Entries for types that modules bring: their sizes and descriptions, never their contents."""

from __future__ import annotations

from typing import Final

from rtui.server.guard.shape import Key
from rtui.server.guard.spec import Group, Spec, Version

_COST: Final = "constant"
_SIZE: Final = "a size, without the content"
_DESCRIPTION: Final = "a description, without the content"


def _module(words: str, group: Group, why: str, since: Version, valkey: Version | None = None) -> Spec:
    return Spec(
        (words.encode(),),
        (Key(),),
        group,
        _COST,
        why,
        since_redis=since,
        since_valkey=valkey,
        touches=True,
        counts=True,
        is_optional=True,
        writes_key_spec=group is Group.VECTORS,
    )


MODULES: Final = (
    _module("VCARD", Group.VECTORS, _SIZE, (8, 0)),
    _module("VDIM", Group.VECTORS, _SIZE, (8, 0)),
    _module("VINFO", Group.VECTORS, _DESCRIPTION, (8, 0)),
    _module("JSON.TYPE", Group.JSON, _DESCRIPTION, (4, 0), (8, 0)),
    _module("JSON.OBJLEN", Group.JSON, _SIZE, (4, 0), (8, 0)),
    _module("JSON.ARRLEN", Group.JSON, _SIZE, (4, 0), (8, 0)),
    _module("JSON.STRLEN", Group.JSON, _SIZE, (4, 0), (8, 0)),
    _module("TS.INFO", Group.TIMESERIES, _DESCRIPTION, (4, 0)),
    _module("BF.INFO", Group.BLOOM, _DESCRIPTION, (4, 0), (8, 0)),
    _module("CF.INFO", Group.BLOOM, _DESCRIPTION, (4, 0)),
    _module("CMS.INFO", Group.BLOOM, _DESCRIPTION, (4, 0)),
    _module("TOPK.INFO", Group.BLOOM, _DESCRIPTION, (4, 0)),
    _module("TDIGEST.INFO", Group.BLOOM, _DESCRIPTION, (4, 0)),
)
"""What describes values of module types."""
