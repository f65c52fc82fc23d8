"""Recorded sessions: writing what was asked, answered and pressed to a file, and answering from one."""
