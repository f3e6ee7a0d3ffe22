"""Comparing: tables of trials in, effects and p-values out. The only importer of scipy and
statsmodels.
"""
