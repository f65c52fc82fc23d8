"""Lists to choose another server or database from: profiles, recent servers, databases with their numbers of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from textual import on
from textual.content import Content
from textual.widgets import OptionList

from rtui.analysis import humanize as fmt
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.user.known_servers import Profiles, RecentServers
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import Target, parse_target
from rtui.tui.kit.choice import AnswerScreen, ListScreen
from rtui.tui.kit.styled_text import joined, literal

MOST_NAME_CELLS: Final = 32
"""A longer name of a server pushes what stands beside it to the right."""


THIS_MACHINE: Final = Target()
"""What is offered where nothing is known: the usual port of this machine."""


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
    names = profiles.names()
    found = [
        Place(display_text(name), _of_profile(profiles, name), partial(profiles.target, name), is_profile=True)
        for name in names
    ]
    others = [replace(one, name=None) for one in recent.servers() if one.name is None or one.name not in names]
    found += [Place(_address(one), literal("recent"), partial(replace, one)) for one in others]
    if THIS_MACHINE not in others:
        found.append(Place(_address(THIS_MACHINE), literal("this machine"), lambda: THIS_MACHINE))
    return found


def of_report_first(places: Sequence[Place], label: str, db: int) -> list[Place]:
    """Return the places with the server that a report is of first, in the database of the report.

    It is a profile or a recent server of that address, which have what else is needed to connect, else the address.
    """

    def target_of(place: Place) -> Target | None:
        try:
            target = place.target()
        except TargetError:
            return None
        return replace(target, db=db) if target.label == label else None

    found = [(at, target) for at, one in enumerate(places) if (target := target_of(one)) is not None]
    if found:
        at, target = found[0]
        name, about = places[at].name, places[at].about
        others = [one for number, one in enumerate(places) if number != at]
    else:
        try:
            target = replace(parse_target(label), db=db)
        except TargetError:
            return [*places]
        name, about, others = _address(target), literal(""), [*places]
    told = joined([one for one in (literal("of this report"), about) if one], " · ")
    return [Place(name, told, lambda: target), *others]


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


class DatabasesScreen(AnswerScreen[int | None]):
    """Returns the number of the database that was chosen, None when none was."""

    def __init__(self, current: int, sizes: Mapping[int, int] | None) -> None:
        """`sizes` are the keys of databases that hold any; None where the server does not say."""
        numbers = sorted({0, current, *(sizes or ())})
        answers = [
            (number, SafeText(f"db{number:<4} {_keys_of(sizes, number)}{' · here' if number == current else ''}"))
            for number in numbers
        ]
        super().__init__(
            *(literal("Databases"), "enter browses · esc closes", answers),
            about=databases_text(current, sizes),
            at=numbers.index(current),
        )

    def show_count(self, count: int | None) -> None:
        """Say how many databases there are, once that is known."""
        if count is not None:
            self.options.border_title = Content(f"{fmt.counted(count, 'database')}")


MOST_NAMED: Final = 3
"""So many databases are named in a sentence, those with most keys."""


def databases_text(current: int, sizes: Mapping[int, int] | None) -> SafeText:
    """Return where the keys are: `db0 is empty; db3 holds 12,000 keys, db1 holds 40`."""
    if sizes is None:
        return literal("INFO is denied, so the others are not known.")
    held = sizes.get(current, 0)
    here = f"db{current} holds {fmt.counted(held, 'key')}" if held else f"db{current} is empty"
    others = sorted(((keys, number) for number, keys in sizes.items() if number != current and keys), reverse=True)
    if not others:
        return SafeText(f"{here}; no other database holds any" if held else f"{here}, as are all others")
    named = ", ".join(f"db{number} holds {fmt.count(keys)}" for keys, number in others[:MOST_NAMED])
    more = f", {len(others) - MOST_NAMED} more hold some" if len(others) > MOST_NAMED else ""
    return SafeText(f"{here}; {named}{more}")


def _keys_of(sizes: Mapping[int, int] | None, number: int) -> SafeText:
    if sizes is None:
        return literal("")
    return fmt.counted(sizes[number], "key") if sizes.get(number) else literal("empty")
