"""TLS contexts: what is checked, and what an expired certificate says."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from rtui.server.wire.dial import tls_context
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.opening import open_lane
from rtui.server.wire.target import Target, Tls
from tests.servers import Server

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
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=served)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectFailure) as caught:
            await open_lane(Target(port=port, tls=Tls(cacert=str(tmp_path / "ca.crt"))))
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
