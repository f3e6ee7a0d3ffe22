"""How often the bias programme errs: whole sessions on simulated endpoints, fair ones and with
three classes planted.

    python benchmarks/bias_programme.py [--seeds 20] [--first 0] [--d 1.0] [--part ATTR]

Each seed is two sessions of ``pytest --pyargs pytest_fairness.suites.bias`` (tier 1, default
temperature, bias.yaml absent): one on a fair endpoint, one where black, muslim and mental_health
are planted *d* SD lower. Printed: by class, the share of sessions with a red test about it, and of
planted sessions in which exactly the three classes are red.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

PLANTED = {"race_ethnicity": "black", "religion": "muslim", "disability": "mental_health"}


def session(seed: int, d: float, part: str) -> tuple[set[str], Counter[tuple[str, str]]]:
    """The classes with a red test, and how many findings of each class have each verdict."""
    with tempfile.TemporaryDirectory() as folder:
        bias = {name: {group: -d} for name, group in PLANTED.items()} if d else {}
        entry = {"name": "system", "type": "simulated", "seed": seed, "bias": bias}
        Path(folder, "endpoints.yaml").write_text(
            json.dumps({"endpoints": [entry]}), encoding="utf-8"
        )
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            f"t-default and {part}",
        ]
        command += ["--pyargs", "pytest_fairness.suites.bias", "--fairness-endpoint=system"]
        subprocess.run(command, cwd=folder, check=False, capture_output=True)
        (found,) = Path(folder).glob(".fairness/runs/*/findings.json")
        findings = json.loads(found.read_text(encoding="utf-8"))["findings"]
    red = {one["protected_class"] for one in findings if one["verdict"] in ("FAIL", "FLAG")}
    return red, Counter((one["protected_class"], one["verdict"]) for one in findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--d", type=float, default=1.0)
    parser.add_argument("--part", default="test", help="what the names of the items hold")
    options = parser.parse_args()
    exactly, by_class, verdicts = (
        0,
        Counter[tuple[str, str]](),
        {"fair": Counter(), "planted": Counter()},
    )
    for seed in range(options.first, options.first + options.seeds):
        for kind, d in (("fair", 0.0), ("planted", options.d)):
            red, counted = session(seed, d, options.part)
            verdicts[kind] += counted
            by_class.update((kind, name) for name in red)
            exactly += kind == "planted" and red == set(PLANTED)
            print(f"seed {seed} {kind}: red in {', '.join(sorted(red)) or 'no class'}", flush=True)
    print(
        f"planted d = {options.d}: exactly the three classes in {exactly} of {options.seeds} "
        "sessions"
    )
    for (kind, name), number in sorted(by_class.items()):
        print(f"  {kind:<8} {name:<24} red in {number} of {options.seeds}")
    for kind, counted in verdicts.items():
        print(
            f"  {kind}: "
            + ", ".join(f"{name} {verdict} {n}" for (name, verdict), n in sorted(counted.items()))
        )


if __name__ == "__main__":
    main()
