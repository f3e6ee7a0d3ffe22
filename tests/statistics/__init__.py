"""Tests of the statistics and of the verdicts read from them."""  # noqa: A005
