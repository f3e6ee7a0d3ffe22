"""``pytest-fairness init``: files that work as they are written, and nothing overwritten."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from pytest_fairness.commands import init
from pytest_fairness.endpoints.registry import load_endpoints
from tests.conftest import Cli
from tests.support.sessions import forked, run_pytest

WRITTEN = (
    Path("tests/test_fairness.py"),
    Path("endpoints.yaml"),
    Path(".github/workflows/fairness.yml"),
)
ENTRY = """
endpoints:
  - {name: "paid", type: "openai", model: "m", base_url: "http://localhost:1", api_key_env: "MY_KEY"}
"""


@pytest.fixture
def cli(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command in an empty folder, its sessions by the server of forks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "subprocess", SimpleNamespace(run=forked))
    return cli


def test_an_empty_folder_becomes_a_project(cli: Cli, tmp_path: Path) -> None:
    """The test passes on the simulated endpoint, and fails on the one with a planted disparity. A
    second init overwrites nothing.
    """
    code, out, _ = cli("init")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("wrote")] == [
        f"wrote {path}" for path in WRITTEN
    ]
    assert (
        "$ pytest tests/test_fairness.py\nfairness: 2 findings: 2 PASS (simulated)\n  PASS "
        "[simulated" in out
    )
    assert (tmp_path / ".gitignore").read_text() == ".fairness/\n"
    (*_, step) = yaml.safe_load((tmp_path / WRITTEN[2]).read_text())["jobs"]["fairness"]["steps"]
    assert step["with"]["arguments"] == "-m fairness --fairness-endpoint simulated"
    (unfair,) = load_endpoints(tmp_path / "endpoints.yaml")
    assert f"--fairness-endpoint {unfair}" in out
    result = run_pytest(tmp_path, "-m", "fairness", "--fairness-endpoint", unfair)
    assert result.ret == 1
    # The second assertion is judged although the first fails.
    assert "fairness: 2 findings" in str(result.stdout)

    (tmp_path / "endpoints.yaml").write_text(ENTRY)
    code, _, err = cli("init")
    there = ", ".join(map(str, WRITTEN))
    assert (code, err) == (
        2,
        f"pytest-fairness: {there}: already there; move it away, or overwrite it with --force\n",
    )
    assert (tmp_path / "endpoints.yaml").read_text() == ENTRY
    assert cli("init", "--force", "--no-run")[0] == 0
    assert list(load_endpoints(tmp_path / "endpoints.yaml")) == [unfair]
    assert (tmp_path / ".gitignore").read_text() == ".fairness/\n"


def test_the_examples_of_endpoints_are_endpoints(cli: Cli, tmp_path: Path) -> None:
    """Whoever takes the comment signs away has entries that can be read."""
    cli("init", "--no-run")
    text = (tmp_path / "endpoints.yaml").read_text().replace("  # ", "  ")
    _, _, entries = text.partition("endpoints:\n")
    (tmp_path / "endpoints.yaml").write_text(
        "endpoints:\n" + entries.replace("asks no model", "# asks no model")
    )
    assert list(load_endpoints(tmp_path / "endpoints.yaml")) == [
        "simulated-unfair",
        "claude-sonnet",
        "local",
    ]


def test_an_endpoint_that_is_there(cli: Cli, tmp_path: Path) -> None:
    """A model is not asked without --run; the workflow has its name and its key, and no secret that
    nobody needs.
    """
    (tmp_path / "endpoints.yaml").write_text(ENTRY)
    code, out, _ = cli("init", "--endpoint", "paid")
    assert code == 0
    assert out.endswith(
        "run it with: pytest tests/test_fairness.py --fairness-endpoint paid --fairness-max-cost "
        "1\n"
    )
    assert (tmp_path / "endpoints.yaml").read_text() == ENTRY
    assert not (tmp_path / ".fairness").exists()
    (*_, step) = yaml.safe_load((tmp_path / WRITTEN[2]).read_text())["jobs"]["fairness"]["steps"]
    assert step["with"]["arguments"] == "-m fairness --fairness-endpoint paid --fairness-max-cost 1"
    assert step["env"] == {"MY_KEY": "${{ secrets.MY_KEY }}"}
    assert "did you mean 'paid'" in cli("init", "--endpoint", "pad", "--force")[2]


def test_a_function(cli: Cli, tmp_path: Path) -> None:
    """The fixture names it; with --run the test says what it found of it."""
    (tmp_path / "letters.py").write_text(
        "def write(prompt):\n    return 'An excellent, wonderful person.'\n"
    )
    code, out, _ = cli("init", "--function", "letters:write", "--no-workflow")
    assert (code, out.splitlines()[-2:]) == (
        0,
        [
            "run it with: pytest tests/test_fairness.py",
            "next: put prompts that it gets in practice into tests/test_fairness.py",
        ],
    )
    assert 'return "letters:write"' in (tmp_path / WRITTEN[0]).read_text()
    assert not (tmp_path / ".github").exists()
    code, out, _ = cli("init", "--function", "letters:write", "--force", "--run")
    assert "fairness: 2 findings" in out
    (*_, step) = yaml.safe_load((tmp_path / WRITTEN[2]).read_text())["jobs"]["fairness"]["steps"]
    assert "env" not in step
    assert cli("init", "--function", "letters.write", "--force")[0] == 2
    code, out, _ = cli("init", "--function", "letters:nothing", "--force", "--run")
    assert code == 1


def test_entries_that_are_there_are_kept_for_a_function(cli: Cli, tmp_path: Path) -> None:
    """Even with --force: it is none of them."""
    (tmp_path / "endpoints.yaml").write_text(ENTRY)
    code, out, _ = cli("init", "--function", "letters:write", "--force")
    assert (code, "wrote endpoints.yaml" in out) == (0, False)
    assert (tmp_path / "endpoints.yaml").read_text() == ENTRY


@pytest.mark.parametrize(
    ("file", "text", "installed"),
    [
        (None, "", "pytest-fairness"),
        ("requirements.txt", "requests\n", "-r requirements.txt pytest-fairness"),
        ("pyproject.toml", "[tool.pytest]\n", "pytest-fairness"),
        ("pyproject.toml", '[project]\nname = "x"\n', ". pytest-fairness"),
        ("setup.py", "", ". pytest-fairness"),
    ],
)
def test_a_job_installs_what_can_be_installed(
    cli: Cli, tmp_path: Path, file: str | None, text: str, installed: str
) -> None:
    if file is not None:
        (tmp_path / file).write_text(text)
    assert cli("init", "--function", "letters:write")[0] == 0
    workflow = (tmp_path / WRITTEN[2]).read_text()
    steps = yaml.safe_load(workflow)["jobs"]["fairness"]["steps"]
    assert f"pip install {installed}" in [step.get("run") for step in steps]
    assert "entry of endpoints.yaml" not in workflow


def test_where_it_cannot_be(cli: Cli, tmp_path: Path) -> None:
    """No folder; one whose project is further up, where its endpoints.yaml would not be found; a
    link, which is never followed.
    """
    assert "is no folder, and cannot be made" in cli("init", "no/where")[2]
    (tmp_path / "pytest.ini").write_text("[pytest]\nfairness_endpoints_file = config/models.yaml\n")
    (tmp_path / "sub").mkdir()
    assert f"belongs to the project in {tmp_path}" in cli("init", "sub")[2]
    (tmp_path / ".gitignore").write_text("*.pyc")
    assert cli("init", "--no-run")[0] == 0
    assert (tmp_path / "config" / "models.yaml").exists()
    assert (tmp_path / ".gitignore").read_text() == "*.pyc\n.fairness/\n"
    (tmp_path / "config" / "models.yaml").unlink()
    (tmp_path / "config" / "models.yaml").symlink_to(tmp_path / "elsewhere")
    assert cli("init", "--no-run")[0] == 2
    assert cli("init", "--no-run", "--force")[0] == 0
    assert not (tmp_path / "elsewhere").exists()
