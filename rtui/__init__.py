"""rtui: a read-only terminal browser and inspector for Redis and Valkey keyspaces."""

__version__ = "0.1.0"
