"""Who approves, at which commit, and when nobody may."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pytest_fairness.baselines import approval as approval_module
from pytest_fairness.baselines.approval import Approval, ApprovalPolicy, approver, git_state, new_approval
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
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    run("init", "-q")
    return run


def granted(environ: dict[str, str], tmp_path: Path, *, unfinished: int = 0, **changes: object) -> Approval:
    """An approval as one is asked for in a folder without git."""
    return new_approval(
        replace(GRANTED, **changes),
        rootdir=tmp_path,
        folder=tmp_path / "baselines",
        run_id="2026-02-28-001",
        simulated=True,
        replayed=False,
        unfinished=unfinished,
        environ={"FAIRNESS_APPROVER": "Jane Smith", **environ},
    )


@pytest.mark.parametrize("value", ["1", "true", "True", " YES ", "on", "github", "2"])
def test_under_ci_an_approval_takes_an_option(tmp_path: Path, value: str) -> None:
    """What is not a word for no is taken as yes: an unknown value must not let a job approve."""
    with pytest.raises(ApprovalRefusedError, match=rf"under CI \(CI='{value}'\).*--fairness-approve-in-ci"):
        granted({"CI": value}, tmp_path)
    assert granted({"CI": value}, tmp_path, approve_in_ci=True).approved_by == "Jane Smith"


@pytest.mark.parametrize("value", ["", "0", "false", "FALSE", "no", "off", " "])
def test_a_word_for_no_is_not_ci(tmp_path: Path, value: str) -> None:
    assert granted({"CI": value}, tmp_path).justification == "reviewed 20 letters"


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_justification_is_needed(tmp_path: Path, text: str) -> None:
    """Blank is none; the option that gives one is named."""
    with pytest.raises(ApprovalRefusedError, match="--fairness-justification"):
        granted({}, tmp_path, justification=text)


def test_a_justification_is_one_line_of_a_sane_length(tmp_path: Path) -> None:
    """It stands on one line of a file that is compared line by line, and is no place for an essay."""
    assert granted({}, tmp_path, justification=" GPT-5 \n upgrade ").justification == "GPT-5 upgrade"
    with pytest.raises(ApprovalRefusedError, match="here are 4001"):
        granted({}, tmp_path, justification="x" * 4001)


def test_unfinished_trials_are_refused(tmp_path: Path) -> None:
    """Scores of part of a design are not a yardstick, and no option makes them one."""
    with pytest.raises(ApprovalRefusedError, match="3 planned trial"):
        granted({}, tmp_path, unfinished=3, approve_in_ci=True, approve_regression=True)


def test_the_variable_comes_first(git: Git, tmp_path: Path) -> None:
    """FAIRNESS_APPROVER names who answers for it, whatever git says; it is one line."""
    git("config", "user.name", "Bot")
    assert approver({"FAIRNESS_APPROVER": " Jane\nSmith "}, tmp_path) == (
        "Jane Smith",
        "FAIRNESS_APPROVER",
    )


def test_then_git(git: Git, tmp_path: Path) -> None:
    """Name and address as git would put them under a commit; either alone will do."""
    git("config", "user.email", "jane@example.org")
    assert approver({}, tmp_path) == ("jane@example.org", "git")
    git("config", "user.name", "Jane")
    assert approver({"FAIRNESS_APPROVER": " "}, tmp_path) == ("Jane <jane@example.org>", "git")


def test_then_the_login(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without git's identity has a login still."""
    monkeypatch.setattr(getpass, "getuser", lambda: "jsmith")
    assert approver({}, tmp_path) == ("jsmith", "login")


def test_nobody_cannot_approve(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container whose user has no name, an approval without a name is refused."""

    def nobody() -> str:
        raise OSError("no such user")

    monkeypatch.setattr(getpass, "getuser", nobody)
    with pytest.raises(ApprovalRefusedError, match="FAIRNESS_APPROVER"):
        approver({}, tmp_path)


def test_the_commit_and_whether_the_tree_differs(git: Git, tmp_path: Path) -> None:
    """A changed tracked file makes it dirty; an untracked one or a baseline does not."""
    folder = tmp_path / "baselines"
    folder.mkdir()
    for path in (tmp_path / "prompt.txt", folder / "a.json"):
        path.write_text("one")
    git("add", ".")
    git("commit", "-qm", "one")
    (folder / "a.json").write_text("two")
    (tmp_path / "new.txt").write_text("untracked")
    assert git_state(tmp_path, folder) == (git("rev-parse", "HEAD"), False)
    (tmp_path / "prompt.txt").write_text("two")
    assert git_state(tmp_path, folder) == (git("rev-parse", "HEAD"), True)


def test_from_a_project_inside_a_repository(git: Git, tmp_path: Path) -> None:
    """In a monorepo the whole repository counts, and the project's own baselines do not."""
    project = tmp_path / "service"
    (project / "baselines").mkdir(parents=True)
    for path in (tmp_path / "library.py", project / "baselines" / "a.json"):
        path.write_text("one")
    git("add", ".")
    git("commit", "-qm", "one")
    (project / "baselines" / "a.json").write_text("two")
    assert git_state(project, project / "baselines")[1] is False
    (tmp_path / "library.py").write_text("two")
    assert git_state(project, project / "baselines")[1] is True


def test_outside_a_repository_and_before_a_commit(git: Git, tmp_path: Path) -> None:
    """There is no commit to name, and that is recorded as such."""
    assert git_state(tmp_path, tmp_path / "baselines") == (None, None)
    shutil.rmtree(tmp_path / ".git")
    (tmp_path / ".git").write_text("not a repository")
    assert git_state(tmp_path, tmp_path / "baselines") == (None, None)


def test_without_git_or_with_one_that_hangs(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An approval does not wait for git for ever, and does without it."""

    def hangs(*arguments: object, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired("git", timeout)

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", hangs)
        assert git_state(tmp_path, tmp_path / "baselines") == (None, None)
    monkeypatch.setattr(approval_module.shutil, "which", lambda _name: None)
    assert git_state(tmp_path, tmp_path / "baselines") == (None, None)


def test_an_approval_says_who_when_why_and_where(git: Git, tmp_path: Path) -> None:
    """All of it is recorded, and no token out of a remote's address."""
    (tmp_path / "prompt.txt").write_text("one")
    git("add", ".")
    git("commit", "-qm", "one")
    git("remote", "add", "origin", "https://jane:ghp_S3CR3T@example.org/repo.git")
    given = granted({}, tmp_path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", given.approved_at)
    assert re.match(r"\d+\.\d+", given.tool_version)
    known = {key: value for key, value in asdict(given).items() if key not in ("approved_at", "tool_version")}
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
