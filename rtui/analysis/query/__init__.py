"""The query line: one language that finds keys by their names and facts."""
