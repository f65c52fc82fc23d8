"""What is kept of samples of servers where names and addresses must not be: the same as in sanitised recordings."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from rtui.analysis.health.sample import ClientFigures, LoggedCommand, Sample
from rtui.server.recording.sanitising import is_harmless, sanitised_arguments
from rtui.server.recording.stand_ins import StandIns


class SampleSanitiser:
    """Replaces what may not be kept, by the same stand-ins throughout; nodes, replicas and clients are numbered."""

    def __init__(self, stand_ins: StandIns | None = None) -> None:
        self._stand_ins = StandIns() if stand_ins is None else stand_ins
        self._addresses: dict[tuple[str, bytes], bytes] = {}

    def node(self, label: str) -> str:
        """Return the stand-in of a node."""
        return self._address("node", label.encode()).decode()

    def sanitised(self, sample: Sample) -> Sample:
        """Return a sample without names and addresses."""
        logs: dict[str, Any] = {
            name: tuple(map(self._of_command, getattr(sample, name)))
            for name in ("slow", "large_requests", "large_replies")
        }
        run_id = sample.info.get("run_id")
        info = {name: value for name, value in sample.info.items() if is_harmless(name, str(value))}
        if isinstance(run_id, str):
            info["run_id"] = self._stand_ins.text(run_id)
        return replace(
            sample,
            node=self.node(sample.node),
            info=info,
            replicas=tuple(replace(one, address=self._address("replica", one.address)) for one in sample.replicas),
            clients=tuple(map(self._of_client, sample.clients)),
            **logs,
        )

    def _of_client(self, client: ClientFigures) -> ClientFigures:
        name = self._stand_ins.name
        return replace(
            client,
            id=None,
            address=self._address("client", client.address),
            name=name(client.name),
            library=name(client.library),
            user=name(client.user),
        )

    def _of_command(self, entry: LoggedCommand) -> LoggedCommand:
        return replace(
            entry,
            argv=sanitised_arguments(entry.argv, self._stand_ins),
            address=self._address("client", entry.address),
            client_name=self._stand_ins.name(entry.client_name),
        )

    def _address(self, what: str, address: bytes) -> bytes:
        """Return what stands for an address: `client-1`, the same for the same one; nothing for none."""
        if not address:
            return b""
        count = 1 + sum(1 for known, _ in self._addresses if known == what)
        return self._addresses.setdefault((what, address), b"%b-%d" % (what.encode(), count))
