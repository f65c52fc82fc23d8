"""What happened between two samples of one server: counters as differences and rates, with rtui's own share taken out.

Counters of a server begin anew when it is restarted, and most of them at CONFIG RESETSTAT. Either is recognised: after
a restart the run id is another one or the uptime is less; after a reset one of the counters that always grow is less.
What happened in between is then not known. Example: of 1,000, 1,200, 40, 90 commands, a sample each second, the rates
are 200, unknown, 50.

A reset that is followed by more than there was before can't be told from an ordinary growth; rates are too low then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rtui.analysis.health.sample import CommandStats, OwnUse, Sample

_ALWAYS_GROWING: Final = (
    "total_commands_processed",
    "total_connections_received",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "keyspace_hits",
    "keyspace_misses",
    "expired_keys",
    "evicted_keys",
)
"""Counters that are 0 after CONFIG RESETSTAT, of which at least one grows on any server that is in use."""

_KEPT_AT_RESET: Final = frozenset(
    {
        "used_cpu_sys",
        "used_cpu_user",
        "used_cpu_sys_children",
        "used_cpu_user_children",
        "used_cpu_sys_main_thread",
        "used_cpu_user_main_thread",
        "master_repl_offset",
        "slave_repl_offset",
    }
)
"""Counters that CONFIG RESETSTAT leaves as they are."""

_OWN: Final[dict[str, Callable[[OwnUse], int]]] = {
    "total_commands_processed": lambda own: own.commands,
    "keyspace_hits": lambda own: own.hits,
    "keyspace_misses": lambda own: own.misses,
}
"""Counters that rtui adds to, and how much it has added so far."""


@dataclass(frozen=True)
class Span:
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
        """Whether another server has taken the address, one that ran before already, as after a failover."""
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
        """Return by how much a counter has grown, without what rtui has added; None where that is not known.

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
        """The share of reads that found their key, 0 … 1; None where there were none."""
        hits, misses = self.change("keyspace_hits"), self.change("keyspace_misses")
        return None if hits is None or misses is None or not hits + misses else hits / (hits + misses)

    @property
    def commands(self) -> dict[str, CommandStats] | None:
        """What each command was called meanwhile; None where that is not known. rtui's own are among them.

        One whose figures have fallen is left out.
        """
        before, after = self.before.commands, self.after.commands
        if not before or not after or not self.is_continuous:
            return None
        found = ((name, _since(before.get(name), stats)) for name, stats in after.items())
        return {name: stats for name, stats in found if stats is not None}

    @property
    def errors(self) -> dict[str, int] | None:
        """How often each error code was replied meanwhile; None where that is not known."""
        if not self.is_continuous:
            return None
        grown = {code: times - self.before.errors.get(code, 0) for code, times in self.after.errors.items()}
        return {code: times for code, times in grown.items() if times >= 0}


def number(sample: Sample, name: str) -> float | None:
    """Return a field of INFO that is a number; None where there is none."""
    found = sample.info.get(name)
    return None if isinstance(found, str) else found


def _since(before: CommandStats | None, after: CommandStats) -> CommandStats | None:
    """Return what was added to the statistics of a command; percentiles are of the whole time, so there are none.

    None where calls or their time have fallen.
    """
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
