"""Passwords that are made when they are needed, and again before they expire or when they are refused."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import redis
from redis.auth.token import SimpleToken
from redis.credentials import StreamingCredentialProvider

from rtui.analysis.report.document import CoverageKind
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment import credentials
from rtui.server.deployment.connections import connection_to
from rtui.server.deployment.credentials import Credentials, Password, provider_of, read_login
from rtui.server.guard.command import Secret
from rtui.server.options import AnalysisOptions
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectFailure, ExitCode, FailureKind, TargetError
from rtui.server.wire.target import Login, Target
from tests.conftest import known
from tests.proxy import Fault, FaultProxy, Words
from tests.server.targets import connected, eventually
from tests.servers import Server


def jwt(**claims: object) -> str:
    """A token with these claims, signed by nobody."""
    return ".".join(
        base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (b"{}", json.dumps(claims).encode(), b"x")
    )


@pytest.fixture
def secured(valkey: Server) -> Callable[[str], None]:
    """Sets the password of the user `app`."""

    def set_password(password: str) -> None:
        valkey.admin.execute_command("ACL", "SETUSER", "app", "reset", "on", f">{password}", "~*", "+@all")

    return set_password


async def who(connection: Connection) -> str:
    """Return an error where the connection is not logged in."""
    (reply,) = await connection.run(guard.ping())
    return str(reply)


async def test_a_command_is_run_again_when_its_password_is_refused(
    valkey: Server, secured: Callable[[str], None], tmp_path: Path
) -> None:
    file, runs = tmp_path / "password", tmp_path / "runs"
    secured("one")
    file.write_text("one\n")
    login = Login(command=Secret(f"echo run >> {runs}; cat {file}"))
    connection = connection_to(Target(port=valkey.port, user="app", login=login))
    await connection.open()
    await connection.bulk()
    assert runs.read_text() == "run\n"
    secured("two")
    file.write_text("two\n")
    valkey.admin.execute_command("CLIENT", "KILL", "USER", "app")
    await eventually(lambda: runs.read_text() == "run\nrun\n")
    connection.retry_now()
    await connection.online()
    assert await who(connection) == "b'PONG'"
    await connection.close()


LOGGED_OUT = Fault("logged out", b"-NOAUTH Authentication required.\r\n")


async def test_a_server_that_wants_the_password_once_more_gets_another_one(
    valkey: Server, secured: Callable[[str], None], tmp_path: Path
) -> None:
    """As a proxy, or a service whose tokens run out, answers on a connection that was logged in."""
    secured("one")
    runs = tmp_path / "runs"
    login = Login(command=Secret(f"echo run >> {runs}; echo one"))
    async with FaultProxy(valkey.port) as proxy:
        connection = connection_to(Target(port=proxy.port, user="app", login=login))
        await connection.open()
        proxy.strike((b"PING",), LOGGED_OUT)
        assert "NOAUTH" in await who(connection)
        proxy.heal()
        await eventually(lambda: connection.generation == 2)
        assert runs.read_text() == "run\nrun\n"
        assert await who(connection) == "b'PONG'"
        await connection.close()


@pytest.mark.parametrize("words", [(b"SCAN",), (b"TYPE",)], ids=lambda words: words[0].decode())
async def test_an_analysis_goes_on_after_the_server_wanted_the_password_once_more(valkey: Server, words: Words) -> None:
    valkey.admin.mset({f"key:{number}": number for number in range(3_000)})
    async with FaultProxy(valkey.port) as proxy, connected(Target(port=proxy.port)) as connection:
        run = AnalysisRun(connection, AnalysisOptions())
        running_analysis = asyncio.create_task(run.run())
        await eventually(lambda: run.progress.keys > 0)
        proxy.strike(words, LOGGED_OUT)
        await eventually(lambda: proxy.struck > 0 or running_analysis.done())
        proxy.heal()
        await running_analysis
    assert proxy.struck
    assert run.report is not None
    assert (run.report.head.coverage.kind, run.report.head.coverage.keys) == (CoverageKind.EXACT, 3_000)
    assert run.report.summary.types[0].stats.keys == 3_000


async def test_open_connections_log_in_again_before_a_password_expires(
    valkey: Server, secured: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "LEAST_LIFE_S", 0.05)
    file = tmp_path / "password"
    secured("one")
    file.write_text(json.dumps({"username": "app", "password": "one", "expires_in": 0.5}))
    connection = connection_to(Target(port=valkey.port, login=Login(command=Secret(f"cat {file}"))))
    await connection.open()
    await connection.bulk()
    file.write_text(json.dumps({"username": "app", "password": "one", "expires_in": 600}))
    before = valkey.admin.info("commandstats")["cmdstat_auth"]["calls"]
    await eventually(lambda: valkey.admin.info("commandstats")["cmdstat_auth"]["calls"] == before + 2)
    assert connection.generation == 1
    await connection.close()


async def test_a_new_password_that_is_refused_ends_the_connection_and_the_next_one_is_asked_for(
    valkey: Server, secured: Callable[[str], None]
) -> None:
    secured("one")
    made = iter(["one", "wrong", "one"])

    class Source:
        on_next: Callable[[Password], object] | None = None

        async def login(self) -> Password:
            return Password("app", Secret(next(made)))

    source = Source()
    logins = Credentials(source)  # type: ignore[arg-type]
    connection = Connection(Target(port=valkey.port), logins=logins)
    await connection.open()
    known(source.on_next)(await source.login())
    await eventually(lambda: not connection.is_online)
    connection.retry_now()
    await connection.online()
    assert connection.generation == 2
    assert await who(connection) == "b'PONG'"
    await connection.close()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo no token >&2; exit 3", "ended with exit code 3: no token"),
        ("exit 1", "ended with exit code 1 without a message"),
        ("kill -9 $$", "was ended by signal 9 without a message"),
        ("true", "no password"),
        ("printf 'a\\nb'", "more than one line"),
        ("printf '\\377'", "is not text"),
        ("echo '{\"user\": 1}'", "has no password"),
        ("echo '{pw'", "looks like JSON, but is invalid"),
        ('echo \'{"password": "p", "username": 1}\'', "username is not text"),
        ('echo \'{"password": "p", "expires_in": "soon"}\'', "expires_in is not a number of seconds"),
    ],
)
async def test_a_command_that_fails_says_why(command: str, said: str) -> None:
    connection = connection_to(Target(login=Login(command=Secret(command))))
    with pytest.raises(ConnectFailure, match=said) as failed:
        await connection.open()
    assert failed.value.kind is FailureKind.CREDENTIALS
    await connection.close()


async def test_a_command_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "COMMAND_S", 0.05)
    connection = connection_to(Target(login=Login(command=Secret("sleep 60"))))
    with pytest.raises(ConnectFailure, match="did not finish"):
        await connection.open()
    await connection.close()


async def test_a_command_that_leaves_a_program_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(credentials, "COMMAND_S", 0.5)
    command = f"echo one; sleep 600 & echo $! > {tmp_path / 'pid'}"
    connection = connection_to(Target(login=Login(command=Secret(command))))
    with pytest.raises(ConnectFailure, match="keeps its output open"):
        await connection.open()
    await connection.close()
    pid = int((tmp_path / "pid").read_text())
    await eventually(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text())


@pytest.mark.parametrize(
    ("body", "said", "remedy"),
    [
        ("raise RuntimeError('no token today')", "RuntimeError: no token today", "in Python"),
        ("raise SystemExit(3)", "SystemExit: 3", "in Python"),
        ("return b'user', b'password'", "neither a password nor", "both of them text"),
        ("time.sleep(600)", "did not answer within 1 s", "within 30 s"),
    ],
)
def test_a_provider_that_fails_says_why_and_rtui_ends(tmp_path: Path, body: str, said: str, remedy: str) -> None:
    (tmp_path / "company.py").write_text(
        "import time\n"
        "from rtui.server.deployment import credentials\n"
        f"credentials.COMMAND_S = {1 if 'sleep' in body else 30}\n"
        "class Provider:\n"
        "    def get_credentials(self):\n"
        f"        {body}\n"
    )
    command = [sys.executable, "-m", "rtui", "report", "--credential-provider", "company:Provider"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == ExitCode.SERVER
    assert said in ended.stderr
    assert remedy in ended.stderr
    assert "in a shell" not in ended.stderr


@pytest.mark.parametrize("life", ["0", "-1", "NaN", "1e999", '"0"'])
def test_a_life_that_says_nothing_is_not_known(life: str) -> None:
    assert read_login(f'{{"password": "p", "expires_in": {life}}}'.encode()).expires_at_s is None


def test_when_a_token_ends_is_read_from_it() -> None:
    assert read_login(jwt(exp=2_000_000_000, oid="me").encode() + b"\n").expires_at_s == 2_000_000_000
    assert read_login(jwt(oid="me").encode()).expires_at_s is None
    signed = "cache/?Action=connect&User=app&X-Amz-Date=20260102T030405Z&X-Amz-Expires=900&X-Amz-Signature=ab"
    made_at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    assert read_login(signed.encode()).expires_at_s == made_at + 900
    assert read_login(b"a.b.c").expires_at_s is None
    given = read_login(json.dumps({"username": "u", "password": "p", "expires_in": "60"}).encode())
    assert (given.user, given.password) == ("u", Secret("p"))
    assert given.expires_at_s == pytest.approx(time.time() + 60, abs=5)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_provider_of_redis_pys_kind(
    valkey: Server, secured: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, *, is_async: bool
) -> None:
    secured("one")

    class Provider(redis.CredentialProvider):
        def get_credentials(self) -> tuple[str, str]:
            return "app", "one"

    if is_async:

        async def get(_: Any) -> tuple[str, str]:
            return "app", "one"

        monkeypatch.setattr(Provider, "get_credentials_async", get)
    module = ModuleType("company_tokens")
    module.make = Provider  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "company_tokens", module)
    connection = connection_to(Target(port=valkey.port, login=Login(provider="company_tokens:make")))
    await connection.open()
    assert valkey.admin.client_list()[-1]["user"] == "app"
    await connection.close()


class Streaming(StreamingCredentialProvider):
    """A provider that is told of new tokens in a thread of its own, as an identity library is."""

    def __init__(self, *first: str) -> None:
        self.first = first
        self.threads: set[str] = set()
        self._tell: Callable[[Any], None] | None = None

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        self.threads.add(threading.current_thread().name)
        return self.first  # type: ignore[return-value]

    def on_next(self, callback: Callable[[Any], None]) -> None:
        self._tell = callback

    def on_error(self, callback: Callable[[Exception], None]) -> None:
        """Nothing fails."""

    def is_streaming(self) -> bool:
        return self._tell is not None

    def stream(self, token: Any) -> None:
        thread = threading.Thread(target=known(self._tell), args=(token,))
        thread.start()
        thread.join()


def token(password: str, life_s: float, **claims: str) -> SimpleToken:
    now_ms = time.time() * 1000
    return SimpleToken(password, now_ms + life_s * 1000 if life_s > 0 else -1, now_ms, claims)


def auths(server: Server) -> int:
    return int(server.admin.info("commandstats")["cmdstat_auth"]["calls"])


async def test_open_connections_log_in_again_with_a_token_that_streams_in(
    valkey: Server, secured: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    secured("one")
    provider = Streaming("app", "one")
    monkeypatch.setattr(credentials, "provider_of", lambda _: provider)
    connection = connection_to(Target(port=valkey.port, login=Login(provider="company:make")))
    await connection.open()
    await connection.bulk()
    assert provider.threads.isdisjoint({threading.main_thread().name})
    before = auths(valkey)
    provider.stream(token("one", 600, oid="app"))
    await eventually(lambda: auths(valkey) == before + 2)
    assert connection.generation == 1
    assert await who(connection) == "b'PONG'"
    await connection.close()


@pytest.mark.parametrize("life_s", [0.5, -1])
async def test_what_streams_in_is_made_again_before_it_expires(
    valkey: Server, secured: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, life_s: float
) -> None:
    """By the token's own account, or without one by that of the password in it."""
    monkeypatch.setattr(credentials, "LEAST_LIFE_S", 0.05)
    lasting, ending = jwt(exp=time.time() + 600), jwt(exp=time.time() + 0.5)
    secured(lasting)
    valkey.admin.execute_command("ACL", "SETUSER", "app", f">{ending}")
    provider = Streaming("app", lasting)
    monkeypatch.setattr(credentials, "provider_of", lambda _: provider)
    connection = connection_to(Target(port=valkey.port, login=Login(provider="company:make")))
    await connection.open()
    before = auths(valkey)
    provider.stream(token(ending, life_s, oid="app"))
    await eventually(lambda: auths(valkey) == before + 2)
    assert connection.generation == 1
    await connection.close()


