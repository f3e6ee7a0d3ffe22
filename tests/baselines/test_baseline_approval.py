"""Who approves, at which commit, and when nobody may."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from pytest_fairness.baselines import approval as approval_module
from pytest_fairness.baselines.approval import (
    AnsweredRun,
    Approval,
    ApprovalPolicy,
    approver,
    git_state,
    new_approval,
)
from pytest_fairness.errors import ApprovalRefusedError

GRANTED = ApprovalPolicy(approve=True, justification="reviewed 20 letters")
Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A git repository in ``tmp_path`` that knows nothing of the machine's own configuration."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(tmp_path / "no-such-config"))
    for name in ("GIT_AUTHOR_NAME", "GIT_DIR", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> str:
        identity = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    run("init", "-q")
    return run


def granted(
    environ: dict[str, str], tmp_path: Path, *, unfinished: int = 0, **changes: object
) -> Approval:
    """An approval as one is asked for in a folder without git."""
    return new_approval(
        replace(GRANTED, **changes),
        AnsweredRun(simulated=True, unfinished=unfinished),
        rootdir=tmp_path,
        folder=tmp_path / "baselines",
        run_id="2026-02-28-001",
        environ={"FAIRNESS_APPROVER": "Jane Smith", **environ},
    )


@pytest.mark.parametrize("value", ["1", "true", " YES ", "github", "2"])
def test_under_ci_an_approval_takes_an_option(tmp_path: Path, value: str) -> None:
    """What is not a word for no is taken as yes: an unknown value must not let a job approve."""
    with pytest.raises(
        ApprovalRefusedError, match=rf"under CI \(CI='{value}'\).*--fairness-approve-in-ci"
    ):
        granted({"CI": value}, tmp_path)
    assert granted({"CI": value}, tmp_path, approve_in_ci=True).approved_by == "Jane Smith"
    for no in ("", "0", "false", "FALSE", "no", "off", " "):
        assert granted({"CI": no}, tmp_path).justification == "reviewed 20 letters"


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "x" * 4001])
def test_a_justification_is_one_line_of_a_sane_length(tmp_path: Path, text: str) -> None:
    """It stands on one line of a file that is compared line by line, and is no place for an essay;
    blank is none.
    """
    with pytest.raises(
        ApprovalRefusedError, match=f"--fairness-justification.*here are {len(text.strip())}"
    ):
        granted({}, tmp_path, justification=text)
    assert (
        granted({}, tmp_path, justification=" GPT-5 \n upgrade ").justification == "GPT-5 upgrade"
    )


def test_unfinished_trials_are_refused(tmp_path: Path) -> None:
    """Scores of part of a design are not a yardstick, and no option makes them one."""
    with pytest.raises(ApprovalRefusedError, match="3 planned trial"):
        granted({}, tmp_path, unfinished=3, approve_in_ci=True, approve_regression=True)


def test_the_approver_is_named_by_the_variable_then_git_then_the_login(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name and address as git would put them under a commit, either alone will do; without any,
    nobody approves.
    """

    def nobody() -> str:
        raise OSError("no such user")

    monkeypatch.setattr(getpass, "getuser", nobody)
    with pytest.raises(ApprovalRefusedError, match="FAIRNESS_APPROVER"):
        approver({}, tmp_path)
    monkeypatch.setattr(getpass, "getuser", lambda: "jsmith")
    assert approver({}, tmp_path) == ("jsmith", "login")
    git("config", "user.email", "jane@example.org")
    assert approver({}, tmp_path) == ("jane@example.org", "git")
    git("config", "user.name", "Jane")
    assert approver({"FAIRNESS_APPROVER": " "}, tmp_path) == ("Jane <jane@example.org>", "git")
    assert approver({"FAIRNESS_APPROVER": " Jane\nSmith "}, tmp_path) == (
        "Jane Smith",
        "FAIRNESS_APPROVER",
    )


@pytest.mark.parametrize("inside", ["", "service"])
def test_the_commit_and_whether_the_tree_differs(git: Git, tmp_path: Path, inside: str) -> None:
    """A changed tracked file makes it dirty, wherever in the repository; an untracked one or a
    baseline does not.
    """
    project = tmp_path / inside
    folder = project / "baselines"
    folder.mkdir(parents=True)
    for path in (tmp_path / "library.py", folder / "a.json"):
        path.write_text("one")
    git("add", ".")
    git("commit", "-qm", "one")
    (folder / "a.json").write_text("two")
    (tmp_path / "new.txt").write_text("untracked")
    assert git_state(project, folder) == (git("rev-parse", "HEAD"), False)
    (tmp_path / "library.py").write_text("two")
    assert git_state(project, folder) == (git("rev-parse", "HEAD"), True)


def test_without_a_commit_none_is_recorded(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first one, outside a repository, without git, and with one that hangs."""
    state = partial(git_state, tmp_path, tmp_path / "baselines")

    def hangs(*arguments: object, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired("git", timeout)

    assert state() == (None, None)
    shutil.rmtree(tmp_path / ".git")
    (tmp_path / ".git").write_text("not a repository")
    assert state() == (None, None)
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", hangs)
        assert state() == (None, None)
    monkeypatch.setattr(approval_module.shutil, "which", lambda _name: None)
    assert state() == (None, None)


def test_an_approval_says_who_when_why_and_where(git: Git, tmp_path: Path) -> None:
    """All of it is recorded, and no token out of a remote's address."""
    (tmp_path / "prompt.txt").write_text("one")
    git("add", ".")
    git("commit", "-qm", "one")
    git("remote", "add", "origin", "https://jane:ghp_S3CR3T@example.org/repo.git")
    given = granted({}, tmp_path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", given.approved_at)
    assert re.match(r"\d+\.\d+", given.tool_version)
    known = {
        key: value
        for key, value in asdict(given).items()
        if key not in ("approved_at", "tool_version")
    }
    assert known == {
        "approved_by": "Jane Smith",
        "approved_by_source": "FAIRNESS_APPROVER",
        "justification": "reviewed 20 letters",
        "git_commit": git("rev-parse", "HEAD"),
        "dirty": False,
        "run_id": "2026-02-28-001",
        "simulated": True,
        "replayed": False,
        "regression": False,
        "previous_digest": None,
    }
    assert "S3CR3T" not in repr(given)
