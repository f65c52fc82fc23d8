"""What panels say, as lines of spans: pure functions from values to lines."""
