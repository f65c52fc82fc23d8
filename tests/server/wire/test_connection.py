"""A connection that comes back: what is lost, what is kept, what others see of it meanwhile."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.guard.command import Secret, build_batch
from rtui.server.wire.connection import Closed, Connection, Lost, Online
from rtui.server.wire.dial import tls_context
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, KeyPassphraseError, TargetError
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.opening import (
    FIRST_PAUSE_S,
    HEALTHY_S,
    LONGEST_PAUSE_S,
    Backoff,
    HandshakeOutcome,
    backoff_s,
    handshake_and_identify,
    open_lane,
)
from rtui.server.wire.target import Target, Tls, parse_target
from tests.conftest import Pool
from tests.proxy import DelayProxy
from tests.server.targets import ask, connected, eventually, impatient, lane_to, target_of, until
from tests.servers import Certificates, Server, certificates
from tests.wire import Listener


async def soon(pause_s: float) -> None:
    """A pause that is over as soon as everybody else has had a turn."""
    await asyncio.sleep(min(pause_s, 0.005))


@asynccontextmanager
async def through_proxy(server: Server) -> AsyncIterator[tuple[Connection, DelayProxy]]:
    async with DelayProxy(server.port) as proxy, connected(Target(port=proxy.port), sleep=soon) as connection:
        yield connection, proxy


async def test_it_answers_on_both_lanes(server: Server) -> None:
    server.admin.set("k", "four")
    async with connected(target_of(server)) as connection:
        assert connection.state == Online()
        assert await connection.run(guard.strlen(b"k"), guard.exists(b"k")) == [4, 1]
        assert await ask(connection, guard.strlen(b"k")) == 4
        lane = await connection.bulk()
        assert await ask(lane, guard.strlen(b"k")) == 4
        assert await connection.bulk() is lane


async def test_the_bulk_lane_does_not_hold_up_questions(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        lane = await connection.bulk()
        assert lane.peer is not None
        crowd = [lane.run(build_batch(guard.exists, [b"%d" % i for i in range(1_000)])) for _ in range(20)]
        assert await ask(connection, guard.ping()) == b"PONG"
        await asyncio.gather(*crowd)


async def test_bulk_asked_for_by_many_is_opened_once(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        lanes = await asyncio.gather(*[connection.bulk() for _ in range(10)])
        assert len({id(lane) for lane in lanes}) == 1
        assert int(valkey.admin.info("clients")["connected_clients"]) == 3


async def test_a_lost_connection_is_noticed_at_once_and_comes_back(server: Server) -> None:
    async with through_proxy(server) as (connection, proxy):
        lane = await connection.bulk()
        states: list[type] = []
        connection.on_change.append(lambda: states.append(type(connection.state)))
        proxy.cut()
        await until(connection, lambda: isinstance(connection.state, Lost))
        with pytest.raises(ConnectionLost):
            await connection.run(guard.ping())
        with pytest.raises(ConnectionLost):
            await ask(connection, guard.ping())
        again = await connection.bulk()
        assert again is not lane
        assert not lane.is_open
        assert await ask(again, guard.ping()) == b"PONG"
        assert await ask(connection, guard.ping()) == b"PONG"
        assert states[0] is Lost
        assert connection.generation == 2


async def test_the_same_server_keeps_its_run_id_and_a_restarted_one_does_not(server: Server) -> None:
    async with connected(target_of(server), sleep=soon) as connection:
        run_id = connection.server.run_id
        assert run_id
        server.admin.client_kill_filter(_type="normal")
        await until(connection, lambda: connection.generation == 2 and connection.is_online)
        assert connection.server.run_id == run_id
        server.restart()
        await connection.online()
        await until(connection, lambda: connection.generation > 2 and connection.is_online)
        assert connection.server.run_id not in {None, run_id}


async def test_what_waits_for_a_reply_fails_when_the_connection_does(valkey: Server) -> None:
    valkey.admin.set("big", b"x" * 60_000)
    async with through_proxy(valkey) as (connection, proxy):
        proxy.cut_after(70_000)
        with pytest.raises(ConnectionLost):
            await connection.run(*[guard.getrange(b"big", 0, 59_999)] * 3)
        await connection.online()
        assert await ask(connection, guard.strlen(b"big")) == 60_000


async def test_attempts_are_counted_with_their_reason_until_one_works(valkey: Server) -> None:
    pauses: list[float] = []

    async def noted(pause_s: float) -> None:
        pauses.append(pause_s)
        await asyncio.sleep(0)

    async with DelayProxy(valkey.port) as proxy, connected(Target(port=proxy.port), sleep=noted, rng=Random(1)) as lost:
        await proxy.refuse()
        proxy.cut()
        await until(lost, lambda: isinstance(lost.state, Lost) and lost.state.attempt == 8)
        assert isinstance(lost.state, Lost)
        assert isinstance(lost.state.reason, ConnectFailure)
        assert lost.state.reason.kind is FailureKind.REFUSED
        await proxy.resume()
        await lost.online()
    assert max(pauses[:2]) <= 0.5
    assert max(pauses[4:]) > 0.5


async def test_a_pause_can_be_cut_short(valkey: Server) -> None:
    async def never(pause_s: float) -> None:
        await asyncio.Event().wait()

    async with DelayProxy(valkey.port) as proxy, connected(Target(port=proxy.port), sleep=never) as connection:
        await proxy.refuse()
        proxy.cut()
        await until(connection, lambda: isinstance(connection.state, Lost))
        attempts = 0
        while not connection.is_online:
            assert isinstance(connection.state, Lost)
            attempts = connection.state.attempt
            if attempts == 2:
                await proxy.resume()
            connection.retry_now()
            await asyncio.sleep(0)
        assert attempts == 2


async def test_a_server_that_hangs_is_noticed_without_a_question(valkey: Server) -> None:
    async with connected(impatient(target_of(valkey), reply_s=0.1), heartbeat_s=0.02, sleep=soon) as connection:
        valkey.freeze()
        await until(connection, lambda: isinstance(connection.state, Lost))
        assert isinstance(connection.state, Lost)
        assert isinstance(connection.state.reason, ConnectionLost)
        assert connection.state.reason.kind is FailureKind.TIMEOUT
        valkey.thaw()
        await connection.online()


async def test_silence_on_the_bulk_lane_tells_of_an_idle_one(valkey: Server) -> None:
    async with connected(impatient(target_of(valkey), reply_s=0.1), heartbeat_s=600, sleep=soon) as connection:
        lane = await connection.bulk()
        valkey.freeze()
        lane.run(guard.ping())
        await until(connection, lambda: isinstance(connection.state, Lost))
        valkey.thaw()
        await connection.online()


async def test_a_bulk_lane_that_breaks_alone_is_made_again(valkey: Server) -> None:
    async with connected(target_of(valkey), sleep=soon) as connection:
        lane = await connection.bulk()
        lane.close()
        again = await connection.bulk()
        assert again is not lane
        assert await ask(again, guard.ping()) == b"PONG"
        assert connection.generation == 1


async def test_it_waits_while_the_server_loads(pool: Pool) -> None:
    server = pool.take("loading", "redis-7.0")
    for start in range(0, 4_000, 1_000):
        server.admin.mset({f"key:{i}": "x" * 100 for i in range(start, start + 1_000)})
    server.admin.save()
    server.stop()
    server.args = ("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
    server.launch()
    reasons: list[FailureKind] = []
    said: list[str] = []
    connection = Connection(target_of(server), sleep=soon)

    def note() -> None:
        if isinstance(connection.state, Lost) and isinstance(connection.state.reason, ConnectFailure):
            reasons.append(connection.state.reason.kind)
            said.append(connection.state.reason.happened)

    connection.on_change.append(note)
    try:
        opening = asyncio.create_task(_open_when_there(connection))
        await until(connection, lambda: FailureKind.LOADING in reasons)
        hasty = server.client(username="default")
        await asyncio.to_thread(hasty.config_set, "key-load-delay", 0)
        hasty.close()
        await opening
        assert await ask(connection, guard.dbsize()) == 4_000
        assert "% loaded" in " ".join(said)
    finally:
        await connection.close()
        server.args = ()
        server.restart()


async def _open_when_there(connection: Connection) -> None:
    """Open as soon as the server listens; until then nobody does."""
    while True:
        try:
            await connection.open()
        except ConnectFailure as failed:
            assert failed.kind is FailureKind.REFUSED
            await asyncio.sleep(0.01)
        else:
            return


async def test_another_server_is_asked_again_for_what_the_last_one_refused(valkey: Server) -> None:
    learned = HandshakeOutcome({"no-touch", "lib-name"}, NoTouch.UNSUPPORTED)
    async with lane_to(target_of(valkey)) as lane:
        same = await handshake_and_identify(lane, learned, ServerIdentity())
        assert learned.refused
        await handshake_and_identify(lane, learned, same)
        assert learned.refused
        await handshake_and_identify(lane, learned, replace(same, run_id="another"))
        assert learned.no_touch is NoTouch.ON
        assert learned.refused == set()


async def test_a_second_connection_is_made_ready_in_one_round_trip(valkey: Server) -> None:
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        proxy.hold_replies()
        opening = asyncio.create_task(connection.bulk())
        await proxy.wait_held(1)
        sent = [argv[-1] for argv in proxy.requests[-1].commands if argv[0] == b"INFO"]
        assert sent[0] == b"server"
        assert len(sent) == 8
        proxy.release_replies()
        lane = await opening
        assert lane.server.is_like(connection.server)
        assert lane.server.databases == connection.server.databases
        assert len([argv for argv in proxy.requests[-1].commands if argv[0] == b"INFO"]) == 8


async def test_a_server_that_owes_an_answer_is_silent_until_it_comes(valkey: Server) -> None:
    async with DelayProxy(valkey.port) as proxy, connected(Target(port=proxy.port)) as connection:
        lane = await connection.bulk()
        assert connection.link == Online()
        for one in (connection, lane):
            proxy.hold_replies()
            asked = one.run(guard.ping())
            await eventually(lambda: connection.link != Online())
            proxy.release_replies()
            await asked
            assert connection.link == Online()


async def test_over_ipv6(valkey: Server) -> None:
    try:
        valkey.admin.config_set("bind", "127.0.0.1 ::1")
    except redis.ResponseError:
        pytest.skip("this machine has no IPv6 loopback")
    async with connected(parse_target(f"redis://[::1]:{valkey.port}/1")) as connection:
        assert await ask(connection, guard.ping()) == b"PONG"
        assert await ask(await connection.bulk(), guard.ping()) == b"PONG"


async def test_closing_ends_everything(valkey: Server) -> None:
    connection = Connection(target_of(valkey))
    await connection.open()
    lane = await connection.bulk()
    valkey.freeze()
    waiting = asyncio.ensure_future(connection.run(*[guard.ping()] * 3))
    await connection.close()
    await connection.close()
    assert connection.state == Closed()
    assert not lane.is_open
    with pytest.raises(ConnectionLost):
        await waiting
    with pytest.raises(ConnectionLost):
        await connection.run(guard.ping())
    for wait in (connection.online(), connection.bulk(), connection.refresh()):
        with pytest.raises(ConnectionLost):
            await wait
    assert [task for task in asyncio.all_tasks() if task.get_name() == "rtui connection"] == []


async def test_closing_while_lost(valkey: Server) -> None:
    async with DelayProxy(valkey.port) as proxy, connected(Target(port=proxy.port)) as connection:
        waiting = asyncio.ensure_future(connection.bulk())
        await waiting
        await proxy.refuse()
        proxy.cut()
        await until(connection, lambda: isinstance(connection.state, Lost))
        waiting = asyncio.ensure_future(connection.bulk())
        await asyncio.sleep(0)
        await connection.close()
        with pytest.raises(ConnectionLost):
            await waiting


async def test_before_it_is_open_nothing_can_be_sent() -> None:
    connection = Connection(Target())
    with pytest.raises(ConnectionLost, match="never open"):
        await connection.run(guard.ping())


async def test_what_the_server_says_is_asked_again(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        assert connection.server.databases == {}
        valkey.admin.set("k", "v")
        revision = connection.revision
        assert (await connection.refresh()).databases == {0: 1}
        assert connection.revision > revision
        assert connection.generation == 1


@given(st.integers(1, 10_000), st.integers())
def test_a_pause_is_within_its_bound(attempt: int, seed: int) -> None:
    bound_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 60))
    assert 0.0 <= backoff_s(attempt, Random(seed)) <= bound_s


def test_two_clients_do_not_come_back_together() -> None:
    assert backoff_s(9, Random(1)) != backoff_s(9, Random(2))


def test_the_bound_is_used() -> None:
    rng = Random(3)
    assert max(backoff_s(20, rng) for _ in range(100)) > LONGEST_PAUSE_S * 0.9


def test_a_shorter_bound_can_be_asked_for() -> None:
    rng = Random(3)
    assert max(backoff_s(20, rng, 2.0) for _ in range(100)) <= 2.0


@given(st.lists(st.sampled_from(["failed", "cut", "brief", "worked"]), max_size=40), st.integers())
def test_only_work_makes_pauses_short_again(events: list[str], seed: int) -> None:
    backoff = Backoff(Random(seed))
    in_vain = 0
    for event in events:
        if event == "failed":
            backoff.ended()
        else:
            backoff.ended({"cut": None, "brief": HEALTHY_S / 2, "worked": HEALTHY_S}[event])
        in_vain = 0 if event == "worked" else in_vain + 1
        assert 0.0 <= backoff.pause_s() <= min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** max(0, in_vain - 1))
    assert backoff.failed == in_vain


PASSPHRASE = "Schl\u00fcssel mit # / : @ %41"  # noqa: S105 - of keys that are made here

ENCRYPTIONS = {
    "pkcs8": ("pkcs8", "-topk8", "-v2", "aes-256-cbc"),
    "scrypt": ("pkcs8", "-topk8", "-scrypt"),
    "traditional": ("ec", "-aes128"),
}
"""What openssl is told, beside files, for each way in which keys are encrypted."""

CA_CONFIG = """\
[ca]
default_ca = own
[own]
database = index
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = DNS:localhost,IP:127.0.0.1
"""


def test_everything_is_checked_unless_told_otherwise() -> None:
    strict, lax = tls_context(Tls()), tls_context(Tls(insecure=True))
    assert strict.verify_mode is ssl.CERT_REQUIRED
    assert strict.check_hostname
    assert strict.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert lax.verify_mode is ssl.CERT_NONE


def test_an_authority_of_ones_own_replaces_the_systems(tls_server: Server) -> None:
    assert tls_server.tls is not None
    assert len(tls_context(Tls(cacert=str(tls_server.tls.ca))).get_ca_certs()) == 1


async def test_an_expired_certificate(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing")
    await asyncio.to_thread(make_expired, tmp_path)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(tmp_path / "old.crt", tmp_path / "old.key")
    async with Listener(tls=served) as server:
        with pytest.raises(ConnectFailure) as caught:
            await open_lane(Target(port=server.port, tls=Tls(cacert=str(tmp_path / "ca.crt"))))
    assert caught.value.kind is FailureKind.TLS
    assert "expired" in caught.value.happened
    assert "clock" in caught.value.remedy


def make_expired(folder: Path) -> None:
    """An authority, and a certificate of its that was good for one day of 2020."""
    (folder / "ca.conf").write_text(CA_CONFIG)
    (folder / "index").touch()
    (folder / "serial").write_text("01\n")
    new = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    dates = "-startdate 20200101000000Z -enddate 20200102000000Z"
    for line in (
        f"{new} -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.crt",
        f"{new} -subj /CN=localhost -keyout old.key -out old.csr",
        f"ca -batch -notext -config ca.conf -cert ca.crt -keyfile ca.key {dates} -in old.csr -out old.crt",
    ):
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def made() -> Certificates:
    """Files of a server and a client."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing")
    return certificates()


