"""How people see it. The only rooms that import textual."""

from __future__ import annotations

import os

os.environ.setdefault("TEXTUAL_FPS", "120")  # read when textual is imported: a key waits at most 8 ms for the last paint
