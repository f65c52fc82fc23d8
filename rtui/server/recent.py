"""The servers that were browsed last, so that they can be chosen again: addresses and files, never a password.

Kept in one small file of the user's state folder. A profile, or an address with a user, is one entry, whichever of its
databases was browsed: it remembers the last one.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from rtui.keyspace.text.display import display_text
from rtui.server.files import atomic_file, state_folder
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import MAX_DB, MAX_PORT, ProtocolVersion, ReplicaPolicy, Sentinels, Target, Tls
from rtui.server.wire.ways import AddressMap, Way, checked_host

KEPT: Final = 20
"""So many servers are remembered."""

MAX_FILE_BYTES: Final = 1 << 20
"""A larger file was not written by rtui."""


class _Sentinels(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is remembered of the Sentinels of a service."""

    service: str
    addresses: Annotated[list[tuple[str, Annotated[int, Meta(ge=1, le=MAX_PORT)]]], Meta(min_length=1)]
    user: str | None = None
    tls: Tls | None = None


class _Server(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is remembered of one server."""

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
    """The file, which is read and written as a whole; what can't be read counts as empty."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` defaults to the user's state folder."""
        self.path = state_folder() / "recent.json" if path is None else path

    def servers(self) -> list[Target]:
        """Return the servers, the last one first; those of profiles have only their `name` and address."""
        return [_target(one) for one in self._read()]

    def add(self, target: Target) -> None:
        """Put a server first; raises OSError. One whose names are no text is not remembered."""
        now = _remembered(target)
        others = [one for one in self._read() if _identity(one) != _identity(now)]
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


def _remembered(target: Target) -> _Server:
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
    """Return what makes two entries the same server."""
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
