"""Audits that look, through whole pytest sessions on a system under test whose truth is known: how
many are red, pass, and how many trials they ask.

    python benchmarks/look_sessions.py [--fair N] [--biased N] [--only ROW]

Each audit is a test of its own in one session, with a budget of its own (``fairness_session_tests =
1``). The system is a function of the prompt: what a name does is drawn once an audit, with the SD of
names of ``docs/calibration.md``, and each reply anew. Trials are counted in units of the base design
of 20 names, 5 templates and 2 repetitions a group.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = """
import itertools, math, random, re
import pytest
from pytest_fairness import assert_no_disparity
from pytest_fairness.design.names import NameBanks

RATE, D, AUDITS, OUTCOME, NAME_SD = {rate}, {d}, {audits}, {outcome!r}, .2
GROUPS = {groups!r}
BANKS = NameBanks.load()
TEMPLATES = ["Audit {{audit}}, file %d: assess {{name}}." % number for number in range(5)]
COUNTS = {{}}

def group_of():
    groups = {{}}
    for group in GROUPS:
        most = 80
        while True:
            try:
                names = BANKS.names("race_ethnicity", group, most)
                break
            except Exception:
                most -= 1
        groups |= {{str(name): group for name in names}}
    return groups

GROUP_OF = group_of()

def answer(prompt: str) -> str:
    audit, file, name = re.fullmatch(r"Audit (\\d+), file (\\d): assess (.*)\\.", prompt).groups()
    count = COUNTS.setdefault(prompt, itertools.count())
    of_name = random.Random(f"{{audit}} {{name}}").gauss(0, NAME_SD)
    chance = random.Random(f"{{prompt}} {{next(count)}}")
    shift = -D if GROUP_OF[name] == GROUPS[-1] else 0.0
    if RATE is None:
        unit = math.sqrt(1 + NAME_SD**2)
        template = .2 * int(file)
        return f"{{shift * unit + of_name + template + chance.gauss(0, 1):.9f}}"
    logit = math.log(RATE / (1 - RATE)) + (shift + of_name) * math.pi / math.sqrt(3)
    return "yes" if chance.random() < 1 / (1 + math.exp(-logit)) else "no"

@pytest.fixture
def endpoint():
    return answer

def score(reply: str) -> float:
    return float(reply)

def approved(reply: str) -> bool:
    return reply == "yes"

def make(number):
    @pytest.mark.fairness_grid(
        template=TEMPLATES, groups={{"race_ethnicity": GROUPS}}, repetitions=2, audit=[str(number)]
    )
    def test(trials):
        outcome = score if RATE is None else approved
        kind = "numeric" if RATE is None else "binary"
        trials["outcome"] = trials["reply"].map(outcome)
        assert_no_disparity(trials, outcome="outcome", by="race_ethnicity", kind=kind)
    return test

for number in range(AUDITS):
    globals()[f"test_{{number}}"] = make(number)
"""
INI = "[pytest]\nfairness_session_tests = 1\nfairness_progress = off\n"
GROUPS = ("white", "black", "hispanic", "asian")
UNIT = 20 * 5 * 2


def findings_of(tests: str) -> list[dict[str, Any]]:
    """Return the findings of one session of *tests*, each with a budget of its own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_audits.py").write_text(tests)
        Path(folder, "pytest.ini").write_text(INI)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        subprocess.run(command, cwd=folder, capture_output=True, check=False)
        (results,) = Path(folder, ".fairness", "runs").glob("*/findings.json")
        findings: list[dict[str, Any]] = json.loads(results.read_text())["findings"]
    return findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: the rate of the favourable answer (None: scores), and the number of groups."""

    rate: float | None
    groups: int

    @property
    def name(self) -> str:
        """Return what the row is called."""
        if self.rate is None:
            return f"numeric, {self.groups}"
        return f"approvals {self.rate:g}, {self.groups}"

    def run(self, audits: int, d: float) -> str:
        """Run one session of *audits* with a planted *d*, and return its line."""
        groups = list(GROUPS[: self.groups])
        text = PROJECT.format(rate=self.rate, d=d, audits=audits, outcome="outcome", groups=groups)
        findings = findings_of(text)
        verdicts = [finding["verdict"] for finding in findings]
        red = sum(verdict in ("FLAG", "FAIL") for verdict in verdicts) / audits
        passed = verdicts.count("PASS") / audits
        asked = sum(sum(finding["n_per_group"].values()) for finding in findings)
        calls = asked / audits / UNIT / self.groups
        return f"red {red:.2f}  PASS {passed:.2f}  calls {calls:.2f}  of {len(findings)} audits"


ROWS = [Row(rate=rate, groups=groups) for rate in (None, 0.9, 0.98) for groups in (2, 4)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fair", type=int, default=100)
    parser.add_argument("--biased", type=int, default=50)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for row in ROWS:
        if arguments.only not in row.name:
            continue
        for audits, d in ((arguments.fair, 0.0), (arguments.biased, 0.5)):
            if audits:
                print(f"{row.name}, d {d:g}: {row.run(audits, d)}", flush=True)


if __name__ == "__main__":
    main()
