"""The samples of one server in order, and the report of its keys: the basis of panels and rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple, Self

from msgspec.structs import replace as with_fields

from rtui.analysis import humanize
from rtui.analysis.facts import NOT_ASKED, Reason, Unknown
from rtui.analysis.health.sample import CommandStats, OwnUse, Sample, Source
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.table import Cell
from rtui.registry.registry import Registry
from rtui.registry.rules import RuleLevels

_ALWAYS_GROWING: Final = (
    "total_commands_processed", "total_connections_received", "total_net_input_bytes", "total_net_output_bytes",
    "keyspace_hits", "keyspace_misses", "expired_keys", "evicted_keys",
)  # fmt: skip
"""Counters that are 0 after CONFIG RESETSTAT, of which at least one grows on any server that is in use."""

_KEPT_AT_RESET: Final = frozenset({
    "used_cpu_sys", "used_cpu_user", "used_cpu_sys_children", "used_cpu_user_children", "used_cpu_sys_main_thread",
    "used_cpu_user_main_thread", "master_repl_offset", "slave_repl_offset",
})  # fmt: skip
"""Counters that CONFIG RESETSTAT leaves as they are."""

_OWN: Final[dict[str, Callable[[OwnUse], int]]] = {
    "total_commands_processed": lambda own: own.commands,
    "keyspace_hits": lambda own: own.hits,
    "keyspace_misses": lambda own: own.misses,
}
"""Counters that include rtui's own commands, and rtui's part so far."""


@dataclass(frozen=True)
class SampleSpan:
    """The time between two samples of one node."""

    before: Sample
    after: Sample

    @property
    def seconds(self) -> float:
        """How long it was; 0 where the clock of this machine was set back."""
        return max(0.0, (self.after.at_ms - self.before.at_ms) / 1000)

    @cached_property
    def is_same_run(self) -> bool:
        """Whether the server was not restarted meanwhile, and no other one has taken its address."""
        ids = self.before.info.get("run_id"), self.after.info.get("run_id")
        if None not in ids:
            return ids[0] == ids[1]
        return not self._fell("uptime_in_seconds")

    @cached_property
    def is_other_server(self) -> bool:
        """Whether another server that ran before has taken the address, as after a failover."""
        uptime_s = number(self.after, "uptime_in_seconds")
        return not self.is_same_run and uptime_s is not None and uptime_s > self.seconds + 1

    @cached_property
    def is_continuous(self) -> bool:
        """Whether counters go on: the same run, without a reset of its statistics."""
        return self.is_same_run and not any(map(self._fell, _ALWAYS_GROWING))

    def _fell(self, name: str) -> bool:
        before, after = number(self.before, name), number(self.after, name)
        return before is not None and after is not None and after < before

    def change(self, name: str) -> float | None:
        """Return the growth of a counter without rtui's own share; None if unknown.

        rtui counts its own commands a moment before or after the server does, so a difference below 0 is none.
        """
        before, after = number(self.before, name), number(self.after, name)
        goes_on = self.is_same_run if name in _KEPT_AT_RESET else self.is_continuous
        if before is None or after is None or not goes_on or after < before:
            return None
        own = _OWN.get(name)
        return max(0.0, after - before - (own(self.after.own) - own(self.before.own) if own else 0))

    def rate(self, *names: str) -> float | None:
        """Return the growth of a counter, or of several together, a second; None where one is not known."""
        changes = [self.change(name) for name in names]
        if self.seconds <= 0 or None in changes:
            return None
        return sum(change for change in changes if change is not None) / self.seconds

    @cached_property
    def hit_ratio(self) -> float | None:
        hits, misses = self.change("keyspace_hits"), self.change("keyspace_misses")
        return None if hits is None or misses is None or not hits + misses else hits / (hits + misses)

    @property
    def commands(self) -> dict[str, CommandStats] | None:
        """The calls of each command meanwhile, rtui's own among them; one whose figures have fallen is left out."""
        before, after = self.before.commands, self.after.commands
        if not before or not after or not self.is_continuous:
            return None
        found = ((name, _since(before.get(name), stats)) for name, stats in after.items())
        return {name: stats for name, stats in found if stats is not None}

    @property
    def errors(self) -> dict[str, int] | None:
        if not self.is_continuous:
            return None
        grown = {code: times - self.before.errors.get(code, 0) for code, times in self.after.errors.items()}
        return {code: times for code, times in grown.items() if times >= 0}


def number(sample: Sample, name: str) -> float | None:
    found = sample.info.get(name)
    return None if isinstance(found, str) else found


def _since(before: CommandStats | None, after: CommandStats) -> CommandStats | None:
    """Return the growth of a command's statistics, without percentiles; None where calls or their time have fallen."""
    if before is None:
        before = CommandStats(0, 0)
    if after.calls < before.calls or after.took_us < before.took_us:
        return None
    return CommandStats(
        after.calls - before.calls,
        after.took_us - before.took_us,
        _difference(before.rejected, after.rejected),
        _difference(before.failed, after.failed),
    )


def _difference(before: int | None, after: int | None) -> int | None:
    return None if after is None or after < (before or 0) else after - (before or 0)


RESET: Final = "CONFIG|RESETSTAT"
"""The command that sets counters back to 0. The server counts its call afterwards, so 1 tells of it (Redis 7.0)."""

DAY_S: Final = 86_400


class Since(NamedTuple):
    """The time that counters are of."""

    words: str
    """`since the server started 3d ago`; safe."""
    days: float | None
    """None if it is not known."""


