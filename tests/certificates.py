"""A certificate authority and a loopback certificate for the TLS listener, made by openssl once a process."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"
"""What the certificate of the server is valid for."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files: the authority, the server's pair and a client's pair, both signed by it."""

    ca: Path
    cert: Path
    key: Path
    client_cert: Path
    client_key: Path


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def _signed(folder: Path, name: str, *, extension: str) -> None:
    key, request, cert, extensions = (folder / f"{name}.{end}" for end in ("key", "csr", "crt", "ext"))
    extensions.write_text(f"{extension}\n")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl("req", *curve, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
    authority = ("-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-CAcreateserial")
    _openssl("x509", "-req", "-in", request, *authority, "-days", "2", "-extfile", extensions, "-out", cert)


@cache
def certificates(names: str = NAMES) -> Certificates:
    """Make the files in a temporary folder that goes away with the process; `names` are those of the server."""
    folder = Path(tempfile.mkdtemp(prefix="rtui-tls-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subject = ("-days", "2", "-subj", "/CN=rtui test authority")
    _openssl("req", "-x509", *curve, *subject, "-keyout", folder / "ca.key", "-out", folder / "ca.crt")
    _signed(folder, "server", extension=names)
    _signed(folder, "client", extension="extendedKeyUsage=clientAuth")
    return Certificates(
        ca=folder / "ca.crt",
        cert=folder / "server.crt",
        key=folder / "server.key",
        client_cert=folder / "client.crt",
        client_key=folder / "client.key",
    )
