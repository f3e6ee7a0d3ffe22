"""Designs of what to ask: name banks, labels, signals, personas, templates and the grids made of
them.
"""
