"""Connections to a server: target, socket, handshake, lane, replies, failures, reconnecting, what the user may do."""
