"""Approved snapshots of scores, in git, and the gate that compares a run with them.

:mod:`.syrupy_extension` alone imports syrupy, and is itself imported only when a baseline is used.
"""
