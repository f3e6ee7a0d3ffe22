"""Asking: the engine, the cost cap, and the run's folder with its verbatim log.

A trial is asked once for its content key (:mod:`~pytest_fairness.running.keys`), by whichever process claims
it first (:mod:`~pytest_fairness.running.claims`), and is on disk (:mod:`~pytest_fairness.running.log`) before
anybody reads it. Results can be rebuilt from the run's folder alone
(:mod:`~pytest_fairness.running.reading`).
"""