def _ago(seconds: float) -> str:
    return f"{humanize.short_duration(round(seconds) * humanize.SECOND_MS)} ago"


MOST_HISTORY: Final = 240
TREND_S: Final = 60.0
_TREND_SAMPLES: Final = 6


@dataclass(frozen=True)
class HealthView:
    """One server."""

    samples: tuple[Sample, ...]
    """Of one node, oldest first; at least one."""
    report: Report | None = None
    registry: Registry | None = None
    levels: RuleLevels = field(default_factory=RuleLevels)

    @classmethod
    def of(cls, samples: tuple[Sample, ...], report: Report | None, registry: Registry | None) -> Self:
        return cls(samples, report, registry, RuleLevels() if registry is None else registry.rules)

    @property
    def latest(self) -> Sample:
        return self.samples[-1]

    @cached_property
    def spans(self) -> tuple[SampleSpan, ...]:
        return tuple(SampleSpan(*pair) for pair in pairwise(self.samples[-MOST_HISTORY - 1 :]))

    @property
    def last(self) -> SampleSpan | None:
        return self.spans[-1] if self.spans else None

    @cached_property
    def session(self) -> SampleSpan | None:
        """The longest time up to now without a reset of the counters; None without any."""
        first = None
        for span in reversed(self.spans):
            if not span.is_continuous:
                break
            first = span.before
        return None if first is None else SampleSpan(first, self.latest)

    @cached_property
    def since(self) -> Since:
        """The start of the server or the last CONFIG RESETSTAT, whichever is later, as far as the samples tell."""
        reset = None
        for span in reversed(self.spans):
            if not span.is_same_run:
                break
            if not span.is_continuous:
                reset = span
                break
        if reset is not None:
            seconds = max(0.0, (self.latest.at_ms - reset.after.at_ms) / 1000)
            return Since(f"since CONFIG RESETSTAT {_ago(seconds)}", seconds / DAY_S)
        told = self.told(Source.COMMAND_STATS)
        if told is not None and told.commands.get(RESET):
            return Since("since CONFIG RESETSTAT", None)
        uptime_s = self.number("uptime_in_seconds")
        if uptime_s is None:
            return Since("since the server started, or CONFIG RESETSTAT", None)
        names_subcommands = told is not None and any("|" in name for name in told.commands)
        otherwise = "" if names_subcommands else ", or CONFIG RESETSTAT"
        return Since(f"since the server started {_ago(uptime_s)}{otherwise}", uptime_s / DAY_S)

    def number(self, name: str) -> float | None:
        return number(self.latest, name)

    def text(self, name: str) -> str:
        return str(self.latest.info.get(name, ""))

    def cell(self, name: str, source: Source) -> Cell:
        found = self.latest.info.get(name)
        return self.unknown(source, name) if found is None else found

    def unknown(self, source: Source, *names: str) -> Unknown:
        """Return why a source says nothing, or not all: the first impossible one of some fields."""
        for name in names:
            if (why := self.latest.why_impossible(name)) is not None:
                return why
        missing = self.latest.missing.get(source)
        if missing is not None:
            return Unknown(missing.reason, missing.detail)
        if source in self.latest.sources:
            return Unknown(Reason.UNSUPPORTED, "this server does not tell it")
        return NOT_ASKED

    def told(self, source: Source) -> Sample | None:
        """Return the last sample if it has figures of a source; None if the source has not answered, or no longer does.

        Costly sources are read less often, and logs only if they have grown: the last sample repeats their earlier
        figures, except clients, which are no longer kept.
        """
        for sample in reversed(self.samples):
            if source in sample.sources:
                return self.latest
            if source in sample.missing:
                return None
        return None

    def has_asked(self, source: Source) -> bool:
        return any(source in one.sources or source in one.missing for one in self.samples)

    def last_alone(self) -> HealthView:
        told = tuple(source for source in Source if self.told(source) is not None)
        missing = {
            source: why for sample in self.samples for source, why in sample.missing.items() if source not in told
        }
        return replace(self, samples=(with_fields(self.latest, sources=told, missing=missing),))

    def between(self, source: Source) -> SampleSpan | None:
        """Return the time of the session between the first and the last figures of a source; None for less than two."""
        if self.session is None:
            return None
        start = self.samples.index(self.session.before)
        told = [one for one in self.samples[start:] if source in one.sources]
        return SampleSpan(told[0], told[-1]) if len(told) > 1 else None

    def setting(self, name: str) -> str | None:
        told = self.told(Source.SETTINGS)
        return None if told is None else told.settings.get(name)

    def history(self, value: Callable[[Sample], float | None]) -> tuple[float | None, ...]:
        return tuple(value(sample) for sample in self.samples[-MOST_HISTORY:])

    def trend(self, name: str) -> float | None:
        """Return by how much a field has grown a second, negative where it shrank; None where that can't be told.

        The mean of the last third of the samples since the server was started is compared with that of the first.
        """
        run = [self.latest]
        for span in reversed(self.spans):
            if not span.is_same_run:
                break
            run.append(span.before)
        known = [(one.at_ms / 1000, value) for one in reversed(run) if (value := number(one, name)) is not None]
        if len(known) < _TREND_SAMPLES or known[-1][0] - known[0][0] < TREND_S:
            return None
        third = len(known) // 3
        (start_s, first), (end_s, last) = (
            map(fmean, zip(*part, strict=True)) for part in (known[:third], known[-third:])
        )
        return (last - first) / (end_s - start_s) if end_s > start_s else None
