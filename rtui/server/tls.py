"""A TLS context from what the user said about certificates."""

from __future__ import annotations

import ssl

from rtui.server.errors import TargetError
from rtui.server.failures import limit_failure
from rtui.server.target import Tls


def context(tls: Tls) -> ssl.SSLContext:
    """A client context that checks certificate and host name unless `insecure`; `TargetError` for unusable files.

    `ConnectFailure` when no further file can be opened.
    """
    made = ssl.create_default_context() if tls.insecure else _checking(tls)
    if tls.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if tls.cert is not None or tls.key is not None:
        _load_own_certificate(made, tls)
    return made


def _checking(tls: Tls) -> ssl.SSLContext:
    """With an authority of one's own, only that is trusted; else those of the system."""
    try:
        return ssl.create_default_context(cafile=tls.cacert, capath=tls.cacertdir)
    except (OSError, ValueError) as error:
        raise limit_failure(error) or _unusable("CA certificate", "--cacert and --cacertdir", error) from None


def _load_own_certificate(made: ssl.SSLContext, tls: Tls) -> None:
    if tls.cert is None:
        happened = "There is a key without its certificate."
        raise TargetError("TLS can't be set up", happened, "Give both --cert and --key.")
    try:
        made.load_cert_chain(tls.cert, tls.key, password=_no_passphrase)
    except (OSError, ValueError) as error:
        raise limit_failure(error) or _unusable("client certificate or its key", "--cert and --key", error) from None


def _no_passphrase() -> str:
    """An encrypted key would make OpenSSL ask on the terminal; it fails instead."""
    return ""


def _unusable(what: str, options: str, error: Exception) -> TargetError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    happened = f"The {what} can't be used: {reason}."
    return TargetError("TLS can't be set up", happened, f"Check the PEM files of {options}.")
