"""Tables of trials in, effects and p-values out. The only importer of scipy and statsmodels.

``statsmodels.stats.multitest.multipletests`` corrects by Benjamini & Hochberg; distributions are
those of ``scipy.special``, separation is found by ``scipy.optimize.linprog``. Closed forms that
every session needs, of all pairs at once, are written out: importing a module of statsmodels takes
two thirds as long as all that judging imports, and its functions take one table at a time. Each
form equals its twin in statsmodels or scipy.stats to 1e-9, which a test holds
(``tests/statistics/test_library_twins.py``); ``docs/decisions/0216-statsmodels-and-by-hand.md`` has
the routines one by one, with what each would cost.
"""
