"""Every example runs as its README says, and says what it should."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if (path / "README.md").exists())


Ended = subprocess.CompletedProcess[str]


def checkout(folder: Path) -> Path:
    """The examples, their baselines and the configuration, in a folder of their own."""
    for name in ("examples", "baselines"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".fairness"))
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def session_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, Ended]]:
    """Runs pytest with some arguments in a checkout of its own, once: the folder, and how it ended."""

    @functools.cache
    def run(*arguments: str) -> tuple[Path, Ended]:
        folder = checkout(tmp_path_factory.mktemp("checkout"))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        return folder, subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    return run


def findings_of(folder: Path) -> list[dict[str, Any]]:
    run = max((folder / ".fairness" / "runs").glob("2*"))
    return json.loads((run / "findings.json").read_text(encoding="utf-8"))["findings"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(session_of: Callable[..., tuple[Path, Ended]], example: str) -> None:
    """The command of its README passes and writes a report."""
    readme = (ROOT / "examples" / example / "README.md").read_text(encoding="utf-8")
    assert f"pytest examples/{example}" in readme
    folder, result = session_of(f"examples/{example}")
    assert result.returncode == 0, result.stdout + result.stderr
    assert list(folder.glob(".fairness/runs/*/report.html"))


def test_all_of_them_in_two_workers(session_of: Callable[..., tuple[Path, Ended]]) -> None:
    """In one session, with the findings that each has by itself."""
    folder, result = session_of("examples", "-n2")
    assert result.returncode == 0, result.stdout + result.stderr
    alone = [finding for example in EXAMPLES for finding in findings_of(session_of(f"examples/{example}")[0])]
    told = {(finding["test_id"], finding["outcome"]): finding["sentence"] for finding in findings_of(folder)}
    assert told == {(finding["test_id"], finding["outcome"]): finding["sentence"] for finding in alone}


# Recomputed from the 4,870 published rows with R 4.2.2 and scipy 1.17.1, independently of this package.
PUBLISHED = {
    "impact_ratio": 0.6680851063829787,
    "impact_ratio_low": 0.5502405093838054,
    "impact_ratio_high": 0.8111683922919336,
    "fisher_p_value": 4.758747107909523e-05,
    "z": -4.108412152434346,
    "cohens_h": -0.11830724271934467,
    "odds_ratio": 1 / 1.5498841922408801,
}
BY_RACE = {
    "spec_chi2": 16.87905041427022,
    "spec_p_value": 3.983886837585076e-05,
    "yates_p_value": 4.997578389963255e-05,
    "fisher_p_value": 4.758747107909523e-05,
    "phi": -0.05887209958636103,
    "risk_difference": -0.032032854209445585,
    "risk_difference_low": -0.047382550272708546,
    "risk_difference_high": -0.01678196874970448,
    "risk_ratio": 0.6680851063829787,
    "odds_ratio": 1 / 1.5498841922408801,
    "t": -3.7556866052622,
    "df": 34,
}
BY_SEX = {
    "spec_chi2": 0.8729306891121232,
    "spec_p_value": 0.3501452457398324,
    "fisher_p_value": 0.38156164680424776,
    "risk_difference": 0.008644570816225328,
    "risk_difference_low": -0.010117573537141385,
    "risk_difference_high": 0.02532051408234211,
    "odds_ratio": 1.1275909573703602,
}


def test_the_audit_finds_what_was_published(session_of: Callable[..., tuple[Path, Ended]]) -> None:
    """Bertrand & Mullainathan 2004: 9.65 % against 6.45 %, a ratio of .668, clustered by 36 first names."""
    folder, result = session_of("examples/hiring_audit")
    assert result.returncode == 0
    four_fifths, disparity, sex = findings_of(folder)

    rates = {group["group"]: group for group in four_fifths["group_results"]}
    assert rates["white"]["n"] == rates["black"]["n"] == 2435
    assert rates["white"]["value"] == pytest.approx(0.09650924024640657, abs=1e-12)
    assert rates["black"]["value"] == pytest.approx(0.06447638603696099, abs=1e-12)
    assert four_fifths["verdict"] == "FAIL"
    assert disparity["verdict"] == "FLAG"
    assert sex["verdict"] == "PASS"
    for finding, expected in ((four_fifths, PUBLISHED), (disparity, BY_RACE), (sex, BY_SEX)):
        (pair,) = finding["pairs"]
        for key, value in expected.items():
            assert pair["statistics"][key] == pytest.approx(value, rel=1e-9), key
    (pair,) = disparity["pairs"]
    assert pair["worse_off"] == "black"
    # Names vary, so the limits of the odds ratio are wider than Woolf's over calls, which are published.
    assert pair["statistics"]["odds_ratio_low"] < 1 / 1.9127267725632628
    assert pair["statistics"]["odds_ratio_high"] > 1 / 1.2558725291114285
    # The name is the unit: Student's t over 18 + 18 name rates (.0944 against .0621) is what the verdict reads.
    assert pair["p_cluster"] == pytest.approx(0.0006483426110671402, rel=1e-9)
    assert pair["p_value"] == pair["p_cluster"]
    assert pair["difference"] == pytest.approx(0.06208751369080902 - 0.09436534393815905, rel=1e-9)
