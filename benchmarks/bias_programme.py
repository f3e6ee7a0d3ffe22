"""How often the bias programme errs: its sessions on simulated endpoints, fair ones or with a bias
planted.

    python benchmarks/bias_programme.py [--seeds 20] [--first 0] [--d 1.0]
        [--planted race_ethnicity=black,religion=muslim,disability=mental_health] [--refusals 0.3]
        [--tests 'BIAS-ATTR-*'] [--locale uk] [--findings FILE]

One session of ``pytest --pyargs pytest_fairness.suites.bias`` (tier 1, default temperature) asks an
endpoint for each seed: of each the *planted* groups are *d* SD lower; with ``--refusals`` all
requests are declined with that chance, and the bias is in refusals alone. Trials are asked in memory
(``asked_in_memory``), and every finding is appended to FILE as it is made: what a break leaves is
counted with ``--seeds 0``. Each endpoint is judged as if it were asked alone.

Printed: in how many sessions each class is red, and of each test and class the shares that are red
and undecided.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PLANTED = "race_ethnicity=black,religion=muslim,disability=mental_health"
#: Tests of the programme that judge: what its items share the session's level by.
TESTS = 78
ALARMS = ("FAIL", "FLAG")


def endpoints(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return an endpoint of each seed, with what is planted in it."""
    bias = {}
    if options.d:
        for pair in options.planted.split(","):
            protected_class, group = pair.split("=")
            bias[protected_class] = {group: -options.d}
    further: dict[str, Any] = {}
    if options.refusals:
        further = {"refusal_rate": options.refusals, "channels": ["refusal"]}
    seeds = range(options.first, options.first + options.seeds)
    return [
        {"name": f"seed{seed}", "type": "simulated", "seed": seed, "bias": bias, **further}
        for seed in seeds
    ]


def ask(options: argparse.Namespace, path: Path) -> None:
    """Run a session that appends its findings to *path*. Raises SystemExit where it finds nothing."""
    with tempfile.TemporaryDirectory() as folder:
        entries = json.dumps({"endpoints": endpoints(options)})
        Path(folder, "endpoints.yaml").write_text(entries, encoding="utf-8")
        usual = f"locale: {options.locale}\ntemperatures: [default]\n"
        Path(folder, "bias.yaml").write_text(usual, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
        command += ["-p", "asked_in_memory", "-o", f"fairness_session_tests={TESTS}"]
        command += ["--pyargs", "pytest_fairness.suites.bias", "--fairness-endpoint=all"]
        command += [f"--fairness-test={options.tests}"]
        inherited = os.environ.get("PYTHONPATH", "")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parent), inherited))),
            "FINDINGS": str(path.resolve()),
        }
        session = subprocess.run(
            command, cwd=folder, check=False, capture_output=True, text=True, env=environment
        )
    if not path.exists():
        raise SystemExit(f"the session found nothing:\n{session.stdout}{session.stderr}")


def kind_of(finding: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the test of *finding*, its question and its class, the item's id without the class."""
    protected_class = finding["class"]
    return finding["test"].replace(f"-{protected_class}", ""), protected_class, finding["outcome"]


def is_red(findings: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether one of *findings* is an alarm."""
    return any(finding["verdict"] in ALARMS for finding in findings)


def report(findings: list[dict[str, Any]]) -> None:
    """Print the counts of *findings*."""
    sessions: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    items: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = defaultdict(dict)
    for finding in findings:
        test, protected_class, _ = kind_of(finding)
        sessions[finding["endpoint"], protected_class].append(finding)
        items[test, protected_class].setdefault(finding["endpoint"], []).append(finding)
    undecided = sum(finding["verdict"] == "INCONCLUSIVE" for finding in findings)
    print(f"{undecided} of {len(findings)} findings are undecided")
    red_sessions = {name for (name, _), judged in sessions.items() if is_red(judged)}
    print(f"{len(red_sessions)} of {len({name for name, _ in sessions})} sessions are red")
    by_class: dict[str, list[bool]] = defaultdict(list)
    for (_, protected_class), judged in sessions.items():
        by_class[protected_class].append(is_red(judged))
    for protected_class, reds in sorted(by_class.items()):
        print(f"{protected_class} is red in {sum(reds)} of {len(reds)}")
    print("\n| test | class | sessions | red | undecided |\n|---|---|---|---|---|")
    for (test, protected_class), of_endpoints in sorted(items.items()):
        red = sum(map(is_red, of_endpoints.values()))
        open_items = 0
        for judged in of_endpoints.values():
            verdicts = {finding["verdict"] for finding in judged}
            open_items += "INCONCLUSIVE" in verdicts and not verdicts & {*ALARMS}
        print(f"| {test} | {protected_class} | {len(of_endpoints)} | {red} | {open_items} |")


def main() -> None:
    """Run the session, and print what is counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--d", type=float, default=1.0, help="0: a fair system")
    parser.add_argument("--planted", default=PLANTED, help="class=group, …")
    parser.add_argument("--refusals", type=float, default=0.0, help="the share that is declined")
    parser.add_argument("--tests", default="BIAS-*", help="ids of tests, patterns with *")
    parser.add_argument("--locale", default="us", help="of the texts")
    parser.add_argument("--findings", type=Path, help="the file that findings are appended to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.findings or Path(folder, "findings.jsonl")
        if options.seeds:
            ask(options, path)
        lines = path.read_text(encoding="utf-8").splitlines()
    print(f"planted d = {options.d:g}")
    report(list(map(json.loads, lines)))


if __name__ == "__main__":
    main()
