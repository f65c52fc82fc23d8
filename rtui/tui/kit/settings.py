"""The user's choices, remembered in `settings.toml`: theme, columns, orders, widths, panel and keys.

The file may be edited by hand as well: rtui keeps its comments and order (tomlkit). It is read when rtui begins; a
choice made on screen is in effect at once and written in a thread. Two running instances each write only their own
changes, into the file as it is then. An invalid file is refused as a whole, with the setting that is wrong and the
nearest known word, and rtui goes on with its defaults.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_type_hints

import msgspec
from msgspec import Meta

from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.matching import did_you_mean, nearest_word
from rtui.server.files import atomic_file, config_folder, reason_of
from rtui.server.options import MOST_KEPT_ROWS
from rtui.server.wire.target import Target

MAX_SETTINGS_BYTES: Final = 1 << 20
"""A larger file is refused."""

TreeColumnName: TypeAlias = Literal[
    "keys", "share", "bar", "bytes", "of bytes", "mean", "no TTL", "idle", "type", "TTL", "size", "length",
    "encoding", "slot", "node",
]  # fmt: skip

SortName: TypeAlias = Literal[
    "keys", "name", "name-bytes", "bytes", "mean", "TTL", "idle", "type",
    "-keys", "-name", "-name-bytes", "-bytes", "-mean", "-TTL", "-idle", "-type",
]  # fmt: skip
"""The sort order of the rows of the tree, with `-` before it reversed."""

NARROWEST_TREE: Final = 25
WIDEST_TREE: Final = 80
"""The bounds of the tree's width in percent."""

KeyNames: TypeAlias = str | tuple[str, ...]

NAMED: Final = r"[A-Za-z0-9_-]{1,40}"
"""The name of a saved query."""

QueryText: TypeAlias = Annotated[str, Meta(max_length=4096)]


class TreeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The settings of the tree."""

    columns: Annotated[tuple[TreeColumnName, ...] | None, Meta(description="Columns of the tree.")] = None
    width: Annotated[
        Annotated[int, Meta(ge=NARROWEST_TREE, le=WIDEST_TREE)] | None,
        Meta(description="Width of the tree beside the details, in percent of the terminal."),
    ] = None
    sort: Annotated[SortName, Meta(description="Sort order of the tree; prefix - to reverse.")] = "keys"


class RowsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which rows of an analysis are kept to answer queries."""

    keep: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_KEPT_ROWS)] | None,
        Meta(description="Most rows of an analysis to keep in memory, 0 for none; --keep-rows takes precedence."),
    ] = None
    files: Annotated[
        bool, Meta(description="Keep further rows in private files in the cache folder until rtui exits.")
    ] = False


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything that can be remembered; the default of each field is in effect without a file."""

    theme: Annotated[str | None, Meta(description="Name of the theme; --theme takes precedence.")] = None
    ascii: Annotated[bool, Meta(description="Draw with ASCII characters only, as with --ascii.")] = False
    panel: Annotated[str | None, Meta(description="First panel of an analysis.")] = None
    tree: TreeSettings = TreeSettings()
    rows: RowsSettings = RowsSettings()
    colouring: Annotated[
        Literal["ttl", "idle", "type"], Meta(description="Meaning of the colours of the memory chart.")
    ] = "ttl"
    tables: Annotated[
        dict[str, str],
        Meta(description="Sort column of each table, by panel and table; prefix - to reverse."),
    ] = {}
    keys: Annotated[dict[str, KeyNames], Meta(description="Keys of commands, by command id.")] = {}
    decoders: Annotated[
        dict[str, str],
        Meta(description="Manually chosen decoders, by key pattern and field."),
    ] = {}
    queries: Annotated[
        dict[str, dict[str, QueryText]], Meta(description="Saved queries, by profile or server, by name.")
    ] = {}


OPEN_TABLES: Final = frozenset({"keys", "tables", "decoders", "queries"})
"""Settings whose members are named elsewhere: by commands, tables of panels, patterns of keys, servers and the user."""


class SettingsError(ValueError):
    """A settings file, name or value that cannot be used; the text is one sentence, safe to show."""

    def __init__(self, happened: str) -> None:
        self.happened: SafeText = display_text(happened)
        super().__init__(self.happened)


def settings_path() -> Path:
    return config_folder() / "settings.toml"


class SettingsFile:
    """The settings of this run, and the file that remembers them."""

    def __init__(self, path: Path | None = None) -> None:
        """Read the file at `path`; raises SettingsError. Without a path, choices last as long as this object."""
        self.path = path
        self.settings = Settings() if path is None else read_settings(_text(path), path)
        self.failure: SafeText | None = None
        """Why the file could not be read, or the last choice not be written."""
        self.typed: list[str] = []
        """The lines of queries that were entered in this run, the latest last."""
        self._unwritten: dict[str, Any] = {}
        self._writing: asyncio.Task[None] | None = None

    @classmethod
    def opened(cls, path: Path) -> SettingsFile:
        """Read the file at `path`; if it is invalid, nothing is remembered, and `failure` tells why."""
        try:
            return cls(path)
        except SettingsError as error:
            unread = cls()
            unread.failure = error.happened
            return unread

    def choose(self, name: str, value: Any) -> None:
        """Set the setting of a dotted name, such as `tree.sort`, for this run and the next ones; None forgets it.

        Raises SettingsError for an invalid value. It is written by `flush`, or soon if an event loop runs.
        """
        self.settings = _changed(self.settings, name, value)
        self._unwritten[name] = value
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._writing is None or self._writing.done():
            self._writing = loop.create_task(self._write_soon(), name="rtui settings")

    async def close(self) -> None:
        if self._writing is not None:
            await self._writing
        if self._unwritten:
            await asyncio.to_thread(self.flush)

    def flush(self) -> None:
        """Write the choices into the file as it is now; a failure is kept in `failure`."""
        chosen, self._unwritten = self._unwritten, {}
        if not chosen or self.path is None:
            return
        try:
            _write(self.path, chosen)
        except (OSError, ValueError) as error:
            self.failure = display_text(f"{self.path} can't be written: {reason_of(error)}.")

    async def _write_soon(self) -> None:
        while self._unwritten:
            await asyncio.to_thread(self.flush)


def _write(path: Path, chosen: Mapping[str, Any]) -> None:
    """Set the chosen settings in the file as it is now; raises OSError and SettingsError."""
    import tomlkit  # noqa: PLC0415 - when something is written
    from tomlkit.container import Container  # noqa: PLC0415
    from tomlkit.items import Table  # noqa: PLC0415

    text = _text(path)
    read_settings(text, path)
    document = tomlkit.parse(text)
    for name, value in chosen.items():
        *parents, last = split_name(name)
        place: Container | Table = document
        for parent in parents:
            if parent not in place:
                place[parent] = tomlkit.table()
            place = place[parent]
        if value is None:
            place.pop(last, None)
        else:
            place[last] = list(value) if isinstance(value, tuple) else value
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(tomlkit.dumps(document).encode())


def _text(path: Path) -> str:
    """Return the text of a file, empty if there is no file; raises SettingsError."""
    try:
        with path.open("rb") as file:
            read = file.read(MAX_SETTINGS_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise SettingsError(f"{path} can't be read: {error.strerror}.") from None
    if len(read) > MAX_SETTINGS_BYTES:
        raise SettingsError(f"{path} is over {MAX_SETTINGS_BYTES:,} bytes; it holds a few lines.")
    try:
        return read.decode()
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8.") from None


def read_settings(text: str, path: Path) -> Settings:
    """Return the settings of a TOML text; raises SettingsError, which names the setting or line that is wrong."""
    try:
        return msgspec.toml.decode(text, type=Settings)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{path}: {_explained(str(error))}") from None
    except msgspec.DecodeError as error:
        raise SettingsError(f"{path} is not TOML: {error}.") from None


def split_name(name: str) -> list[str]:
    """Return the parts of a dotted name; the names of commands, of tables and of servers hold dots themselves."""
    first, _, rest = name.partition(".")
    if first == "queries" and "." in rest:
        return [first, *rest.rsplit(".", 1)]
    return [first, rest] if first in OPEN_TABLES and rest else name.split(".")


def setting_names(struct: type[msgspec.Struct] = Settings, before: str = "") -> dict[str, str]:
    """Return the purpose of each setting of a fixed name."""
    found: dict[str, str] = {}
    for name, hint in get_type_hints(struct, include_extras=True).items():
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            found |= setting_names(hint, f"{before}{name}.")
        else:
            meta = next(one for one in get_args(hint) if isinstance(one, Meta))
            found[before + name] = meta.description or ""
    return found


def current_values(settings: msgspec.Struct | dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of everything that is set or has a default other than nothing."""
    table = settings if isinstance(settings, dict) else msgspec.structs.asdict(settings)
    for name, value in table.items():
        if isinstance(value, msgspec.Struct | dict):
            yield from current_values(value, f"{before}{name}.")
        else:
            yield before + name, value


