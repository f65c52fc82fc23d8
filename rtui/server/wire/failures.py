"""The failures of connecting, as `ConnectFailure`s with description and remedy."""

from __future__ import annotations

import errno
import ssl
from typing import Final
from urllib.parse import quote_from_bytes

from rtui.server.wire.errors import ConnectFailure, FailureKind, Reply, ServerError
from rtui.server.wire.target import Target, address_text

MOST_SERVICES: Final = 5
"""The most services of a Sentinel that are named."""


def name_failure(target: Target) -> ConnectFailure:
    """The resolver does not know the host."""
    remedy = "Check the spelling, the resolver and whether a VPN is needed; --map says where else it is reached."
    return ConnectFailure(FailureKind.NAME, f"No address is known for {target.host}.", remedy)


def timeout_failure(target: Target, timeout_s: float) -> ConnectFailure:
    """There was no answer to the connection attempt."""
    happened = f"{target.label} did not answer within {timeout_s:g} s."
    remedy = "Check host and port; a firewall that drops packets looks like this."
    return ConnectFailure(FailureKind.TIMEOUT, happened, remedy)


def limit_failure(error: Exception) -> ConnectFailure | None:
    """This machine has no further socket or memory; None for any other error."""
    if not isinstance(error, OSError):
        return None
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        whose = "This process" if error.errno == errno.EMFILE else "This machine"
        happened = f"{whose} has reached its limit of open files and connections."
        return ConnectFailure(FailureKind.LIMIT, happened, "Raise the limit (ulimit -n), or end other programs.")
    if error.errno in {errno.ENOBUFS, errno.ENOMEM}:
        happened = "This machine has no memory left for another connection."
        return ConnectFailure(FailureKind.LIMIT, happened, "End other programs.")
    return None


def os_failure(target: Target, error: OSError) -> ConnectFailure:
    """The system refused a TCP or unix connection."""
    limit = limit_failure(error)
    if limit is not None:
        return limit
    if target.socket_path is not None:
        happened, remedy = {
            errno.ENOENT: ("does not exist", "Check the path; the server names it in its unixsocket setting."),
            errno.EACCES: ("is not accessible to you", "Join the socket's group, or see the server's unixsocketperm."),
            errno.EPERM: ("is not accessible to you", "Join the socket's group, or see the server's unixsocketperm."),
            errno.ECONNREFUSED: ("has no server listening", "Start the server, or remove the stale file."),
            errno.ENOTSOCK: ("is not a socket", "Check the path; the server names it in its unixsocket setting."),
        }.get(error.errno or 0, (f"can't be used: {error.strerror or error}", "Check the path."))
        return ConnectFailure(FailureKind.SOCKET, f"{target.label} {happened}.", remedy)
    if error.errno == errno.ECONNREFUSED:
        remedy = "Is the server running, and is the port right? It may listen on another address only (bind)."
        if (target.host, target.port) == (Target().host, Target().port):
            remedy = (
                "Is a server running here? rtui asks this address unless another one is named, such as "
                "rtui redis://10.0.0.5:6379/0 or rtui --profile NAME. To try it without a server: rtui --demo."
            )
        return ConnectFailure(FailureKind.REFUSED, f"Nothing listens on {target.label}.", remedy)
    reason = error.strerror or str(error) or type(error).__name__
    return ConnectFailure(FailureKind.UNREACHABLE, f"{target.label}: {reason}.", "Check the network and the firewall.")


