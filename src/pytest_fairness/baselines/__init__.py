"""Remembering: approved snapshots of scores, in git, and the gate that compares a run with them.

Import the modules below by name. :mod:`.extension` imports syrupy and is itself imported only when a baseline
is used.
"""
