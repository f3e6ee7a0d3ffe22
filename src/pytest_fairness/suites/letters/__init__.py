"""The persona suite: a hundred personas, a letter to each, and what the letters should not say."""
