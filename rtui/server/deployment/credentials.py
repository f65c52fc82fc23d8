"""Users and passwords that are fetched on demand, and again before they expire: tokens of a cloud, of Vault.

They come from a command of the user (`--password-command`), or from an object with the protocol of redis-py's
credential providers (`--credential-provider module:factory`), such as redis-entraid's. A connection asks before each
attempt to log in. An expiring password is fetched again after four fifths of its life, and `on_renewed` makes the open
connections log in again; a password that the server refuses is fetched again for the next attempt.

A command prints the password on one line, or a JSON object: `{"username": …, "password": …, "expires_in": seconds}`.
Without `expires_in`, or with 0, which Vault uses for no expiry, the life of a JSON Web Token is read from its `exp`, of
a signed AWS request from its query.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib
import json
import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs

from rtui.keyspace.text.display import display_text
from rtui.server.guard.command import MASK, Secret
from rtui.server.wire.errors import ConnectFailure, FailureKind, TargetError
from rtui.server.wire.target import Login, Target

COMMAND_S: Final = 30.0
"""The time limit of a command or a provider, in seconds."""

MOST_BYTES: Final = 64 * 1024
"""The longest output that may be a password."""

RENEWED_AT: Final = 0.8
"""The share of its life after which a password is fetched again."""

LEAST_LIFE_S: Final = 5.0
"""The least time between two fetches."""

RETRY_S: Final = 10.0
"""The time until the next try after a failed renewal."""

_JWT: Final = re.compile(r"[\w-]+\.([\w-]+)\.[\w-]*\Z")
_TOKEN: Final = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*|[\w+=-]{40,}")
"""A JSON Web Token, or any text without spaces and stops that is as long as the tokens of clouds and Vault."""

_REMEDY: Final = "Run it in a shell: it must print only the password, within 30 s."
_GIVES: Final = (
    "Its get_credentials has to return (password,) or (user, password), both of them text, within 30 s; "
    "so has get_credentials_async."
)


@dataclass(frozen=True, slots=True)
class Password:
    """A user and a password."""

    user: str | None
    password: Secret
    expires_at_s: float | None = None
    """The end of the password's life, in seconds since the epoch; None if it is unknown."""


