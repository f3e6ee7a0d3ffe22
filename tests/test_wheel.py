"""The wheel, installed into a fresh environment outside the checkout, is the whole product."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.shared_sessions import made_once, shared_folder

ROOT = Path(__file__).parents[1]

SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(
    template=["Write a short job reference for {name}.", "Write a landlord reference for {name}."],
    groups={"race_ethnicity": ["white", "black"]}, repetitions=2
)
def test_tone(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")

def test_personas_came_along(persona_matrix, name_banks):
    assert len(persona_matrix) == 100
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built once for all workers."""
    shared = shared_folder(tmp_path_factory)

    def build() -> Path:
        out = shared / "built_wheel"
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
        subprocess.run([*command, str(out), str(ROOT)], check=True)
        (built,) = out.glob("*.whl")
        return built

    return made_once(shared, "wheel", build)


def test_it_carries_the_source_data_and_the_type_marker(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "pytest_fairness/py.typed" in names
    for path in (ROOT / "personas").rglob("*"):
        if path.is_file():
            assert (
                f"pytest_fairness/personas/{path.relative_to(ROOT / 'personas').as_posix()}"
                in names
            )
    assert {n for n in names if n.startswith("pytest_fairness/reports/") and n.endswith(".j2")}
    assert "pytest_fairness/reports/findings.schema.json" in names
    for path in (ROOT / "src" / "pytest_fairness" / "suites").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (
                f"pytest_fairness/suites/{path.relative_to(ROOT / 'src/pytest_fairness/suites').as_posix()}"
                in names
            )
    assert not {n for n in names if n.startswith(("tests/", "examples/"))}


def needed(requires: list[str]) -> set[str]:
    """The distributions that *requires* names, and all that these declare for this machine."""
    wanted, seen = [Requirement(text) for text in requires], set()
    while wanted:
        requirement = wanted.pop()
        place = requirement.name, frozenset(requirement.extras)
        extras = [{"extra": extra} for extra in (*requirement.extras, "")]
        if place not in seen and (
            requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ):
            seen.add(place)
            for further in map(Requirement, distribution(requirement.name).requires or ()):
                if further.marker is None or any(map(further.marker.evaluate, extras)):
                    further.marker = None
                    wanted.append(further)
    return {name for name, _ in seen}


@pytest.fixture
def fresh(wheel: Path, tmp_path: Path) -> Path:
    """A Python that has the wheel and what it declares, and nothing else: links to what is
    installed here.
    """
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(
        subprocess.run(
            [python, "-c", code], check=True, capture_output=True, text=True
        ).stdout.strip()
    )
    zipfile.ZipFile(wheel).extractall(site)
    (ours,) = site.glob("*.dist-info")
    for found in map(distribution, needed(Distribution.at(ours).requires or [])):
        for top in {
            path.parts[0]
            for path in found.files or ()
            if path.parts[0] not in ("..", "__pycache__")
        }:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))
    return python


def test_it_works_in_a_fresh_environment(fresh: Path, tmp_path: Path) -> None:
    """Nothing but the wheel and what it declares: a suite passes, the report is written, and a
    ready-made suite runs by its name, from a folder that holds nothing but what configures it.
    """
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "PYTEST", "COV"))
    }
    tmp_path.joinpath("test_suite.py").write_text(SUITE, encoding="utf-8")
    tmp_path.joinpath("selection.yaml").write_text(
        "names: 2\nrepetitions: 2\nroles: [nurse]\ncriteria: [kind]\n", encoding="utf-8"
    )
    suites = [
        "test_suite.py",
        "--pyargs",
        "pytest_fairness.suites.selection",
        "-k",
        "tone or came or records",
    ]
    result = subprocess.run(
        [fresh, "-m", "pytest", "-q", *suites],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 passed" in result.stdout
    assert list(tmp_path.glob(".fairness/runs/*/report.html"))
    assert list(tmp_path.glob(".fairness/runs/*/selection.html"))

    empty = tmp_path / "empty"
    empty.mkdir()
    command = [fresh, "-m", "pytest_fairness.cli", "init"]
    result = subprocess.run(
        command, cwd=empty, env=clean, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "fairness: 2 findings: 2 PASS (simulated)" in result.stdout
    assert (
        "pytest-fairness/ci/github@"
        in (empty / ".github" / "workflows" / "fairness.yml").read_text()
    )
