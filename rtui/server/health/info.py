"""Parsing INFO, CLUSTER INFO and CONFIG GET into the fields of samples.

All of it comes from the server: names and texts are made safe, numbers are bounded, and lists are cut. Input of an
unexpected form is left out, and nothing here raises an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rtui.analysis.health.fields import FIELDS, FieldUnit
from rtui.analysis.health.possible import MAX_SAID, with_possible
from rtui.analysis.health.sample import CommandStats, Database, Replica, Sample, Source
from rtui.analysis.report.document import KeySizes
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.guard.closed_list import SETTINGS
from rtui.server.wire.errors import Reply
from rtui.server.wire.identity import parse_info

MAX_NAME: Final = 64
"""The most characters of the name of a command or an error."""

MAX_TEXT: Final = 300
"""The most characters of the value of a field or a setting."""

MAX_COMMANDS: Final = 1_000
"""The most commands kept: a server has some 400, and modules add more."""

MAX_ERRORS: Final = 128
"""The error codes kept, those with the most replies: scripts may invent any number of them."""

MAX_DATABASES: Final = 1_000
MAX_REPLICAS: Final = 100
MAX_PERCENTILES: Final = 10

_FLOAT: Final = re.compile(r"-?[0-9]{1,18}\.[0-9]{1,9}", re.ASCII)
_DATABASE: Final = re.compile(r"db([0-9]{1,9})", re.ASCII)
_REPLICA: Final = re.compile(r"slave([0-9]{1,9})", re.ASCII)
_PERCENTILE: Final = re.compile(r"p([0-9]{1,3}(?:\.[0-9]{1,6})?)", re.ASCII)
_SIZES: Final = re.compile(r"db([0-9]{1,10})_(distrib_[a-z0-9_]{1,50})", re.ASCII)
_BIN: Final = re.compile(r"([0-9]{1,4})([KMGTPE]?)=([0-9]{1,19})", re.ASCII)
_UNITS: Final = {unit: 1 << 10 * power for power, unit in enumerate(("", *"KMGTPE"))}


def has_section(reply: Reply) -> bool:
    """Whether a reply to INFO has the section: a missing section has neither title nor fields."""
    return isinstance(reply, bytes) and (reply.startswith(b"#") or bool(parse_info(reply)))


def parse_fields(source: Source, reply: Reply) -> dict[str, int | float | str]:
    """Read the declared fields of one source: numbers, or safe texts for fields declared as text."""
    found: dict[str, int | float | str] = {}
    for name, text in parse_info(reply).items():
        declared = FIELDS.get(name)
        if declared is None or declared.source is not source:
            continue
        if declared.unit is FieldUnit.TEXT:
            if text:
                found[name] = display_text(text, limit=MAX_TEXT)
        elif (number := _number(text.removesuffix("%"))) is not None:
            found[name] = number
    return found


def unreadable_fields(source: Source, reply: Reply) -> dict[str, str]:
    """Return the declared figures whose values are no numbers, such as `nan`, as safe texts."""
    found: dict[str, str] = {}
    for name, text in parse_info(reply).items():
        declared = FIELDS.get(name)
        is_figure = declared is not None and declared.source is source and declared.unit is not FieldUnit.TEXT
        if is_figure and text and _number(text.removesuffix("%")) is None:
            found[name] = display_text(text, limit=MAX_SAID)
    return found


def unreadable_lists(source: Source, reply: Reply) -> dict[str, str]:
    """Return the counts of databases, commands and errors that are no numbers, as safe texts."""
    found: dict[str, str] = {}
    wanted, needed = _LISTS.get(source, (_DATABASE, ()))
    for name, parts in _matching_lines(reply, wanted, MAX_COMMANDS) if needed else ():
        wrong = [key for key in needed if key in parts and parse_number(parts, key) is None]
        if wrong:
            label = display_text(name, limit=MAX_NAME)
            said = display_text(parts[wrong[0]], limit=MAX_SAID)
            found[f"{'db' if source is Source.INFO_KEYSPACE else ''}{label} {wrong[0]}"] = said
    return found


def _number(text: str) -> int | float | None:
    """Read a number of INFO; None for other texts, and for numbers of more than MAX_DIGITS."""
    whole = parse_number({"": text}, "")
    return float(text) if whole is None and _FLOAT.fullmatch(text) else whole


MAX_DIGITS: Final = 30
"""More than any valid figure has: an overflowed one can still be read, and recognised as impossible."""

_WHOLE: Final = re.compile(rf"-?[0-9]{{1,{MAX_DIGITS}}}", re.ASCII)


def parse_number(fields: Mapping[str, str], name: str) -> int | None:
    """Read a whole number of any sign from a field; None for other texts."""
    text = fields.get(name, "")
    return int(text) if _WHOLE.fullmatch(text) else None


def parse_databases(reply: Reply) -> dict[int, Database]:
    """Read `db0:keys=3,expires=1,avg_ttl=0` of INFO keyspace."""
    found = {}
    for name, parts in _matching_lines(reply, _DATABASE, MAX_DATABASES):
        keys, expires = parse_number(parts, "keys"), parse_number(parts, "expires")
        if keys is not None and expires is not None:
            found[int(name)] = Database(keys, expires, parse_number(parts, "avg_ttl"))
    return found


def parse_replicas(reply: Reply) -> tuple[Replica, ...]:
    """Read `slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=0` of INFO replication."""
    found = []
    for _, parts in _matching_lines(reply, _REPLICA, MAX_REPLICAS):
        if "ip" in parts:
            address = f"{parts['ip']}:{parts.get('port', '')}"[:MAX_TEXT].encode("utf-8", "replace")
            state = display_text(parts.get("state", ""), limit=MAX_NAME)
            found.append(Replica(address, state, parse_number(parts, "offset"), parse_number(parts, "lag")))
    return tuple(found)


def _matching_lines(reply: Reply, wanted: re.Pattern[str], most: int) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the group of each name that matches the pattern, with the `key=value` pairs after the colon."""
    for name, text in parse_info(reply).items():
        match = wanted.fullmatch(name)
        if match is not None and most > 0:
            most -= 1
            pairs = (part.partition("=") for part in text[: 8 * MAX_TEXT].split(","))
            yield match[1], {key: value for key, equals, value in pairs if equals}


