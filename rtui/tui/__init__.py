"""How people see it. The only rooms that import textual."""

from __future__ import annotations

import os

# Textual reads it when it is imported: so a key waits at most 8 ms for the paint before.
os.environ.setdefault("TEXTUAL_FPS", "120")
