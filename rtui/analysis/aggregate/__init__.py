"""What the inspected keys of a pass add up to, in memory bounded by patterns."""