_COMMAND: Final = re.compile(r"cmdstat_(.+)")
_LATENCY: Final = re.compile(r"latency_percentiles_usec_(.+)")
_ERROR: Final = re.compile(r"errorstat_(.+)")
_LISTS: Final = {
    Source.INFO_KEYSPACE: (_DATABASE, ("keys", "expires")),
    Source.COMMAND_STATS: (_COMMAND, ("calls", "usec")),
    Source.ERROR_STATS: (_ERROR, ("count",)),
}
"""The pattern of each list's lines, and the counts required in them."""


def command_name(text: str) -> SafeText:
    """Return the safe name of a command in capitals: `CONFIG|GET`."""
    return SafeText(display_text(text, limit=MAX_NAME).upper())


def parse_commands(reply: Reply) -> dict[str, CommandStats]:
    """Read `cmdstat_config|get:calls=3,usec=249,…,rejected_calls=0,failed_calls=0` of INFO commandstats."""
    found: dict[str, CommandStats] = {}
    for name, parts in _matching_lines(reply, _COMMAND, MAX_COMMANDS):
        calls, took_us = parse_number(parts, "calls"), parse_number(parts, "usec")
        if calls is not None and took_us is not None:
            rejected, failed = parse_number(parts, "rejected_calls"), parse_number(parts, "failed_calls")
            found[command_name(name)] = CommandStats(calls, took_us, rejected, failed)
    return found


def parse_percentiles(reply: Reply) -> dict[str, dict[str, float]]:
    """Read `latency_percentiles_usec_get:p50=1.003,p99=3.007,p99.9=17.023` of INFO latencystats, by command."""
    found: dict[str, dict[str, float]] = {}
    for name, parts in _matching_lines(reply, _LATENCY, MAX_COMMANDS):
        matches = [(_PERCENTILE.fullmatch(key), _number(value)) for key, value in [*parts.items()][:MAX_PERCENTILES]]
        took_us = {match[1]: float(number) for match, number in matches if match is not None and number is not None}
        if took_us:
            found[command_name(name)] = took_us
    return found


def parse_errors(reply: Reply) -> dict[str, int]:
    """Read `errorstat_WRONGTYPE:count=2` of INFO errorstats."""
    found: Counter[str] = Counter()
    for name, parts in _matching_lines(reply, _ERROR, MAX_COMMANDS):
        count = parse_number(parts, "count")
        if count is not None:
            found[display_text(name, limit=MAX_NAME)] += count
    return dict(found.most_common(MAX_ERRORS))


def parse_key_sizes(reply: Reply, db: int | None = None) -> tuple[KeySizes, ...]:
    """Read `db0_distrib_strings_sizes:0=1,1=4,2K=7` of INFO keysizes: keys by lower bounds in binary units.

    Reads one database, or adds up all of them.
    """
    counted: dict[str, Counter[int]] = {}
    for name, text in parse_info(reply).items():
        match = _SIZES.fullmatch(name)
        if match is not None and db in (None, int(match[1])):
            bins = counted.setdefault(match[2], Counter())
            for bin_match in map(_BIN.fullmatch, text.split(",")):
                if bin_match is not None:
                    bins[int(bin_match[1]) * _UNITS[bin_match[2]]] += int(bin_match[3])
    return tuple(KeySizes(name, tuple(sorted(bins.items()))) for name, bins in counted.items() if bins)


def parse_settings(replies: Sequence[Reply]) -> dict[str, str]:
    """Read replies to CONFIG GET, each a flat list of names and values; unknown names are left out."""
    found: dict[str, str] = {}
    for reply in replies:
        flat = [text for text in reply if isinstance(text, bytes)] if isinstance(reply, list) else []
        for raw_name, raw in zip(flat[::2], flat[1::2], strict=False):
            name = raw_name.decode("ascii", "replace").lower()
            if name in SETTINGS:
                found[name] = display_text(raw[: 8 * MAX_TEXT].decode("utf-8", "replace"), limit=MAX_TEXT)
    return found


def sample_of_info(replies: Mapping[str, Reply], node: SafeText, at_ms: int) -> Sample:
    """Return a sample of a node's replies to INFO, given by section."""
    by_source = {Source(f"INFO {section}"): reply for section, reply in replies.items() if isinstance(reply, bytes)}
    fields: dict[str, int | float | str] = {}
    for source, reply in by_source.items():
        fields |= parse_fields(source, reply)
    return with_possible(
        Sample(
            at_ms=at_ms,
            node=node,
            info=fields,
            databases=parse_databases(by_source.get(Source.INFO_KEYSPACE)),
            replicas=parse_replicas(by_source.get(Source.INFO_REPLICATION)),
            sources=tuple(source for source in Source if source in by_source),
        )
    )
