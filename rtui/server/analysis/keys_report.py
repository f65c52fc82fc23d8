"""The report of files of keys: their rows go through the same sums as those of a pass.

One file that a pass has written gives the report of that pass. Several are one pass over all of them: nodes, databases
and days add up. A key that is in two of them counts twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import polars as pl
from msgspec import structs

from rtui import __version__
from rtui.analysis.columns import Asked, Columns
from rtui.analysis.formats.json import KeysHead
from rtui.analysis.query.behind import scope_of
from rtui.analysis.report.document import (
    ClusterReport,
    ColumnReport,
    ColumnState,
    CostReport,
    Coverage,
    CoverageKind,
    Head,
    Report,
    Scope,
    ServerReport,
    SlotRanges,
)
from rtui.analysis.report.figures import Counted
from rtui.analysis.report.members import TEXT_LIMIT
from rtui.keyspace.slices import finish
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.report_head import joined_column
from rtui.server.options import AnalysisOptions
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.table.aggregates import Aggregates, Collected
from rtui.table.kept_rows import condition_of
from rtui.table.keys_file import KeysFile, KeysFileError
from rtui.table.rows import KeptRows

if TYPE_CHECKING:  # few write files
    from rtui.table.keys_file import KeysWriter

T = TypeVar("T")

UNTOLD: Final = "the file does not say whether it has all keys"

_COLUMNS: Final = {
    "type": "type",
    "ttl": "expires_ms",
    "memory": "memory_bytes",
    "idle": "idle_s",
    "frequency": "frequency",
    "length": "length",
    "encoding": "encoding",
}
"""By the fact in the head of a report, the column of a file."""


class UnreadableKeysError(RtuiError):
    """A file that can't be read as keys."""

    exit_code = ExitCode.USAGE

    def __init__(self, path: Path, error: KeysFileError) -> None:
        super().__init__("The file of keys can't be read", f"{display_text(str(path))}: {error}.")


def opened(path: Path) -> KeysFile:
    """Open a file of keys; raises UnreadableKeysError."""
    try:
        return KeysFile.open(path)
    except KeysFileError as error:
        raise UnreadableKeysError(path, error) from None


class SummedFile(NamedTuple):
    """A file whose keys were added up; can be pickled."""

    path: Path
    height: int
    """Its rows."""
    head: KeysHead


def report_of(files: Sequence[KeysFile], options: AnalysisOptions, kept: KeptRows | None = None) -> Report:
    """Return the report of all rows, which are `kept`, or written elsewhere by `write_to` of the options.

    Raises UnreadableKeysError, and OSError for what can't be written.
    """
    files = [one for file in files for one in file.of_passes()]
    heads = [file.head or _untold_head(file) for file in files]
    began_at_s = min(one.began_at_s for one in heads)
    writer = None if options.write_to is None else options.write_to(began_at_s, lambda: None)
    found = _new_sums(heads, options, began_at_s, writer or kept)
    return _finished(
        found, [_add(found, file, head, options) for file, head in zip(files, heads, strict=True)], options
    )


def sums_of(file: KeysFile, options: AnalysisOptions) -> tuple[Collected, SummedFile]:
    """Return the sums of a file, in bins of `began_at_s` of the options; raises UnreadableKeysError."""
    head = file.head or _untold_head(file)
    found = _new_sums([head], options, options.began_at_s or head.began_at_s)
    summed = _add(found, file, head, options)
    return found.collected(), summed


def report_of_sums(
    sums: Collected, files: Sequence[SummedFile], options: AnalysisOptions, missing: Sequence[SafeText] = ()
) -> Report:
    """Return the report of files whose sums were added up with the same `began_at_s`; others are `missing`."""
    began_at_s = options.began_at_s or min(one.head.began_at_s for one in files)
    found = _new_sums([one.head for one in files], options, began_at_s)
    finish(found.merge(sums))
    return _finished(found, files, options, missing)


