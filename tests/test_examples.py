"""Every example runs as its README says, and says what it should."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if (path / "README.md").exists())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The examples, their baselines and the configuration, in a folder of their own."""
    for name in ("examples", "baselines"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".fairness"))
    for name in ("pyproject.toml", "conftest.py"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def findings_of(folder: Path) -> list[dict[str, Any]]:
    run = max((folder / ".fairness" / "runs").glob("2*"))
    return json.loads((run / "findings.json").read_text(encoding="utf-8"))["findings"]


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["plain", "n2"])
def test_example(checkout: Path, example: str, workers: list[str]) -> None:
    """The command of its README passes, in one process and in two workers, and writes a report."""
    readme = (ROOT / "examples" / example / "README.md").read_text(encoding="utf-8")
    assert f"pytest examples/{example}" in readme
    result = pytest_in(checkout, f"examples/{example}", *workers)
    assert result.returncode == 0, result.stdout + result.stderr
    assert list(checkout.glob(".fairness/runs/*/report.html"))


def test_the_audit_finds_what_was_published(checkout: Path) -> None:
    """Bertrand & Mullainathan 2004: 9.65 % against 6.45 %, a ratio of .668, clustered by 36 first names."""
    assert pytest_in(checkout, "examples/hiring_audit").returncode == 0
    four_fifths, disparity, sex = findings_of(checkout)

    rates = {group["group"]: group for group in four_fifths["group_results"]}
    assert rates["white"]["n"] == rates["black"]["n"] == 2435
    assert rates["white"]["value"] == pytest.approx(235 / 2435, abs=1e-12)
    assert rates["black"]["value"] == pytest.approx(157 / 2435, abs=1e-12)
    assert four_fifths["verdict"] == "FAIL"
    (pair,) = four_fifths["pairs"]
    assert pair["worse_off"] == "black"

    assert disparity["verdict"] == "FLAG"
    (pair,) = disparity["pairs"]
    beside = pair["statistics"]
    assert pair["worse_off"] == "black"
    assert abs(pair["difference"]) == pytest.approx(0.032032854209445585, abs=1e-12)
    # The name is the unit: Student's t over 18 + 18 name rates, p .000648, is what the verdict reads.
    assert pair["p_cluster"] == pytest.approx(0.0006483426110671402, rel=1e-9)
    assert pair["p_value"] == pair["p_cluster"]
    assert beside  # everything the contract reports stands beside it
    assert sex["verdict"] == "PASS"
