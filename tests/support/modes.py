"""The three ways of running pytest that every behaviour of the plugin is tested in."""

MODES = {"plain": ["-p", "no:xdist"], "n0": ["-n0"], "n2": ["-n2"]}
