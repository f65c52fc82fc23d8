"""Error replies and missing capabilities as facts that are not known, with the reason."""

from __future__ import annotations

from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.server.capability import Capabilities, Verdict, is_key_refusal, judge
from rtui.server.errors import ServerError

_REASONS: Final = {
    Verdict.DENIED: Reason.DENIED,
    Verdict.UNKNOWN_COMMAND: Reason.UNKNOWN_COMMAND,
    Verdict.UNSUPPORTED: Reason.UNSUPPORTED,
}


def unknown_from(error: ServerError) -> Unknown:
    """Say what an error reply to a question about a key means; the detail is the server's own text."""
    if is_key_refusal(error):
        return Unknown(Reason.DENIED, f"this key: {error.text}")
    if error.code == "WRONGTYPE":
        return Unknown(Reason.GONE, "another key, of another type, has its name now")
    text = error.text.lower()
    if "no such key" in text:
        return Unknown(Reason.GONE, error.text)
    if "maxmemory policy" in text or "maxmemory-policy" in text:
        return Unknown(Reason.UNSUPPORTED, error.text)
    verdict = judge(error).verdict
    if verdict in (Verdict.DENIED, Verdict.UNKNOWN_COMMAND):
        return Unknown(_REASONS[verdict], error.text)
    return Unknown(Reason.FAILED, error.text if error.code == "ERR" else str(error))


def unknown_for(capabilities: Capabilities, feature: str) -> Unknown | None:
    """Say why a feature is not asked for; None when it may be."""
    found = capabilities[feature]
    return None if found.usable else Unknown(_REASONS[found.verdict], found.reason)


def concerns_command(error: ServerError) -> bool:
    """Whether the server would refuse the command for every key, so that asking again is of no use."""
    return judge(error).verdict in (Verdict.DENIED, Verdict.UNKNOWN_COMMAND)