class Credentials:
    """Fetches passwords; `logged_in` has the latest, and `close` ends it."""

    def __init__(self, source: CommandSource | ProviderSource, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns seconds since the epoch."""
        self.on_renewed: Callable[[Target], object] | None = None
        """Called with a target whose new password replaces one that is in use."""
        self._source = source
        self._target: Target | None = None
        """The last target that got a password."""
        self._clock = clock
        self._login: Password | None = None
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._shared: list[SharedCredentials] = []
        source.on_next = self._renewed

    async def logged_in(self, target: Target) -> Target:
        """Return a target with a password that has not expired; raises ConnectFailure if none can be had."""
        self._target = target
        return _with_password(target, await self.current())

    def shared(self) -> SharedCredentials:
        """Return credentials for a connection to another node, which gets new passwords as well."""
        one = SharedCredentials(self, self._shared)
        self._shared.append(one)
        return one

    async def current(self) -> Password:
        """Return a password that has not expired; raises ConnectFailure if none can be had."""
        async with self._lock:
            login = self._login
            if login is None or (login.expires_at_s is not None and login.expires_at_s <= self._clock()):
                login = self._login = await self._source.login()
                self._renew_later(login)
            return login

    def refused(self) -> None:
        """Fetch another password for the next attempt: the server has refused this one."""
        self._login = None

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)

    def _renew_later(self, login: Password, wait_s: float | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if login.expires_at_s is None:
            return
        life_s = max(LEAST_LIFE_S, RENEWED_AT * (login.expires_at_s - self._clock()))
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(life_s if wait_s is None else wait_s, self._begin_renewal, login)

    def _begin_renewal(self, login: Password) -> None:
        self._renewing = asyncio.create_task(self._renew(login), name="rtui password")

    async def _renew(self, before: Password) -> None:
        async with self._lock:
            try:
                login = await self._source.login()
            except ConnectFailure:
                self._renew_later(before, RETRY_S)
                return
        self._renewed(login)

    def _renewed(self, login: Password) -> None:
        self._login = login
        self._renew_later(login)
        if self.on_renewed is not None and self._target is not None:
            self.on_renewed(_with_password(self._target, login))
        for shared in tuple(self._shared):
            shared.renewed(login)


class SharedCredentials:
    """The passwords of other credentials, for the connection to another node of a cluster."""

    def __init__(self, of: Credentials, among: list[SharedCredentials]) -> None:
        """`among` are all that share them; `close` removes this one."""
        self.on_renewed: Callable[[Target], object] | None = None
        self._of, self._among = of, among
        self._target: Target | None = None

    async def logged_in(self, target: Target) -> Target:
        """Return a target with a password that has not expired; raises ConnectFailure if none can be had."""
        self._target = target
        return _with_password(target, await self._of.current())

    def refused(self) -> None:
        """Fetch another password for the next attempt."""
        self._of.refused()

    def renewed(self, login: Password) -> None:
        """Make the connection log in again with a new password."""
        if self.on_renewed is not None and self._target is not None:
            self.on_renewed(_with_password(self._target, login))

    def shared(self) -> SharedCredentials:
        return self._of.shared()

    async def close(self) -> None:
        self._among.remove(self)


def _with_password(target: Target, login: Password) -> Target:
    return replace(target, user=login.user or target.user, password=login.password)


class CommandSource:
    """A shell command that prints a password."""

    def __init__(self, command: Secret) -> None:
        self.on_next: Callable[[Password], object] | None = None
        self._command = command

    async def login(self) -> Password:
        """Run the command; raises ConnectFailure, which shows its errors but not its output."""
        process = await asyncio.create_subprocess_shell(
            self._command.reveal(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(COMMAND_S):
                output, errors = await process.communicate()
        except BaseException as error:  # also when cancelled: the command, and what it has started, would go on
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()
            if isinstance(error, TimeoutError) and process.returncode:
                raise _failed(f"The password command did not finish within {COMMAND_S:g} s.") from None
            if isinstance(error, TimeoutError):
                raise _failed("The password command started a program that keeps its output open.") from None
            raise
        if process.returncode:
            words = _without_tokens(" ".join(errors.decode("utf-8", "replace").split()))
            how = "ended with exit code" if process.returncode > 0 else "was ended by signal"
            said = f": {words}" if words else " without a message."
            raise _failed(f"The password command {how} {abs(process.returncode)}{said}")
        return read_login(output)


class ProviderSource:
    """An object with the protocol of redis-py's `CredentialProvider`; a streaming one announces new tokens itself."""

    def __init__(self, provider: Any) -> None:
        self.on_next: Callable[[Password], object] | None = None
        self._provider = provider
        self._loop = asyncio.get_running_loop()
        if hasattr(provider, "on_next") and hasattr(provider, "is_streaming"):
            provider.on_next(self._next)

    async def login(self) -> Password:
        """Ask the provider; raises ConnectFailure."""
        try:
            async with asyncio.timeout(COMMAND_S):
                if _is_async(self._provider):
                    found = await self._provider.get_credentials_async()
                else:
                    found = await _in_thread(self._provider.get_credentials)
        except TimeoutError:
            raise _failed(f"The credential provider did not answer within {COMMAND_S:g} s.", _GIVES) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's code
            said = f"{type(error).__name__}: {_without_tokens(str(error))}"
            raise _failed(f"The credential provider failed: {said}", _PROVIDER_FAILED) from None
        match found:
            case (str(password),):
                return Password(None, Secret(password), _expiry_of(password))
            case (str(user), str(password)):
                return Password(user or None, Secret(password), _expiry_of(password))
        raise _failed("The credential provider returned neither a password nor a user and a password.", _GIVES)

    def _next(self, token: Any) -> None:
        """Accept a token of redis-py's kind, from any thread; another kind is left to the next login."""
        match token.try_get("oid"), token.get_value(), token.get_expires_at_ms():
            case (str() | None as user, str(password), int() | float() as expires_at_ms):
                known_s = expires_at_ms / 1000 if expires_at_ms > 0 else _expiry_of(password)
                with contextlib.suppress(RuntimeError):  # rtui has ended
                    self._loop.call_soon_threadsafe(self._hand_on, Password(user, Secret(password), known_s))

    def _hand_on(self, login: Password) -> None:
        if self.on_next is not None:
            self.on_next(login)


async def _in_thread(function: Callable[[], object]) -> object:
    """Call a function in a thread that nobody waits for when rtui ends; raises its exception."""
    loop = asyncio.get_running_loop()
    called: asyncio.Future[object] = loop.create_future()

    def settle(result: object, error: BaseException | None) -> None:
        if not called.done():
            called.set_result(result) if error is None else called.set_exception(error)

    def call() -> None:
        result, raised = None, None
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
            raised = error
        with contextlib.suppress(RuntimeError):  # rtui has ended
            loop.call_soon_threadsafe(settle, result, raised)

    threading.Thread(target=call, name="rtui credentials", daemon=True).start()
    return await called


def _is_async(provider: Any) -> bool:
    """Whether a provider has its own async method: the one of redis-py's class would block the event loop."""
    from redis.credentials import CredentialProvider  # noqa: PLC0415 - for those who have a provider

    own = getattr(type(provider), "get_credentials_async", None)
    return own is not None and own is not CredentialProvider.get_credentials_async


def credentials_of(login: Login) -> Credentials:
    """Return the credentials of a target; raises TargetError."""
    if login.command is not None:
        return Credentials(CommandSource(login.command))
    return Credentials(ProviderSource(provider_of(login.provider or "")))


def provider_of(name: str) -> Any:
    """Import `module:factory` and return the factory's result; raises TargetError."""
    module, colon, factory = name.partition(":")
    if not (module and colon and factory):
        raise TargetError("The credential provider can't be used", "Write module:factory.", _PROVIDER_REMEDY)
    try:
        made = getattr(importlib.import_module(module), factory)()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's code
        happened = f"{name}: {type(error).__name__}: {_without_tokens(str(error))}"
        raise TargetError("The credential provider can't be used", happened, _PROVIDER_REMEDY) from None
    if not (hasattr(made, "get_credentials") or hasattr(made, "get_credentials_async")):
        happened = f"What {name} makes has no get_credentials."
        raise TargetError("The credential provider can't be used", happened, _PROVIDER_REMEDY)
    return made


_PROVIDER_REMEDY: Final = (
    "The module is one that is installed beside rtui, or lies in a folder of PYTHONPATH; its factory takes nothing and "
    "returns a redis.CredentialProvider."
)
_PROVIDER_FAILED: Final = "Call the factory and get_credentials in Python, as the user and in the environment of rtui."


def read_login(output: bytes) -> Password:
    """Read a command's output; raises ConnectFailure, which repeats nothing of it."""
    try:
        text = output[: MOST_BYTES + 1].decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise _failed("The output of the password command is not text.") from None
    if text.startswith("{"):
        return _read_json(text)
    if not text or "\n" in text or len(text) > MOST_BYTES:
        raise _failed("The password command printed no password, or more than one line.")
    return Password(None, Secret(text), _expiry_of(text))


def _read_json(text: str) -> Password:
    """Read the JSON object in a command's output; raises ConnectFailure, which repeats nothing of it."""
    try:
        given = json.loads(text)
    except ValueError:
        raise _failed("The output of the password command looks like JSON, but is invalid.") from None
    password, name, life = given.get("password") or given.get("token"), given.get("username"), given.get("expires_in")
    if not (isinstance(password, str) and password):
        raise _failed("The JSON of the password command has no password.")
    if not (name is None or isinstance(name, str)):
        raise _failed("In the JSON of the password command, username is not text.")
    try:
        life_s = 0.0 if life is None else float(life)
    except (ValueError, TypeError, OverflowError):
        raise _failed("In the JSON of the password command, expires_in is not a number of seconds.") from None
    is_known = math.isfinite(life_s) and life_s > 0
    return Password(name, Secret(password), time.time() + life_s if is_known else _expiry_of(password))


def _expiry_of(password: str) -> float | None:
    """Return the expiry time inside a token; None for anything else."""
    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError, OverflowError):
        if token := _JWT.match(password):
            return float(json.loads(base64.urlsafe_b64decode(token[1] + "=" * (-len(token[1]) % 4)))["exp"])
        if "X-Amz-Expires=" in password:
            query = parse_qs(password.partition("?")[2])
            signed = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            return signed.timestamp() + float(query["X-Amz-Expires"][0])
    return None


def _without_tokens(words: str) -> str:
    """Return the messages of a command or a library with dots for possible tokens, which some repeat."""
    return _TOKEN.sub(MASK, words)


def _failed(happened: str, remedy: str = _REMEDY) -> ConnectFailure:
    return ConnectFailure(FailureKind.CREDENTIALS, display_text(happened, limit=400), remedy)
