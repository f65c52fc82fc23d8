"""Servers that the user has named or browsed, so that neither address nor password needs to be typed.

Profiles are named servers in a file that only the user can read. The last servers browsed are kept in one small file of
the user's state folder: addresses and files, never a password. A profile, or an address with a user, is one entry
there, whichever of its databases was browsed; it remembers the last one.

The servers of a fleet are named on the command line, as profiles, and in a file that has a target a line, with labels
behind it; a comment follows a #:

    # caches
    redis://app@10.0.0.5:6379   team=shop zone=a
    10.0.0.6                    team=shop zone=b
    profile:prod-queue          team=mail
    sentinel://10.0.0.9/*       # every service of these Sentinels

A server that is named twice is one server with the labels of both.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from rtui.keyspace.text.display import SafeText, display_text
from rtui.registry.registry import named_registry
from rtui.server.files import atomic_file, config_folder, state_folder
from rtui.server.guard.command import CommandNames, CommandNamesError, Secret, command_names
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import (
    MAX_DB,
    MAX_PORT,
    AddressMap,
    Login,
    Mark,
    ProtocolVersion,
    ReplicaPolicy,
    Sentinels,
    Target,
    Tls,
    Way,
    checked_host,
    checked_proxy,
    parse_target,
)

MAX_PROFILE_BYTES: Final = 1 << 20

LABEL_NAME: Final = r"\A[A-Za-z_][A-Za-z0-9_]{0,62}\Z"
"""The names of labels: also names of labels of metrics."""

MAX_LABEL: Final = 100
"""Characters of the value of a label."""

_Text = Annotated[str, Meta(min_length=1, pattern=r"\A[^\0]*\Z")]


class _Profile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The fields of a profile."""

    url: _Text | None = None
    host: _Text | None = None
    port: Annotated[int, Meta(ge=1, le=MAX_PORT)] | None = None
    socket: _Text | None = None
    user: _Text | None = None
    password: _Text | None = None
    db: Annotated[int, Meta(ge=0, le=MAX_DB)] | None = None
    protocol: Annotated[int, Meta(ge=2, le=3)] | None = None
    cluster: bool | None = None
    only_node: bool | None = None
    replicas: ReplicaPolicy | None = None
    zone: _Text | None = None
    tls: bool | None = None
    insecure: bool | None = None
    sni: _Text | None = None
    cacert: _Text | None = None
    cacertdir: _Text | None = None
    cert: _Text | None = None
    key: _Text | None = None
    key_password: _Text | None = None
    word: Annotated[str, Meta(min_length=1, max_length=12, pattern=r"\A[^\0]*\Z")] | None = None
    colour: Literal["red", "yellow", "green", "blue", "magenta", "cyan"] | None = None
    registry: _Text | None = None
    password_command: _Text | None = None
    credential_provider: _Text | None = None
    via: str | list[_Text] | None = None  # not _Text: msgspec 0.22 crashes at the end over a pattern beside a list
    map: str | list[_Text] | None = None
    proxy: _Text | None = None
    sentinel_user: _Text | None = None
    sentinel_password: _Text | None = None
    sentinel_tls: bool | None = None
    rename: dict[str, str] | None = None
    labels: dict[Annotated[str, Meta(pattern=LABEL_NAME)], Annotated[str, Meta(max_length=MAX_LABEL)]] | None = None


_PLAIN_FIELDS: Final = ("host", "port", "user", "db", "protocol", "cluster", "only_node", "replicas", "zone")
_TLS_PATHS: Final = ("cacert", "cacertdir", "cert", "key")
_PRIVATE: Final = ("password", "key_password", "sentinel_password", "password_command", "credential_provider", "rename")
"""Fields that others must not read, or must not change because they are executed; new command names may be secret."""

_POSITION: Final = re.compile(r"\(at [^()]*\)\Z")


def default_path() -> Path:
    return config_folder() / "profiles.toml"


