"""A team's registry of its keys: patterns with expectations, naming rules, references."""
