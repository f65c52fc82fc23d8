"""Connections to a server: target, socket, handshake, lane, replies, failures, reconnecting, the user's rights."""
