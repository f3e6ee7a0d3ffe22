"""The selection benchmark on a model in which everything is planted: is each quantity recovered,
and how fast?

Run: python benchmarks/selection.py [--seeds 50] [--speed]

Coverage: the whole published design (6,480 trials) for each seed, on a simulated endpoint that
prefers White candidates, favours the first of a list, has opinions of its own about names, and as a
scrubber overlooks one surface in ten. Every seed draws other opinions, so that an interval has to
hold the mean over names. The truth is integrated, not simulated: see ``Truth``. Under each
quantity: how many of the intervals hold it, and the mean of the estimates.

``--speed``: trials a second of the whole design with the log on disk, on the simulated endpoint and
on a local server in another process, 64 in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.polynomial.hermite_e import hermegauss

from pytest_fairness.design.pairs import expand_pairs
from pytest_fairness.endpoints.protocol import Request
from pytest_fairness.endpoints.simulated import Planted, SimulatedEndpoint
from pytest_fairness.endpoints.simulated.bias import LOGITS_PER_D
from pytest_fairness.model import Message, Status, Trial
from pytest_fairness.pytest_layer.plans import PlannedPairs
from pytest_fairness.scorers import is_refusal
from pytest_fairness.statistics.bradley_terry import fit_binomial
from pytest_fairness.suites.selection.configuration import Configuration
from pytest_fairness.suites.selection.design import marker_arguments
from pytest_fairness.trials_frame import EndpointFacts, trials_frame

#: d that a Black candidate loses, logits of standing first, SD of names' own effects (d), share of
#: surfaces scrubbed.
BIAS, POSITION, NAME_SD, RECALL = 0.5, 0.6, 0.2, 0.9
GROUPS = ("white_male", "white_female", "black_male", "black_female")
PAIRS = tuple((a, b) for at, a in enumerate(GROUPS) for b in GROUPS[at + 1 :])
ARMS = ("raw_naive", "raw_matched", "scrubbed")


def endpoint(seed: int) -> SimulatedEndpoint:
    """The model of the benchmark; *seed* draws the names' effects and all chance."""
    planted = Planted(
        bias={"race_ethnicity": {"black": -BIAS}},
        position_bias=POSITION,
        name_sd=NAME_SD,
        scrub_recall=RECALL,
        channels=frozenset({"choice"}),
        seed=seed,
    )
    return SimulatedEndpoint(planted)


@dataclass(frozen=True)
class Truth:
    """What is planted, as the analyses would find it in endless data: the mean over names, for each
    pair of groups.

    A candidate's utility is −0.5 SD if Black, plus the effect of the name, plus Gumbel noise; the
    first of a list has
    0.6 logits more. So the first of two wins with probability expit(difference + 0.6), and the mean
    over names is an integral over a normal distribution. Of a scrubbed candidate the group can
    still be seen while the name or the words stand (1 − .9² of the time), and the name has its
    effect while it stands (.1 of the time).
    """

    rates: dict[tuple[str, str, str], float]
    position: dict[str, float]

    def effect(self, arm: str, one: str, other: str) -> float:
        """d: logit of the win rate, both orders weighing the same, times √3/π."""
        rate = self.rate(arm, one, other)
        return math.log(rate / (1 - rate)) / LOGITS_PER_D

    def rate(self, arm: str, one: str, other: str) -> float:
        return (self.rates[arm, one, other] + 1 - self.rates[arm, other, one]) / 2

    def change(self, treated: str, control: str, one: str, other: str) -> float:
        return self.rate(treated, one, other) - self.rate(control, one, other)


def truth() -> Truth:
    """See :class:`Truth`."""
    rates = {
        (arm, a, b): _first_wins(arm, a, b)
        for arm in ARMS
        for a in GROUPS
        for b in GROUPS
        if a != b
    }
    return Truth(rates, {arm: _position(arm, rates) for arm in ARMS})


