"""The servers of a fleet: named on the command line, in a file of targets, and as profiles.

A file has a target a line, with labels behind it; what follows a # is a comment:

    # caches
    redis://app@10.0.0.5:6379   team=shop zone=a
    10.0.0.6                    team=shop zone=b
    profile:prod-queue          team=mail
    sentinel://10.0.0.9/*       # every service of these Sentinels

A server that is named twice is one server with the labels of both.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from rtui.keyspace.text.display import display_text
from rtui.server.user.known_servers import LABEL_NAME, MAX_LABEL, Profiles, labels_of
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import Target, parse_target

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