def tls_failure(target: Target, error: Exception) -> ConnectFailure:
    """The TLS handshake failed, perhaps over the certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = (error.verify_message or str(error)).rstrip(".")
        happened = f"The certificate of {target.label} is not accepted: {reason}."
        lowered = reason.lower()
        if "expired" in lowered or "not yet valid" in lowered:
            remedy = "Renew the server's certificate, or check this machine's clock."
        elif "hostname mismatch" in lowered or "ip address mismatch" in lowered:
            return _name_mismatch(target, happened)
        else:
            remedy = "Pass its certificate authority with --cacert; --insecure accepts any certificate."
        return ConnectFailure(FailureKind.TLS, happened, remedy)
    reason = getattr(error, "reason", None) or str(error) or type(error).__name__
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER" in reason or not isinstance(error, ssl.SSLError):
        happened = f"{target.label} did not answer the TLS handshake ({reason})."
        remedy = "The port may not use TLS: omit --tls (redis:// instead of rediss://) or use the TLS port."
    else:
        happened = f"The TLS handshake with {target.label} failed ({reason})."
        remedy = "The server may require a client certificate (--cert and --key), or another TLS version."
    return ConnectFailure(FailureKind.TLS, happened, remedy)


def _name_mismatch(target: Target, happened: str) -> ConnectFailure:
    """The server's certificate is for another name than the checked one."""
    host, port = target.way.addresses.reached_at((target.host, target.port))
    if target.tls is not None and target.tls.sni is not None:
        happened += f" It is checked against the name of --sni, {target.tls.sni}."
        remedy = f"Give --sni a name that the certificate holds; without it {target.host} is checked."
    elif host != target.host:
        at = address_text(host, port)
        happened += f" It is checked against {target.host}, though --map leads to {at}."
        remedy = f"Give a name that the certificate holds with --sni, such as --sni {host}; it counts for all servers."
    elif target.sentinels is not None:
        remedy = (
            f"{target.host} is what the Sentinels call it. Give a name that the certificate holds with --sni, or have "
            "them tell names (sentinel announce-hostnames)."
        )
    else:
        remedy = (
            "Connect by a name that the certificate holds, or give that name with --sni, which counts for all nodes of "
            "a cluster."
        )
    return ConnectFailure(FailureKind.TLS, happened, remedy)


def sentinel_failure(target: Target, masters: Reply) -> ConnectFailure:
    """The server is a Sentinel; `masters` is its reply to SENTINEL MASTERS, which names its services."""
    happened = f"{target.label} is a Sentinel, which holds no keys."
    listed = [fields for fields in masters if isinstance(fields, list)] if isinstance(masters, list) else []
    found = [dict(zip(fields[::2], fields[1::2], strict=False)).get(b"name") for fields in listed]
    names = [quote_from_bytes(name, safe="") for name in found if isinstance(name, bytes)]
    at = address_text(target.host, target.port)
    ways = [f"sentinel://{at}/{name}" for name in names[:MOST_SERVICES] or ["SERVICE"]]
    return ConnectFailure(FailureKind.SENTINEL, happened, f"Name the service instead: {', '.join(ways)}.")


def names_failure(target: Target, happened: str) -> ConnectFailure:
    """The server does not confirm the command behind a name of the profile."""
    remedy = (
        "Compare the profile with the server's rename-command; the user needs +command|info (rtui acl --with renamed)."
    )
    return ConnectFailure(FailureKind.NAMES, f"{target.label} {happened}", remedy)


def ssh_failure(said: str) -> ConnectFailure:
    """OpenSSH has given up; `said` is its own message."""
    remedy = "Try `ssh HOST` first: rtui uses your ssh configuration, and ssh may ask nothing while it runs."
    return ConnectFailure(FailureKind.SSH, said, remedy)


def ssh_timeout_failure(target: Target, timeout_s: float) -> ConnectFailure:
    """No byte has come through SSH hosts, and ssh has written no message."""
    happened = f"{target.label} did not answer within {timeout_s:g} s, and ssh says nothing."
    remedy = (
        f"Try `ssh {target.way.via[-1]}` first: it has to end up there without asking anything. "
        "If it does, the server behind it hangs."
    )
    return ConnectFailure(FailureKind.TIMEOUT, happened, remedy)


def demoted_failure(target: Target) -> ConnectFailure:
    """The address of the primary is a replica's."""
    happened = (
        f"{address_text(target.host, target.port)} is said to be the primary of {target.label}, but is a replica now."
    )
    remedy = "A failover may be under way; if not, the Sentinels watch a replica in the place of its primary."
    return ConnectFailure(FailureKind.FAILOVER, happened, remedy)


