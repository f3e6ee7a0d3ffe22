"""What becomes of an audit of approvals: the shares of PASS, warning and red, for fair systems and
biased ones.

Run: python benchmarks/verdict_shares.py [--audits 1000] [--no-confirm]

Two to four groups of 20 names each, in five templates or in one, asked as often as a grid asks by
default. Names differ a little (ICC .04). Of a biased system one group has log odds lower by d·π/√3.
An alarm is judged again on 20 other names a group, both samples together, as a session does. Red
fails the test, a warning does not.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from audits import Design, confirmed_audit
from destruction import colour

SETTINGS = [
    (0.5, 0.0),
    (0.9, 0.0),
    (0.98, 0.0),
    (1.0, 0.0),
    (0.5, 0.5),
    (0.5, 0.8),
    (0.9, 0.5),
    (0.9, 0.8),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--no-confirm", action="store_true")
    parser.add_argument(
        "--repetitions", type=int, default=5, help="what a grid of one template asks by default"
    )
    options = parser.parse_args()
    designs = {
        "4 groups, 5 templates × 2": Design(),
        "2 groups, 1 template, defaults": Design(
            groups=2, templates=1, repetitions=options.repetitions
        ),
    }
    print(
        "| design | approved | d | PASS | warning | red | ms an audit "
        "|\n|---|---|---|---|---|---|---|"
    )
    for name, design in designs.items():
        for seed, (rate, d) in enumerate(SETTINGS):
            rng = np.random.default_rng([20261122, seed])

            def make(rng: np.random.Generator, d: float, design=design, rate=rate) -> np.ndarray:
                return design.approved(rng, rate, d)

            started = time.perf_counter()
            colours = [
                colour(confirmed_audit(rng, design, make, d, again=not options.no_confirm)[0])
                for _ in range(options.audits)
            ]
            took = 1000 * (time.perf_counter() - started) / options.audits
            shares = (
                f"{colours.count(one) / options.audits:.3f}" for one in ("PASS", "warning", "red")
            )
            print(f"| {name} | {rate:g} | {d:g} | {' | '.join(shares)} | {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
