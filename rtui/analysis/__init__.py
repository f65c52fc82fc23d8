"""What a scan adds up to: estimates and aggregates. Pure: the standard library, msgspec and ``rtui.keyspace``."""
