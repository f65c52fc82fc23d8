"""The user's own files and folders: profiles, recent servers, registries, the log of commands; copying and signals."""
