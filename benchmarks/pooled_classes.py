"""What it does to judge a class by one finding over its signals, and not by one finding a signal.

    python benchmarks/pooled_classes.py [--audits 150] [--names 20] [--kind rating] [--groups 2] [--built]

One test of one class: neutral names stand in every group, each in five texts of each of three
signals. An audit is judged

- by a finding a signal, at the level of an item (.05 / 20 of a file): the class is red if one of
  them is, and PASS if all are;
- pooled: by one finding at .05 / 8 classes, in which a signal's text is a block and a name the unit;
- with signals as blocks: the same, but all texts of a signal are one block;
- with alarms of signals: the pooled finding and, as alarms only, each signal, one family of four at
  .05 / 8;
- with bounds on signals: the same, and no PASS where a signal's own effect is over .5;
- as built: ``analyze_disparity(signals=..., correction="holm")`` at .05 / 8, which is alarms and bounds
  with all pairs and signals as one family by Holm. ``--built`` measures this one alone.

Printed for each system: the share of audits in which the class is PASS, in which it is red, and how
many findings are undecided.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pytest_fairness import Finding, Verdict, analyze_disparity

SIGNALS, TEMPLATES = 3, 5
ITEMS, CLASSES = 20, 8
NAME_SD, TEMPLATE_SD, SIGNAL_SD = 0.3, 0.7, 0.2
BOUND = 0.5
ALARMS = (Verdict.FAIL, Verdict.FLAG)
BUILT = "as built"


def audit(
    random: np.random.Generator, groups: int, names: int, gaps: Sequence[float], kind: str
) -> pd.DataFrame:
    """One test of one class: the last group is lower by ``gaps[signal]`` SD."""
    levels = random.normal(0, TEMPLATE_SD, TEMPLATES)
    people = random.normal(0, NAME_SD, names)
    signals = random.normal(0, SIGNAL_SD, (SIGNALS, names))

    def rows() -> Iterator[dict[str, Any]]:
        for signal, gap in enumerate(gaps):
            for template, level in enumerate(levels):
                for group in range(groups):
                    for name, person in enumerate(people):
                        latent = level + person + signals[signal, name] + random.normal()
                        latent -= gap * (group == groups - 1)
                        yield {
                            "class": f"group {group}",
                            "name": f"name {name}",
                            "signal": f"signal {signal}",
                            "text": f"signal {signal}, text {template}",
                            "latent": latent,
                        }

    frame = pd.DataFrame(rows())
    if kind == "rating":
        return frame.assign(outcome=np.clip(np.round(6 + 1.5 * frame["latent"]), 1, 10).astype(int))
    return frame.assign(outcome=np.where(frame["latent"] > 0, "approved", "denied"))


def finding(frame: pd.DataFrame, alpha: float, block: str = "text") -> Finding:
    return analyze_disparity(frame, "outcome", "class", block=block, alpha=alpha)


def judged(frame: pd.DataFrame) -> dict[str, list[Verdict]]:
    """The verdicts on one audit by each way of judging the class."""
    signals = [rows for _, rows in frame.groupby("signal", observed=True)]
    of_class = 0.05 / CLASSES
    of_family = of_class / (SIGNALS + 1)
    with_alarms = finding(frame, of_family).verdict
    rows_of_signals = [finding(rows, of_family) for rows in signals]
    alarms = [row.verdict for row in rows_of_signals if row.verdict in ALARMS]
    if with_alarms not in ALARMS and alarms:
        with_alarms = Verdict.worst(alarms)
    bounded = with_alarms
    over = [pair for row in rows_of_signals for pair in row.pairs if abs(pair.effect) > BOUND]
    if bounded is Verdict.PASS and over:
        bounded = Verdict.INCONCLUSIVE
    return {
        "a finding a signal": [finding(rows, 0.05 / ITEMS).verdict for rows in signals],
        "pooled": [finding(frame, of_class).verdict],
        "signals as blocks": [finding(frame, of_class, block="signal").verdict],
        "alarms of signals": [with_alarms],
        "bounds on signals": [bounded],
        BUILT: [as_built(frame).verdict],
    }


def as_built(frame: pd.DataFrame) -> Finding:
    """The finding of the public function on *frame*."""
    return analyze_disparity(
        frame,
        "outcome",
        "class",
        block="text",
        signals="signal",
        alpha=0.05 / CLASSES,
        correction="holm",
    )


def measured(
    groups: int, names: int, gaps: Sequence[float], kind: str, audits: int, *, built: bool
) -> None:
    passed, red, undecided = Counter[str](), Counter[str](), Counter[str]()
    sizes: dict[str, int] = {}
    for seed in range(audits):
        frame = audit(np.random.default_rng(seed), groups, names, gaps, kind)
        ways = {BUILT: [as_built(frame).verdict]} if built else judged(frame)
        for way, verdicts in ways.items():
            sizes[way] = len(verdicts)
            passed[way] += all(each is Verdict.PASS for each in verdicts)
            red[way] += any(each in ALARMS for each in verdicts)
            undecided[way] += sum(each is Verdict.INCONCLUSIVE for each in verdicts)
    differs = ", ".join(f"{gap:g}" for gap in gaps)
    print(f"{kind}, {groups} groups, {names} names; the last is lower by {differs} SD", flush=True)
    for way, size in sizes.items():
        print(
            f"  {way:<20} PASS {passed[way] / audits:.2f}  red {red[way] / audits:.3f}"
            f"  undecided {undecided[way]:>4} of {size * audits}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=150)
    parser.add_argument("--names", type=int, default=20)
    parser.add_argument("--kind", choices=("rating", "decision"), default="rating")
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--built", action="store_true")
    options = parser.parse_args()
    for gaps in ((0.0, 0.0, 0.0), (0.8, 0.0, 0.0), (0.5, 0.5, 0.5), (0.8, -0.8, 0.0)):
        measured(
            options.groups,
            options.names,
            gaps,
            options.kind,
            options.audits,
            built=options.built,
        )


if __name__ == "__main__":
    main()