def encrypted(made: Certificates, folder: Path, how: str, passphrase: str = PASSPHRASE) -> Path:
    """The key of the client, encrypted."""
    found = folder / f"{how}.key"
    files = ("-in", str(made.client_key), "-out", str(found), "-passout", "stdin")
    command = ["openssl", *ENCRYPTIONS[how], *files]
    subprocess.run(command, input=f"{passphrase}\n".encode(), check=True, capture_output=True)
    assert b"ENCRYPTED" in found.read_bytes()
    return found


def own(made: Certificates, key: Path | None, passphrase: str | None = None, cert: Path | None = None) -> Tls:
    """TLS with a client certificate, by default that of the client."""
    return Tls(
        cacert=str(made.ca),
        cert=str(cert or made.client_cert),
        key=None if key is None else str(key),
        key_password=None if passphrase is None else Secret(passphrase),
    )


@pytest.mark.parametrize("how", ENCRYPTIONS)
async def test_an_encrypted_key_is_decrypted_by_its_passphrase(
    how: str, tls_server: Server, made: Certificates, tmp_path: Path
) -> None:
    tls_server.admin.config_set("tls-auth-clients", "yes")
    key = encrypted(made, tmp_path, how)
    async with connected(target_of(tls_server, tls=own(made, key, PASSPHRASE))) as connection:
        assert connection.is_online
    for contents in ((made.client_cert, key), (key, made.client_cert)):
        both = tmp_path / "both.pem"
        both.write_bytes(b"".join(path.read_bytes() for path in contents))
        async with connected(target_of(tls_server, tls=own(made, None, PASSPHRASE, both))) as connection:
            assert connection.is_online


