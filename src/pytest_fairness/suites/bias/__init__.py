"""Seven tests of bias: scores, hiring, loans, narratives, associations, triage and refusals, over
eight classes.
"""
