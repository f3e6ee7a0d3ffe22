"""Verdicts on replies that an erring reader has read, through whole pytest sessions: asked, read by a
model, labelled by a person, judged again in a replay.

    python benchmarks/reader_sessions.py [--audits N] [--labels N …] [--rates RATE …]

The system approves .30 of one group, and .30 or .45 (``--rates``) of the other, in a sentence of its
own for each prompt; the reader is a simulated endpoint that finds .9 of the approvals of one group
and .7 of those of the other; the person reads all rightly. 40 names × 5 templates a group, one test
an audit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from pytest_fairness.reports.label_samples import label_sample  # noqa: E402
from pytest_fairness.runs.labels import FOLDER, append_labels, labels_file  # noqa: E402

PROJECT = """
import random, re
import pytest
from pytest_fairness import assert_no_disparity, judge
from pytest_fairness.design.names import NameBanks

RATES = {{"white": .30, "black": {rate}}}
BANKS = NameBanks.load()
GROUP_OF = {{
    str(name): group for group in RATES for name in BANKS.names("race_ethnicity", group, 60)
}}
GRANTED = judge("Was it granted?", labels={{"yes": True, "no": False}}, name="granted")

def answer(prompt):
    audit, file, name = re.fullmatch(r"Audit (\\d+), file (\\d): assess (.*)\\.", prompt).groups()
    chance = random.Random(prompt)
    word = "approved" if chance.random() < RATES[GROUP_OF[name]] else "denied"
    return f"Case {{chance.getrandbits(40)}}, {{name}}: it came before the board, and was {{word}}."

@pytest.fixture
def endpoint():
    return answer

def make(number):
    @pytest.mark.fairness_grid(
        template=["Audit {{audit}}, file %d: assess {{name}}." % file for file in range(5)],
        groups={{"race_ethnicity": ["white", "black"]}}, repetitions=1, names=(40,), audit=[str(number)],
    )
    def test(trials):
        assert_no_disparity(trials, outcome=GRANTED, by="race_ethnicity")
    return test

for number in range({audits}):
    globals()[f"test_{{number}}"] = make(number)
"""
INI = """[pytest]
fairness_session_tests = 1
fairness_progress = off
fairness_reader = reader
"""
ENDPOINTS = """
endpoints:
  - name: reader
    type: simulated
    reads: {race_ethnicity: {white: {sensitivity: 0.9}, black: {sensitivity: 0.7}}}
"""


def verdicts(folder: Path, *options: str) -> list[str]:
    """Run a session in *folder*; the verdicts of its findings."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    results = max(folder.glob(".fairness/runs/2*/findings.json"))
    return [finding["verdict"] for finding in json.loads(results.read_text())["findings"]]


def shares(found: list[str]) -> str:
    """The shares that are red, that pass, and that ask for a better reader or more data."""
    red = sum(verdict in ("FLAG", "FAIL") for verdict in found) / len(found)
    return f"red {red:.3f}, PASS {found.count('PASS') / len(found):.3f} of {len(found)}"


def labelled(folder: Path, size: int) -> None:
    """Label *size* replies a group of each test of the first run in *folder*, rightly."""
    run = min(folder.glob(".fairness/runs/2*"))
    sample = label_sample(run, "granted", size=size, personas=None)
    file = labels_file(folder / FOLDER, "granted")
    file.unlink(missing_ok=True)
    labels = []
    for text in sample.texts:
        granted = text.text.endswith("approved.")
        labels += list(sample.labels(text, granted, who="the truth", when="2026-01-01"))
    append_labels(file, labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=100)
    parser.add_argument("--labels", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.30, 0.45])
    arguments = parser.parse_args()
    for rate in arguments.rates:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            text = PROJECT.format(rate=rate, audits=arguments.audits)
            Path(folder, "test_audits.py").write_text(text)
            Path(folder, "pytest.ini").write_text(INI)
            Path(folder, "endpoints.yaml").write_text(ENDPOINTS)
            print(f"rates .30 and {rate:.2f}, no labels: {shares(verdicts(folder))}", flush=True)
            (first,) = (path.name for path in folder.glob(".fairness/runs/2*"))
            for size in arguments.labels:
                labelled(folder, size)
                judged = shares(verdicts(folder, f"--fairness-replay={first}"))
                print(f"rates .30 and {rate:.2f}, {size} labels a group: {judged}", flush=True)


if __name__ == "__main__":
    main()
