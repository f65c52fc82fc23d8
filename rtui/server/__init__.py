"""How Redis is asked: the guard, the lane, connections, the scan, the inspection."""