class Profiles:
    """The profile file, read each time a profile is asked for."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = default_path() if path is None else path

    def target(self, name: str) -> Target:
        """Return the server of a profile; raises `TargetError` if it is missing, invalid or not private."""
        tables = self._read()
        profile = tables.get(name)
        if not isinstance(profile, dict):
            known = ", ".join(sorted(key for key, value in tables.items() if isinstance(value, dict))) or "none"
            raise self._error(f"There is no profile {name!r} in {self.path}.", f"It has: {known}.")
        given = self._validated(name, profile)
        found = Target()
        if "url" in given:
            try:
                found = parse_target(given["url"])
            except TargetError as error:
                raise self._error(
                    f"In profile {name!r}, the url can't be read. {error.happened}", error.remedy
                ) from None
        changes = {key: given[key] for key in _PLAIN_FIELDS if key in given}
        if "socket" in given:
            changes["socket_path"] = str(self._resolved(given["socket"]))
        if "password" in given:
            changes["password"] = Secret(given["password"])
        tls: dict[str, Any] = {key: str(self._resolved(given[key])) for key in _TLS_PATHS if key in given}
        tls |= {key: given[key] for key in ("sni", "insecure") if key in given}
        if "key_password" in given:
            tls["key_password"] = Secret(given["key_password"])
        if tls or given.get("tls"):
            if found.socket_path is not None:
                raise self._error(f"Profile {name!r} has both a socket and TCP options.", "Set only one of them.")
            changes["tls"] = replace(found.tls or Tls(), **tls)
        changes |= {
            "login": self._login(name, given),
            "way": self._way(name, given),
            "sentinels": self._sentinels(name, given, found, tls),
            "names": self._names(name, given),
        }
        if "word" in given or "colour" in given:
            word = display_text(given.get("word", name))
            changes["mark"] = Mark(word, given.get("colour", "yellow"))
        if "registry" in given:
            changes["registry"] = str(named_registry(given["registry"], self.path.parent))
        changes["labels"] = labels_of(given.get("labels", {}))
        return replace(found, name=display_text(name), **changes)

    def _login(self, name: str, given: Mapping[str, Any]) -> Login | None:
        """Return the source of passwords; None for a fixed password or none."""
        if "password_command" in given and "credential_provider" in given:
            raise self._error(f"Profile {name!r} has two sources of a password.", "Set only one of them.")
        if "password_command" in given:
            return Login(command=Secret(given["password_command"]))
        return Login(provider=given["credential_provider"]) if "credential_provider" in given else None

    def _way(self, name: str, given: Mapping[str, Any]) -> Way:
        if "via" in given and "proxy" in given:
            raise self._error(f"Profile {name!r} has both via and proxy.", "Set either via or proxy.")
        try:
            via = tuple(map(checked_host, _as_tuple(given.get("via"))))
            proxy = checked_proxy(given["proxy"]) if "proxy" in given else None
            return Way(via, AddressMap(_as_tuple(given.get("map"))), proxy)
        except TargetError as error:
            raise self._error(f"In profile {name!r}: {error.happened}", error.remedy) from None

    def _sentinels(
        self, name: str, given: Mapping[str, Any], found: Target, tls: Mapping[str, Any]
    ) -> Sentinels | None:
        """Return the URL's Sentinels with the profile's credentials for them; `tls` has the options of the servers."""
        if found.sentinels is None:
            if any(key.startswith("sentinel_") for key in given):
                raise self._error(
                    f"Profile {name!r} has no Sentinels.", "Its url names them: sentinel://host,host/service."
                )
            return None
        sentinels = replace(found.sentinels, user=given.get("sentinel_user"))
        if "sentinel_password" in given:
            sentinels = replace(sentinels, password=Secret(given["sentinel_password"]))
        if given.get("sentinel_tls"):
            sentinels = replace(sentinels, tls=replace(Tls(**tls), sni=None))
        return sentinels

    def _names(self, name: str, given: Mapping[str, Any]) -> CommandNames:
        try:
            return command_names(given.get("rename", {}))
        except CommandNamesError as error:
            remedy = 'A line is such as rename.CONFIG = "its other name"; an empty name is a disabled command.'
            raise self._error(f"In profile {name!r}, the names of commands can't be used: {error}.", remedy) from None

    def names(self) -> list[str]:
        """Return the names of all profiles in the file's order; empty if the file is missing or can't be read."""
        try:
            return [name for name, value in self._read().items() if isinstance(value, dict)]
        except TargetError:
            return []

    def _read(self) -> dict[str, Any]:
        try:
            with self.path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                text = file.read(MAX_PROFILE_BYTES + 1)
        except FileNotFoundError:
            raise self._error(
                f"There is no file {self.path}.", "rtui help connection shows what goes into it."
            ) from None
        except OSError as error:
            raise self._error(f"{self.path} can't be read: {error.strerror}.", "Check its permissions.") from None
        if len(text) > MAX_PROFILE_BYTES:
            raise self._error(f"{self.path} is over {MAX_PROFILE_BYTES:,} bytes.", "It holds a few lines a server.")
        try:
            tables: dict[str, Any] = msgspec.toml.decode(text.removeprefix(BOM_UTF8))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            where = _POSITION.search(str(error))
            raise self._error(
                f"{self.path} is not TOML{f' {where[0]}' if where else ''}.", "Values that are text stand in quotes."
            ) from None
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO) and _has_password(tables):
            raise self._error(
                f"{self.path} holds what is private, and others may read or change it.", f"Run: chmod 600 {self.path}"
            )
        return tables

    def _validated(self, name: str, profile: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of a profile; raises TargetError for unknown, invalid or contradictory ones."""
        try:
            given: dict[str, Any] = msgspec.to_builtins(msgspec.convert(profile, _Profile))
        except msgspec.ValidationError as error:
            known = ", ".join(_Profile.__struct_fields__)
            raise self._error(f"Profile {name!r} can't be read: {error}.", f"Known are {known}.") from None
        if "url" in given and {"host", "port", "socket"} & given.keys():
            raise self._error(
                f"Profile {name!r} names the server twice.", "Give either url, or host and port, or socket."
            )
        if given.get("cluster") and given.get("only_node"):
            raise self._error(
                f"Profile {name!r} wants a whole cluster and one node of it.", "Give either cluster or only_node."
            )
        if (
            "socket" in given
            and {"host", "port", "via", "map", "proxy", "tls", "sni", "insecure", "key_password", *_TLS_PATHS}
            & given.keys()
        ):
            raise self._error(f"Profile {name!r} has both a socket and TCP options.", "Set only one of them.")
        return given

    def _resolved(self, path: str) -> Path:
        """Return a path given in the file: `~` is the home folder, and relative paths start at the file's folder."""
        return self.path.parent / Path(path).expanduser()

    def _error(self, happened: str, remedy: str) -> TargetError:
        return TargetError("The profile can't be used", happened, remedy)