def lost_failure(target: Target, happened: str, kind: FailureKind) -> ConnectFailure:
    """The connection ended during the handshake."""
    if kind is FailureKind.SSH:
        return ssh_failure(happened)
    if kind is FailureKind.PROTOCOL:
        remedy = "Check host and port. A TLS port answers like this too: then add --tls."
    elif kind is FailureKind.TIMEOUT:
        remedy = "Is it Redis or Valkey, is it busy with a long command, does it want TLS (--tls)?"
    else:
        wants = "TLS (--tls)" if target.tls is None else "a client certificate (--cert and --key)"
        remedy = f"The server may want {wants}, be shutting down, or refuse this address."
    return ConnectFailure(kind, f"{target.label}: {happened}", remedy)


_REFUSALS: Final = {
    "NOAUTH": (
        FailureKind.NOAUTH,
        "requires a password",
        "Use --askpass, REDISCLI_AUTH or a profile, and --user for an ACL user.",
    ),
    "MASTERDOWN": (
        FailureKind.MASTERDOWN,
        "has no link to its primary and does not serve stale data (replica-serve-stale-data no)",
        "Connect to the primary or wait until the replica has caught up.",
    ),
    "DENIED": (
        FailureKind.PROTECTED,
        "is in protected mode: without a password it only accepts clients on its own machine",
        "Connect from there (over SSH or an SSH tunnel), or set a password on the server.",
    ),
}


def refusal(target: Target, error: ServerError) -> ConnectFailure | None:
    """Return the failure that an error reply to the handshake means; None if the connection works all the same."""
    text = error.text.lower()
    if error.code in _REFUSALS:
        kind, happened, remedy = _REFUSALS[error.code]
        return ConnectFailure(kind, f"{target.label} {happened} ({error.code}).", remedy)
    if error.code == "WRONGPASS":
        return _wrong_password(target)
    if error.code == "NOPERM":
        return _no_permission(target, error)
    if error.code == "LOADING" or ("loading" in text and "dataset" in text):
        return loading_failure(target)
    if "max number of clients" in text or "max clients" in text:
        happened = f"{target.label} answers: {error.text}."
        return ConnectFailure(
            FailureKind.MAX_CLIENTS, happened, "Close other clients or raise the server's maxclients."
        )
    return None


def _wrong_password(target: Target) -> ConnectFailure:
    user = f"user {target.user}" if target.user is not None else "the default user"
    happened = f"{target.label} rejects this password for {user} (WRONGPASS)."
    remedy = "Check user and password; a disabled user is rejected the same way."
    return ConnectFailure(FailureKind.WRONGPASS, happened, remedy)


def _no_permission(target: Target, error: ServerError) -> ConnectFailure:
    happened = f"{target.label} answers: {error.text}."
    remedy = "`rtui acl` prints the ACL SETUSER line with all that rtui needs."
    return ConnectFailure(FailureKind.NOPERM, happened, remedy)


def auth_refusal(target: Target, error: ServerError) -> ConnectFailure:
    """Return the failure that an error reply to AUTH or HELLO means, without its text, since servers quote arguments in
    it."""
    text = error.text.lower()
    known = refusal(target, error)
    if known is not None and known.kind is not FailureKind.NOPERM:
        return known
    if "without any password configured" in text or "no password is set" in text:
        happened = f"{target.label} has no password set, but one was given."
        remedy = "Omit the password, or add a user (--user)."
    elif "unknown command" in text or "wrong number of arguments" in text:
        happened = f"{target.label} does not support AUTH, or not with a user."
        remedy = "Omit user and password, or only the user: servers before 6.0 have no users."
    else:
        return _wrong_password(target)
    return ConnectFailure(FailureKind.WRONGPASS, happened, remedy)


def database_failure(target: Target, error: ServerError) -> ConnectFailure:
    if error.code == "NOPERM":
        return _no_permission(target, error)
    happened = f"{target.label} database {target.db} does not exist: {error.text}."
    remedy = "A server has 16 databases by default (its databases setting), a cluster often only database 0."
    return ConnectFailure(FailureKind.DATABASE, happened, remedy)


def loading_failure(target: Target, percent: int | None = None, eta_s: int | None = None) -> ConnectFailure:
    """The server is loading its data set; with its progress if it reports that."""
    happened = f"{target.label} is loading its dataset into memory (LOADING)."
    happened += "" if percent is None else f" {percent} % loaded."
    happened += "" if eta_s is None else f" About {eta_s:,} s left."
    return ConnectFailure(FailureKind.LOADING, happened, "Wait: rtui retries automatically.")
