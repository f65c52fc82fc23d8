"""The options of browsing, analysis and search, and of the registry: the command line fills them, the sessions read.

In a module of their own, since the command line needs them before anything slow is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from rtui.analysis.columns import Columns
from rtui.server.scan.pace import Pace
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.query.query import MatchOrder
    from rtui.analysis.query.terms import Fact
    from rtui.registry.registry import Registry, RegistryProblem
    from rtui.table.keys_file import KeysWriter

MOST_SHOWN: Final = 20
"""The most mistakes shown of one file."""


class RegistryFileError(RtuiError):
    """A registry that can't be used; says on which lines and why."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: tuple[RegistryProblem, ...]) -> None:
        first, *others = [str(problem) for problem in problems[:MOST_SHOWN]]
        if len(problems) > MOST_SHOWN:
            others.append(f"and {len(problems) - MOST_SHOWN:,} more")
        super().__init__("The registry can't be used", first)
        self.others = tuple(others)
        """The other mistakes, one per line."""


@dataclass(frozen=True, slots=True)
class RegistryChoice:
    """How to choose the registry for a server."""

    named: str | None = None
    """A file, or the name of a registry that ships with rtui."""
    is_off: bool = False
    """Whether no registry is used."""
    folder: Path = field(default_factory=Path.cwd)
    """The base of relative paths, and the start of the search for `rtui.toml`."""

    def load(self, target: Target) -> Registry | None:
        """Read the registry for a server; None if there is none. Raises RegistryFileError."""
        if self.is_off:
            return None
        from rtui.registry.registry import find_registry, named_registry  # noqa: PLC0415 - most runs have none

        name = self.named or target.registry
        path = find_registry(self.folder) if name is None else named_registry(name, self.folder)
        if path is None:
            return None
        from rtui.registry.load import load_registry  # noqa: PLC0415
        from rtui.registry.registry import RegistryError  # noqa: PLC0415

        try:
            return load_registry(path)
        except RegistryError as error:
            raise RegistryFileError(error.problems) from None


DEFAULT_DEMO_KEYS: Final = 50_000
"""Number of keys that `--demo` loads."""

DEFAULT_MEMORY_BUDGET_BYTES: Final = 512 << 20
"""Memory for the names of keys; beyond it only counts are kept."""

KEPT_ROWS: Final = 5_000_000
"""Rows of an analysis that are kept in memory unless another number is asked for."""

MOST_KEPT_ROWS: Final = 1_000_000_000
"""No larger number can be asked for."""

DemoDay = Literal["bad", "good"]
"""Whether the demo has what rtui finds wrong: by default it has."""

PaceName = Literal["gentle", "normal", "full"]
"""How much of the server's time a scan takes."""


@dataclass(frozen=True, slots=True)
class BrowseOptions:
    """Where to connect and how to show it; names are bytes as the server has them."""

    target: Target = field(default_factory=Target)
    chooses_server: bool = False
    """No server was named, so the user chooses one first; `target` is the one that it is otherwise."""
    separators: tuple[bytes, ...] = (b":",)
    match: bytes | None = None
    """A glob that the server filters by."""
    key_type: bytes | None = None
    """The only type to list."""
    pace: PaceName = "gentle"
    columns: Columns | None = None
    """What an analysis asks of which keys; None for what suits the number of keys."""
    memory_budget_bytes: int = DEFAULT_MEMORY_BUDGET_BYTES
    keep_rows: int | None = None
    """Rows of an analysis that are kept in memory at most; None for KEPT_ROWS."""
    rows_in_files: bool = False
    """Keep further rows in private files; else none are kept of so many."""
    ascii_only: bool = False
    on_console: bool = False
    """Draw with characters that the fonts of the Linux console have."""
    theme: str | None = None
    no_color: bool = False
    demo: bool = False
    """Browse an embedded server with sample keyspaces instead of `target`."""
    demo_keys: int = DEFAULT_DEMO_KEYS
    demo_day: DemoDay = "bad"
    is_filling: Callable[[], bool] | None = None
    """Whether the demo is still loading keys: the scan waits for that, the overview does not."""
    log_file: Path | None = None
    """Where the command log is written to."""
    keep: bool = False
    """Keep the report of each analysis for later comparison."""
    reports_folder: Path | None = None
    """Where reports are kept; None for the user's state folder."""
    is_first_start: bool = False
    """rtui was never started by this user: it says which keys help."""
    record_file: Path | None = None
    """Where the session is recorded."""
    resume: bool = True
    """Continue a scan that an earlier run left unfinished."""
    registry_choice: RegistryChoice = field(default=RegistryChoice(is_off=True), compare=False)
    """How the registry of another server is found."""
    registry: Registry | None = None
    """What is written down about the keys."""


@dataclass(frozen=True, slots=True)
class DaskOptions:
    """Where the tasks of an analysis run (`rtui.server.analysis.scale`)."""

    address: str | None = None
    """Of a scheduler, with TLS; None for workers on this machine."""
    workers: int = 0
    """How many there are on this machine."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Certificates and key, by the names of Dask; others are those of its configuration."""
    folder: str | None = None
    """A folder or URL where each task writes the rows of its keys."""


RowsWriter: TypeAlias = "Callable[[float, Callable[[], object]], KeysWriter]"
"""Begins a file of all keys, of which there is another one if the pass begins anew.

It gets when the pass begins, in seconds since the epoch, and what to call once the file can't be written."""


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What to analyse; the filter is checked when the run is made."""

    separators: tuple[bytes, ...] = (b":",)
    match: bytes | None = None
    key_type: bytes | None = None
    depth: int | None = None
    top: int = 100
    pace: Pace = Pace.GENTLE
    preset: str = "rtui"
    budget_s: float | None = None
    """The run ends after so many seconds with what it has."""
    estimate_keys: int | None = None
    """Inspect a sample of so many keys only."""
    columns: Columns | None = None
    """Of which keys which facts are asked; None for what suits the number of keys."""
    registry: Registry | None = None
    """What is written down about the keys: they are counted by it as well."""
    workers: int = 1
    """Processes that the nodes of a cluster are spread over; of one server it is this one."""
    dask: DaskOptions | None = None
    """Where there are tasks instead, one a node or file."""
    keep_rows: int = 0
    """Rows that are kept in memory, to be asked later."""
    write_to: RowsWriter | None = None
    began_at_s: float | None = None
    """When the pass began, in seconds since the epoch, if it is one of several: all count in the same bins of time."""
    rows_folder: Path | None = None
    """Where more rows are kept in private files; None for nowhere: then none are kept of so many."""


@dataclass(frozen=True, slots=True)
class FindOptions:
    """How to search for keys."""

    separators: tuple[bytes, ...] = (b":",)
    columns: tuple[Fact, ...] = ()
    """Facts of the matches that are wanted, besides those that the query needs."""
    limit: int = 10_000
    """Matches that are kept; all are counted."""
    order: MatchOrder | None = None
    """What decides which are kept; None for the first that are found."""
    stops_at_limit: bool = False
    """Whether it ends once so many are found."""
    pace: Pace = Pace.GENTLE
    budget_s: float | None = None
    """It ends after so many seconds with what it has."""
