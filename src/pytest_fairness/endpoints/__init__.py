"""Whom to ask: the systems under test, each behind one small adapter."""
