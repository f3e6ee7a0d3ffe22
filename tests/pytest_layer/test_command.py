"""What the manifest and the report say of a session: its command, whom it asked, and who answered."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_fairness.pytest_layer.command_line import (
    recorded_command,
    recorded_path,
    recorded_text,
    secrets_of,
)
from tests.conftest import MODES
from tests.support.servers import ModelServer
from tests.support.sessions import run_pytest

from .conftest import GRID, MODELS, Project


def recorded(*arguments: str, tests: tuple[str, ...] = ()) -> list[str]:
    """The command of a session in ``/home/me/project`` that was given *arguments*, of which some
    are *tests*.
    """
    place = {"root": "/home/me/project", "folder": "/home/me/project"}
    config: Any = SimpleNamespace(
        workerinput={"fairness_arguments": {"all": list(arguments), "tests": list(tests), **place}}
    )
    program, *command = recorded_command(config)
    assert program == "pytest"
    return command


@pytest.mark.parametrize(
    "arguments",
    [
        "-xvs -qq -n2 -n 4 --dist=loadfile -p no:randomly -pno:xdist -k tone -m fairness "
        "--tb=short",
        "--fairness-endpoint claude --fairness-max-cost=5 --fairness-smoke --fairness-resume last",
        "-o fairness_seed=3 --override-ini=fairness_tier=2 -Werror",
        "--lf --pyargs",
    ],
)
def test_our_own_options_and_those_of_pytest_stay(arguments: str) -> None:
    assert recorded(*arguments.split()) == arguments.split()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--key", "abc"], ["--key", "[redacted]"]),
        (["--key=abc"], ["--key=[redacted]"]),
        (["-E", "prod"], ["-E", "[redacted]"]),
        (["-Eprod"], ["-E[redacted]"]),
        (["-o", "my_token=abc"], ["-o", "my_token=[redacted]"]),
        (["-omy_token=abc"], ["-omy_token=[redacted]"]),
        (["--flag", "--key", "a", "b"], ["--flag", "--key", "[redacted]", "[redacted]"]),
        (["-k", "sk-0123456789abcdef or x"], ["-k", "[redacted] or x"]),
        (["--fairness-justification=Bearer abcdefghijklmnop"], ["--fairness-justification=Bearer [redacted]"]),
        (["--fairness-endpoint=https://a:b@h/x?key=1#f"], ["--fairness-endpoint=https://h/x"]),
        (["--junitxml=/home/me/project/out/j.xml"], ["--junitxml=out/j.xml"]),
        (["-o", "fairness_run_dir=/home/me/runs"], ["-o", "fairness_run_dir=../runs"]),
    ],
)  # fmt: skip
def test_the_values_of_other_options_go(arguments: list[str], expected: list[str]) -> None:
    assert recorded(*arguments) == expected


def test_the_tests_that_were_named_stay_wherever_they_stand() -> None:
    tests = ("tests/a.py", "/home/me/project/tests/b.py::test_x[1]")
    assert recorded("--flag", tests[0], "--key", "abc", tests[1], tests=tests) == [
        "--flag", "tests/a.py", "--key", "[redacted]", "tests/b.py::test_x[1]",
    ]  # fmt: skip


def test_secrets_are_known_by_the_name_of_their_option_and_their_place_in_an_address() -> None:
    arguments = [
        "--my-api-key",
        "value-1",
        "--db-password=value-2",
        "--url",
        "https://u:p%40ss-3@h/?token=value-4&q=5",
    ]
    assert secrets_of([*arguments, "--key=true", "--token", "-x", "--colour", "green"]) == [
        "value-1", "value-2", "p%40ss-3", "p@ss-3", "value-4",
    ]  # fmt: skip


def test_texts_and_paths_begin_at_the_project() -> None:
    root = Path("/home/me/project")
    assert (
        recorded_text("in /home/me/project/tests/a.py: /home/me/project is full", root)
        == "in tests/a.py: . is full"
    )
    assert recorded_text(f"{Path.home()}/keys", root) == "~/keys"
    assert recorded_path(root / "x", root) == "x"


@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_a_command_is_recorded_as_if_typed_in_the_projects_folder(
    project: Project, mode: str
) -> None:
    """From a subfolder, with a configuration and a secret, in one process or workers, which parse
    it again.
    """
    secret = "correct-horse-battery"
    project.write(GRID)
    conftest = 'def pytest_addoption(parser):\n    parser.addoption("--site-token")\n'
    project.pytester.makeconftest(conftest)
    project.pytester.makeini("[pytest]")
    (project.path / "tests").mkdir()
    (project.path / "test_suite.py").rename(project.path / "tests" / "test_suite.py")
    command = (
        "-c",
        "../tox.ini",
        "test_suite.py::test_tone",
        "--site-token",
        secret,
        "--junitxml=out/junit.xml",
    )
    result = run_pytest(project.path / "tests", *MODES[mode], "-p", "no:cacheprovider", *command)
    assert result.ret == 0, result.stdout.str()
    assert project.manifest["command"] == [
        "pytest", *MODES[mode], "-p", "no:cacheprovider", "-c", "tox.ini", "tests/test_suite.py::test_tone",
        "--site-token", "[redacted]", "--junitxml=tests/out/junit.xml",
    ]  # fmt: skip
    for path in project.last.rglob("*"):
        assert path.is_dir() or (
            secret.encode() not in (data := path.read_bytes())
            and str(project.path).encode() not in data
        )
    assert "run .fairness/runs/" in result.stdout.str()


def facts(page: str) -> dict[str, str]:
    """The facts of a report."""
    return dict(re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", page, re.DOTALL))


OWN = """
@pytest.fixture
def endpoint():
    def write(prompt):
        return "A fine tenant, " + prompt
    return write
"""


@pytest.mark.parametrize("own", [False, True], ids=["the settings' endpoint", "the project's own"])
def test_the_settings_name_no_endpoint_that_nobody_sent(project: Project, own: bool) -> None:
    """Where a fixture replaces it in all tests, the recorded settings leave it open and
    ``endpoints`` says who was asked; resuming the run and replaying it work all the same."""
    project.write(GRID + (OWN if own else ""))
    result = project.run()
    assert result.ret == 0, result.stdout.str()
    name, manifest = project.last.name, project.manifest
    assert manifest["settings"]["endpoint"] == (None if own else "simulated")
    assert [entry["name"] for entry in manifest["endpoints"]] == [
        "endpoint.<locals>.write" if own else "simulated"
    ]
    assert ("endpoint simulated" in facts(project.page)["Settings"]) == (not own)
    assert project.run("--fairness-resume=last").ret == 0
    assert project.run(f"--fairness-replay={name}").ret == 0


def test_the_model_that_answered_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the one that was requested: in the manifest, in findings.json and in the report."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    with ModelServer(model="gpt-4o-mini-2024-07-18") as server:
        project.write(GRID, MODELS.format(url=server.openai_url))
        result = project.run("--fairness-endpoint", "direct")
    assert result.ret == 0, result.stdout.str()
    expected = [
        {"endpoint": "direct", "asked": "gpt-4o-mini", "answered": {"gpt-4o-mini-2024-07-18": 160}}
    ]
    assert project.manifest["models"] == project.results["run"]["models"] == expected
    shown = facts(project.page)
    assert (shown["Type"], shown["Address"]) == ("openai", server.openai_url)
    assert shown["Model asked for"] == "gpt-4o-mini"
    assert shown["Model that answered"] == "gpt-4o-mini-2024-07-18 (160 trials)"
