"""The facts of all keys of a server as tables, without the compiled engine."""
