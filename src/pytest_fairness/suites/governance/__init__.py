"""Governance of a system: its data, its explanations, who oversees it, how it drifts, and on whom
it depends.
"""
