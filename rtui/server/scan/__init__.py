"""Scanning a keyspace: cursors, ranges, pace, samples, and where a scan was broken off."""
