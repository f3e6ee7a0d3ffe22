"""Who approves, at which commit, and when nobody may."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from pytest_fairness.baselines import approval as approval_module
from pytest_fairness.baselines.approval import (
    ApprovalPolicy,
    approver,
    check_allowed,
    git_state,
    new_approval,
    under_ci,
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
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    run("init", "-q")
    return run


class TestCI:
    @pytest.mark.parametrize("value", ["1", "true", "True", " YES ", "on", "github", "2"])
    def test_any_true_value_is_ci(self, value: str) -> None:
        """What is not a word for no is taken as yes: an unknown value must not let a job approve."""
        assert under_ci({"CI": value})

    @pytest.mark.parametrize("value", ["", "0", "false", "FALSE", "no", "off", " "])
    def test_a_word_for_no_is_not_ci(self, value: str) -> None:
        """``CI=false`` means that this is not CI."""
        assert not under_ci({"CI": value})

    def test_without_the_variable_it_is_not_ci(self) -> None:
        assert not under_ci({"CONTINUOUS": "1"})


class TestAllowed:
    def test_ci_is_refused_and_the_option_named(self) -> None:
        """A CI job compares and does not approve, unless it was told that it may."""
        with pytest.raises(ApprovalRefusedError, match=r"under CI \(CI='true'\).*--fairness-approve-in-ci"):
            check_allowed(GRANTED, environ={"CI": "true"}, unfinished=0)
        allowed = ApprovalPolicy(approve=True, justification="nightly", allow_in_ci=True)
        assert check_allowed(allowed, environ={"CI": "true"}, unfinished=0) == "nightly"

    @pytest.mark.parametrize("text", [None, "", "   ", "\n\t"])
    def test_a_justification_is_needed(self, text: str | None) -> None:
        """Blank is none; the option that gives one is named."""
        policy = ApprovalPolicy(approve=True, justification=text)
        with pytest.raises(ApprovalRefusedError, match="--fairness-justification"):
            check_allowed(policy, environ={}, unfinished=0)

    def test_a_justification_is_one_line_of_a_sane_length(self) -> None:
        """It stands on one line of a file that is compared line by line, and is no place for an essay."""
        assert check_allowed(
            ApprovalPolicy(approve=True, justification=" GPT-5 \n upgrade "), environ={}, unfinished=0
        ) == ("GPT-5 upgrade")
        with pytest.raises(ApprovalRefusedError, match="4001 characters"):
            check_allowed(ApprovalPolicy(approve=True, justification="x" * 4001), environ={}, unfinished=0)

    def test_unfinished_trials_are_refused(self) -> None:
        """Scores of part of a design are not a yardstick, and no option makes them one."""
        everything = ApprovalPolicy(approve=True, justification="x", allow_in_ci=True, allow_regression=True)
        with pytest.raises(ApprovalRefusedError, match="3 planned trial"):
            check_allowed(everything, environ={}, unfinished=3)


class TestApprover:
    def test_the_variable_comes_first(self, git: Git, tmp_path: Path) -> None:
        """FAIRNESS_APPROVER names who answers for it, whatever git says; it is one line."""
        git("config", "user.name", "Bot")
        assert approver({"FAIRNESS_APPROVER": " Jane\nSmith "}, tmp_path) == (
            "Jane Smith",
            "FAIRNESS_APPROVER",
        )

    def test_then_git(self, git: Git, tmp_path: Path) -> None:
        """Name and address as git would put them under a commit; either alone will do."""
        git("config", "user.email", "jane@example.org")
        assert approver({}, tmp_path) == ("jane@example.org", "git")
        git("config", "user.name", "Jane")
        assert approver({"FAIRNESS_APPROVER": " "}, tmp_path) == ("Jane <jane@example.org>", "git")

    def test_then_the_login(self, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A machine without git's identity has a login still."""
        monkeypatch.setattr(getpass, "getuser", lambda: "jsmith")
        assert approver({}, tmp_path) == ("jsmith", "login")

    def test_nobody_cannot_approve(self, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """In a container whose user has no name, an approval without a name is refused."""

        def nobody() -> str:
            raise OSError("no such user")

        monkeypatch.setattr(getpass, "getuser", nobody)
        with pytest.raises(ApprovalRefusedError, match="FAIRNESS_APPROVER"):
            approver({}, tmp_path)


class TestGitState:
    def test_the_commit_and_whether_the_tree_differs(self, git: Git, tmp_path: Path) -> None:
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

    def test_from_a_project_inside_a_repository(self, git: Git, tmp_path: Path) -> None:
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

    def test_outside_a_repository_and_before_a_commit(self, git: Git, tmp_path: Path) -> None:
        """There is no commit to name, and that is recorded as such."""
        assert git_state(tmp_path, tmp_path / "baselines") == (None, None)
        shutil.rmtree(tmp_path / ".git")
        (tmp_path / ".git").write_text("not a repository")
        assert git_state(tmp_path, tmp_path / "baselines") == (None, None)

    def test_without_git_or_with_one_that_hangs(
        self, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
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
    given = new_approval(
        "reviewed 20 letters",
        rootdir=tmp_path,
        folder=tmp_path / "baselines",
        run_id="2026-02-28-001",
        simulated=True,
        replayed=False,
        environ={"FAIRNESS_APPROVER": "Jane Smith"},
    )
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
