"""What a server answers."""

from __future__ import annotations

from typing import TypeAlias

from rtui.server.errors import ServerError

Reply: TypeAlias = "bytes | int | float | bool | list[Reply] | dict[Reply, Reply] | ServerError | None"
"""The reply to one command; an error reply is a value, and lanes give every reply the shape of protocol 2."""
