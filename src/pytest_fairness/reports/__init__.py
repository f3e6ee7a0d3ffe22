"""The findings of a run as documents, and as files: builders make pages of parts, sinks render them.

Every report is made from the run's files, never from memory, and whatever a model or a test wrote
passes through the one escaping function of its sink.
"""
