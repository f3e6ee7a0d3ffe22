"""Walks from the README to a published report, as a stranger does on a clean machine, and times
each stage:

    python tools/walk.py [FOLDER]

The commands are those that the README shows. A wheel of this checkout stands for the one on the
package index, from which all else is installed. The job of the pull request is the shell of
``ci/github/action.yml`` with the workflow that ``init`` wrote and the event below; in the place of
GitHub's command line a script keeps the comment.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: A stranger's application, in the root of a project that cannot be installed.
APPLICATION = """\
import random

OPENINGS = ["Thank you for your application.", "We have read your letter with care."]
REASONS = ["Another applicant has more years on a ward.", "The post was filled from within."]
CLOSINGS = ["We were glad to meet you.", "We regret that.", "Kind regards."]


def write_rejection(prompt):
    draw = random.Random(prompt)
    return " ".join(draw.choice(part) for part in (OPENINGS, REASONS, CLOSINGS))
"""
#: The event of a push to a pull request, as far as the action reads it.
EVENT = {
    "pull_request": {"number": 12, "head": {"repo": {"full_name": "octo/letters"}}},
    "repository": {"full_name": "octo/letters"},
}
GH = """\
#!/bin/sh
for argument in "$@"; do
  case "$argument" in body=@*) cp "${argument#body=@}" "$KEPT" ;; esac
done
"""
EXPRESSION = re.compile(r"\$\{\{ (.*) \}\}")


class Stage(NamedTuple):
    """What was done, and how many seconds it took: by the clock, and of the processors."""

    what: str
    seconds: float
    busy: float


class Walk:
    """A project in *folder*, and the stages that were walked in it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.stages: list[Stage] = []
        self._tools = folder / "tools"
        self._tools.mkdir()
        (self._tools / "gh").write_text(GH, encoding="utf-8")
        (self._tools / "gh").chmod(0o755)
        self._comment = folder / "comment.md"
        self._outputs = folder / "outputs"
        binaries = self.project / ".venv" / "bin"
        kept = ("PYTEST_", "PYTHON", "GITHUB_", "FAIRNESS_")
        outside = {name: text for name, text in os.environ.items() if not name.startswith(kept)}
        self._environment = {
            **outside,
            "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
            "PIP_FIND_LINKS": str(folder / "dist"),
            "KEPT": str(self._comment),
        }

    def stage(self, command: str, what: str = "", environment: Mapping[str, str] = {}) -> None:
        """Time *command*, which the README has unless it is said *what* is done. Raises ValueError
        where it has not, and CalledProcessError where the command fails.
        """
        if not what and command not in README:
            raise ValueError(f"README.md does not show: {command}")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        subprocess.run(  # noqa: S603 - commands of ours
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],  # noqa: S607
            cwd=self.project,
            env={**self._environment, **environment},
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.stages.append(Stage(what or f"`{command}`", seconds, busy))

    def job(self) -> str:
        """Run the workflow that ``init`` wrote, on :data:`EVENT`; the comment that it made."""
        workflow = yaml.safe_load((self.project / ".github/workflows/fairness.yml").read_text())
        steps = workflow["jobs"]["fairness"]["steps"]
        (installing,) = [step["run"] for step in steps if "run" in step]
        self.stage(installing, "the job: install")
        action = yaml.safe_load((ROOT / "ci/github/action.yml").read_text(encoding="utf-8"))
        inputs = {name: about.get("default", "") for name, about in action["inputs"].items()}
        inputs |= steps[-1]["with"]
        for step in action["runs"]["steps"]:
            # Steps of others (cache, artefacts), and the approval, are the forge's.
            if "run" in step and "inputs.approve" not in step.get("if", ""):
                self.stage(step["run"], f"the job: {step['name']}", self._variables(step, inputs))
        return self._comment.read_text(encoding="utf-8")

    def _variables(self, step: Mapping[str, Any], inputs: Mapping[str, str]) -> dict[str, str]:
        variables = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_OUTPUT": str(self._outputs),
            "GITHUB_REPOSITORY": str(EVENT["repository"]["full_name"]),
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_RUN_ID": "7",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_STEP_SUMMARY": os.devnull,
            "GITHUB_WORKSPACE": str(self.project),
            "PATH": f"{self._tools}{os.pathsep}{self._environment['PATH']}",
        }
        values = {f"inputs.{name}": str(value) for name, value in inputs.items()}
        values["github.event.pull_request.number"] = str(EVENT["pull_request"]["number"])
        if self._outputs.exists():
            for line in self._outputs.read_text(encoding="utf-8").splitlines():
                name, _, value = line.partition("=")
                values[f"steps.run.outputs.{name}"] = value
        for variable, expression in step.get("env", {}).items():
            (named,) = EXPRESSION.findall(expression)
            variables[variable] = values.get(named, "false")
        return variables


def walk(folder: Path) -> Walk:
    """Walk in the empty *folder*: demo, a function under test, a pull request's comment, a site."""
    wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder / "dist", ROOT]
    subprocess.run(wheel, check=True)  # noqa: S603 - of ours
    walked = Walk(folder)
    project = walked.project
    subprocess.run(["git", "init", "-q", project], check=True)  # noqa: S603, S607
    walked.stage(f"{sys.executable} -m venv .venv", "an environment")
    walked.stage("pip install pytest-fairness")
    walked.stage("pytest-fairness demo")
    (project / "letters_app.py").write_text(APPLICATION, encoding="utf-8")
    walked.stage("pytest-fairness init --function letters_app:write_rejection --run")
    walked.stage("pytest -m fairness --fairness-against last --fairness-markdown comment.md")
    if not walked.job().startswith("<!-- pytest-fairness -->"):
        raise ValueError("the job made no comment")
    walked.stage("pytest-fairness publish last site")
    if not (project / "site" / "badge.svg").is_file():
        raise ValueError("nothing was published")
    return walked


def table(stages: list[Stage]) -> str:
    """The *stages* as Markdown, with what has passed since the first began."""
    lines = ["| stage | seconds | of the processors | since the start |", "|---|---|---|---|"]
    passed = 0.0
    for stage in stages:
        passed += stage.seconds
        lines.append(f"| {stage.what} | {stage.seconds:.0f} | {stage.busy:.0f} | {passed:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="fairness-walk-") as temporary:
        folder = Path(sys.argv[1] if sys.argv[1:] else temporary)
        sys.stdout.write(table(walk(folder.resolve()).stages))


if __name__ == "__main__":
    main()
