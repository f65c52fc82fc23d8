"""One file a subcommand: parse, call, print, exit code."""
