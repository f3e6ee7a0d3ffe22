"""The red team: phrases by which bias slips through, for the lexicon to find and for an endpoint
not to write.
"""