async def test_a_password_without_a_user_is_made_again_before_it_expires(
    valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "LEAST_LIFE_S", 0.05)
    lasting, ending = jwt(exp=time.time() + 600), jwt(exp=time.time() + 0.5)
    valkey.admin.execute_command("ACL", "SETUSER", "default", "resetpass", f">{ending}", f">{lasting}")
    provider = Streaming(ending)
    monkeypatch.setattr(credentials, "provider_of", lambda _: provider)
    connection = connection_to(Target(port=valkey.port, login=Login(provider="company:make")))
    await connection.open()
    provider.first = (lasting,)
    before = auths(valkey)
    await eventually(lambda: auths(valkey) == before + 1)
    assert connection.generation == 1
    await connection.close()


@pytest.mark.parametrize("name", ["", "json", "json:", "nowhere.at.all:make", "json:nothing", "builtins:dict"])
def test_a_provider_that_can_not_be_used(name: str) -> None:
    with pytest.raises(TargetError):
        provider_of(name)


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
async def test_a_provider_that_fails_says_why_without_its_tokens(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    secrets = (
        "eyJhbGciOiJub25lIn0." + jwt(exp=1).partition(".")[2],
        "AKIAIOSFODNN7EXAMPLEwJalrXUtnFEMIK7MDENGbPxRfiCY",
    )

    class Failing:
        def get_credentials(self) -> tuple[str]:
            raise error(f"AADSTS700024: {' '.join(secrets)} has expired, trace 3f2504e0-4f89-41d3-9a0c-0305e82c3301")

    module = ModuleType("company_tokens")
    module.make = Failing  # type: ignore[attr-defined]
    module.fails = lambda: Failing().get_credentials()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "company_tokens", module)
    said = f"{error.__name__}: AADSTS700024: ••• ••• has expired, trace 3f2504e0-4f89-41d3-9a0c-0305e82c3301"
    connection = connection_to(Target(login=Login(provider="company_tokens:make")))
    with pytest.raises(ConnectFailure) as failed:
        await connection.open()
    await connection.close()
    assert failed.value.happened == f"The credential provider failed: {said}"
    assert "get_credentials" in failed.value.remedy
    with pytest.raises(TargetError) as unusable:
        provider_of("company_tokens:fails")
    assert unusable.value.happened == f"company_tokens:fails: {said}"
    shown = "".join(traceback.format_exception(failed.value) + traceback.format_exception(unusable.value))
    assert not any(secret in shown for secret in secrets)


def test_no_command_is_shown() -> None:
    assert "hunter2" not in repr(Target(login=Login(command=Secret("echo hunter2"))))
