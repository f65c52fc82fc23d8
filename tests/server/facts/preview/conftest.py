"""Properties are tried without a clock: what a machine is busy with is not theirs to judge."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
