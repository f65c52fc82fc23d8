"""Which keys are hot, by the best source that a server offers."""