def _first_wins(arm: str, first: str, second: str) -> float:
    total = 0.0
    for p_one, shift_one, variance_one in _standings(arm, first):
        for p_other, shift_other, variance_other in _standings(arm, second):
            spread = math.sqrt(variance_one + variance_other)
            points, weights = hermegauss(40)
            logits = (shift_one - shift_other + spread * points) * LOGITS_PER_D + POSITION
            total += (
                p_one
                * p_other
                * float(np.sum(weights / (1 + np.exp(-logits))) / math.sqrt(2 * math.pi))
            )
    return total


def _standings(arm: str, group: str) -> list[tuple[float, float, float]]:
    """(probability, shift in SD, variance of the name's effect) of what is left of a candidate of
    *group*.
    """
    shift, variance = (-BIAS if group.startswith("black") else 0.0), NAME_SD**2
    if arm != "scrubbed":
        return [(1.0, shift, variance)]
    return [
        (1 - RECALL, shift, variance),
        (RECALL * (1 - RECALL), shift, 0.0),
        (RECALL**2, 0.0, 0.0),
    ]


def _position(arm: str, rates: dict[tuple[str, str, str], float]) -> float:
    """The first-position term of the Bradley-Terry fit to the expected shares of all ordered pairs."""
    ordered = [(a, b) for a in GROUPS for b in GROUPS if a != b]
    at = {group: np.eye(len(GROUPS))[number] for number, group in enumerate(GROUPS)}
    design = np.array([[1.0, *(at[a] - at[b])[1:]] for a, b in ordered])
    shares = np.array([rates[arm, a, b] for a, b in ordered])
    return float(fit_binomial(design, shares * 1e6, np.full(len(ordered), 1e6)).beta[0])


def planned(configuration: Configuration | None = None) -> PlannedPairs:
    """The design of the suite."""
    return PlannedPairs(
        expand_pairs(
            **marker_arguments(configuration or Configuration(answer_form=False), "selection")
        )
    )


def ask(plan: PlannedPairs, model: SimulatedEndpoint) -> pd.DataFrame:
    """All trials of *plan*, without the log: the table that a test is given."""
    rows: list[tuple[Any, Trial]] = []
    columns: list[dict[str, Any]] = []
    for entry in plan.entries(1):
        for number in range(plan.grid.repetitions):
            trial = _trial(entry, entry.first + number, model)
            rows.append((entry.cell, trial))
            columns.append(
                {} if entry.script is None else dict(entry.script.columns(entry.cell, trial))
            )
    frame = trials_frame(rows, EndpointFacts(name="simulated", simulated=True))
    for column in dict.fromkeys(key for row in columns for key in row):
        before = frame[column].tolist() if column in frame else [None] * len(frame)
        frame[column] = [row.get(column, old) for row, old in zip(columns, before, strict=True)]
    return plan.table(frame)


def _trial(entry: Any, repetition: int, model: SimulatedEndpoint) -> Trial:
    cell, replies, status = entry.cell, [], Status.NOT_RUN
    while True:
        if entry.script is not None:
            messages = entry.script.next(cell, replies, status)
        else:
            system = () if cell.system is None else (Message("system", cell.system),)
            messages = None if replies else (*system, Message("user", cell.turns[0]))
        if messages is None:
            key = f"{cell.id}#{repetition}"
            return Trial(
                key=key,
                repetition=repetition,
                replies=tuple(replies),
                status=status,
                source="simulated",
            )
        reply = model.reply(Request(messages=messages, repetition=repetition, signals=cell.signals))
        status = reply.status
        replies.append(reply.text or "")


