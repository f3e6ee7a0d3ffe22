"""Anthropic's discrim-eval: yes or no about a person, in 70 scenarios."""
