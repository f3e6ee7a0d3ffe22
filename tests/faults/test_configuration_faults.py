"""F52 and F58 of the catalogue in docs/reliability.md: secrets on the command line, and settings
that approve.
"""

from __future__ import annotations

import json

import pytest

from .conftest import SUITE, Project, words
from .oracles import check

# ---------------------------------------------------------------- F52: secrets on the command line

#: What a project's own options are given, none of which may be read anywhere afterwards.
SECRETS = (
    "sk-canary-777-0123456789",
    "plain-Secret-Value-77",
    "hunter2-of-the-database",
    "tok3n-in-a-query",
)
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
GIVEN = (
    "--my-api-key", SECRETS[0],
    f"--other-token={SECRETS[1]}",
    "--service-url", f"https://app:{SECRETS[2]}@letters.example/v1?token={SECRETS[3]}",
    f"--database=postgres://app:{SECRETS[2]}@db/letters",
)  # fmt: skip


@pytest.mark.parametrize("mode", [[], ["-n2"]], ids=["plain", "n2"])
def test_f52_secrets_on_the_command_line(project: Project, mode: list[str]) -> None:
    """They reach no manifest, finding, report, log or terminal; also where the application says
    them in an error. The command is recorded as it was typed, but for them: with workers, too. No
    file of the run that is shown around holds the way to the project's folder."""
    project.write(SUITE + "    assert not trials.attrs, __file__\n")
    project.path.joinpath("conftest.py").write_text(OPTIONS, encoding="utf-8")
    project.path.joinpath("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    places = {"run_dir": ".fairness/runs", "baseline_dir": "approved"}
    ini = [
        f"--override-ini=fairness_{name}={project.path / place}" for name, place in places.items()
    ]
    case = project.run(
        *mode,
        *GIVEN,
        *ini,
        "-k",
        "tone",
        "test_suite.py",
        ledger=[],
        price=None,
        secrets=SECRETS,
        prompts=(),
    )
    assert case.code == 1
    assert case.run is not None
    assert [record for record in case.of("trial") if record["status"] == "error"]
    check(case, oracles="34567")
    shown = {
        name: (case.run / name).read_text("utf-8")
        for name in ("manifest.json", "findings.json", "report.html")
    }
    manifest = json.loads(shown["manifest.json"])
    command = " ".join(manifest["command"])
    assert " ".join(mode) in command
    assert command.endswith(
        "--my-api-key [redacted] --other-token=[redacted] --service-url [redacted] "
        "--database=[redacted] "
        "--override-ini=fairness_run_dir=.fairness/runs "
        "--override-ini=fairness_baseline_dir=approved -k tone "
        "test_suite.py"
    )
    assert command in shown["report.html"]
    assert {name: manifest["settings"][name] for name in places} == places
    assert not [name for name, text in shown.items() if str(project.path) in text]


# ---------------------------------------------------------------- F58: settings that approve

BASELINE = SUITE.replace(
    'assert_no_disparity(trials, outcome="word_count", by="race_ethnicity")',
    'assert_baseline(trials, score="word_count")',
).replace("assert_no_disparity", "assert_baseline")


def baselines(project: Project) -> list[str]:
    """The approved baselines of the project."""
    return sorted(
        str(path.relative_to(project.path)) for path in project.path.glob("baselines/**/*.json")
    )


INI = {
    "addopts = --fairness-approve --fairness-justification=trust": "--fairness-approve comes from addopts",
    "addopts = --fairness-approve-regression": "--fairness-approve-regression comes from addopts",
    "fairness_approve_regression = true": "fairness_approve_regression is set in pytest.ini",
    "fairness_approve_in_ci = true": "fairness_approve_in_ci is set in pytest.ini",
    "fairness_justification = trust me": "fairness_justification is set in pytest.ini",
    "fairness_approve = true": "fairness_approve is set in pytest.ini",
}


@pytest.mark.parametrize("mode", [[], ["-n2"]], ids=["plain", "n2"])
def test_f58_the_ini_file_approves_nothing(project: Project, mode: list[str]) -> None:
    """Refused before a test runs, with where it belongs; nothing is asked, nothing is approved."""
    project.write(BASELINE)
    path = project.path / "pytest.ini"
    usual = path.read_text(encoding="utf-8")
    for ini in list(INI)[-1 if mode else 0 :]:
        path.write_text(usual + ini + "\n", encoding="utf-8")
        case = project.run(*mode)
        assert case.code == pytest.ExitCode.USAGE_ERROR
        assert INI[ini] in words(case)
        assert "read from the command line alone" in words(case)
        assert case.ledger == []
        assert baselines(project) == []


def test_f58_who_types_it_approves(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the command line, in either spelling; neither in the environment, nor as an ini value
    given with ``-o``.
    """
    project.write(BASELINE)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--fairness-approve-in-ci")
    case = project.run()
    assert case.code == pytest.ExitCode.USAGE_ERROR
    assert "--fairness-approve-in-ci comes from addopts, PYTEST_ADDOPTS" in words(case)
    monkeypatch.delenv("PYTEST_ADDOPTS")
    case = project.run("-o", "fairness_approve=true")
    assert case.code == pytest.ExitCode.USAGE_ERROR
    assert "type --fairness-approve in the session that approves" in words(case)
    assert case.ledger == []
    assert baselines(project) == []
    case = project.run("--fairness-approve", "--fairness-justification=read 20 letters")
    assert case.code == 0, case.output
    assert len(baselines(project)) == 1
    assert project.run(price=None).code == 0
