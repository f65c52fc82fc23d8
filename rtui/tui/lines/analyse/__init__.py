"""What the panels of an analysis say, as lines: pure functions from a report to lines of an area."""