def _new_sums(
    heads: Sequence[KeysHead], options: AnalysisOptions, began_at_s: float, rows: KeptRows | KeysWriter | None = None
) -> Aggregates:
    scope, separators = _scope(heads, options), Separators(options.separators)
    return Aggregates(separators, scope=scope, started_at_s=began_at_s, registry=options.registry, rows=rows)


def _scope(heads: Sequence[KeysHead], options: AnalysisOptions) -> Scope:
    scopes = [one.head.scope for one in heads]
    return Scope(
        separators=options.separators,
        match=options.match or _if_same([one.match for one in scopes]),
        key_type=options.key_type or _if_same([one.key_type for one in scopes]),
        depth=options.depth,
        top=options.top,
        pace=_if_same([one.pace for one in scopes]) or "",
        preset=options.preset,
        columns=_joined_columns([one.columns for one in scopes]),
    )


def _filter(options: AnalysisOptions) -> Scope:
    return Scope(match=options.match, key_type=options.key_type)


def _finished(
    found: Aggregates, files: Sequence[SummedFile], options: AnalysisOptions, missing: Sequence[SafeText] = ()
) -> Report:
    heads, is_filtered = [one.head for one in files], _filter(options).is_filtered
    summary = finish(found.summary())
    coverage = _coverage(files, found.counted, missing, is_filtered=is_filtered)
    head = _joined_heads([one.head for one in heads])
    notes = (*head.notes, SafeText(f"The keys are from {', '.join(display_text(one.path.name) for one in files[:9])}."))
    scope = _scope(heads, options)
    head = structs.replace(head, scope=scope, coverage=coverage, notes=notes, rtui_version=__version__)
    if len(files) > 1 or is_filtered:
        return Report(head, summary)
    (only,) = heads
    slots = structs.replace(summary.slots, owned=_owned(only.cluster))
    return Report(head, structs.replace(summary, slots=slots), only.hot, only.keysizes, only.cluster)


def _owned(cluster: ClusterReport | None) -> SlotRanges | None:
    return None if cluster is None else tuple(sorted(pair for node in cluster.nodes for pair in node.slots))


def _add(found: Aggregates, file: KeysFile, head: KeysHead, options: AnalysisOptions) -> SummedFile:
    """Add the rows of a file that a filter lets through; raises UnreadableKeysError."""
    asked, made_at_ms = _filter(options), round(1000 * head.head.made_at_s)
    condition = condition_of(scope_of(asked), Separators((b":",)), 0)
    tests = [*condition.names, *([] if condition.facts is None else [condition.facts])]
    known = Counter[str]()
    is_told = "asked_ms" in file.columns
    try:
        for table in file.tables():
            rows = table.filter(*tests) if tests else table
            known.update({name: rows.height - rows[name].null_count() for name in _COLUMNS.values()})
            is_unread = pl.all_horizontal(pl.col("asked_ms", *_COLUMNS.values()).is_null() & is_told)
            for part, unread in ((rows.filter(~is_unread), False), (rows.filter(is_unread), True)):
                if part.height:
                    found.fold(part.with_columns(pl.col("asked_ms").fill_null(made_at_ms)), is_unread=unread)
    except KeysFileError as error:
        raise UnreadableKeysError(file.path, error) from None
    if file.head is None:
        head = structs.replace(head, head=_with_columns(head.head, known, file.height))
    if not asked.is_filtered:
        found.add_vanished(head.head.coverage.vanished)
    return SummedFile(file.path, file.height, head)


def _untold_head(file: KeysFile) -> KeysHead:
    """Return the head of a file that says nothing of its pass: made when it was written, partial maybe."""
    made_at_s = max(part.path.stat().st_mtime for part in file.parts)
    asked = {one: Asked.ALL if _COLUMNS[one] in file.columns else Asked.NONE for one in ("ttl", "memory", "idle")}
    asked |= {one: Asked.ALL if one in file.columns else Asked.NONE for one in ("length", "encoding")}
    if "frequency" in file.columns:
        asked["idle"] = Asked.ALL
    scope = Scope(columns=Columns(**asked))
    coverage = Coverage(CoverageKind.PARTIAL, file.height, reason=UNTOLD)
    head = Head(made_at_s, ServerReport(display_text(file.path.name, limit=200)), scope, coverage)
    return KeysHead("rtui keys", 1, file.height, made_at_s, head)


