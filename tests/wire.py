"""What a client says, read back from the bytes on the wire."""

from __future__ import annotations


class NotACommandError(ValueError):
    """A client sent something that is not an array of bulk strings."""


class Requests:
    """The commands in one client's stream of bytes, each as its list of arguments."""

    def __init__(self) -> None:
        self.commands: list[list[bytes]] = []
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        """Take more bytes; a command that is not complete waits for the next ones."""
        self._rest += data
        start = 0
        while (end := self._command(start)) is not None:
            start = end
        del self._rest[:start]

    @property
    def incomplete(self) -> bytes:
        """The beginning of a command whose end has not come yet."""
        return bytes(self._rest)

    def _command(self, start: int) -> int | None:
        """Take the command that begins at `start`; return where it ends, None when its end is missing."""
        header = self._number(start, b"*")
        if header is None:
            return None
        arguments, position = header
        argv = []
        for _ in range(arguments):
            header = self._number(position, b"$")
            if header is None:
                return None
            size, position = header
            if len(self._rest) < position + size + 2:
                return None
            argv.append(bytes(self._rest[position : position + size]))
            position += size + 2
        self.commands.append(argv)
        return position

    def _number(self, start: int, kind: bytes) -> tuple[int, int] | None:
        end = self._rest.find(b"\r\n", start)
        if end < 0:
            return None
        if self._rest[start : start + 1] != kind:
            raise NotACommandError(bytes(self._rest[start:end]))
        return int(self._rest[start + 1 : end]), end + 2
