"""Versions of Redis and Valkey that lack security fixes, by a table with a date.

Sources, read on AS_OF: redis.io, "Version management", and docker-library/official-images, pull request 21922, which
announces the security releases of Redis of 24 July 2026; valkey.io, "Releases and versioning", and the release notes of
Valkey 9.1.1, 9.0.5, 8.1.9, 8.0.10 and 7.2.14 of 21 July 2026.

A distribution or a provider may have applied a fix without another version number. Nor does everybody who reads the
figures of a server reach it. So a version is a finding where connections come from elsewhere, not on loopback alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Finding, of_server, server_rule
from rtui.analysis.findings.server_counts import is_remote
from rtui.analysis.health.durability_panels import OUTDATED, version_field
from rtui.analysis.health.fields import FIELDS
from rtui.analysis.health.load_panels import listed
from rtui.analysis.health.sample import Source
from rtui.analysis.health.view import HealthView

AS_OF: Final = date(2026, 8, 29)


class Series(NamedTuple):
    """The releases with one major and minor version."""

    fixed: int | None = None
    """The patch version from which on all published vulnerabilities are fixed; None if no release fixes them."""
    ends: date | None = None
    """The end of security fixes; None if none is announced."""


_OVER: Final = Series(None, date.min)

SERIES: Final[Mapping[str, Mapping[str, Series]]] = {
    "Redis": {
        **dict.fromkeys(("2.8", "3.0", "3.2", "4.0", "5.0", "6.0", "7.0"), _OVER),
        "6.2": Series(23, date(2027, 4, 1)),
        "7.2": Series(15, date(2029, 12, 1)),
        "7.4": Series(10, date(2029, 12, 1)),
        "8.0": Series(None, date(2026, 12, 1)),
        "8.2": Series(8, date(2030, 9, 1)),
        "8.4": Series(5),
        "8.6": Series(5),
        "8.8": Series(1),
        "8.10": Series(0),
    },
    "Valkey": {
        "7.2": Series(14, date(2029, 4, 16)),
        "8.0": Series(10, date(2027, 9, 15)),
        "8.1": Series(9, date(2030, 3, 31)),
        "9.0": Series(5, date(2028, 10, 21)),
        "9.1": Series(1),
    },
}
"""By product the known series; others, such as those of compatible servers, are not judged."""

FIXES: Final[Mapping[str, str]] = {
    "Redis": "security releases of 24 July 2026: remote code execution",
    "Valkey": "security releases of 21 July 2026: CVE-2026-56684, CVE-2026-63639, remote code execution",
}

_OTHERS: Final = {name for name in FIELDS if name.endswith("_version")} - {"redis_version", "valkey_version"}
"""Fields of servers that claim a version of Redis."""

_NUMBERS: Final = re.compile(r"(\d+\.\d+)\.(\d+)")


def _version(view: HealthView) -> tuple[str, str, Series, int] | None:
    """Return the product, its series and the patch version of a server; None if the table has no such series."""
    if any(view.text(other) for other in _OTHERS):
        return None
    name = version_field(view)
    product, found = ("Valkey" if name == "valkey_version" else "Redis"), _NUMBERS.match(view.text(name))
    series = None if found is None else SERIES[product].get(found[1])
    return None if found is None or series is None else (product, found[1], series, int(found[2]))


def outdated(view: HealthView) -> Iterator[Finding]:
    """Find a version without all security fixes on a server that has connections from elsewhere."""
    version = _version(view)
    if version is None or not any(is_remote(one.address) for one in listed(view) or ()):
        return
    product, number, (fixed, ends), patch = version
    today = datetime.fromtimestamp(view.latest.at_ms / 1000, UTC).date()
    running = f"{product} {number}.{patch}"
    if ends is not None and ends <= today:
        title = f"{running}: {product} {number} gets no security fixes any more"
    elif fixed is None:
        title = f"{running}: no release of {product} {number} has all security fixes"
    elif patch < fixed:
        title = f"{running} lacks security fixes of {product} {number}.{fixed}"
    else:
        return
    age = humanize.counted(max(0, (today - AS_OF).days), "day")
    evidence = (FIXES[product], f"rtui's table of versions is of {AS_OF:%d %B %Y}, {age} old")
    yield of_server(view, OUTDATED, title, command="redis-cli INFO server", evidence=evidence)


FINDERS: Final = (
    server_rule(
        OUTDATED,
        outdated,
        "outdated version",
        (),
        Source.CLIENTS,
        applies=lambda view: view.has_asked(Source.CLIENTS) and _version(view) is not None,
    ),
)