def _with_columns(head: Head, known: Counter[str], height: int) -> Head:
    """Return the head with the facts that are known of these rows."""
    columns = {}
    for fact, column in _COLUMNS.items():
        if known[column] == height:
            columns[fact] = ColumnReport(ColumnState.COMPLETE)
        elif known[column]:
            columns[fact] = ColumnReport(ColumnState.SOME, SafeText(f"the file has it of {known[column]:,} keys"))
        else:
            columns[fact] = ColumnReport(ColumnState.NOT_ASKED, SafeText("the file does not have it"))
    return structs.replace(head, columns=columns)


def _coverage(
    files: Sequence[SummedFile], counted: Counted, missing: Sequence[SafeText], *, is_filtered: bool
) -> Coverage:
    """Return the coverage of the keys counted: of all the keys that the passes covered, as far as they say so."""
    coverages = [one.head.head.coverage for one in files]
    reasons = dict.fromkeys([*missing, *(one.reason for one in coverages if one.reason)])
    is_partial = bool(missing) or any(one.kind is CoverageKind.PARTIAL for one in coverages)
    for path, height, head in files:
        if height != head.rows:
            is_partial = True
            reasons[f"{path.name} has {height:,} rows, and {head.rows:,} were written"] = None
    totals = [one.total_keys for one in coverages]
    known = [one for one in totals if isinstance(one, int)]
    whole = sum(known) if len(known) == len(totals) and not (is_filtered or missing) else None
    fractions = [one.fraction for one in coverages]
    return Coverage(
        CoverageKind.PARTIAL if is_partial else CoverageKind.EXACT,
        counted.keys,
        (fractions[0] if len(fractions) == 1 and not missing else None) if is_partial else 1.0,
        whole if is_partial else counted.keys + counted.unread_keys,
        vanished=counted.vanished_keys,
        unread=counted.unread_keys,
        repeats_possible=any(one.repeats_possible for one in coverages),
        reason=display_text("; ".join(reasons), limit=TEXT_LIMIT),
    )


def _joined_heads(heads: Sequence[Head]) -> Head:
    """Return one head for several: what they agree on, and the sums of what the passes cost."""
    if len(heads) == 1:
        return heads[0]
    servers = [one.server for one in heads]
    labels = dict.fromkeys(one.label for one in servers)
    label = ", ".join(labels) if len(labels) < 4 else f"{len(labels):,} servers"
    same = {name: _if_same([getattr(one, name) for one in servers]) for name in ServerReport.__struct_fields__}
    known = {name: value for name, value in same.items() if value is not None and name != "label"}
    facts = [name for name in _COLUMNS if all(name in one.columns for one in heads)]
    return Head(
        max(one.made_at_s for one in heads),
        ServerReport(display_text(label, limit=200), **known),
        heads[0].scope,
        heads[0].coverage,
        _joined_cost([one.cost for one in heads]),
        {name: joined_column([one.columns[name] for one in heads], "file") for name in facts},
        tuple(dict.fromkeys(note for one in heads for note in one.notes)),
    )


def _joined_cost(costs: Sequence[CostReport]) -> CostReport:
    return CostReport(
        commands=sum(one.commands for one in costs),
        bytes_in=sum(one.bytes_in for one in costs),
        bytes_out=sum(one.bytes_out for one in costs),
        server_us=sum(one.server_us for one in costs),
        is_measured=all(one.is_measured for one in costs),
        elapsed_s=sum(one.elapsed_s for one in costs),
    )


def _joined_columns(columns: Sequence[Columns]) -> Columns:
    """Return of which keys each fact was asked; of some where the files differ."""
    each = {one.name: _if_same([getattr(some, one.name) for some in columns]) for one in fields(Columns)}
    return Columns(**{name: Asked.SAMPLED if asked is None else asked for name, asked in each.items()})


def _if_same(values: Sequence[T]) -> T | None:
    return values[0] if all(one == values[0] for one in values) else None
