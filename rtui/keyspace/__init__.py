"""What keys are: names, segments, hash slots, the namespace store. Pure: the standard library only."""
