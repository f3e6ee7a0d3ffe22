from tests.support.runs import engine_for, root, runs, store

__all__ = ["engine_for", "root", "runs", "store"]
