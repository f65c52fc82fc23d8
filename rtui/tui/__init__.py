"""How people see it. The only rooms that import textual."""
