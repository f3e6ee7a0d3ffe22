"""Clients that ``benchmarks/running.py`` sets side by side; each is a program of its own, with its
own memory.
"""
