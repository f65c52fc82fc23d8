"""Follows the references of a registry for `rtui check`, after its analysis."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import click

from rtui.analysis.report.members import ReferenceChecks
from rtui.cli.report_run import ConnectionWatch, Interrupts
from rtui.keyspace.text.display import SafeText
from rtui.registry.registry import Registry
from rtui.registry.rules import Severity
from rtui.server.analysis.references import ReferenceCheck, ReferenceOptions
from rtui.server.deployment.nodes import Deployment
from rtui.server.scan.pace import Pace
from rtui.server.user.ending_signals import EndedBySignal

if TYPE_CHECKING:
    from rtui.server.wire.command_log import CommandLog
    from rtui.server.wire.target import Target

Follow: TypeAlias = Callable[["Target", "CommandLog | None"], ReferenceChecks]
"""Follows references on a server and keeps what is sent in a log; raises ConnectFailure, and EndedBySignal."""


def follow_references(registry: Registry, pace: Pace, match: bytes | None, *, are_all: bool) -> Follow | None:
    """Return what follows the references of a registry; None where it declares none, or their rules are off."""
    rules = registry.rules
    is_off = all(rules.severity(rule) is Severity.OFF for rule in ("reference-dangling", "reference-twin"))
    if is_off or not any(entry.references for entry in registry.entries):
        return None
    wanted = rules.parameter("reference-dangling", "keys")
    options = ReferenceOptions(None if are_all or isinstance(wanted, tuple) else int(wanted), match, pace)
    return partial(_follow, registry, options)


def _follow(registry: Registry, options: ReferenceOptions, target: Target, log: CommandLog | None) -> ReferenceChecks:
    return asyncio.run(_run(registry, options, target, log))


async def _run(
    registry: Registry, options: ReferenceOptions, target: Target, log: CommandLog | None
) -> ReferenceChecks:
    deployment = Deployment(target, log)
    try:
        await deployment.open()
        deployment.require_replicas()
        check = ReferenceCheck(deployment, registry, options)
        ConnectionWatch(deployment.home, check.control.stop)
        with Interrupts(partial(check.control.stop, SafeText("it was interrupted"))) as interrupts:
            await check.run()
        if interrupts.sent is not None:
            click.echo("rtui: interrupted: nothing is judged", err=True)
            raise EndedBySignal(interrupts.sent)
        return check.found
    finally:
        await deployment.close()
