"""How fast a table of trials is judged, side by side in one run with loops over pairs of scipy's
functions.

Run: python benchmarks/statistics_speed.py [--repetitions 9]

Three questions, each with its budget beside it:

- 20 groups × 500 values, 190 pairs: ``analyze_disparity`` with everything that it reports, against
two loops.
  *plain*: group the table, Kruskal–Wallis, and per pair Mann-Whitney and the means; nothing of
  clusters, blocks, effects or intervals. *alike*: per pair what the finding also says, as one would
  write it with scipy and numpy: van Elteren within blocks, t on cluster means, Cliff's δ,
  Hodges–Lehmann, Cohen's d, Hedges g with its interval, intraclass correlations, Holm-ready
  p-values; still without the verdict, the sentence or the smallest detectable effect. Both loops
  and the finding are timed in turn, in CPU time, so that a busy machine slows all three.
- One million trials (4 groups × 20 names × 50 templates × 250), in a process of its own: seconds
and peak memory.
- 1,000 audits without any disparity (4 groups × 20 names × 5 templates × 2, the setting G1 of the
calibration).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from itertools import combinations
from statistics import median

import numpy as np
import pandas as pd
from scipy import stats

from pytest_fairness.analysis.disparity import analyze_disparity

SEED = 20261120


def trials(groups: int, names: int, templates: int, repetitions: int) -> pd.DataFrame:
    """A balanced grid with normal scores, a yes/no outcome and no disparity."""
    shape = (groups, names, templates, repetitions)
    group, name, template, repetition = (axis.ravel() for axis in np.indices(shape))
    label = np.array([f"group {at}" for at in range(groups)], dtype=object)
    person = np.array([f"name {at}" for at in range(groups * names)], dtype=object)
    text = np.array([f"template {at}" for at in range(templates)], dtype=object)
    score = np.random.default_rng(SEED).normal(size=group.size)
    return pd.DataFrame(
        {
            "group": label[group],
            "name": person[group * names + name],
            "template": text[template],
            "repetition": repetition,
            "score": score,
            "yes": score > 0.3,
        }
    )


# ---------------------------------------------------------------- 190 pairs


def plain_loop(frame: pd.DataFrame) -> list[dict[str, object]]:
    """The recipe that guides give: omnibus test, then Mann-Whitney and means for each pair."""
    groups = {name: group["score"].to_numpy() for name, group in frame.groupby("group")}
    stats.kruskal(*groups.values())
    results: list[dict[str, object]] = []
    for a, b in combinations(groups, 2):
        u, p = stats.mannwhitneyu(groups[a], groups[b], alternative="two-sided")
        results.append(
            {
                "group_a": a,
                "group_b": b,
                "u_statistic": float(u),
                "p_value": float(p),
                "mean_a": float(groups[a].mean()),
                "mean_b": float(groups[b].mean()),
                "mean_diff": float(groups[a].mean() - groups[b].mean()),
            }
        )
    return results


def alike_loop(frame: pd.DataFrame) -> list[dict[str, float]]:
    """Per pair what a finding reports beside the plain recipe, without its verdict and sentence."""
    by_group = dict(iter(frame.groupby("group")))
    stats.kruskal(*(group["score"].to_numpy() for group in by_group.values()))
    return [_pair(by_group[a], by_group[b]) for a, b in combinations(by_group, 2)]


def _pair(one: pd.DataFrame, two: pd.DataFrame) -> dict[str, float]:
    x, y = one["score"].to_numpy(), two["score"].to_numpy()
    u, p = stats.mannwhitneyu(x, y, method="asymptotic")
    z, aligned_x, aligned_y = _van_elteren(one, two)
    means_x, means_y = (
        pd.Series(values).groupby(frame["name"].to_numpy()).mean().to_numpy()
        for values, frame in ((aligned_x, one), (aligned_y, two))
    )
    t = stats.ttest_ind(means_x, means_y)
    raw_x, raw_y = (
        one.groupby("name")["score"].mean().to_numpy(),
        two.groupby("name")["score"].mean().to_numpy(),
    )
    raw = stats.ttest_ind(raw_x, raw_y).confidence_interval(0.90)
    s = float(np.sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2))
    j = 1 - 3 / (4 * (x.size + y.size - 2) - 1)
    return {
        "spec_u": float(u),
        "spec_p": float(p),
        "p_row": float(2 * stats.norm.sf(abs(z))),
        "p_cluster": float(t.pvalue),
        "cliffs_delta": float(2 * u / (x.size * y.size) - 1),
        "hodges_lehmann": float(np.median(np.subtract.outer(x, y))),
        "cohens_d": float((x.mean() - y.mean()) / s),
        "hedges_g": float(j * (raw_x.mean() - raw_y.mean()) / s),
        "low": float(j * raw.low / s),
        "high": float(j * raw.high / s),
        "icc_1": _icc(one),
        "icc_2": _icc(two),
    }


def _van_elteren(one: pd.DataFrame, two: pd.DataFrame) -> tuple[float, np.ndarray, np.ndarray]:
    aligned_x, aligned_y = np.empty(len(one)), np.empty(len(two))
    total, variance = 0.0, 0.0
    for template in one["template"].unique():
        in_x, in_y = (
            (one["template"] == template).to_numpy(),
            (two["template"] == template).to_numpy(),
        )
        both = np.concatenate([one["score"].to_numpy()[in_x], two["score"].to_numpy()[in_y]])
        n, n1 = both.size, int(in_x.sum())
        a = (stats.rankdata(both) - (n + 1) / 2) / (n + 1)
        aligned_x[in_x], aligned_y[in_y] = a[:n1], a[n1:]
        total += float(a[:n1].sum())
        variance += n1 * (n - n1) / (n * (n - 1)) * float(np.square(a).sum())
    return total / variance**0.5, aligned_x, aligned_y


def _icc(frame: pd.DataFrame) -> float:
    names = frame.groupby("name")["score"]
    size = len(frame) / names.ngroups
    between, within = size * float(names.mean().var(ddof=1)), float(names.var(ddof=1).mean())
    return (between - within) / (between + (size - 1) * within)


def pairs_rows(repetitions: int) -> list[tuple[str, str, str, str]]:
    frame = trials(20, 20, 5, 5)
    rows_only, by_name = frame[["group", "score"]], frame[["group", "name", "score"]]
    ours: Mapping[str, Callable[[], object]] = {
        "rows alone (`cluster=None`)": lambda: analyze_disparity(
            rows_only, "score", "group", cluster=None
        ),
        "20 names a group": lambda: analyze_disparity(by_name, "score", "group"),
        "20 names × 5 templates": lambda: analyze_disparity(frame, "score", "group"),
    }
    loops: Mapping[str, Callable[[], object]] = {
        "plain": lambda: plain_loop(rows_only),
        "alike": lambda: alike_loop(frame),
    }
    seconds: dict[str, list[float]] = {name: [] for name in (*ours, *loops)}
    for _ in range(repetitions):
        for name, run in loops.items():
            seconds[name].append(_cpu(run))
        for name, run in ours.items():
            run()  # what the loops left in the caches is not ours
            seconds[name] += [_cpu(run) for _ in range(5)]
    took = {name: median(values) for name, values in seconds.items()}
    rows = [
        ("190 pairs, plain loop", f"{took['plain'] * 1e3:.1f} ms", "", ""),
        ("190 pairs, loop that reports alike", f"{took['alike'] * 1e3:.0f} ms", "", ""),
    ]
    for name in ours:
        plain, alike = took["plain"] / took[name], took["alike"] / took[name]
        met = "yes" if plain >= 1 else "no"
        figures = f"{took[name] * 1e3:.1f} ms: {plain:.1f} × plain, {alike:.0f} × alike"
        rows.append((f"190 pairs, {name}", figures, "≥ 1 × plain", met))
    return rows


def _cpu(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


# ---------------------------------------------------------------- one million trials


def million(outcome: str, repetitions: int) -> None:
    """Judge one million trials (of 250 *repetitions*) and print seconds and peak memory as JSON;
    for a process of its own.
    """
    frame = trials(4, 20, 50, repetitions)
    if len(frame) != 4_000 * repetitions:
        raise SystemExit(f"{len(frame)} trials are not {4_000 * repetitions}")
    start = time.perf_counter()
    finding = analyze_disparity(frame, outcome, "group")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "gib": peak, "verdict": finding.verdict.value}))


def million_rows(repetitions: int, size: int) -> list[tuple[str, str, str, str]]:
    rows = []
    for outcome, kind in (("score", "numeric"), ("yes", "binary")):
        runs = []
        for _ in range(max(repetitions // 3, 1)):
            command = [sys.executable, __file__, "--million", outcome, "--size", str(size)]
            runs.append(
                json.loads(
                    subprocess.run(command, check=True, capture_output=True, text=True).stdout
                )
            )
        seconds, peak = median(run["seconds"] for run in runs), max(run["gib"] for run in runs)
        met = "yes" if seconds <= 3 and peak <= 1.5 else "no"
        figures = f"{seconds:.2f} s, peak {peak:.2f} GiB with the table and imports"
        rows.append((f"{4_000 * size:,} trials, {kind}", figures, "≤ 3 s, ≤ 1.5 GB", met))
    return rows


# ---------------------------------------------------------------- audits


def audits_row(audits: int = 1000) -> tuple[str, str, str, str]:
    frame = trials(4, 20, 5, 2)
    rng = np.random.default_rng(SEED)
    start = time.process_time()
    for _ in range(audits):
        names = rng.normal(scale=0.2, size=80).repeat(10)
        frame["score"] = rng.normal(size=len(frame)) + names
        analyze_disparity(frame, "score", "group")
    seconds = time.process_time() - start
    return (
        f"{audits:,} null audits (G1)",
        f"{seconds:.1f} s",
        "≤ 20 s",
        "yes" if seconds <= 20 else "no",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="speed of the statistics")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--size", type=int, default=250, help="of the large table, in 4,000 trials")
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--million", choices=["score", "yes"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.million:
        million(arguments.million, arguments.size)
        return
    rows = [
        *pairs_rows(arguments.repetitions),
        *million_rows(arguments.repetitions, arguments.size),
        audits_row(arguments.audits),
    ]
    print("| what | measured | budget | met |\n|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
