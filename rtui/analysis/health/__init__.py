"""How servers are: samples of what they say of themselves, and what can be read out of them."""
