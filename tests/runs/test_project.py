"""Which run is meant: by whatever name, from wherever in the project, whatever its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.errors import UsageError
from pytest_fairness.runs.project import chosen_run, runs_root
from tests.support.sessions import run_pytest

IDS = ("2026-02-28-001", "2026-02-28-002", "2026-02-28-010", "2026-03-01-001")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Four runs, and a folder below."""
    for id_ in IDS:
        run = tmp_path / ".fairness" / "runs" / id_
        run.mkdir(parents=True)
        (run / "manifest.json").write_text("{}")
        (run / "findings.json").write_text('{"findings": [{}]}')
    (tmp_path / "tests" / "deep").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (IDS[1], 1),
        ("2026-03", 3),
        ("2026-02-28-01", 2),
        ("last", 3),
        ("last~0", 3),
        ("last~3", 0),
        ("../../.fairness/runs/2026-02-28-001", 0),
        ("../../.fairness/runs/2026-02-28-001/", 0),
    ],
)
def test_a_run_is_found_from_below(project: Path, name: str, meant: int) -> None:
    run = chosen_run(name, project / "tests" / "deep")
    assert run.resolve() == (project / ".fairness" / "runs" / IDS[meant]).resolve()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "2026-02-28-0",
            "3 runs that begin with '2026-02-28-0': 2026-02-28-010, 2026-02-28-002, 2026-02-28-001",
        ),
        ("2026-02-28-003", "no run '2026-02-28-003'; near ones are: 2026-02-28-0"),
        ("letters", "the newest are: 2026-03-01-001, 2026-02-28-010"),
        ("", "'' is not the folder of a run"),
        ("last~4", "only 4 runs that judged something; the newest are: 2026-03-01-001"),
        (
            "tests/deep",
            "'tests/deep' is not the folder of a run: it has neither manifest.json nor records",
        ),
        ("..", "is not the folder of a run"),
        ("\x1b]0;x", r"no run '\x1b]0;x'"),
    ],
)
def test_what_means_no_run_is_answered_with_those_near(
    project: Path, name: str, problem: str
) -> None:
    with pytest.raises(UsageError) as raised:
        chosen_run(name, project)
    assert problem in str(raised.value)


CONFIGURATIONS = {
    "pytest.toml": '[pytest]\nfairness_run_dir = "kept"\n',
    ".pytest.ini": "[pytest]\nfairness_run_dir = kept\n",
    "pytest.ini": "[pytest]\nfairness_run_dir=kept\naddopts =\n  -q\n  -ra\n",
    "pyproject.toml": '[tool.pytest]\nminversion = "9.0"\nfairness_run_dir = "kept"\n',
    "tox.ini": "[tox]\nenvlist = py\n[pytest]\nfairness_run_dir = kept\n",
    "setup.cfg": "[metadata]\nname = x\n[tool:pytest]\nfairness_run_dir = kept\n",
    "older/pyproject.toml": '[tool.pytest.ini_options]\nfairness_run_dir = "kept"\n',
}


@pytest.mark.parametrize("path", CONFIGURATIONS)
def test_runs_lie_where_the_configuration_says(tmp_path: Path, path: str) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / Path(path).name).write_text(CONFIGURATIONS[path])
    assert runs_root(tmp_path / "below") == tmp_path / "kept"


def test_configuration_is_chosen_as_pytest_does(tmp_path: Path) -> None:
    """Of several files the one that pytest itself takes: an empty pytest.ini wins, a pyproject.toml
    about other things does not count.
    """
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nfairness_run_dir = "outer"\n'
    )
    middle, inner = tmp_path / "middle", tmp_path / "middle" / "inner"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    (inner / "setup.cfg").write_text("[metadata]\nname = x\n")
    assert runs_root(inner) == tmp_path / "outer"
    (middle / "pytest.ini").write_text("")
    (middle / "tox.ini").write_text("[pytest]\nfairness_run_dir = tox\n")
    assert runs_root(inner) == middle / ".fairness" / "runs"
    (inner / "test_where.py").write_text(
        "def test_where(request):\n"
        "    from pathlib import Path\n"
        "    from pytest_fairness.pytest_layer.options import settings_of\n"
        "    from pytest_fairness.runs.project import runs_root\n"
        "    assert settings_of(request.config).run_dir == runs_root(Path.cwd())\n"
    )
    result = run_pytest(inner, "-q", "-p", "no:cacheprovider")
    assert result.ret == 0, str(result.stdout)


def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest\n")
    with pytest.raises(UsageError, match=r"pyproject\.toml cannot be read"):
        runs_root(tmp_path)
