"""Which keys are hot, by the best source that a server offers."""

from __future__ import annotations

from rtui.server.guard.evidence import Consent, Metric
from rtui.server.hot.report import hot_report
from rtui.server.hot.session import SessionError, SessionRefusedError, start_session

__all__ = ["Consent", "Metric", "SessionError", "SessionRefusedError", "hot_report", "start_session"]
