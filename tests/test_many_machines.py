"""The recipes for many machines: what the page shows is valid, and leads to one judged run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.markdown import ROOT, blocks
from tests.support.programs import programs

SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(template="Write a short job reference for {name}, a nurse.",
                           groups={"race_ethnicity": ["white", "black"]}, names=(10,))
def test_tone(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")
"""
#: Two groups of ten names, ten repetitions.
TRIALS = 2 * 10 * 10
BLOCKS = blocks((ROOT / "docs" / "many_machines.md").read_text(encoding="utf-8"))
JOB, JUDGE, DASK = (
    next(block.text for block in BLOCKS if block.language == language)
    for language in ("yaml", "sh", "python")
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose tests ask the simulated endpoint."""
    tmp_path.joinpath("pytest.ini").write_text("[pytest]\n")
    tmp_path.joinpath("test_tone.py").write_text(SUITE)
    return tmp_path


def run(project: Path, *command: str, code: int = 0, **environment: str) -> str:
    """What *command* printed, as it runs beside the tools of this environment."""
    tools = project / "bin"
    tools.mkdir(exist_ok=True)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    with programs(tools):
        done = subprocess.run(
            command,
            cwd=project,
            env={**outside, "PATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def manifest(project: Path) -> dict[str, object]:
    """The manifest of the newest run of *project*."""
    newest = max((project / ".fairness" / "runs").glob("2*"))
    content: dict[str, object] = json.loads((newest / "manifest.json").read_text())
    return content


@pytest.mark.skipif(os.name != "posix", reason="the pods have a shell")
def test_the_pods_of_the_indexed_job_ask_a_run(project: Path) -> None:
    """Each index asks its shard, a pod that was cut short goes on with its run, and the judge has
    one run.
    """
    job = yaml.safe_load(JOB)["spec"]
    container = job["template"]["spec"]["containers"][0]
    runs = {"RUNS": str(project / "shards")}
    assert [entry["name"] for entry in container["env"]] == list(runs)
    cut_short = {"JOB_COMPLETION_INDEX": "0", "PYTEST_ADDOPTS": "--fairness-deadline=0.001"}
    run(project, *container["command"], code=1, **runs, **cut_short)
    for index in range(job["completions"]):
        run(project, *container["command"], **runs, JOB_COMPLETION_INDEX=str(index))
        assert len(list((project / "shards" / str(index)).glob("2*"))) == 1
    printed = run(project, "sh", "-ec", JUDGE, **runs)
    assert f"merged {job['completions']} shards, {TRIALS} trials" in printed
    assert "1 finding: 1 PASS (simulated, replayed)" in printed
    assert manifest(project)["replay_of_shards"] is True


def test_the_indexed_job_is_valid() -> None:
    """By the schema of Kubernetes, unknown fields refused."""
    kubernetes = pytest.importorskip(
        "kubernetes_validate", reason="pip install 'pytest-fairness[machines]'"
    )
    kubernetes.validate(yaml.safe_load(JOB), kubernetes.latest_version(), strict=True)


def test_dask_asks_the_shards(project: Path) -> None:
    """Two processes of a local cluster ask, and the script ends with the verdict."""
    pytest.importorskip("distributed", reason="pip install 'pytest-fairness[machines]'")
    project.joinpath("ask_shards.py").write_text(DASK)
    printed = run(project, sys.executable, "ask_shards.py")
    assert f"merged 2 shards, {TRIALS} trials" in printed
    assert manifest(project)["replay_of_shards"] is True
