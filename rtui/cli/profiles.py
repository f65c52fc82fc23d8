"""Profiles: named servers in a file that only the user can read, so that neither address nor password is typed."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rtui.keyspace.text.display import display_text
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import MAX_DB, MAX_PORT, Secret, Target, Tls, parse_target

MAX_PROFILE_BYTES: Final = 1 << 20
"""A larger file is refused."""

_TEXTS: Final = ("url", "host", "socket", "user", "password", "cacert", "cacertdir", "cert", "key", "sni")
_NUMBERS: Final = {"port": (1, MAX_PORT), "db": (0, MAX_DB), "protocol": (2, 3)}
_FLAGS: Final = ("tls", "insecure", "cluster")
_TLS_PATHS: Final = ("cacert", "cacertdir", "cert", "key")
_POSITION: Final = re.compile(r"\(at [^()]*\)\Z")


def default_path() -> Path:
    """Return the path of `profiles.toml` in the user's configuration folder for rtui."""
    import platformdirs  # noqa: PLC0415 - only those who use profiles wait for it

    return platformdirs.user_config_path("rtui") / "profiles.toml"


class Profiles:
    """The profile file, which is read when a profile is asked for."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = default_path() if path is None else path

    def target(self, name: str) -> Target:
        """Return the server of a profile; raises `TargetError` where it is missing, invalid or not private."""
        tables = self._read()
        profile = tables.get(name)
        if not isinstance(profile, dict):
            known = ", ".join(sorted(key for key, value in tables.items() if isinstance(value, dict))) or "none"
            raise self._wrong(f"There is no profile {name!r} in {self.path}.", f"It has: {known}.")
        self._check(name, profile)
        found = Target()
        if "url" in profile:
            try:
                found = parse_target(profile["url"])
            except TargetError as error:
                raise self._wrong(
                    f"In profile {name!r}, the url can't be read. {error.happened}", error.remedy
                ) from None
        changes: dict[str, Any] = {
            key: profile[key] for key in ("host", "port", "user", "db", "cluster", "protocol") if key in profile
        }
        if "socket" in profile:
            changes["socket_path"] = str(self._resolved(profile["socket"]))
        if "password" in profile:
            changes["password"] = Secret(profile["password"])
        tls: dict[str, Any] = {key: str(self._resolved(profile[key])) for key in _TLS_PATHS if key in profile}
        tls |= {key: profile[key] for key in ("sni", "insecure") if key in profile}
        if tls or profile.get("tls"):
            if found.socket_path is not None:
                raise self._wrong(f"Profile {name!r} has a socket and what only TCP has.", "Give either of them.")
            changes["tls"] = replace(found.tls or Tls(), **tls)
        return replace(found, name=display_text(name), **changes)

    def _read(self) -> dict[str, Any]:
        try:
            with self.path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                text = file.read(MAX_PROFILE_BYTES + 1)
        except FileNotFoundError:
            raise self._wrong(f"There is no file {self.path}.", "rtui --help shows what goes into it.") from None
        except OSError as error:
            raise self._wrong(f"{self.path} can't be read: {error.strerror}.", "Check its permissions.") from None
        if len(text) > MAX_PROFILE_BYTES:
            raise self._wrong(f"{self.path} is over {MAX_PROFILE_BYTES:,} bytes.", "It holds a few lines a server.")
        try:
            tables = tomllib.loads(text.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            where = _POSITION.search(str(error))
            raise self._wrong(
                f"{self.path} is not TOML{f' {where[0]}' if where else ''}.", "Values that are text stand in quotes."
            ) from None
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO) and _has_password(tables):
            raise self._wrong(
                f"{self.path} holds a password and others may read or change it.", f"Run: chmod 600 {self.path}"
            )
        return tables

    def _check(self, name: str, profile: Mapping[str, Any]) -> None:
        known = (*_TEXTS, *_NUMBERS, *_FLAGS)
        for key, value in profile.items():
            if key not in known:
                raise self._wrong(f"Profile {name!r} has a key {key!r}.", f"Known are {', '.join(known)}.")
            if key in _TEXTS and not (isinstance(value, str) and value and "\0" not in value):
                raise self._wrong(f"In profile {name!r}, {key} is not a text.", "Text stands in quotes.")
            if key in _FLAGS and not isinstance(value, bool):
                raise self._wrong(f"In profile {name!r}, {key} is neither true nor false.", "It stands without quotes.")
            low, high = _NUMBERS.get(key, (0, 0))
            if key in _NUMBERS and not (type(value) is int and low <= value <= high):
                raise self._wrong(f"In profile {name!r}, {key} is not a number from {low} to {high}.", "")
        if "url" in profile and {"host", "port", "socket"} & profile.keys():
            raise self._wrong(
                f"Profile {name!r} names the server twice.", "Give either url, or host and port, or socket."
            )
        if "socket" in profile and {"host", "port", "tls", "sni", "insecure", *_TLS_PATHS} & profile.keys():
            raise self._wrong(f"Profile {name!r} has a socket and what only TCP has.", "Give either of them.")

    def _resolved(self, path: str) -> Path:
        """Return a path of the file: `~` is the home folder, a relative one starts at the file's folder."""
        return self.path.parent / Path(path).expanduser()

    def _wrong(self, happened: str, remedy: str) -> TargetError:
        return TargetError("The profile can't be used", happened, remedy)


def _has_password(tables: Mapping[str, Any]) -> bool:
    """Whether any profile has a password, also in its URL; a URL that can't be parsed may have one and counts."""
    for profile in tables.values():
        if not isinstance(profile, dict):
            continue
        if profile.get("password"):
            return True
        url = profile.get("url")
        if isinstance(url, str):
            try:
                if parse_target(url).password:
                    return True
            except TargetError:
                return True
    return False
