"""The health of servers: samples of their figures, and panels of these."""
