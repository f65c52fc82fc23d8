"""Playing a recorded session."""
