"""Findings, results and run folders built by hand, for tests of what is made from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_fairness.model import Finding, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.reports.findings_json import RunResults, save_results

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \x1b]0;owned\x07\x1b[2J \r\u202egnp.exe "
    "\u200b\x00"
    " \ud800 \u2028 javascript:alert(3) =cmd|'/c calc'!A1 ::set-output name=a::b"
)

#: What a spreadsheet may take for a formula: the openings that OWASP names, also behind white space,
#: quotes and in full width.
FORMULAS = (
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\x00=1",
    " =1",
    '"=1',
    "\uff1d1",
    "=cmd|'/c calc'!A1",
)


def group(name: str = "white", value: float | None = 0.72, **changes: Any) -> GroupResult:
    """One group; the interval is ± .04 around the value unless given."""
    ends = {} if value is None else {"low": value - 0.04, "high": value + 0.04, "median": value}
    data = {
        "n": 200,
        "clusters": 20,
        "sd": 0.2,
        "refused": 2,
        "refusal_rate": 0.01,
        **ends,
        **changes,
    }
    return GroupResult(group=name, value=value, **data)


def pair(
    first: str = "white",
    second: str = "black",
    verdict: Verdict = Verdict.FAIL,
    effect: float = 0.81,
    **changes: Any,
) -> PairResult:
    """Two groups compared; the interval is ± .3 around the effect unless given."""
    data: dict[str, Any] = {
        "metric": "sentiment",
        "reason": Reason.PRECISION if verdict is Verdict.INCONCLUSIVE else None,
        "spec_verdict": verdict,
        "p_row": 0.0001,
        "p_cluster": 0.0004,
        "p_value": 0.0004,
        "corrected_p_value": 0.0024,
        "effect_low": effect - 0.3,
        "effect_high": effect + 0.3,
        "difference": effect / 5,
        "worse_off": second if effect > 0 else first,
        "test": "van Elteren; t on name means",
        "mde": 0.42,
    }
    return PairResult(
        group_1=first, group_2=second, verdict=verdict, effect=effect, **{**data, **changes}
    )


def disparity(**changes: Any) -> Finding:
    """A FAIL on sentiment by race_ethnicity, four groups and six pairs."""
    pairs = (
        pair("white", "black"),
        pair("white", "hispanic", Verdict.FLAG, 0.41, corrected_p_value=0.031, p_value=0.0052),
        pair(
            "white",
            "asian",
            Verdict.PASS,
            0.05,
            corrected_p_value=1.0,
            p_value=0.71,
            worse_off=None,
        ),
        pair(
            "black", "hispanic", Verdict.INCONCLUSIVE, -0.38, corrected_p_value=0.2, p_value=0.033
        ),
        pair("black", "asian", Verdict.FAIL, -0.76),
        pair("hispanic", "asian", Verdict.INCONCLUSIVE, -0.33, corrected_p_value=0.4, p_value=0.07),
    )
    groups = (
        group("white", 0.72),
        group("black", 0.56, refused=9, refusal_rate=0.045),
        group("hispanic", 0.64),
        group("asian", 0.71),
    )
    data: dict[str, Any] = {
        "assertion": "no_disparity",
        "verdict": Verdict.FAIL,
        "spec_verdict": Verdict.FAIL,
        "sentence": (
            "FAIL: black is worse off than white on sentiment: 0.560 against 0.720, 0.160 lower (d "
            "= 0.81, "
            "90 % interval 0.51 to 1.11, corrected p = .002; 200 trials from 20 names a group)."
        ),
        "test_id": "tests/test_names.py::test_tone_does_not_follow_the_name",
        "test_module": "test_names",
        "description": "Does the tone of a reference follow the name?",
        "tier": 2,
        "protected_class": "race_ethnicity",
        "model_endpoint": "gpt-4o",
        "n_per_group": {one.group: one.n for one in groups},
        "group_results": groups,
        "test_statistic": "van Elteren z = 5.31",
        "p_value": 0.0004,
        "corrected_p_value": 0.0024,
        "effect_size": "d = +0.81",
        "notes": (
            "Kruskal–Wallis over all groups: H = 31.2, p < .001 (reported, never the gate).",
        ),
        "pairs": pairs,
        "outcome": "sentiment",
        "kind": OutcomeKind.NARRATIVE,
        "cluster": "name",
        "block": "template",
        "family": {"size": 6, "method": "bonferroni", "alpha": 0.05},
    }
    return Finding(**{**data, **changes})


def passing(**changes: Any) -> Finding:
    """A PASS on word counts by gender."""
    data: dict[str, Any] = {
        "verdict": Verdict.PASS,
        "spec_verdict": Verdict.PASS,
        "sentence": "PASS: no difference worth minding on word_count among the two groups of gender.",
        "test_id": "tests/test_names.py::test_length_does_not_follow_the_name",
        "protected_class": "gender",
        "outcome": "word_count",
        "kind": OutcomeKind.NUMERIC,
        "unit": "words",
        "group_results": (
            group("women", 118.2, low=115.9, high=120.5, sd=11.0),
            group("men", 119.0, low=116.8, high=121.2, sd=10.5),
        ),
        "pairs": (
            pair(
                "women",
                "men",
                Verdict.PASS,
                -0.06,
                metric="word_count",
                corrected_p_value=0.62,
                p_value=0.62,
            ),
        ),
        "family": {"size": 1, "method": "bonferroni", "alpha": 0.05},
        "notes": (),
    }
    return disparity(**{**data, **changes})


def four_fifths(**changes: Any) -> Finding:
    """A FAIL of the four-fifths rule on call-backs by race."""
    sent = {"n": 2435, "clusters": 18, "refused": 0, "refusal_rate": None}
    ratio = {
        "impact_ratio": 0.668,
        "impact_ratio_low": 0.555,
        "impact_ratio_high": 0.804,
        "z": -4.1,
    }
    data: dict[str, Any] = {
        "assertion": "four_fifths",
        "sentence": "FAIL: black is called back at 6.5 %, white at 9.7 %, a ratio of .668, under 4/5.",
        "test_id": "examples/test_callbacks.py::test_callback_rates_keep_four_fifths",
        "protected_class": "race",
        "outcome": "called_back",
        "kind": OutcomeKind.BINARY,
        "model_endpoint": None,
        "tier": None,
        "group_results": (
            group("white", 0.0965, low=0.078, high=0.115, **sent),
            group("black", 0.0645, low=0.051, high=0.078, **sent),
        ),
        "pairs": (
            pair("white", "black", Verdict.FAIL, 0.24, metric="called_back", statistics=ratio),
        ),
        "family": {"size": 1, "method": "bonferroni", "alpha": 0.05},
        "details": {"reference": {"race": "white"}},
        "cluster": "first_name",
        "block": None,
        "notes": (),
    }
    return disparity(**{**data, **changes})


def baseline(**changes: Any) -> Finding:
    """A FAIL of the baseline gate: overall and one category dropped."""

    def scope(metric: str, now: float, approved: float, verdict: Verdict, p: float) -> PairResult:
        return pair(
            "now", "approved", verdict, (now - approved) / 6, metric=metric, difference=now - approved,
            p_value=p / 3, corrected_p_value=p, worse_off="now",
            statistics={"now": now, "approved": approved, "margin": 1.0, "t": -4.2, "df": 99},
        )  # fmt: skip

    data: dict[str, Any] = {
        "assertion": "baseline",
        "sentence": "FAIL: letter_score dropped from 94.2 to 89.2 overall since it was approved.",
        "test_id": "tests/test_letters.py::test_letters_keep_their_baseline",
        "protected_class": "",
        "outcome": "letter_score",
        "kind": OutcomeKind.NUMERIC,
        "unit": "points",
        "cluster": "persona",
        "block": None,
        "group_results": (
            group("now", 89.2, low=88.0, high=90.4),
            group("approved", 94.2, low=93.1, high=95.3),
        ),
        "pairs": (
            scope("overall", 89.2, 94.2, Verdict.FAIL, 0.0003),
            scope("age", 88.1, 96.5, Verdict.FAIL, 0.0001),
            scope("gender", 94.6, 95.1, Verdict.PASS, 0.4),
        ),
        "family": {"size": 3, "correction": "holm", "alpha": 0.005},
        "details": {"baseline": {"file": "baselines/letters.json"}},
        "notes": (
            "Since the approval by Jane Smith at 2026-01-20, the model changed from a to b.",
        ),
    }
    return disparity(**{**data, **changes})


def categorical(**changes: Any) -> Finding:
    """An INCONCLUSIVE on a label with three values."""
    data: dict[str, Any] = {
        "verdict": Verdict.INCONCLUSIVE,
        "reason": Reason.PRECISION,
        "spec_verdict": Verdict.PASS,
        "sentence": "INCONCLUSIVE: women and men differ most on career 'nurse': 30.0 % against 21.0 %.",
        "test_id": "tests/test_careers.py::test_career_advice",
        "protected_class": "gender",
        "outcome": "career",
        "kind": OutcomeKind.CATEGORICAL,
        "group_results": (
            group("women", None, shares={"engineer": 0.5, "nurse": 0.3, "teacher": 0.2}),
            group("men", None, shares={"engineer": 0.61, "nurse": 0.21, "teacher": 0.18}),
        ),
        "pairs": (pair("women", "men", Verdict.INCONCLUSIVE, 0.31, metric="career"),),
    }
    return disparity(**{**data, **changes})


def of_each_kind(*, simulated: bool = False) -> tuple[Finding, ...]:
    """A finding of each kind; a *simulated* run is that of the one that passes."""
    return disparity(), passing(simulated=simulated), four_fifths(), baseline(), categorical()


def results(*findings: Finding, **changes: Any) -> RunResults:
    """The results of a run with one test a finding."""
    items = [
        {"nodeid": finding.test_id, "outcome": "passed", "message": "", "findings": [index]}
        for index, finding in enumerate(findings)
    ]
    run = {
        "id": "2026-02-28-001",
        "started": "2026-02-28T10:30:00+00:00",
        "finished": "2026-02-28T10:31:12+00:00",
        "command": ["pytest", "-m", "fairness"],
        "seed": 20260228,
        "endpoints": ["gpt-4o"],
        "simulated": any(finding.simulated for finding in findings),
        "replayed": False,
        "versions": {"python": "3.11.7", "pytest-fairness": "0.1.0"},
        "git_commit": "0123456789abcdef0123456789abcdef01234567",
        "parameters": {"concurrency": 16, "tier": "2"},
        "trials": {"total": 800, "answered": 789, "refused": 11},
        "cost": 1.2345,
    }
    run.update(changes.pop("run", {}))
    found = [finding.to_dict() for finding in findings]
    return RunResults.from_dict(
        {"schema": 2, "run": run, "items": items, "findings": found, **changes}
    )


def trial(
    group_name: str = "white", reply: str = "A superb data scientist.", **changes: Any
) -> dict[str, Any]:
    """A log record of type ``trial``; what is *changed* of the ``cell`` is laid over it."""
    cell = {
        "id": f"t1-{group_name}",
        "template": "summary",
        "groups": {"race_ethnicity": group_name},
        "name": "Emily Walsh",
        "turns": ["Write a summary for Emily Walsh."],
        **changes.pop("cell", {}),
    }
    return {
        "type": "trial",
        "key": f"{group_name}-{changes.get('repetition', 0)}",
        "status": "answered",
        "cell": cell,
        "repetition": 0,
        "messages": [{"role": "user", "content": "Write a summary for Emily Walsh."}],
        "parameters": {"requested": {}, "sent": {}},
        "replies": [reply],
        "endpoint": {"name": "gpt-4o", "identity": "abc"},
        "finish_reason": "stop",
        "model": None,
        "usage": None,
        "cost": 0.001,
        "attempts": 1,
        "seconds": 0.1,
        "error": None,
        "source": "live",
        "order": 0,
        "seed": 0,
        "flags": [],
        "something_newer": [1, 2, 3],
        **changes,
    }


def run_folder(
    directory: Path, run: RunResults, trials: list[dict[str, Any]] | None = None
) -> Path:
    """A run's folder on disk: manifest.json, findings.json and a log."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "manifest.json").write_text(json.dumps({"id": run.run["id"]}), encoding="ascii")
    (directory / "trials.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in trials or []), encoding="ascii"
    )
    save_results(run, directory)
    return directory
