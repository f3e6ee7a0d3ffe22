"""Approvals of baselines: by whom, when, why and at which commit; and when nobody may."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from pytest_fairness.errors import ApprovalRefusedError

APPROVE = "--fairness-approve"
JUSTIFICATION = "--fairness-justification"
ALLOW_REGRESSION = "--fairness-approve-regression"
ALLOW_IN_CI = "--fairness-approve-in-ci"
APPROVER_VARIABLE = "FAIRNESS_APPROVER"

FALSE = frozenset({"", "0", "false", "no", "off", "n", "f"})
_GIT_SECONDS = 10.0
_MAX_NAME = 200
_MAX_JUSTIFICATION = 4000


@dataclass(frozen=True, kw_only=True)
class ApprovalPolicy:
    """The approvals that the command line allows. The defaults compare and never write."""

    approve: bool = False
    justification: str = ""
    approve_regression: bool = False
    approve_in_ci: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The provenance that stands in a baseline.

    ``approved_by_source``: whence the name comes, ``FAIRNESS_APPROVER``, ``git`` or ``login``.
    ``dirty``: tracked files other than baselines differed from ``git_commit``; both are ``None``
    outside a repository. ``regression``: scores had fallen, and the approval was given all the
    same. ``previous_digest``: of the baseline that this one replaced.
    """

    approved_by: str
    approved_by_source: str
    approved_at: str
    justification: str
    git_commit: str | None
    dirty: bool | None
    tool_version: str
    run_id: str | None
    simulated: bool
    replayed: bool = False
    regression: bool = False
    previous_digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRun:
    """The answers of a run: of a simulated endpoint, or of a run that was recorded. So many planned
    trials are ``unfinished``: not answered, refused or otherwise concluded.
    """

    simulated: bool
    replayed: bool = False
    unfinished: int = 0


def new_approval(
    policy: ApprovalPolicy,
    answered: AnsweredRun,
    *,
    rootdir: Path,
    folder: Path,
    run_id: str | None,
    environ: Mapping[str, str],
) -> Approval:
    """An approval of a run that was *answered* so, given now, by whoever runs this session, at the
    commit that is checked out in *rootdir*. Raises ApprovalRefusedError where no approval may be
    considered at all.
    """
    justification = _one_line(policy.justification, None)
    refusal = None
    if environ.get("CI", "").strip().lower() not in FALSE and not policy.approve_in_ci:
        refusal = (
            f"this runs under CI (CI={environ.get('CI', '')!r}), where a baseline is compared and "
            "never changed. "
            f"Approve on a developer's machine and commit the file, or add {ALLOW_IN_CI} if this "
            "job is meant to "
            "approve."
        )
    elif not 0 < len(justification) <= _MAX_JUSTIFICATION:
        refusal = (
            f'a baseline records why it was approved. Say so with {JUSTIFICATION} "what changed, and what was '
            f'reviewed", in up to {_MAX_JUSTIFICATION} characters (here are {len(justification)}).'
        )
    elif answered.unfinished:
        refusal = (
            f"{answered.unfinished} planned trial(s) never finished, so the scores are not those of the "
            "whole design. Run again "
            "until all are answered (finished trials are not paid for twice), then approve."
        )
    if refusal:
        raise ApprovalRefusedError(f"Approval refused: {refusal}")
    name, source = approver(environ, rootdir)
    commit, dirty = git_state(rootdir, folder)
    return Approval(
        approved_by=name,
        approved_by_source=source,
        approved_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        justification=justification,
        git_commit=commit,
        dirty=dirty,
        tool_version=metadata.version("pytest-fairness"),
        run_id=run_id,
        simulated=answered.simulated,
        replayed=answered.replayed,
    )


def approver(environ: Mapping[str, str], rootdir: Path) -> tuple[str, str]:
    """The approver's name and how it was learned: from FAIRNESS_APPROVER, git's identity, or the
    login.
    """
    if declared := _one_line(environ.get(APPROVER_VARIABLE)):
        return declared, APPROVER_VARIABLE
    name, source = person(rootdir)
    if not name:
        raise ApprovalRefusedError(
            f"Approval refused: nobody can be named as the approver. Set {APPROVER_VARIABLE}, or "
            "git's user.name."
        )
    return name, source


def person(rootdir: Path) -> tuple[str, str]:
    """Return who works in *rootdir*, and how that was learned: from git's identity, or the login;
    empty where nobody knows.
    """
    identity = _identity(rootdir)
    name, email = (_one_line(identity.get(f"user.{what}")) for what in ("name", "email"))
    if name or email:
        return (f"{name} <{email}>" if name and email else name or email), "git"
    try:
        return _one_line(getpass.getuser()), "login"
    except (OSError, KeyError, ImportError):  # a user id without a name, as in some containers
        return "", ""


def _identity(rootdir: Path) -> dict[str, str]:
    """Return ``user.name`` and ``user.email`` of git, as far as they are set in *rootdir*."""
    identity = {}
    listed = git(rootdir, "config", "-z", "--get-regexp", r"^user\.(name|email)$") or ""
    for entry in listed.split("\0"):  # of several values the last counts, as everywhere in git
        key, _, value = entry.partition("\n")
        identity[key] = value
    return identity


def git_state(rootdir: Path, folder: Path) -> tuple[str | None, bool | None]:
    """The commit checked out in *rootdir*, and whether tracked files outside *folder* differ from
    it: there the second approval of a session would find the tree changed by the first. (None,
    None) where :func:`git_commit` has none.
    """
    commit = git_commit(rootdir)
    if commit is None:
        return None, None
    paths = [":/"]
    if rootdir.absolute() in folder.absolute().parents:
        paths.append(
            f":(exclude,literal){folder.absolute().relative_to(rootdir.absolute()).as_posix()}"
        )
    changes = git(rootdir, "status", "--porcelain", "--untracked-files=no", "--", *paths)
    return commit, None if changes is None else bool(changes.strip())


def git_commit(rootdir: Path) -> str | None:
    """The commit checked out in *rootdir*, or None without git, outside a repository and before the
    first commit.
    """
    return (git(rootdir, "rev-parse", "--verify", "HEAD") or "").strip() or None


def git(rootdir: Path, *arguments: str) -> str | None:
    """Return what git prints of *rootdir*, or ``None`` if it is absent, fails or hangs."""
    program = shutil.which("git")
    if program is None:
        return None
    # No prompt, no lock on the user's index, no file-system monitor started by a mere question.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(  # noqa: S603 - a resolved program, a list of arguments, no shell
            [program, "-c", "core.fsmonitor=false", "-C", str(rootdir), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    return None


def _one_line(text: str | None, longest: int | None = _MAX_NAME) -> str:
    return " ".join((text or "").split())[:longest]