def coverage(seeds: Sequence[int]) -> dict[str, tuple[int, int, float, float]]:
    """For each quantity: intervals that hold the truth, intervals, mean estimate, mean truth."""
    from pytest_fairness.suites.selection.metrics import selection_results

    known, plan = truth(), planned()
    counts: dict[str, list[tuple[bool, float, float]]] = {}

    def note(what: str, low: float, high: float, value: float, true: float) -> None:
        counts.setdefault(what, []).append((low <= true <= high, value, true))

    for seed in seeds:
        # What the scrubber keeps and removes has measurements of its own, and takes most of the
        # time.
        results = selection_results(ask(plan, endpoint(seed)).drop(columns=["candidates_text"]), {})
        for arm in results.arms:
            for pair in arm.preference.pairs:
                true = known.effect(arm.arm, pair.group_1, pair.group_2)
                kind = "within a race" if pair.group_1[:5] == pair.group_2[:5] else "between races"
                if kind == "between races" and pair.group_1.startswith("black"):
                    low, high, value, true = (
                        -(pair.effect_high or 0),
                        -(pair.effect_low or 0),
                        -pair.effect,
                        -true,
                    )
                else:
                    low, high, value = pair.effect_low or 0.0, pair.effect_high or 0.0, pair.effect
                note(f"{arm.arm}: d {kind} (90 %)", low, high, value, true)
            order = arm.order
            if order is not None and order.log_odds is not None and order.error is not None:
                reach = 1.959964 * order.error
                low, high = order.log_odds - reach, order.log_odds + reach
                note(
                    f"{arm.arm}: position, log odds (95 %)",
                    low,
                    high,
                    order.log_odds,
                    known.position[arm.arm],
                )
        for contrast in (one for one in results.contrasts if one.by == "group"):
            for pair in contrast.pairs:
                if pair.change is None or pair.group_1[:5] == pair.group_2[:5]:
                    continue
                true = known.change(contrast.treated, contrast.control, pair.group_1, pair.group_2)
                sign = -1 if pair.group_1.startswith("black") else 1
                low, high = sorted((sign * pair.change.low, sign * pair.change.high))
                note(
                    f"{contrast.treated} - {contrast.control}: change of the win rate (95 %)",
                    low, high, sign * pair.change.value, sign * true,
                )  # fmt: skip
    return {
        what: (
            sum(held for held, _, _ in rows),
            len(rows),
            float(np.mean([value for _, value, _ in rows])),
            float(np.mean([true for _, _, true in rows])),
        )
        for what, rows in counts.items()
    }


def speed(local: bool) -> tuple[int, float]:
    """Trials of the whole design, and how many a second, 64 in flight, everything logged."""
    from pytest_fairness.engine.engine import Engine
    from pytest_fairness.pytest_layer.trials import planned_trials
    from pytest_fairness.runs.store import open_run

    plan = planned()
    trials = planned_trials(plan, plan.entries(1), None)
    server = _server() if local else None
    try:
        model: Any = endpoint(0) if server is None else _remote(server[1])
        with tempfile.TemporaryDirectory() as folder:
            store = open_run(Path(folder), "benchmark")
            engine = Engine(model, store, concurrency=64, seed=0, is_refusal=is_refusal)
            start = time.perf_counter()
            done = engine.run(trials)
            seconds = time.perf_counter() - start
            engine.close()
            store.close()
        asyncio.run(model.aclose())
    finally:
        if server is not None:
            server[0].terminate()
            server[0].wait()
    answered = sum(trial.status is Status.ANSWERED for trial in done)
    if answered != len(trials):
        raise SystemExit(f"{answered} of {len(trials)} trials were answered")
    return len(trials), len(trials) / seconds


def _server() -> tuple[subprocess.Popen[str], str]:
    code = (
        "from tests.support.servers import ModelServer\n"
        "import sys\n"
        "with ModelServer() as server:\n"
        "    print(server.url, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def _remote(url: str) -> Any:
    import os

    from pytest_fairness.endpoints import named_endpoint
    from pytest_fairness.endpoints.registry import BUILT_IN_TYPES

    os.environ.setdefault("SELECTION_BENCHMARK_KEY", "none")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "endpoints.yaml"
        path.write_text(
            f'endpoints:\n  - {{name: local, type: openai, model: gpt-4o-mini, base_url: "{url}", '
            "api_key_env: SELECTION_BENCHMARK_KEY}\n"
        )
        return named_endpoint("local", path=path, types=BUILT_IN_TYPES, concurrency=64)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    if given.speed:
        for name, local in (("simulated endpoint", False), ("local server", True)):
            trials, rate = speed(local)
            print(f"{name}: {trials:,} trials, {rate:,.0f} trials a second at 64 in flight")
        return
    for what, (held, of, value, true) in coverage(range(given.seeds)).items():
        print(
            f"{what:62} {held:4}/{of:4} = {held / of:.3f}   mean {value:+.4f}   planted "
            f"{true:+.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
