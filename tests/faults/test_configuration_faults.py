"""F52 and F58 of the catalogue in docs/reliability.md: secrets on the command line, and settings that approve."""

from __future__ import annotations

import json

from .conftest import SUITE, Project
from .oracles import check

# ---------------------------------------------------------------- F52: secrets on the command line

#: What a project's own options are given, none of which may be read anywhere afterwards.
SECRETS = ("sk-canary-777-0123456789", "plain-Secret-Value-77", "hunter2-of-the-database", "tok3n-in-a-query")
OPTIONS = """
import pytest

def pytest_addoption(parser):
    for name in ("--my-api-key", "--other-token", "--service-url", "--database"):
        parser.addoption(name)

@pytest.fixture
def endpoint(pytestconfig):
    def write(prompt):
        if "{white}" in prompt:
            raise RuntimeError(f"no access for {pytestconfig.getoption('--my-api-key')}")
        return "A fine tenant."
    return write
""".replace("{white}", "landlord")
FAILS = (
    SUITE
    + """
def test_that_tells(trials):
    assert trials is None, "the key is " + KEY
"""
)
GIVEN = (
    "--my-api-key", SECRETS[0],
    f"--other-token={SECRETS[1]}",
    "--service-url", f"https://app:{SECRETS[2]}@letters.example/v1?token={SECRETS[3]}",
    f"--database=postgres://app:{SECRETS[2]}@db/letters",
)  # fmt: skip


def test_f52_secrets_on_the_command_line(project: Project, mode: list[str]) -> None:
    """They reach no manifest, finding, report, log or terminal; also where the application says them in an error. The
    command is recorded as it was typed, but for them: with workers, too."""
    project.write(SUITE)
    project.path.joinpath("conftest.py").write_text(OPTIONS, encoding="utf-8")
    project.path.joinpath("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    runs = project.path / ".fairness" / "runs"
    case = project.run(
        *mode, *GIVEN, f"--fairness-run-dir={runs}", "-k", "tone", "test_suite.py", ledger=[], price=None,
        secrets=SECRETS, prompts=(),
    )  # fmt: skip
    assert case.run is not None
    assert [record for record in case.of("trial") if record["status"] == "error"]
    check(case, oracles="34567")
    manifest = json.loads((case.run / "manifest.json").read_text(encoding="utf-8"))
    command = " ".join(manifest["command"])
    assert " ".join(mode) in command
    assert command.endswith(
        "--my-api-key [redacted] --other-token=[redacted] --service-url [redacted] --database=[redacted] "
        "--fairness-run-dir=.fairness/runs -k tone test_suite.py"
    )
    page = (case.run / "report.html").read_text(encoding="utf-8")
    assert command in page


def test_f52_nobody_learns_where_the_project_lies(project: Project, mode: list[str]) -> None:
    """No file of the run that is shown around holds the way to the project's folder."""
    project.write(SUITE.replace("names=20", "") + "    assert not trials.attrs, __file__\n")
    case = project.run(*mode, f"--fairness-baseline-dir={project.path / 'approved'}")
    assert case.code == 1
    assert case.run is not None
    for name in ("manifest.json", "findings.json", "report.html"):
        assert str(project.path) not in (case.run / name).read_text(encoding="utf-8"), name
    settings = json.loads((case.run / "manifest.json").read_text(encoding="utf-8"))["settings"]
    assert (settings["run_dir"], settings["baseline_dir"]) == (".fairness/runs", "approved")
