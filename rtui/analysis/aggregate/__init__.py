"""TODO aggregate."""
