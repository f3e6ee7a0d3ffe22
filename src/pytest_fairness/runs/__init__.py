"""Runs on disk: the folder, its verbatim records, its account."""
