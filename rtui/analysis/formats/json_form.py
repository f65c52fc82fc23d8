"""A report as JSON: what is in the file, and writing it.

The file is one object, in ASCII: `"format": "rtui report"`, `"schema"`, the version of what follows, and the members
`head`, `summary`, `hot` and `keysizes`. `report.schema.json`, beside this module, says it for machines; it follows from
the shapes below, which also write and read.

* Units are in the names: `memory_bytes`, `ttl_ms`, `idle_s`, `made_at_s` (seconds since the epoch), `share_of_keys`
  (0 … 1). A member called `keys` is a number of keys, and a list of them in the lists of keys.
* A number is exact; or in a partial report (`head.coverage.kind`) at least so much, if it is a count or a sum. An
  estimate has its 95 % interval beside it: `"keys": 1200, "keys_interval": [1100, 1300]`.
* What is not known is null. Why is in `head.columns`, by fact: `{"memory": {"state": "denied", "reason": …}}`.
* Names are bytes: `"key"` is the text, or null where the bytes are no UTF-8, and `"key_quoted"` all of them, between
  double quotes and with `\\xNN`, as `redis-cli --quoted-input` takes them.
* `summary.namespaces` is a flat list, each namespace before those below it, with its `depth`; the first is the whole
  keyspace, depth 0. `kind` tells a pattern such as `{id}` from a segment of that name.
* `ttl_keys`, `idle_keys` and `frequency_keys` are histograms between the borders that `histograms` names: one item more
  than borders, each for what is below its border and not below the one before.
* `ttl_ms` of a key is -1 where it does not expire.

A member that a reader does not know is to be passed over; `schema` grows with every change that it would misread.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from typing import Any, Final

from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.formats.json_records import (
    ByName,
    ByText,
    Counts,
    Figures,
    Many,
    Maybe,
    Names,
    Pairs,
    Record,
    Texts,
)
from rtui.analysis.formats.json_shapes import Amount, Choice, Flag, Json, Name, Number, Text, Whole
from rtui.analysis.formats.json_tree import Tree
from rtui.analysis.report.document import (
    FREQUENCY_EDGES,
    IDLE_EDGES_S,
    SCHEMA,
    TTL_EDGES_S,
    BigReport,
    Cliff,
    ColumnReport,
    ColumnState,
    CostReport,
    Coverage,
    CoverageKind,
    EncodingReport,
    ExpiryBin,
    ExpiryReport,
    Head,
    HotKey,
    HotList,
    HotReport,
    HotSource,
    KeyRecord,
    KeySizes,
    Node,
    NodeKind,
    Quantiles,
    Report,
    Scope,
    ServerReport,
    SlotLoad,
    SlotsReport,
    SlotTag,
    Stats,
    Summary,
    Timeline,
    TypeReport,
)
from rtui.keyspace.slots import SLOTS

FORMAT: Final = "rtui report"
"""What the file says it is."""

_SERVER: Final = Record(
    ServerReport,
    {
        "label": Text(),
        "product": Text(),
        "version": Text(),
        "role": Text(),
        "db": Whole(),
        "run_id": Text(),
        "cluster_enabled": Flag(),
        "maxmemory_policy": Text(),
        "used_memory_bytes": Maybe(Whole()),
        "maxmemory_bytes": Maybe(Whole()),
        "no_touch": Text(),
    },
)
_SCOPE: Final = Record(
    Scope,
    {
        "separators": Names(),
        "match": Maybe(Name()),
        "kind": Maybe(Name()),
        "depth": Maybe(Whole()),
        "top": Whole(),
        "pace": Text(),
        "preset": Text(),
    },
    kind="type",
)
_COVERAGE: Final = Record(
    Coverage,
    {
        "kind": Choice(CoverageKind),
        "keys": Whole(),
        "fraction": Maybe(Number()),
        "total_keys": Maybe(Amount()),
        "vanished": Whole(),
        "unread": Whole(),
        "repeats_possible": Flag(),
        "reason": Text(),
    },
    vanished="vanished_keys",
    unread="unread_keys",
)
_COST: Final = Record(
    CostReport,
    {
        "commands": Whole(),
        "bytes_in": Whole(),
        "bytes_out": Whole(),
        "server_us": Number(),
        "is_measured": Flag(),
        "elapsed_s": Number(),
    },
)
_COLUMN: Final = Record(ColumnReport, {"state": Choice(ColumnState), "reason": Text()})
_HEAD: Final = Record(
    Head,
    {
        "made_at_s": Number(),
        "server": _SERVER,
        "scope": _SCOPE,
        "coverage": _COVERAGE,
        "cost": _COST,
        "columns": ByText(_COLUMN),
        "notes": Texts(Text()),
        "rtui_version": Text(),
    },
)
_QUANTILES: Final = Record(
    Quantiles,
    {"mean": Amount(), "p50": Amount(), "p90": Amount(), "p99": Amount(), "max": Whole(), "error": Number()},
    error="relative_error",
)
_STATS: Final = Record(
    Stats,
    {
        "keys": Amount(),
        "share_keys": Amount(),
        "memory_bytes": Maybe(Amount()),
        "share_memory": Maybe(Amount()),
        "memory_known_keys": Whole(),
        "memory": Maybe(_QUANTILES),
        "no_ttl_keys": Maybe(Amount()),
        "no_ttl_share": Maybe(Amount()),
        "no_ttl_memory_bytes": Maybe(Amount()),
        "ttl": Maybe(Figures(len(TTL_EDGES_S) + 1)),
        "soonest_expiry_s": Maybe(Number()),
        "idle": Maybe(Figures(len(IDLE_EDGES_S) + 1)),
        "frequency": Maybe(Figures(len(FREQUENCY_EDGES) + 1)),
        "types": Pairs(("type", Name()), ("keys", Amount())),
    },
    share_keys="share_of_keys",
    share_memory="share_of_memory",
    memory="memory_bytes_of_a_key",
    ttl="ttl_keys",
    idle="idle_keys",
    frequency="frequency_keys",
)
_NODE: Final = Record(
    Node,
    {"name": Name(), "separator": Name(), "kind": Choice(NodeKind), "distinct": Maybe(Whole()), "stats": _STATS},
    name="segment",
    distinct="distinct_names",
)
_TYPE: Final = Record(
    TypeReport,
    {"name": Name(), "stats": _STATS, "length": Maybe(_QUANTILES), "unit": Text()},
    name="type",
    unit="length_unit",
)
_ENCODING: Final = Record(
    EncodingReport,
    {"kind": Name(), "encoding": Name(), "keys": Amount(), "share": Amount()},
    kind="type",
    share="share_of_type",
)
_KEY: Final = Record(
    KeyRecord,
    {
        "key": Name(),
        "kind": Maybe(Name()),
        "memory_bytes": Maybe(Whole()),
        "length": Maybe(Whole()),
        "ttl_ms": Maybe(Whole(-1)),
        "idle_s": Maybe(Whole()),
        "frequency": Maybe(Whole()),
        "encoding": Maybe(Name()),
        "asked_at_s": Number(),
        "note": Text(),
    },
    kind="type",
)
_BIG: Final = Record(
    BigReport,
    {
        "by_memory": Many(_KEY),
        "by_length": Many(_KEY),
        "by_type_memory": ByName("type", "keys", Many(_KEY)),
        "by_type_length": ByName("type", "keys", Many(_KEY)),
        "over": ByName("type", "keys", Amount()),
    },
    over="over_threshold",
)
_EXPIRY_BIN: Final = Record(
    ExpiryBin, {"start_s": Number(), "width_s": Number(), "keys": Amount(), "memory_bytes": Maybe(Amount())}
)
_TIMELINE: Final = Record(Timeline, {"path": Names(), "label": Text(), "bins": Many(_EXPIRY_BIN)})
_CLIFF: Final = Record(
    Cliff,
    {
        "path": Names(),
        "label": Text(),
        "start_s": Number(),
        "end_s": Number(),
        "keys": Amount(),
        "share": Amount(),
        "memory_bytes": Maybe(Amount()),
        "expected_keys": Amount(),
    },
    share="share_of_namespace",
)
_EXPIRY: Final = Record(
    ExpiryReport,
    {"timelines": Many(_TIMELINE), "cliffs": Many(_CLIFF), "false_alarms": Number()},
    false_alarms="expected_false_alarms",
)
_TAG: Final = Record(
    SlotTag,
    {"slot": Whole(0, SLOTS - 1), "tag": Name(), "keys": Amount(), "memory_bytes": Maybe(Amount()), "at_least": Flag()},
)
_SLOTS: Final = Record(
    SlotsReport,
    {
        "keys": Counts(lambda counts: array("Q", counts), SLOTS),
        "memory_bytes": Maybe(Counts(lambda counts: array("Q", counts), SLOTS)),
        "tags": Many(_TAG),
        "owned": Maybe(Pairs(("first", Whole(0, SLOTS - 1)), ("last", Whole(0, SLOTS - 1)))),
        "unmeasured": Maybe(Counts(lambda counts: array("Q", counts), SLOTS)),
    },
    owned="owned_slots",
    unmeasured="keys_without_memory",
)
_SUMMARY: Final = Record(
    Summary,
    {
        "root": Tree(_NODE),
        "types": Many(_TYPE),
        "encodings": Many(_ENCODING),
        "big": _BIG,
        "hottest": Many(_KEY),
        "expiry": _EXPIRY,
        "slots": _SLOTS,
        "folded": Whole(),
    },
    root="namespaces",
    folded="folded_keys",
)
_HOT_KEY: Final = Record(HotKey, {"record": _KEY, "value": Number(), "at_least": Flag()})
_HOT_LIST: Final = Record(HotList, {"title": Text(), "unit": Text(), "keys": Many(_HOT_KEY)})
_SLOT_LOAD: Final = Record(SlotLoad, {"slot": Whole(0, SLOTS - 1), "values": ByText(Whole())})
_LFU: Final = Record(LfuSettings, {"log_factor": Whole(), "decay_minutes": Whole(), "assumed": Flag()})
_HOT: Final = Record(
    HotReport,
    {
        "source": Choice(HotSource),
        "about": Text(),
        "age_s": Maybe(Number()),
        "better": Texts(Text()),
        "lists": Many(_HOT_LIST),
        "slots": Many(_SLOT_LOAD),
        "lfu": Maybe(_LFU),
        "idle_basis": Choice(IdleBasis),
    },
)
_KEY_SIZES: Final = Record(KeySizes, {"name": Text(), "bins": Pairs(("from_length", Whole()), ("keys", Whole()))})
REPORT: Final = Record(Report, {"head": _HEAD, "summary": _SUMMARY, "hot": _HOT, "keysizes": Many(_KEY_SIZES)})
"""The shape of everything but `format` and `schema`."""

_HISTOGRAMS: Final[Json] = {
    "ttl_edges_s": list(TTL_EDGES_S),
    "idle_edges_s": list(IDLE_EDGES_S),
    "frequency_edges": list(FREQUENCY_EDGES),
}


def document(report: Report) -> Json:
    """Return the report as the object that the file holds."""
    return {"format": FORMAT, "schema": SCHEMA, "histograms": _HISTOGRAMS, **REPORT.write(report)}


def write_json(report: Report) -> str:
    """Return the file, in ASCII, an item of a long list a line; it ends with a line feed."""
    return "".join(_laid_out(document(report), 0)) + "\n"


def json_schema() -> Json:
    """Return what is in the file as JSON Schema."""
    described = REPORT.described()
    first = {
        "format": {"const": FORMAT},
        "schema": {"const": SCHEMA},
        "histograms": {"type": "object", "additionalProperties": {"type": "array"}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": FORMAT,
        "type": "object",
        "properties": {**first, **described["properties"]},
        "required": ["format", "schema", *described["required"]],
    }


_OPEN_LEVELS: Final = 3
"""Levels of objects whose members have lines of their own."""


def _laid_out(value: Any, level: int) -> Iterator[str]:
    """Yield the text of a value: the outer levels a member a line, lists of objects an item a line."""
    pad = " " * (level + 1)
    if isinstance(value, dict) and value and level < _OPEN_LEVELS:
        before = "{\n"
        for name, one in value.items():
            yield f"{before}{pad}{json.dumps(name)}: "
            yield from _laid_out(one, level + 1)
            before = ",\n"
        yield f"\n{pad[1:]}}}"
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield "[\n" + pad
        yield f",\n{pad}".join(json.dumps(one, allow_nan=False) for one in value)
        yield f"\n{pad[1:]}]"
    else:
        yield json.dumps(value, allow_nan=False)
