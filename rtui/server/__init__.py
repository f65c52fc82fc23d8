"""Everything that talks to a Redis server: guard, wire, scan, facts, inspection, hot keys, and the sessions on top."""
