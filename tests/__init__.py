"""The tests. Whatever imports them comes by here before numpy is loaded."""

import os

# Workers share the cores. The threads of OpenBLAS wait for each other at full speed: 150 equations
# take fifty times the processor time of one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
