"""TODO kit."""
