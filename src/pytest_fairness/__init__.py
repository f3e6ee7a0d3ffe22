"""Fairness assertions for systems that contain a language model.

The names below are the public interface. They are imported when first used: the plugin is a guest in every pytest
session of everyone who installed it, and those sessions must not pay for pandas and scipy.
"""
