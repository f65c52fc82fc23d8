"""Which server a line of rules is for: product and version, such as `redis-7.0`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from rtui.server.guard.spec import MODULE_GROUPS, CommandGroup, Spec, Version
from rtui.server.guard.table import TABLE

OLDEST: Final[dict[str, Version]] = {"redis": (6, 2), "valkey": (7, 2)}
"""The first version of each product that the lines of rules are tested on."""

_NAME: Final = re.compile(r"(redis|valkey)-(\d{1,3})\.(\d{1,3})(?:\.\d{1,3})?")


class ReleaseError(ValueError):
    """A text that names no server this project knows; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Release:
    """A product and its version."""

    product: Literal["redis", "valkey"]
    version: Version

    @property
    def has_read_key_patterns(self) -> bool:
        """Whether it knows `%R~pattern` and selectors."""
        return self.version >= (7, 0)

    @property
    def takes_any_subcommand(self) -> bool:
        """Whether a rule may name a subcommand that the server does not have."""
        return self.version < (7, 0)

    def knows(self, spec: Spec) -> bool:
        """Whether it is new enough for a command; modules may be missing all the same."""
        since = spec.since_redis if self.product == "redis" else spec.since_valkey
        return since is not None and self.version >= since


def parse_release(text: str) -> Release:
    """Read `redis-7.0` or `valkey-8.1`, patch levels ignored; raises ReleaseError."""
    found = _NAME.fullmatch(text.strip().lower())
    if found is None:
        raise ReleaseError("write a product and a version, such as redis-7.0 or valkey-8.1")
    product: Literal["redis", "valkey"] = "valkey" if found[1] == "valkey" else "redis"
    version = (int(found[2]), int(found[3]))
    oldest = OLDEST[product]
    if version < oldest:
        raise ReleaseError(f"rules are known from {product}-{oldest[0]}.{oldest[1]} on")
    return Release(product, version)


REQUIRED_GROUPS: Final = frozenset({CommandGroup.CONNECTION, CommandGroup.KEYSPACE})
"""Groups without which nothing can be browsed."""

OPTIONAL_GROUPS: Final = tuple(group for group in CommandGroup if group not in REQUIRED_GROUPS)
"""Groups that a user may lack: the panels that need them say so."""

ON_REQUEST_GROUPS: Final = MODULE_GROUPS | {CommandGroup.CLUSTER, CommandGroup.SETTINGS, CommandGroup.HOTKEYS}
"""Groups that are granted on request only: a server without the module rejects the line, one that is no cluster has no
use for its commands, who may read one setting may read all of them, and a hot-key session changes the server."""

PLACEHOLDER: Final = ">PASSWORD"
"""What stands where the password goes."""

_USER: Final = re.compile(r"[A-Za-z0-9_.@+-]{1,128}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class AclError(ValueError):
    """A user name or hash that no line can be made of."""


def acl_line(
    release: Release,
    *,
    user: str = "rtui",
    sha256: str | None = None,
    groups: Collection[CommandGroup] = (),
    without: Collection[CommandGroup] = (),
) -> str:
    """Write the `ACL SETUSER` line of the minimal user for a server, one line without its end.

    `groups` adds what is granted on request only, `without` leaves optional groups out. The password is a placeholder,
    or its SHA-256 in hex. Raises AclError.
    """
    if not _USER.fullmatch(user):
        raise AclError("a user name has letters, digits and the characters _ . @ + -")
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise AclError("a SHA-256 is 64 hexadecimal digits in lower case")
    password = PLACEHOLDER if sha256 is None else f"#{sha256}"
    specs = granted(release, groups=groups, without=without)
    start = ["ACL", "SETUSER", user, "reset", "on", password, "resetchannels"]
    return " ".join([*start, *_rules(release, specs)])


def granted(
    release: Release, *, groups: Collection[CommandGroup] = (), without: Collection[CommandGroup] = ()
) -> list[Spec]:
    """List the entries that such a line allows.

    A server that takes any subcommand in a rule gets those too which a connection tries before it knows the version:
    otherwise it would log each of them as refused, and call denied what it does not have.
    """
    left_out = (ON_REQUEST_GROUPS - frozenset(groups)) | (frozenset(without) - REQUIRED_GROUPS)
    return [spec for spec in TABLE if spec.group not in left_out and (release.knows(spec) or _is_tried(release, spec))]


def _is_tried(release: Release, spec: Spec) -> bool:
    is_first = spec.group is CommandGroup.CONNECTION and spec.is_optional and "|" in spec.acl_rule
    return is_first and release.takes_any_subcommand


def _rules(release: Release, specs: Iterable[Spec]) -> list[str]:
    """Read-only key patterns where the server has them; what it takes for writers gets a selector of its own.

    `%R~*` matches every key but the one with the empty name, on every server (`~*` is no pattern to them), which gets
    `%R~`.
    """
    if not release.has_read_key_patterns:
        return ["~*", "-@all", *_unique(specs)]
    readers = [spec for spec in specs if not spec.has_write_key_spec]
    others = _unique(spec for spec in specs if spec.has_write_key_spec)
    selector = [f"(~* -@all {' '.join(others)})"] if others else []
    return ["%R~*", "%R~", "-@all", *_unique(readers), *selector]


def _unique(specs: Iterable[Spec]) -> list[str]:
    return list(dict.fromkeys(spec.acl_rule for spec in specs))
