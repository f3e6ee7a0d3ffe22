"""Telling: the findings of a run as text, as findings.json and as a self-contained HTML page.

Every report is made from the run's files, never from memory, and whatever a model or a test wrote passes
through the one escaping function of its sink.
"""
