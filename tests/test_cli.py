"""The command line: what ships passes its checks, planted faults do not, and every fault is told
with its reason.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pytest_fairness
from pytest_fairness.cli import COMMANDS, main, parser
from pytest_fairness.documents import shipped_folder

from .conftest import Cli

FIRST = "protected_class,group,gender,name,strength,perceived,bearers,source,year,licence,flags\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project's own personas folder, empty."""
    own = tmp_path / "personas"
    for name in ("names", "signals", "lexicon"):
        (own / name).mkdir(parents=True)
    return own


def test_what_ships_passes(cli: Cli) -> None:
    assert cli("names", "check") == (
        0,
        "425 first names and 234 surnames, as shipped: no problems\n",
        "",
    )
    code, out, _ = cli("personas", "check")
    assert (code, out) == (0, "100 personas and 44 kinds of signal, as shipped: no problems\n")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            "race_ethnicity,white,female,Zuzka,0.3,,500,S,2020,CC0,",
            "weak: strength 0.30 is under 0.5",
        ),
        (
            "race_ethnicity,white,female,Zuzka,0.9,0.2,500,S,2020,CC0,",
            "weak: 20% of readers named the group",
        ),
        (
            "race_ethnicity,white,female,Zuzka,0.9,,5,S,2020,CC0,",
            "rare: 5 bearers counted, under 30",
        ),
        (
            "race_ethnicity,white,female,Lakisha,0.9,,500,S,2020,CC0,",
            "ambiguous: in the groups black, white",
        ),
        ("race_ethnicity,white,female,Zuzka,0.9,,500,S,,CC0,", "no year of its source"),
        ("race_ethnicity,white,female,Zuzka,0.9,,500,S,2020,,", "no licence of its source"),
        ("race_ethnicity,white,female,Zuzka,,,,S,2020,CC0,", "has no figure for its signal"),
        (
            "race_ethnicity,white,female,Wilhelmina-Josephine,0.9,,500,S,2020,CC0,",
            "longer than other first names",
        ),
    ],
)
def test_planted_faults_in_names(cli: Cli, folder: Path, row: str, reason: str) -> None:
    """Exit code 1, one line a fault, with the name, its place and the reason."""
    (folder / "names" / "first_names.csv").write_text(FIRST + row + "\n", encoding="utf-8")
    code, out, _ = cli("names", "check", str(folder))
    assert code == 1
    assert reason in out
    assert out.splitlines()[-1].endswith(("1 problem", "2 problems"))


def test_too_few_names(cli: Cli) -> None:
    code, out, _ = cli("names", "check", "-n", "40")
    assert code == 1
    assert "under the 20 that 40 names need" in out


