"""Hot keys, by the best source that a server offers."""