def _changed(settings: Settings, name: str, value: Any) -> Settings:
    """Return settings of which one is another; raises SettingsError for an unknown name or a wrong value."""
    parts, known = split_name(name), setting_names()
    if name not in known and (parts[0] not in OPEN_TABLES or len(parts) == 1):
        raise SettingsError(f"There is no setting {name}.{did_you_mean(name, known, least=_ALIKE)}")
    table: dict[str, Any] = msgspec.to_builtins(settings)
    place = table
    for part in parts[:-1]:
        place = place.setdefault(part, {})
    if value is None:
        place.pop(parts[-1], None)
    else:
        place[parts[-1]] = value
    try:
        return msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        raise SettingsError(_explained(str(error))) from None


_ALIKE: Final = 0.5
"""The least likeness of a wrong name to the suggested one: names of settings are short."""

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_INVALID: Final = re.compile(r"(.*?) - at `\$\.(.*)`", re.DOTALL)
_ENUM: Final = re.compile(r"Invalid enum value '(.*)'", re.DOTALL)


def _explained(error: str) -> str:
    """Return msgspec's error for a wrong file as a sentence that names the setting and suggests a correction."""
    if found := _UNKNOWN.fullmatch(error):
        name = f"{found[2]}.{found[1]}" if found[2] else found[1]
        return f"there is no setting {name}.{did_you_mean(name, setting_names(), least=_ALIKE)}"
    if not (found := _INVALID.fullmatch(error)):
        return f"{error}."
    what, name = found[1], re.sub(r"\[(\.\.\.|\d+)\]", "", found[2])
    if value := _ENUM.fullmatch(what):
        choices = get_args(SortName if name == "tree.sort" else TreeColumnName)
        meant = did_you_mean(value[1], choices, least=_ALIKE)
        return f"{name} can't be {value[1]}.{meant} It can be {', '.join(choices)}."
    return f"{name}: {what[0].lower()}{what[1:]}."


_NAME: Final = re.compile(NAMED)
_WORD: Final = re.compile(rf"(?<!\S)@({NAMED})(?!\S)")


def place_of(target: Target) -> str:
    """Return the name that the queries of a server are saved under: its profile, else its address."""
    return target.name or str(target.label)


def saved_queries(settings: Settings, target: Target) -> Mapping[str, str]:
    return settings.queries.get(place_of(target), {})


def expanded(line: str, saved: Mapping[str, str]) -> str:
    return _WORD.sub(lambda found: saved.get(found[1], found[0]), line)


def unknown_names(line: str, saved: Mapping[str, str]) -> dict[str, str | None]:
    """Return the words of a line that look like names of queries but are unknown, each with the nearest name."""
    unknown = [found[1] for found in _WORD.finditer(line) if found[1] not in saved]
    return {name: nearest_word(name, saved) for name in unknown}


def save_query(settings: SettingsFile, target: Target, name: str, line: str) -> None:
    """Remember a query under a name; raises SettingsError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise SettingsError("A name has up to 40 letters, digits, - and _, and no blanks.")
    settings.choose(f"queries.{place_of(target)}.{name}", line)