MATRIX = (shipped_folder() / "matrix.yaml").read_text(encoding="utf-8")
PLANTED: dict[str, tuple[str, str, str]] = {
    "quota": (
        "matrix.only.yaml",
        MATRIX.replace('gender: "female"', 'gender: "male"', 1),
        "gender: 44 female, not 45",
    ),
    "control": (
        "signals/age.yaml",
        "hobby: {source: x, groups: {younger: 'likes skating', older: 'likes gardening'}}",
        "age/hobby: has no control",
    ),
    "length": (
        "signals/age.yaml",
        "hobby: {source: x, control: 'likes it', groups: {younger: 'skates', older: 'likes to sit "
        "in the garden'}}",
        "age/hobby: unequal length",
    ),
    "term": (
        "labels.yaml",
        "disability: {source: x, groups: {physical: 'wheelchair-bound'}}",
        "uses 'wheelchair-bound'",
    ),
    "set": (
        "candidates.yaml",
        "mine: {source: x, groups: {a: [Ana A]}}",
        "mine: candidates has 1 groups",
    ),
    "set without source": (
        "candidates.yaml",
        "mine: {groups: {a: [Ana A], b: [Bo B]}}",
        "mine: source is missing",
    ),
    "arm": ("arms.yaml", "mine: {steps: [nothing]}", "there is no prompt 'nothing'"),
    "lexicon": (
        "lexicon/age.yaml",
        "mine: {match: ['[a|b'], severity: low, suggestion: x, source: y}",
        "has a bracket without its other",
    ),
    "strategy": (
        "strategies.yaml",
        "mine: {source: x, turns: ['Hello.']}",
        "{request} stands exactly once",
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_in_personas(cli: Cli, folder: Path, fault: str) -> None:
    """Quotas, signals, candidates, arms and strategies: exit code 1, and the reason."""
    name, text, reason = PLANTED[fault]
    (folder / name).write_text(text, encoding="utf-8")
    code, out, _ = cli("personas", "check", str(folder))
    assert code == 1
    assert reason in out


def test_scores_that_follow_a_group_are_found(cli: Cli, folder: Path) -> None:
    """Two points more for every man: a fair decision would look unfair."""
    people = MATRIX.split("persona-")
    for at, person in enumerate(people):
        if 'gender: "male"' in person:
            people[at] = "".join(
                "  technical_skills: 5.0\n" if "technical_skills" in line else line
                for line in person.splitlines(keepends=True)
            )
    (folder / "matrix.only.yaml").write_text("persona-".join(people), encoding="utf-8")
    code, out, _ = cli("personas", "check", str(folder))
    assert code == 1
    assert "technical_skills by gender: scores differ between the groups" in out


@pytest.mark.parametrize("command", [("names", "check"), ("personas", "check")])
def test_what_cannot_be_read_is_shown(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Exit code 2 and one sentence, no traceback."""
    code, out, err = cli(*command, str(tmp_path / "nowhere"))
    assert (code, out) == (2, "")
    assert err.startswith("pytest-fairness: ")
    assert "nowhere" in err


def test_the_command_is_installed_and_starts_light() -> None:
    """A console script; listing the commands imports neither pandas nor pytest."""
    project = tomllib.loads(
        (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    assert project["scripts"] == {"pytest-fairness": "pytest_fairness.cli:main"}
    code = (
        "import sys; from pytest_fairness.cli import parser; parser();"
        "heavy = {'pandas', 'numpy', 'scipy', 'pytest'} & set(sys.modules); sys.exit(repr(heavy) "
        "if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def declared() -> dict[str, argparse.ArgumentParser]:
    """Every command's parser."""
    whole = parser()
    return next(
        dict(action.choices) for action in whole._actions if isinstance(action.choices, dict)
    )


def test_help_teaches(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command stands once under its purpose; its own help has an example and the exit codes."""
    rows = [name for commands in COMMANDS.values() for name in commands]
    assert sorted(rows) == sorted(declared())
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    overview = capsys.readouterr().out
    assert [
        line.split()[0]
        for line in overview.splitlines()
        if line.split()[:1] and line.split()[0] in rows
    ] == rows
    assert all(line.isascii() or len(line) <= 120 for line in overview.splitlines())
    for name, command in declared().items():
        text = command.format_help()
        assert "exit codes: 0 " in text, name
        first, second, *_ = command.example.split()
        assert (first, second) == ("pytest-fairness", name)
        assert ("RUN is the folder" in text) == ("RUN" in command.format_usage()), name


def test_a_command_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["reprot"] if "report" in declared() else ["salvge"])
    assert "did you mean '" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"pytest-fairness {pytest_fairness.__version__}\n"


def test_what_the_machine_refuses_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cli: Cli
) -> None:
    def runs(command: Callable[[Any], Any]) -> None:
        parsed = SimpleNamespace(run=command)
        monkeypatch.setattr(
            "pytest_fairness.cli.parser", lambda: SimpleNamespace(parse_args=lambda _: parsed)
        )

    runs(lambda _: (tmp_path / "missing" / "table.csv").read_text())
    code, _, error = cli()
    assert code == 2
    assert (
        "table.csv cannot be read or written (No such file or directory): give another path"
        in error
    )

    runs(lambda _: ("d = −0.5", 0))  # a terminal whose code page has no minus sign
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert main([]) == 0

    shell = "pytest_fairness.cli import main; sys.exit(main(['names', 'check']))"
    started = subprocess.Popen(
        [sys.executable, "-c", f"import sys; from {shell}"], stdout=-1, stderr=-1
    )
    assert started.stdout is not None
    started.stdout.close()  # the reader has seen enough
    started.stdout = None
    assert started.communicate(timeout=60)[1] == b""


@pytest.mark.parametrize("what", ["names", "personas"])
def test_a_folder_that_extends_nothing_is_no_check(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people.yaml").write_text("[]")
    assert main([what, "check", str(tmp_path)]) == 2
    assert "holds nothing that is read" in capsys.readouterr().err
