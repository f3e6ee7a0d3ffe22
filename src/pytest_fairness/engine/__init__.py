"""Asking, in memory: planned trials in, finished trials out."""
