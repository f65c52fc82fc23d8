"""What a team has written down about its keys: patterns with what is expected of them, naming rules, references."""
