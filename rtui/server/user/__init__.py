"""What belongs to the user: folders and files, servers, registries, the log of commands, copied commands, signals."""
