"""Every example runs as its README says, and says what it should."""

from __future__ import annotations

import json
import os
import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.sessions import run_pytest
from tests.support.shared_sessions import made_once, shared_folder

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(
    path.name for path in (ROOT / "examples").iterdir() if (path / "README.md").exists()
)


#: The README's arguments of pytest.
WHOLE = ("-m", "fairness", "examples")


@pytest.fixture(scope="module")
def session_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., tuple[Path, pytest.RunResult]]:
    """Runs the README's session, with further arguments, in a checkout of its own, once for all
    workers: the folder, which nobody changes, and how it ended.
    """
    shared = shared_folder(tmp_path_factory)

    def run(*arguments: str) -> tuple[Path, pytest.RunResult]:
        name = "".join(("examples", *arguments))
        folder = shared / name

        def make() -> tuple[int, list[str], list[str]]:
            folder.mkdir()
            check_out(folder, "examples", "baselines", "labels")
            made = run_examples(folder, *WHOLE, *arguments)
            return int(made.ret), made.outlines, made.errlines

        return folder, pytest.RunResult(*made_once(shared, name, make), 0)

    return run


def check_out(folder: Path, *names: str) -> None:
    """Copy these folders of the repository, and what configures pytest."""
    for name in names:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".fairness")
        )
    shutil.copy(ROOT / "pyproject.toml", folder)


def run_examples(folder: Path, *arguments: str, **variables: str) -> pytest.RunResult:
    """Run a session in a checkout, with these variables of the environment more."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    result: pytest.RunResult = run_pytest(
        folder, "-p", "no:cacheprovider", *arguments, environment={**environment, **variables}
    )
    return result


def results_of(folder: Path) -> dict[str, Any]:
    run = max((folder / ".fairness" / "runs").glob("2*"))
    return json.loads((run / "findings.json").read_text(encoding="utf-8"))


def findings_of(folder: Path, example: str) -> list[dict[str, Any]]:
    return [
        one
        for one in results_of(folder)["findings"]
        if one["nodeid"].startswith(f"examples/{example}/")
    ]


def test_they_pass_and_write_a_report(
    session_of: Callable[..., tuple[Path, pytest.RunResult]],
) -> None:
    """The README's command, which names the report; and those of the examples' own READMEs, which
    select from it.
    """
    folder, result = session_of()
    assert result.ret == 0, str(result.stdout)
    (report,) = re.findall(r"^report: (.+\.html)$", str(result.stdout), re.MULTILINE)
    assert "<html" in (folder / report).read_text(encoding="utf-8")
    for example in EXAMPLES:
        assert f"pytest examples/{example}" in (
            ROOT / "examples" / example / "README.md"
        ).read_text(encoding="utf-8")
        assert findings_of(folder, example), example


def test_two_workers_find_the_same(
    session_of: Callable[..., tuple[Path, pytest.RunResult]],
) -> None:
    folder, result = session_of("-n2")
    assert result.ret == 0, str(result.stdout)
    sentences = [
        {
            (finding["test_id"], finding["outcome"]): finding["sentence"]
            for finding in results_of(one)["findings"]
        }
        for one in (folder, session_of()[0])
    ]
    assert sentences[0] == sentences[1]


def test_the_letters_suite_catches_the_biased_branch(tmp_path: Path) -> None:
    """Which tests go red, and which stay green, is what the example's README shows."""
    check_out(tmp_path, "examples/application_letters", "baselines")
    result = run_examples(tmp_path, "--tb=no", "examples/application_letters", PERSONAL_TOUCH="1")
    red = re.findall(r"^FAILED \S+::(\w+)(?:\[|\s|$)", str(result.stdout), re.MULTILINE)
    assert set(red) == {
        "test_every_letter_is_clean",
        "test_no_group_gets_fewer_clean_letters",
        "test_letters_are_as_clean_at_any_age",
        "test_letters_keep_their_baseline",
    }
    assert red.count("test_every_letter_is_clean") == 25
    by_age = next(
        one
        for one in findings_of(tmp_path, "application_letters")
        if one["protected_class"] == "age"
    )
    assert by_age["verdict"] == "FAIL"
    readme = ROOT / "examples" / "application_letters" / "README.md"
    shown = "\n".join(wrapped(by_age["sentence"]))
    found = re.sub(
        r"(<!-- personal touch -->\n```text\n).*?(```)",
        rf"\g<1>{shown}\n\g<2>",
        readme.read_text("utf-8"),
        flags=re.DOTALL,
    )
    if os.environ.get("UPDATE_DOCS"):
        readme.write_text(found, encoding="utf-8")
    assert readme.read_text("utf-8") == found


def wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, 110, break_long_words=False, break_on_hyphens=False)


# Recomputed from the 4,870 published rows with R 4.2.2 and scipy 1.17.1, independently of this
# package.
PUBLISHED = {
    "impact_ratio": 0.6680851063829787,
    "impact_ratio_low": 0.5502405093838054,
    "impact_ratio_high": 0.8111683922919336,
    "fisher_p_value": 4.758747107909523e-05,
    "z": -4.108412152434346,
    "cohens_h": -0.11830724271934467,
    "odds_ratio": 1 / 1.5498841922408801,
}
BY_RACE = {
    "spec_chi2": 16.87905041427022,
    "spec_p_value": 3.983886837585076e-05,
    "yates_p_value": 4.997578389963255e-05,
    "fisher_p_value": 4.758747107909523e-05,
    "phi": -0.05887209958636103,
    "risk_difference": -0.032032854209445585,
    "risk_difference_low": -0.047382550272708546,
    "risk_difference_high": -0.01678196874970448,
    "risk_ratio": 0.6680851063829787,
    "odds_ratio": 1 / 1.5498841922408801,
    "t": -3.7556866052622,
    "df": 34,
}
BY_SEX = {
    "spec_chi2": 0.8729306891121232,
    "spec_p_value": 0.3501452457398324,
    "fisher_p_value": 0.38156164680424776,
    "risk_difference": 0.008644570816225328,
    "risk_difference_low": -0.010117573537141385,
    "risk_difference_high": 0.02532051408234211,
    "odds_ratio": 1.1275909573703602,
}


def test_the_audit_finds_what_was_published(
    session_of: Callable[..., tuple[Path, pytest.RunResult]],
) -> None:
    """Bertrand & Mullainathan 2004: 9.65 % against 6.45 %, a ratio of .668, clustered by 36 first
    names.
    """
    four_fifths, disparity, sex = findings_of(session_of()[0], "hiring_audit")

    rates = {group["group"]: group for group in four_fifths["group_results"]}
    assert rates["white"]["n"] == rates["black"]["n"] == 2435
    assert rates["white"]["value"] == pytest.approx(0.09650924024640657, abs=1e-12)
    assert rates["black"]["value"] == pytest.approx(0.06447638603696099, abs=1e-12)
    assert four_fifths["verdict"] == "FAIL"
    assert disparity["verdict"] == "FLAG"
    assert sex["verdict"] == "PASS"
    for finding, expected in ((four_fifths, PUBLISHED), (disparity, BY_RACE), (sex, BY_SEX)):
        (pair,) = finding["pairs"]
        for key, value in expected.items():
            assert pair["statistics"][key] == pytest.approx(value, rel=1e-9), key
    (pair,) = disparity["pairs"]
    assert pair["worse_off"] == "black"
    # Names vary, so the limits of the odds ratio are wider than Woolf's over calls, which are
    # published.
    assert pair["statistics"]["odds_ratio_low"] < 1 / 1.9127267725632628
    assert pair["statistics"]["odds_ratio_high"] > 1 / 1.2558725291114285
    # The name is the unit: Student's t over 18 + 18 name rates (.0944 against .0621) is what the
    # verdict reads.
    assert pair["p_cluster"] == pytest.approx(0.0006483426110671402, rel=1e-9)
    assert pair["p_value"] == pair["p_cluster"]
    assert pair["difference"] == pytest.approx(0.06208751369080902 - 0.09436534393815905, rel=1e-9)


def test_labels_mend_what_the_reader_overlooks(
    session_of: Callable[..., tuple[Path, pytest.RunResult]], tmp_path: Path
) -> None:
    """With the labels that lie in the repository the loan assistant passes, and its reader's recall
    is told by group; without them it is red.
    """
    folder, _ = session_of()
    (finding,) = findings_of(folder, "loan_answers")
    assert finding["verdict"] == "PASS"
    recall = {
        group: facts["recall"]["share"]
        for group, facts in finding["details"]["labels"]["race_ethnicity"].items()
    }
    assert recall["white"] == 1
    assert recall["black"] < 0.9
    leaks = finding["details"]["reader"]["leaks"]
    assert leaks
    assert all(leak["p_value"] > 0.05 for leak in leaks)
    check_out(tmp_path, "examples/loan_answers")
    result = run_examples(tmp_path, "examples/loan_answers")
    assert result.ret == 1
    assert "unvalidated reader" in str(result.stdout)
