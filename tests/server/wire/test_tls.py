"""TLS contexts: what is checked, and what an expired certificate says."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from rtui.server.guard.command import Secret
from rtui.server.wire.dial import tls_context
from rtui.server.wire.errors import ConnectFailure, FailureKind, KeyPassphraseError, TargetError
from rtui.server.wire.opening import open_lane
from rtui.server.wire.target import Target, Tls
from tests.certificates import Certificates, certificates
from tests.server.targets import connected, target_of
from tests.servers import Server
from tests.wire import Listener

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
    own = tls_context(Tls(cacert=str(tls_server.tls.ca)))
    assert len(own.get_ca_certs()) == 1


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
