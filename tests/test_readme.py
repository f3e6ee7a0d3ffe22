"""The README keeps its word: its commands run, its first example prints what it shows, its other
code works.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tools.docs_pictures import readme_picture

from pytest_fairness.endpoints import create_endpoint, load_endpoints
from pytest_fairness.runs.folder import run_folders
from tests.support.markdown import ROOT, Block, blocks, message
from tests.support.sessions import run_pytest
from tests.test_examples import WHOLE

README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "pictures" / "readme.svg"


def page() -> str:
    return README.read_text(encoding="utf-8")


def block_with(text: str) -> str:
    """The one code block that has *text* in it."""
    (found,) = [block.text for block in blocks(page()) if text in block.text]
    return found


def command(marker: str) -> str:
    """The command of the block behind the comment *marker*."""
    (found,) = [block.text for block in blocks(page()) if block.action == marker]
    return found.strip()


def session(folder: Path, *arguments: str) -> pytest.RunResult:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return run_pytest(folder, "-p", "no:cacheprovider", *arguments, environment=environment)


def test_the_first_example_prints_what_is_shown(tmp_path: Path) -> None:
    """The first block of Python, and nothing else, fails with exactly the sentence and table shown,
    and its report has the picture.

    ``UPDATE_DOCS=1`` writes what it prints now into the README, and draws the picture anew.
    """
    example = next(block for block in blocks(page()) if block.language == "python")
    assert len(list(filter(None, example.text.splitlines()))) == 10
    (tmp_path / "test_tone.py").write_text(example.text, encoding="utf-8")
    result = session(tmp_path)
    assert result.ret == 1, str(result.stdout)
    printed = message(str(result.stdout))
    sentence = printed.partition("\n\n")[0] + "\n"
    (run,) = run_folders(tmp_path / ".fairness" / "runs")
    drawn = readme_picture(run)
    if os.environ.get("UPDATE_DOCS"):
        PICTURE.write_text(drawn, encoding="utf-8")
        for number, text in ((1, printed), (0, sentence)):
            start, end = _printed()[number].span
            README.write_text(page()[:start] + text + page()[end:], encoding="utf-8")
    assert [block.text for block in _printed()] == [sentence, printed]
    assert PICTURE.read_text(encoding="utf-8") == drawn
    assert f"/raw/main/{PICTURE.relative_to(ROOT).as_posix()})" in page()


def _printed() -> list[Block]:
    return [block for block in blocks(page()) if block.language == "text"]


def test_without_a_bias_the_first_example_passes(tmp_path: Path) -> None:
    """The same block without its fixture, against the endpoint that is there without any
    configuration.
    """
    fair = re.sub(r"@pytest\.fixture\n.*?\n\n", "", blocks(page())[0].text, flags=re.DOTALL)
    assert "bias" not in fair
    (tmp_path / "test_tone.py").write_text(fair, encoding="utf-8")
    result = session(tmp_path, "-m", "fairness")
    assert result.ret == 0, str(result.stdout)
    assert "1 passed" in str(result.stdout)


def test_the_command_that_runs_the_examples() -> None:
    """What stands behind the installation is the session that ``test_examples.py`` runs."""
    installing, _, running = command("runs the examples").rpartition("&&")
    assert "pip install" in installing
    assert shlex.split(running) == [".venv/bin/pytest", *WHOLE]


def test_the_command_that_passes_the_tests_is_the_one_that_the_gate_runs() -> None:
    """``.ci/run`` cuts its test command out of the README: it finds this one, whole."""
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (cutting,) = [line for line in gate.splitlines() if line.startswith("test_command=")]
    found = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f'{cutting}; printf %s "$test_command"'],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert found == command("passes the tests")
    assert found.startswith("python3 -m venv .venv")
    assert "pytest" in found


OWN_SYSTEM = """
import pytest

{block}

@pytest.mark.fairness_grid(template="The applicant is {{name}}.", groups={{"gender": ["female", "male"]}}, names=2,
                           repetitions=2)
def test_the_application_is_asked(trials):
    assert (trials["reply"] == "Dear applicant. " + trials["prompt"]).all()
    assert not trials["simulated"].any()
"""


def test_any_callable_is_a_system(tmp_path: Path) -> None:
    """The overridden fixture is all it takes: the application is asked, and no model."""
    (tmp_path / "letters_app.py").write_text(
        "def write_rejection(prompt):\n    return 'Dear applicant. ' + prompt\n", encoding="utf-8"
    )
    source = OWN_SYSTEM.format(block=block_with('return "letters_app:write_rejection"'))
    (tmp_path / "test_own.py").write_text(source, encoding="utf-8")
    result = session(tmp_path)
    assert result.ret == 0, str(result.stdout)


def test_a_table_of_decisions_needs_no_model(tmp_path: Path) -> None:
    """The block on a table of one's own passes where the rates are alike, and fails where they are
    not.
    """
    for folder, hired in (("alike", (50, 52)), ("apart", (20, 52))):
        rows = [
            f"{race},{number < count}"
            for race, count in zip("ab", hired, strict=True)
            for number in range(100)
        ]
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "decisions.csv").write_text(
            "\n".join(["race,hired", *rows]) + "\n", encoding="utf-8"
        )
        imports = "import pandas as pd\nfrom pytest_fairness import assert_four_fifths\n\n"
        source = imports + block_with("decisions.csv").replace(
            '"decisions.csv"', f'"{folder}/decisions.csv"'
        )
        (tmp_path / f"test_{folder}.py").write_text(source, encoding="utf-8")
    result = session(tmp_path)
    result.assert_outcomes(passed=1, failed=1)
    assert "FAILED test_apart.py" in str(result.stdout)


def test_the_entry_of_a_model_is_read(tmp_path: Path) -> None:
    """The YAML is a valid ``endpoints.yaml``, and the command beneath it names its endpoint and
    options that exist.
    """
    file = tmp_path / "endpoints.yaml"
    file.write_text(block_with("endpoints:"), encoding="utf-8")
    ((name, config),) = load_endpoints(file).items()
    assert create_endpoint(config).price is not None
    command_line = block_with("--fairness-max-cost").splitlines()[-1]
    assert f"--fairness-endpoint {name} " in command_line
