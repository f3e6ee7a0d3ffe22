"""F72 of the catalogue in docs/reliability.md: reasons dated in the future or without an end, and
reports on a link.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from pytest_fairness.baselines.justifications import LONGEST, parse, read_file
from pytest_fairness.cli import main
from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.reports import outputs
from tests.support.justifications import APPROVED, EXPIRES, IN_FORCE

from .conftest import Project, words

TABLE = """
import pandas as pd, pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness(MARK)
def test_hired():
    rows = [("a", number < 240) for number in range(400)] + [("b", number < 192) for number in range(400)]
    assert_no_disparity(pd.DataFrame(rows, columns=["race", "hired"]), outcome="hired", by="race", cluster=None)
"""
LATER = str(datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=200))
DATES = {
    "in the future": ({"date": LATER, "expiry": LATER}, f"date is {LATER}, which is in the future"),
    "without an end": (
        {"expiry": "9999-12-31"},
        "expiry is 9999-12-31, more than three years after its date",
    ),
    "a day too long": (
        {"expiry": str(EXPIRES + datetime.timedelta(days=1))},
        "more than three years after its date",
    ),
    "before its date": (
        {"expiry": "2020-01-01"},
        f"expiry is 2020-01-01, before its own date ({APPROVED})",
    ),
}
ABOUT = {"ledger": [], "price": None, "prompts": (), "secrets": ()}


@pytest.mark.parametrize(("changed", "complaint"), DATES.values(), ids=DATES)
def test_f72_a_justification_that_was_never_given_or_never_ends(
    project: Project, tmp_path: Path, changed: dict[str, str], complaint: str
) -> None:
    """At the test and in the file: refused, naming the date, before anything is asked or judged."""
    given = {**IN_FORCE, **changed}
    with pytest.raises(UsageError) as refusal:
        parse(given, "test_x.py::test_y: justification")
    assert complaint in str(refusal.value)
    file = tmp_path / "justifications.yaml"
    entry = "".join(f"  {key}: {value}\n" for key, value in given.items())
    file.write_text(f"- test: test_suite.py::test_hired\n{entry}", encoding="utf-8")
    with pytest.raises(UsageError) as refusal:
        read_file(file)
    assert complaint in str(refusal.value)
    assert f"{file}:" in str(refusal.value)
    project.write(TABLE.replace("MARK", f"justification={given}"))
    case = project.run(**ABOUT)
    assert case.code != 0
    assert complaint in words(case)
    assert "PASS" not in words(case)
    project.write(TABLE.replace("MARK", ""))
    (project.path / "justifications.yaml").write_text(file.read_text("utf-8"), encoding="utf-8")
    case = project.run(**ABOUT)
    assert case.code != 0
    assert complaint in words(case)


def test_f72_the_longest_justification_counts(project: Project) -> None:
    """Three years to the day, approved where today begins first."""
    today = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=14)).date()
    for date in (APPROVED, today):
        assert (
            parse({**IN_FORCE, "date": str(date), "expiry": str(date + LONGEST)}, "here").date
            == date
        )
    project.write(TABLE.replace("MARK", f"justification={IN_FORCE}"))
    case = project.run(**ABOUT)
    assert case.code == 0, case.output
    assert "1 FLAG" in words(case)


@pytest.mark.parametrize("mode", [[], ["-n2"]], ids=["plain", "n2"])
def test_f72_a_report_on_a_link(
    project: Project, mode: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not followed: the session is refused before it begins, and the command too; what it
    points to stays.
    """
    project.write(TABLE.replace("MARK", ""))
    target, link = project.path.parent / f"{project.path.name}-precious", project.path / "report.md"
    target.write_text("precious", encoding="utf-8")
    link.symlink_to(target)
    case = project.run(*mode, "--fairness-markdown=report.md", **ABOUT)
    assert case.code == pytest.ExitCode.USAGE_ERROR
    assert "is a symbolic link, which is not followed" in words(case)
    assert project.run(*mode, **ABOUT).code == 1
    monkeypatch.chdir(project.path)
    for option in ("--markdown", "--html", "--junit", "--sarif", "--code-quality"):
        assert main(["report", "last", option, "report.md"]) == 2
    assert target.read_text("utf-8") == "precious"
    link.unlink()
    assert main(["report", "last", "--markdown", "report.md"]) == 0
    assert link.read_text("utf-8").startswith("<!-- pytest-fairness -->")


def test_f72_a_link_that_appears_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the writing."""
    target, link = tmp_path / "precious", tmp_path / "report.md"
    target.write_text("precious", encoding="utf-8")
    link.symlink_to(target)
    monkeypatch.setattr(outputs, "refuse_link", lambda _: None)
    with pytest.raises(StoreError, match="cannot be written"):
        outputs._write(link, b"mine")
    assert target.read_text("utf-8") == "precious"
