"""``pytest-fairness baseline``: what is approved, what that changed, and who did it, with git and
without.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_fairness.baselines.approval import ApprovalPolicy
from pytest_fairness.cli import main
from tests.baselines.conftest import FALLEN, TEST_ID, Desk

Shown = Callable[..., str]


@pytest.fixture
def shown(desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """What the command prints in the project."""
    monkeypatch.chdir(desk.rootdir)

    def run(*arguments: str, code: int = 0) -> str:
        assert main(["baseline", *arguments]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def commit(folder: Path, why: str) -> None:
    for arguments in (["init", "-q"], ["add", "baselines"], ["commit", "-qm", why]):
        name = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True)


def test_without_git_the_file_alone_is_shown(desk: Desk, shown: Shown) -> None:
    assert "holds no baseline" in shown("show", code=2)
    desk.approve()
    assert shown("show").splitlines()[0] == f"{TEST_ID} · letter_score"
    assert "82.9  overall" in shown("show", "letters_keep")
    assert "no version before this one: its folder is in no repository of git" in shown(
        "diff", str(desk.file)
    )
    assert "no earlier versions: its folder is in no repository of git" in shown("history")
    assert "there are: tests/test_letters.py" in shown("show", "test_other", code=2)


def test_versions_of_git_and_the_file_as_it_lies(desk: Desk, shown: Shown) -> None:
    desk.approve()
    commit(desk.rootdir, "one")
    desk.approve(
        [*FALLEN[:-1]],
        policy=ApprovalPolicy(approve=True, justification="\x1b[31mless", approve_regression=True),
    )
    history = shown("history").splitlines()
    assert history[1].startswith("  not committed  82.9 → 80.3333  approved although it is worse, ")
    assert "by Jane Smith of app (gpt-4): \\x1b[31mless" in history[1]
    assert history[2].split()[1] == "82.9"
    assert "reviewed 20 letters" in history[2]
    assert len(history) == 3
    difference = shown("diff")
    assert "no longer scored: p09" in difference
    assert any(line.split()[:3] == ["82.9", "→", "80.3333"] for line in difference.splitlines())
    commit(desk.rootdir, "two")
    assert len(shown("history").splitlines()) == 3
    desk.file.write_text("{}", encoding="utf-8")
    assert "not committed  80.3333 → –" in shown("history")
