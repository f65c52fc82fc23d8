"""The closed list as the ACL rules of a user: one `ACL SETUSER` line for a product and version, such as redis-7.0."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.spec import MODULE_GROUPS, CommandGroup, Spec, Version

OLDEST: Final[dict[str, Version]] = {"redis": (6, 2), "valkey": (7, 2)}
"""The first version of each product that the rules are tested with."""

SUBCOMMANDS_CHECKED: Final[Version] = (7, 0)
"""From this version on a server rejects rules with an unknown subcommand, and has `%R~pattern` and selectors."""

NOT_OF_SERVERS: Final = frozenset({CommandGroup.SENTINEL})
"""Groups of commands that only Sentinels have: a server rejects a line with them."""

_OF_SENTINELS: Final = frozenset({"AUTH", "HELLO", "PING", "INFO", "CLIENT SETNAME", "CLIENT SETINFO"})

REQUIRED_GROUPS: Final = frozenset({CommandGroup.CONNECTION, CommandGroup.KEYSPACE})
"""Groups without which nothing can be browsed."""

OPTIONAL_GROUPS: Final = tuple(group for group in CommandGroup if group not in REQUIRED_GROUPS | NOT_OF_SERVERS)
"""Groups that a user may lack: the panels that need them say so."""

ON_REQUEST_GROUPS: Final = MODULE_GROUPS | {
    CommandGroup.CLUSTER, CommandGroup.RENAMED, CommandGroup.SETTINGS, CommandGroup.HOTKEYS, CommandGroup.HEALTH
}  # fmt: skip
"""Groups that are granted on request only: a server without the module rejects the line; without a cluster, or renamed
commands, their commands are useless; a user who may read one setting may read all; a hot-key session changes the
server; and the slow log and the client list show arguments and addresses of others."""

_RELEASE: Final = re.compile(r"(redis|valkey)-(\d{1,3})\.(\d{1,3})(?:\.\d{1,3})?")
_USER: Final = re.compile(r"[A-Za-z0-9_.@+-]{1,128}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class AclError(ValueError):
    """A release, user name or hash without a valid line; the message shows the right form."""


@dataclass(frozen=True, slots=True)
class Release:
    """A product and its version."""

    product: Literal["redis", "valkey"]
    version: Version

    def knows(self, spec: Spec) -> bool:
        """Whether this version has a command; modules may be missing all the same."""
        since = spec.since if self.product == "redis" else spec.since_valkey
        return since is not None and self.version >= since


def parse_release(text: str) -> Release:
    """Read `redis-7.0` or `valkey-8.1`, patch levels ignored; raises AclError."""
    found = _RELEASE.fullmatch(text.strip().lower())
    if found is None:
        raise AclError("write a product and a version, such as redis-7.0 or valkey-8.1")
    product: Literal["redis", "valkey"] = "valkey" if found[1] == "valkey" else "redis"
    version = (int(found[2]), int(found[3]))
    oldest = OLDEST[product]
    if version < oldest:
        raise AclError(f"rules are known from {product}-{oldest[0]}.{oldest[1]} on")
    return Release(product, version)


def acl_line(
    release: Release,
    *,
    user: str = "rtui",
    sha256: str | None = None,
    groups: Collection[CommandGroup] = (),
    without: Collection[CommandGroup] = (),
) -> str:
    """Write the `ACL SETUSER` line of the minimal user for a server, without a line end.

    `groups` adds groups that are granted on request only, `without` leaves optional groups out. The password is a
    placeholder, or its SHA-256 in hex. Key patterns are read-only if the server has such patterns; commands that it
    counts as writers are allowed in a selector of their own. Raises AclError.
    """
    specs = granted(release, groups=groups, without=without)
    if release.version < SUBCOMMANDS_CHECKED:
        rules = ["~*", "-@all", *_unique(specs)]
    else:  # `%R~*` matches every key but the one with the empty name, which needs `%R~`
        others = _unique(spec for spec in specs if spec.has_write_key_spec)
        selector = [f"(~* -@all {' '.join(others)})"] if others else []
        rules = ["%R~*", "%R~", "-@all", *_unique(spec for spec in specs if not spec.has_write_key_spec), *selector]
    return _line(user, sha256, rules)


def sentinel_acl_line(release: Release, *, user: str = "rtui", sha256: str | None = None) -> str:
    """Write the line of the minimal user for a Sentinel of this release, which has no keys. Raises AclError."""
    specs = (
        spec
        for spec in TABLE
        if spec.group is CommandGroup.SENTINEL
        or (spec.name in _OF_SENTINELS and release.knows(spec))
        or _is_tried_on_old(release, spec)
    )
    return _line(user, sha256, ["-@all", *_unique(specs)])


def _line(user: str, sha256: str | None, rules: Sequence[str]) -> str:
    if not _USER.fullmatch(user):
        raise AclError("a user name has letters, digits and the characters _ . @ + -")
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise AclError("a SHA-256 is 64 hexadecimal digits in lower case")
    password = ">PASSWORD" if sha256 is None else f"#{sha256}"
    return " ".join(["ACL", "SETUSER", user, "reset", "on", password, "resetchannels", *rules])


def granted(
    release: Release, *, groups: Collection[CommandGroup] = (), without: Collection[CommandGroup] = ()
) -> list[Spec]:
    """List the entries of the closed list that such a line allows.

    Before 7.0 a rule may name any subcommand. For these releases the line also grants the subcommands that a connection
    tries before it knows the version: otherwise the server would log each of them as refused, and rtui would report as
    denied a command that the server does not have.
    """
    left_out = NOT_OF_SERVERS | (ON_REQUEST_GROUPS - frozenset(groups)) | (frozenset(without) - REQUIRED_GROUPS)
    return [
        spec
        for spec in TABLE
        if spec.group not in left_out and (release.knows(spec) or _is_tried_on_old(release, spec))
    ]


def _is_tried_on_old(release: Release, spec: Spec) -> bool:
    """Whether a connection tries this subcommand before it knows that the server is too old, and a rule may name it."""
    is_old = release.version < SUBCOMMANDS_CHECKED
    return is_old and spec.group is CommandGroup.CONNECTION and len(spec.words) > 1


def _unique(specs: Iterable[Spec]) -> list[str]:
    return list(dict.fromkeys(spec.acl_rule for spec in specs))
