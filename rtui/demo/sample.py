"""The demo as one thing: an embedded server that fills while it is being looked at."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rtui.demo.embedded import EmbeddedServer
from rtui.demo.keyspaces import DEFAULT_KEYS, DEFAULT_SEED
from rtui.demo.load import start_loading
from rtui.server.wire.target import Target


@dataclass(frozen=True, slots=True)
class Demo:
    """A running demo."""

    target: Target
    _server: EmbeddedServer = field(repr=False)
    _loader: subprocess.Popen[bytes] = field(repr=False)

    @property
    def loading(self) -> bool:
        """Whether keys are still being added; a scan that began before the end does not see all of them."""
        return self._loader.poll() is None

    def wait_loaded(self) -> bool:
        """Wait until the last key is there; False if the loader failed."""
        return self._loader.wait() == 0


@contextmanager
def demo_server(keys: int = DEFAULT_KEYS, seed: int = DEFAULT_SEED) -> Iterator[Demo]:
    """Start the embedded server and begin to load about `keys` sample keys; stop it at the end of the block.

    Raises DemoUnavailable where there is no embedded server.
    """
    with EmbeddedServer() as server:
        loader = start_loading(server, keys, seed)
        try:
            yield Demo(server.target, server, loader)
        finally:
            loader.kill()
            loader.wait()