def labels_of(given: Mapping[str, str]) -> tuple[tuple[SafeText, SafeText], ...]:
    return tuple((display_text(name), display_text(value, limit=MAX_LABEL)) for name, value in given.items())


def _as_tuple(given: str | list[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _has_password(tables: Mapping[str, Any]) -> bool:
    """Whether any profile has a private field, or a password in its URL; a URL that can't be parsed counts as one."""
    for profile in tables.values():
        if not isinstance(profile, dict):
            continue
        if any(profile.get(key) for key in _PRIVATE) or "@" in str(profile.get("proxy")):
            return True
        url = profile.get("url")
        if isinstance(url, str):
            try:
                if parse_target(url).password:
                    return True
            except TargetError:
                return True
    return False


KEPT: Final = 20
"""The most servers remembered."""

MAX_FILE_BYTES: Final = 1 << 20
"""A larger file was not written by rtui."""


class _Sentinels(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The remembered Sentinels of a service."""

    service: str
    addresses: Annotated[list[tuple[str, Annotated[int, Meta(ge=1, le=MAX_PORT)]]], Meta(min_length=1)]
    user: str | None = None
    tls: Tls | None = None


class _Server(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A remembered server."""

    host: str | None = None
    port: Annotated[int, Meta(ge=1, le=MAX_PORT)] | None = None
    socket_path: str | None = None
    user: str | None = None
    db: Annotated[int, Meta(ge=0, le=MAX_DB)] = 0
    tls: Tls | None = None
    cluster: bool = False
    seeds: list[tuple[str, Annotated[int, Meta(ge=1, le=MAX_PORT)]]] = []
    only_node: bool = False
    replicas: ReplicaPolicy = "prefer"
    zone: str | None = None
    protocol: ProtocolVersion | None = None
    profile: str | None = None
    sentinels: _Sentinels | None = None
    via: list[str] = []
    map: list[str] = []


class RecentServers:
    """The file of recent servers, read and written as a whole; contents that can't be read count as empty."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` defaults to a file in the user's state folder."""
        self.path = state_folder() / "recent.json" if path is None else path

    def servers(self) -> list[Target]:
        """Return the servers, latest first; servers of profiles have only their `name` and address."""
        return [_target(server) for server in self._read()]

    def add(self, target: Target) -> None:
        """Put a server first; raises OSError. A server whose names are not valid text is not remembered."""
        now = _entry(target)
        others = [server for server in self._read() if _identity(server) != _identity(now)]
        try:
            text = msgspec.json.encode([now, *others][:KEPT])
        except UnicodeEncodeError:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with atomic_file(self.path) as file:
            file.write(text)

    def _read(self) -> list[_Server]:
        try:
            with self.path.open("rb") as file:
                text = file.read(MAX_FILE_BYTES + 1)
            return [] if len(text) > MAX_FILE_BYTES else msgspec.json.decode(text, type=list[_Server])[:KEPT]
        except (OSError, msgspec.MsgspecError, RecursionError):
            return []


def _entry(target: Target) -> _Server:
    has_address = target.socket_path is None and target.sentinels is None
    asked = target.sentinels
    return _Server(
        host=target.host if has_address else None,
        port=target.port if has_address else None,
        socket_path=target.socket_path,
        user=target.user,
        db=target.db,
        tls=_without_secret(target.tls),
        cluster=target.cluster,
        seeds=list(target.seeds),
        only_node=target.only_node,
        replicas=target.replicas,
        zone=target.zone,
        protocol=target.protocol,
        profile=target.name,
        via=list(target.way.via),
        map=list(target.way.addresses.rules),
        sentinels=None
        if asked is None
        else _Sentinels(asked.service, list(asked.addresses), asked.user, _without_secret(asked.tls)),
    )


def _without_secret(tls: Tls | None) -> Tls | None:
    return None if tls is None else replace(tls, key_password=None)


def _identity(server: _Server) -> object:
    asked = server.sentinels
    service = None if asked is None else (asked.service, *asked.addresses)
    return server.profile or (server.host, server.port, server.socket_path, server.user, service, *server.via)


def _target(server: _Server) -> Target:
    found = Target(user=server.user, db=server.db, tls=server.tls, cluster=server.cluster, protocol=server.protocol)
    found = replace(found, seeds=tuple(server.seeds), only_node=server.only_node)
    found = replace(found, replicas=server.replicas, zone=server.zone)
    name = None if server.profile is None else display_text(server.profile)
    with contextlib.suppress(TargetError):
        found = replace(found, way=Way(tuple(map(checked_host, server.via)), AddressMap(tuple(server.map))))
    if (asked := server.sentinels) is not None:
        found = replace(found, sentinels=Sentinels(asked.service, tuple(asked.addresses), asked.user, tls=asked.tls))
    if server.socket_path is not None:
        return replace(found, socket_path=server.socket_path, name=name)
    return replace(found, host=server.host or found.host, port=server.port or found.port, name=name)


PROFILE: Final = "profile:"
"""Before the name of a profile, in place of a target."""

STANDARD_INPUT: Final = "-"

MAX_LIST_BYTES: Final = 4 << 20

MAX_TARGETS: Final = 5_000

_NAME: Final = re.compile(LABEL_NAME)
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")


def read_target_file(name: str, parse: Callable[[str], Target] = parse_target) -> list[Target]:
    """Return the targets of a file, or of standard input; `parse` reads a target.

    Raises TargetError, which names the line and repeats nothing of it: it may hold a password.
    """
    profiles = Profiles()
    found = []
    lines, is_public = _lines(name)
    for number, line in enumerate(lines, 1):
        words = _COMMENT.sub("", line).split()
        if not words:
            continue
        where = f"{display_text(name, limit=200)}, line {number:,}"
        try:
            first, is_profile = words[0], words[0].startswith(PROFILE)
            has_password = not is_profile and parse_target(first).password is not None
            target = profiles.target(first.removeprefix(PROFILE)) if is_profile else parse(first)
        except TargetError as error:
            raise TargetError(error.title, f"{where}: {error.happened}", error.remedy) from None
        if is_public and has_password:
            happened = f"{where}: it holds a password, and others may read or change the file."
            raise TargetError("The list of targets can't be used", happened, f"Run: chmod 600 {name}")
        found.append(with_labels(target, _labels(words[1:], where)))
    return found


def _lines(name: str) -> tuple[list[str], bool]:
    """Return the lines of a file, and whether others may read or change it."""
    try:
        if name == STANDARD_INPUT:
            data, mode = sys.stdin.buffer.read(MAX_LIST_BYTES + 1), 0
        else:
            with Path(name).open("rb") as file:
                data, mode = file.read(MAX_LIST_BYTES + 1), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if len(data) > MAX_LIST_BYTES:
            raise _unreadable(name, f"it is over {MAX_LIST_BYTES:,} bytes")
        return data.decode("utf-8-sig").splitlines(), os.name == "posix" and bool(mode & (stat.S_IRWXG | stat.S_IRWXO))
    except OSError as error:
        raise _unreadable(name, error.strerror or type(error).__name__) from None
    except UnicodeDecodeError:
        raise _unreadable(name, "it is not UTF-8") from None


def _unreadable(name: str, why: str) -> TargetError:
    happened = f"{display_text(name, limit=200)}: {why}."
    return TargetError("The list of targets can't be read", happened, "It has a target a line: rtui fleet --help.")


def _labels(words: Iterable[str], where: str) -> dict[str, str]:
    labels = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or _NAME.match(name) is None or not value or len(value) > MAX_LABEL:
            happened = f"{where}: behind a target stand labels, such as team=shop."
            remedy = f"Names have letters, digits and _, values up to {MAX_LABEL} characters without spaces."
            raise TargetError("The list of targets can't be read", happened, remedy)
        labels[name] = value
    return labels


def with_labels(target: Target, labels: Mapping[str, str]) -> Target:
    """Return a target with further labels, in place of its own of the same names."""
    return replace(target, labels=tuple({**dict(target.labels), **dict(labels_of(labels))}.items()))


def profile_targets(patterns: Sequence[str]) -> list[Target]:
    """Return the servers of the profiles whose names match any glob; raises TargetError, also where a glob has none."""
    profiles = Profiles()
    names = profiles.names()
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            return [profiles.target(pattern)]  # which says which profiles there are
    return [profiles.target(name) for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def united(targets: Iterable[Target]) -> list[Target]:
    """Return each server once, in order, with the labels of all its mentions; raises TargetError for too many."""
    found: dict[str, Target] = {}
    for target in targets:
        first = found.setdefault(target.label, target)
        if first is not target:
            found[target.label] = with_labels(first, dict(target.labels))
    if len(found) > MAX_TARGETS:
        raise TargetError("Too many targets", f"{len(found):,} servers are named; {MAX_TARGETS:,} are possible.", "")
    return list(found.values())
