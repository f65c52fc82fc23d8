"""From bytes to safe text and back, patterns for MATCH, segments of a name, and identifiers among them."""
