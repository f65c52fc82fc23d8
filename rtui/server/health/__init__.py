"""How a server is, by what it says of itself and of its clients."""
