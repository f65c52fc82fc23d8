"""How many examples of a property that says how many it needs are tried in each run."""

from __future__ import annotations

from hypothesis import settings


def examples(thorough: int) -> int:
    """So many with `--thorough`, a quarter of them else."""
    return thorough if settings.get_current_profile_name() == "thorough" else -(-thorough // 4)
