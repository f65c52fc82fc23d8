"""Lists to choose another server or database from: profiles, recent servers, databases with their numbers of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from textual import on
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rtui.analysis import humanize as fmt
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.profiles import Profiles
from rtui.server.recent import RecentServers
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import Target
from rtui.tui.kit.choice import ListScreen
from rtui.tui.kit.styled_text import literal

MOST_NAME_CELLS: Final = 32
"""A longer name of a server pushes what stands beside it to the right."""


class Place(NamedTuple):
    """A server in a list."""

    name: SafeText
    about: SafeText
    target: Callable[[], Target]
    """Returns where to connect; raises TargetError."""
    is_profile: bool = False


def known_places(profiles: Profiles, recent: RecentServers) -> list[Place]:
    """Return profiles, then recent servers that are none of them, then the default one; no secrets in any text.

    A target is made when it is chosen, which raises TargetError for a profile that is wrong.
    """
    names, default = profiles.names(), Target()
    found = [
        Place(display_text(name), _of_profile(profiles, name), partial(profiles.target, name), is_profile=True)
        for name in names
    ]
    others = [replace(one, name=None) for one in recent.servers() if one.name is None or one.name not in names]
    found += [Place(_address(one), literal("recent"), partial(replace, one)) for one in others]
    if default not in others:
        found.append(Place(_address(default), literal("this machine"), Target))
    return found


def _of_profile(profiles: Profiles, name: str) -> SafeText:
    try:
        target = profiles.target(name)
    except TargetError as error:
        return error.happened
    mark = "" if target.mark is None else f"[{target.mark.word}] "
    return SafeText(f"profile · {mark}{_address(target)}")


def _address(target: Target) -> SafeText:
    user = "" if target.user is None else f"{display_text(target.user)} at "
    tls = "" if target.tls is None else " · TLS"
    database = f" · db{target.db}" if target.db else ""
    return SafeText(f"{user}{target.label}{tls}{database}")


class ServersScreen(ListScreen[Target | None]):
    """Returns the server that was chosen, None when none was."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        cells = min(MOST_NAME_CELLS, max(len(one.name) for one in places))
        entries = [Content.assemble(f"{name:{cells}}  ", (about, "$ink-muted")) for name, about, *_ in places]
        super().__init__(literal("Servers"), "enter browses · esc closes", *entries)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        try:
            target = self._places[event.option_index].target()
        except TargetError as error:
            self.notify(error.happened, title=error.title, severity="error", markup=False)
        else:
            self.dismiss(target)


class DatabasesScreen(ListScreen[int | None]):
    """Returns the number of the database that was chosen, None when none was."""

    def __init__(self, current: int, sizes: Mapping[int, int] | None) -> None:
        """`sizes` are the keys of databases that hold any; None where the server does not say."""
        self._numbers = sorted({0, current, *(sizes or ())})
        note = [Option(Content("INFO is denied, so the others are not known."), disabled=True)] if sizes is None else []
        entries = [Content(f"db{number:<4} {_keys_of(sizes, number)}") for number in self._numbers]
        super().__init__(literal("Databases"), "enter browses · esc closes", *note, *entries)
        self._before = len(note)
        self.options.highlighted = self._numbers.index(current) + self._before

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._numbers[event.option_index - self._before])


def _keys_of(sizes: Mapping[int, int] | None, number: int) -> SafeText:
    if sizes is None:
        return literal("")
    return fmt.counted(sizes[number], "key") if sizes.get(number) else literal("empty")