@pytest.mark.parametrize("how", ENCRYPTIONS)
@pytest.mark.parametrize("typed", [None, "", "wrong", "\udcff", "x" * 2_000, PASSPHRASE + " "], ids=ascii)
def test_a_key_that_is_not_decrypted_says_so(
    how: str, typed: str | None, made: Certificates, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key = encrypted(made, tmp_path, how)
    with pytest.raises(KeyPassphraseError) as caught:
        tls_context(own(made, key, typed))
    assert str(key) in caught.value.happened
    assert "encrypted" in caught.value.happened
    assert ("wrong passphrase" if typed else "no passphrase") in caught.value.happened
    assert ("--key-askpass" in caught.value.remedy) is (not typed)
    assert capfd.readouterr() == ("", "")
    assert PASSPHRASE not in f"{caught.value!r} {own(made, key, PASSPHRASE)!r}"


def test_files_that_are_none_of_a_pair_say_why(made: Certificates, tmp_path: Path) -> None:
    der, closed, other = tmp_path / "der", tmp_path / "folder", tmp_path / "rsa.key"
    subprocess.run(["openssl", "x509", "-in", str(made.client_cert), "-outform", "DER", "-out", str(der)], check=True)
    subprocess.run(["openssl", "genrsa", "-out", str(other), "2048"], check=True, capture_output=True)
    closed.mkdir()
    encrypted_other = encrypted(made, tmp_path, "pkcs8")
    for tls, said, option in (
        (own(made, made.key), "does not belong to the certificate", "key"),
        (own(made, other), "does not belong to the certificate", "key"),
        (own(made, encrypted_other, PASSPHRASE, made.cert), "does not belong to the certificate", "key"),
        (own(made, der), f"{der} is not a PEM file", "--key"),
        (own(made, None, None, der), f"{der} is not a PEM file", "--cert"),
        (own(made, made.client_cert), f"There is no private key in {made.client_cert}", "--key"),
        (own(made, None), f"There is no private key in {made.client_cert}", "--key"),
        (own(made, made.client_key, None, made.client_key), "There is no certificate in", "--cert"),
        (own(made, closed), f"The key in {closed} can't be read", "--key"),
        (own(made, tmp_path / "none"), "can't be read: No such file", "--key"),
        (own(made, made.client_key, None, tmp_path / "none"), "The client certificate in", "--cert"),
        (Tls(cacert=str(der)), f"{der} is not a PEM file", "--cacert"),
        (Tls(cacert=str(made.key)), f"There is no certificate in {made.key}", "--cacert"),
    ):
        with pytest.raises(TargetError) as caught:
            tls_context(tls)
        assert said in caught.value.happened, caught.value.happened
        assert option in caught.value.remedy
        assert not isinstance(caught.value, KeyPassphraseError)
