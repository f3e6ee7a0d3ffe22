"""Audits with a pilot, through whole pytest sessions on a system under test whose truth is known: how
many are red, pass, or have no room, wherever the system's border is.

    python benchmarks/pilot_sessions.py [--audits N] [--only ROW]

Each audit is a test of its own in one session, with a budget of its own (``fairness_session_tests =
1``): three series of five strengths, one repetition, two groups by name. The system is a
function of the prompt: the chance of yes rises along each series with a logistic slope of 1.5 a
strength around its border, which stands at another place in each row; a name adds a normal effect of
SD .2; a group leans by d at every strength. ``rule`` is the same without chance.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass

from look_sessions import findings_of

PROJECT = """
import itertools, math, random, re
import pytest
from pytest_fairness import assert_no_disparity
from pytest_fairness.design.names import NameBanks

BORDER, D, RULE, AUDITS = {border}, {d}, {rule}, {audits}
LOWER = {{str(name) for name in NameBanks.load().names("gender", "female", 80)}}
SERIES = {{
    post: {{str(strength): f"Audit {{{{audit}}}}: {{{{name}}}} applies to {{post}}, file {{strength}}."
           for strength in range(1, 6)}}
    for post in ("abc", "def", "ghi")
}}
COUNTS = {{}}

def answer(prompt: str) -> str:
    audit, name, _, strength = re.fullmatch(r"Audit (\\d+): (.*) applies to (\\w+), file (\\d).", prompt).groups()
    count = COUNTS.setdefault(prompt, itertools.count())
    of_name = random.Random(f"{{audit}} {{name}}").gauss(0, .2)
    chance = random.Random(f"{{prompt}} {{next(count)}}")
    shift = -D if name in LOWER else 0.0
    logit = 1.5 * (int(strength) - BORDER) + (shift + of_name) * math.pi / math.sqrt(3)
    if RULE:
        return "yes" if int(strength) > BORDER else "no"
    return "yes" if chance.random() < 1 / (1 + math.exp(-logit)) else "no"

@pytest.fixture
def endpoint():
    return answer

def approved(reply: str) -> bool:
    return reply == "yes"

def make(number):
    @pytest.mark.fairness_grid(
        template=SERIES, groups={{"gender": ["female", "male"]}}, repetitions=1, audit=[str(number)],
        pilot=30, scorer=approved, room=True,
    )
    def test(trials):
        assert_no_disparity(trials, outcome=approved, by="gender", kind="binary")
    return test

for number in range(AUDITS):
    globals()[f"test_{{number}}"] = make(number)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: the strength at which the system turns, the d by which a group leans, and whether it
    follows a rule.
    """

    border: float
    d: float = 0.0
    rule: bool = False

    @property
    def name(self) -> str:
        """Return what the row is called."""
        kind = "rule" if self.rule else f"d {self.d:g}"
        return f"border {self.border:g}, {kind}"

    def run(self, audits: int) -> str:
        """Run one session of so many *audits*, and return its line."""
        text = PROJECT.format(border=self.border, d=self.d, rule=self.rule, audits=audits)
        findings = findings_of(text)
        verdicts = Counter(finding["reason"] or finding["verdict"] for finding in findings)
        red = (verdicts["FLAG"] + verdicts["FAIL"]) / audits
        asked = sum(sum(finding["n_per_group"].values()) for finding in findings)
        return (
            f"| {self.name} | {red:.2f} | {verdicts['PASS'] / audits:.2f} | "
            f"{verdicts['NO_ROOM'] / audits:.2f} | {asked / audits:.0f} |"
        )


ROWS = [
    *(Row(border=border) for border in (0.5, 1.5, 2.5, 3.0, 4.0, 5.5)),
    *(Row(border=border, rule=True) for border in (1.5, 3.5)),
    *(Row(border=border, d=d) for d in (0.5, 1.0) for border in (1.5, 3.0, 4.0)),
]


def main() -> None:
    """Run the rows, and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=100)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    print("| system | red | PASS | NO_ROOM | trials |\n|---|---|---|---|---|")
    for row in ROWS:
        if chosen.only in row.name:
            print(row.run(chosen.audits), flush=True)


if __name__ == "__main__":
    main()
