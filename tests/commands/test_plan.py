"""``pytest-fairness plan``: samples that are large enough, and suites priced before anything is
asked.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_fairness.analysis.planning import assess_design, plan_sample
from pytest_fairness.cli import main
from pytest_fairness.commands import plan
from pytest_fairness.design.answer_forms import answer_form
from pytest_fairness.engine.scripts import Escalation, Pipeline, StrategyTurns
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Cell, Elicitation
from pytest_fairness.pytest_layer.estimate import Requests, requests_of
from pytest_fairness.pytest_layer.plans import PlannedCell
from pytest_fairness.runs.money import output_limit
from tests.conftest import Cli
from tests.support.sessions import forked
from tests.support.shared_sessions import made_once, shared_folder

ENDPOINTS = """
endpoints:
  - name: "paid"
    type: "openai"
    model: "made-up"
    base_url: "http://localhost:1/v1"
    price: {input_per_million: 2.0, output_per_million: 10.0}
  - name: "unlisted"
    type: "openai"
    model: "made-up-too"
    base_url: "http://localhost:1/v1"
"""
SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(
    template=["Write a reference for {name}.", "Describe {name}, a nurse."],
    groups={"gender": ["male", "female"]}, names=10, repetitions=3, parameters={"max_tokens": 50},
)
def test_whole(trials): ...

@pytest.mark.fairness_grid(
    template=["Write a reference for {name}."],
    groups={"gender": ["male", "female"]}, names=10, repetitions=3, parameters={"max_tokens": 50},
)
def test_part_of_it(trials): ...

@pytest.mark.fairness_grid(template="Greet {name}.", groups={"gender": ["male", "female"]}, names=2, repetitions=2)
def test_cells(cell): ...

@pytest.mark.fairness_grid(
    template="Advise {name}.", groups={"gender": ["male", "female"]}, names=20, temperatures=["default", 0.0],
)
def test_heat(trials):
    assert_no_disparity(trials, outcome="decision", by="gender")

class TestOwnSystem:
    @pytest.fixture
    def endpoint(self):
        raise AssertionError("planning asks nothing")

    @pytest.mark.fairness_grid(template="Hire {name}?", groups={"gender": ["male", "female"]}, names=20)
    def test_own(self, trials): ...

def test_no_grid(): ...
"""


@pytest.fixture
def cli(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command. The process that collects is forked; that of the fixture ``suite`` is started
    as anywhere else.
    """
    monkeypatch.setattr(plan, "subprocess", SimpleNamespace(run=forked))
    return cli


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "endpoints.yaml").write_text(ENDPOINTS, encoding="utf-8")
    (folder / "test_suite.py").write_text(SUITE, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def suite(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The whole suite, priced once for all workers, for an endpoint that is named."""

    def price() -> dict[str, Any]:
        assumed = ("--endpoint", "paid", "--latency", "3", "--concurrency", "8")
        arguments = ("plan", "--json", *assumed, "--suite", str(project), "-p", "no:cacheprovider")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(arguments) == 1
        return dict(json.loads(out.getvalue()))

    return made_once(shared_folder(tmp_path_factory), "priced_suite", price)


def by_test(suite: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{t['test'].split('::', 1)[1]} {t['temperature']}": t for t in suite["tests"]}


# ---------------------------------------------------------------- a sample


def test_a_sample_is_planned_as_text_and_as_json(cli: Cli) -> None:
    """Both say what ``plan_sample`` says."""
    arguments = (
        "plan",
        "--kind",
        "numeric",
        "--groups",
        "4",
        "--effect",
        ".5",
        "--power",
        ".8",
        "--icc",
        ".04",
    )
    planned = plan_sample("numeric", groups=4, effect=0.5, power=0.8, icc=0.04)
    code, text, _ = cli(*arguments)
    assert code == 0
    assert f"names a group  {planned.names}" in text
    assert f"{planned.calls:,} ({planned.calls_per_group:,} a group)" in text
    assert f"d = 0.5 in {100 * planned.power:.0f} % of pairs that differ so" in text
    as_json = json.loads(cli(*arguments, "--json")[1])
    assert (as_json["names"], as_json["calls"], as_json["power"]) == (
        planned.names,
        planned.calls,
        planned.power,
    )


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--effect", "0"), "effect=0.0"),
        (("--groups", "1"), "groups=1"),
        (("--names", "2", "--effect", ".1"), "names=2"),
        (("--latency", "0", "--suite", "x"), "--latency=0.0"),
        (("--concurrency", "-1", "--suite", "x"), "--concurrency=-1"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_argument(
    cli: Cli, arguments: tuple[str, ...], shown: str
) -> None:
    """Exit code 2, and the argument by name."""
    code, out, err = cli("plan", *arguments)
    assert (code, out) == (2, "")
    assert shown in err


def test_a_standing_design_is_assessed_as_the_planner_would() -> None:
    """The design that the planner gives finds what it was planned for."""
    planned = plan_sample("binary", groups=4, effect=0.5, templates=5, repetitions=2, rate=0.3)
    found = assess_design(
        "binary",
        groups=4,
        names=planned.names,
        trials=planned.calls_per_group,
        templates=5,
        repetitions=2,
        rate=0.3,
    )
    assert (found.power, found.pass_probability) == pytest.approx(
        (planned.power, planned.pass_probability)
    )
    assert (found.can_pass, found.can_fail, found.why) == (True, True, "")


@pytest.mark.parametrize(
    ("names", "trials", "reach", "why"),
    [
        (20, 200, (True, True), ""),
        (20, 29, (False, False), "29 of at least 30 trials a group"),
        (1, 200, (True, False), "FAIL is capped at FLAG"),
        (0, 200, (True, False), "FAIL is capped at FLAG"),
        (2, 30, (False, True), "too small for a PASS"),
    ],
)
def test_verdicts_out_of_reach_are_shown(
    names: int, trials: int, reach: tuple[bool, bool], why: str
) -> None:
    """Too few trials decide nothing, one name cannot FAIL, two names cannot PASS."""
    found = assess_design("numeric", groups=2, names=names, trials=trials, icc=0.3)
    assert (found.can_pass, found.can_fail) == reach
    assert why in found.why
    with pytest.raises(UsageError, match="trials=0"):
        assess_design("numeric", groups=2, names=2, trials=0)


def test_at_temperature_0_repetitions_are_trials_that_tell_nothing_more() -> None:
    """20 names asked 10 times the same count as 200 trials, and find what 20 replies find."""
    once = assess_design(groups=2, names=20, trials=40, templates=2)
    repeated = assess_design(
        groups=2, names=20, trials=400, templates=2, repetitions=10, repeats=True
    )
    assert (repeated.power, repeated.pass_probability) == (once.power, once.pass_probability)
    assert "tell nothing more" in repeated.notes[0]


# ---------------------------------------------------------------- counting requests


def a_cell(*turns: str, system: str | None = None) -> Cell:
    return Cell(id="c", template="t", turns=turns, groups={}, system=system)


def test_a_conversation_sends_what_was_shown_before_again() -> None:
    """Two turns: the second request holds both, and the reply between; the system prompt stands in
    each.
    """
    few, most = requests_of(PlannedCell(a_cell("abc", "de", system="s")))
    assert (
        few == most == Requests(requests=2, messages=2 + 4, text=(3 + 1) + (3 + 2 + 1), replies=1)
    )


def test_strategies_take_one_request_or_all_of_them() -> None:
    """At the fewest the first strategy is answered; at the most all are tried."""
    ladder = Escalation(
        strategies=(StrategyTurns("plain", ("ab",)), StrategyTurns("role", ("x", "y"))),
        usable=lambda _text: True,
        version="1",
    )
    few, most = requests_of(PlannedCell(a_cell("ab"), ladder))
    assert few == Requests(1, 1, 2, 0)
    assert most == Requests(3, 1 + 1 + 3, 2 + 1 + 2, 1)


def test_a_pipeline_hands_each_reply_to_the_next_step() -> None:
    """One request a step; bytes are counted in UTF-8."""
    few, most = requests_of(PlannedCell(a_cell("é", "{text}"), Pipeline(systems=(None, "ss"))))
    assert few == most == Requests(2, 3, 2 + 6 + 2, 1)


@pytest.mark.parametrize(
    ("parameters", "limit"),
    [
        ({}, None),
        ({"max_tokens": 50}, 50),
        ({"max_tokens": True}, None),
        ({"max_tokens": 5, "num_predict": 9}, 9),
    ],
)
def test_the_limit_of_a_reply_is_read_from_the_parameters(
    parameters: dict[str, Any], limit: int | None
) -> None:
    assert output_limit(parameters) == limit


# ---------------------------------------------------------------- a suite


def test_a_suite_is_counted_test_by_test(suite: dict[str, Any]) -> None:
    """Items, and the cells and trials of the last look; a temperature is a test of its own; a test
    without a grid is none.
    """
    tests = by_test(suite)
    assert {name: (t["items"], t["cells"], t["trials"]) for name, t in tests.items()} == {
        "test_whole None": (1, 80, 240),
        "test_part_of_it None": (1, 40, 120),
        "test_cells None": (4, 4, 8),
        "test_heat None": (1, 80, 400),
        "test_heat 0.0": (1, 80, 400),
        "TestOwnSystem::test_own None": (1, 80, 400),
    }
    looks = {name: test["looks"] for name, test in tests.items()}
    assert looks["test_whole None"] == [10, 20]
    assert looks["test_heat None"] == [20, 40]
    assert looks["test_cells None"] == []
    # The same text for the same names, asked as often: a run asks it once. The smaller design is
    # decided later, and asks what the larger one is not expected to.
    part = tests["test_part_of_it None"]
    assert (part["shared"], part["most_trials"], part["most_requests"]) == (120, 0, 0)
    assert 0 < part["fair_trials"] == part["requests"] < 42
    assert tests["test_heat 0.0"]["shared"] == 0


def test_the_price_is_that_of_the_tokens(suite: dict[str, Any]) -> None:
    """Expected: a token for four bytes and four a message, of the trials that the looks at a fair
    system ask. At most: all looks, a token a byte, and replies at their limit.
    """
    whole = by_test(suite)["test_whole None"]
    fair = whole["output_tokens"] / 50
    assert whole["requests"] == whole["fair_trials"] == round(fair)
    assert 120 < fair < whole["biased_trials"] < whole["most_trials"] == 240
    assert whole["most_requests"] == 240
    assert whole["cost"] == pytest.approx(
        (whole["input_tokens"] * 2.0 + fair * 50 * 10.0) / 1e6, rel=1e-3
    )
    assert whole["cost_of_all_looks"] == pytest.approx(whole["cost"] * 240 / fair, rel=1e-3)
    assert whole["biased_cost"] == pytest.approx(
        whole["cost"] * whole["biased_trials"] / fair, rel=1e-2
    )
    text = 4 * (whole["input_tokens"] / fair - 4)
    assert whole["most_cost"] == pytest.approx(
        240 * ((text + 16) * 2.0 + 50 * 10.0) / 1e6, rel=1e-3
    )
    assert whole["seconds"] == pytest.approx(fair / 8 * 3.0, rel=1e-2)


def test_replies_are_as_long_as_the_scorers_ask_for(suite: dict[str, Any]) -> None:
    """A test that names a decision expects a short reply, one that names nothing a letter, none
    more than its limit.
    """
    tests = by_test(suite)
    names = ("test_heat None", "test_cells None", "test_whole None")
    assert [tests[name]["reply_tokens"] for name in names] == [60, 200, 50]


def test_the_chance_of_a_false_red_is_that_of_the_session(suite: dict[str, Any]) -> None:
    """The tests that ask trials share it, however many they are."""
    assert suite["false_alarm"] == 0.05


def test_a_system_of_its_own_has_no_price_until_an_endpoint_is_named(
    cli: Cli, suite: dict[str, Any], project: Path
) -> None:
    """Only the test knows what its system calls; naming an endpoint says that it is that."""
    code, text, _ = cli(
        "plan", "--json", "--reply-tokens", "33", "--suite", str(project), "-p", "no:cacheprovider"
    )
    silent = json.loads(text)
    assert code == 1
    assert [test["test"] for test in silent["tests"] if test["cost"] is None] == [
        "test_suite.py::TestOwnSystem::test_own"
    ]
    assert "--endpoint" in silent["unpriced"]
    assert {test["reply_tokens"] for test in silent["tests"]} == {33}
    assert not [test for test in suite["tests"] if test["cost"] is None]
    assert suite["unpriced"] == ""


def test_designs_that_cannot_conclude_are_problems(suite: dict[str, Any]) -> None:
    """Two names in one template; with what it would take."""
    assert [problem.split(":", 3)[2] for problem in suite["problems"]] == ["test_cells"]
    gender = by_test(suite)["test_cells None"]["classes"]["gender"]
    assert "4 of at least 30 trials" in gender["why"]
    assert "names a group (now 2)" in gender["needs"]


def test_the_command_tells_it_all(cli: Cli, project: Path) -> None:
    """One test selected by pytest's own arguments, priced, exit code 0; nothing is asked and no run
    is made.
    """
    code, text, err = cli(
        "plan",
        "--endpoint",
        "paid",
        "--latency",
        "1",
        "--suite",
        str(project),
        "-k",
        "whole",
        "-p",
        "no:cacheprovider",
    )
    assert (code, err) == (0, "")
    assert "endpoint paid" in text
    assert "2 groups of 20 names, finds d = " in text
    assert "Chance of a false red at most 5.0 %" in text
    bill = r"  1 test, expected 1\d\d trials \(\$0\.10\) if fair, 2\d\d \(\$0\.11\) for d = 0\.5, at most 240"
    assert re.search(bill, text), text
    assert "    looks at 10 and 20 names a group; expected 1" in text
    assert "at most $" not in text
    assert "unknown" not in text
    assert not (project / ".fairness").exists()


def test_an_unknown_price_is_shown_and_json_is_whole(cli: Cli, project: Path) -> None:
    """null and the reason, never a guess; problems make exit code 1."""
    code, text, _ = cli(
        "plan",
        "--json",
        "--endpoint",
        "unlisted",
        "--suite",
        str(project),
        "-k",
        "cells",
        "-p",
        "no:cacheprovider",
    )
    shown = json.loads(text)
    assert code == 1
    assert shown["tests"][0]["cost"] is None
    assert "'unlisted' is unknown" in shown["unpriced"]
    assert len(shown["problems"]) == 1


def test_several_endpoints_are_priced_each(cli: Cli, project: Path) -> None:
    """A test that brings its own system is asked once, and has no price then."""
    chosen = ("--suite", str(project), "-k", "whole or own", "-p", "no:cacheprovider")
    code, text, _ = cli("plan", "--json", "--endpoint", "all", *chosen)
    shown = json.loads(text)
    assert (code, shown["endpoint"]) == (0, "paid,unlisted")
    tests = [
        (one["test"].rpartition("::")[2], one["endpoint"], one["cost"] is None)
        for one in shown["tests"]
    ]
    assert sorted(tests, key=str) == [
        ("test_own", None, True),
        ("test_whole", "paid", False),
        ("test_whole", "unlisted", True),
    ]
    code, text, _ = cli("plan", "--endpoint", "paid,unlisted", *chosen)
    assert "endpoints paid, unlisted\n" in text
    assert "    unlisted: unknown\n    the tests' own systems: unknown\n" in text
    code, text, _ = cli("plan", "-v", "--endpoint", "paid,unlisted", *chosen)
    assert "test_whole, tier 2 asks unlisted" in text


def test_the_bill_comes_first_and_tests_are_folded(cli: Cli, project: Path) -> None:
    """A function is one entry, whatever its temperatures and tiers; ``-v`` shows each, and what it
    costs at worst.
    """
    chosen = ("--suite", str(project), "-k", "heat or whole", "-p", "no:cacheprovider")
    code, text, _ = cli("plan", "--endpoint", "paid", *chosen)
    assert code == 0
    assert (
        text.index("  3 tests, expected ")
        < text.index("  cost about $")
        < text.index("test_suite.py::")
    )
    assert text.count("test_suite.py::test_heat\n") == 1
    assert "binary outcome by 2 classes, finds d = 0.5 in" in text
    assert "1 of 4 comparisons can never PASS or never FAIL (-v says which)" in text
    code, text, _ = cli("plan", "--endpoint", "paid", "-v", *chosen)
    assert "test_heat at temperature 0, tier 2 asks paid\n" in text
    assert "at most $" in text


def test_the_kind_of_outcome_is_that_of_the_scorer(
    cli: Cli, suite: dict[str, Any], project: Path
) -> None:
    """A decision is planned as a yes or no, what names no scorer as a number; what is given wins."""
    tests = by_test(suite)
    kinds = {
        name: tests[name]["classes"]["gender"]["kind"]
        for name in ("test_heat None", "test_whole None")
    }
    assert kinds == {"test_heat None": "binary", "test_whole None": "numeric"}
    chosen = ("--suite", str(project), "-k", "heat", "-p", "no:cacheprovider")
    given = json.loads(cli("plan", "--json", "--kind", "ordinal", *chosen)[1])["tests"]
    assert {one["classes"]["gender"]["kind"] for one in given} == {"ordinal"}
    expected = assess_design("binary", groups=2, names=40, trials=200, templates=1, repetitions=5)
    assert tests["test_heat None"]["classes"]["gender"]["power"] == expected.power


KINDS = """
import pytest
from pytest_fairness import assert_four_fifths, assert_no_disparity, scorer

@scorer(kind="categorical")
def team(reply): ...

GRID = pytest.mark.fairness_grid(template="Hire {name}?", groups={"gender": ["male", "female"]}, names=20)

@GRID
def test_own(trials, level):
    assert_no_disparity(trials, team, by="gender", alpha=level)

@GRID
def test_given(trials):
    assert_no_disparity(trials, team, by="gender", kind="ordinal")

@GRID
def test_ratio(trials):
    assert_four_fifths(trials, "rating", "gender")

@GRID
@pytest.mark.fairness(alpha=0.001)
def test_several(trials):
    for outcome in ("sentiment", "decision"):
        assert_no_disparity(trials, outcome, by="gender")

@pytest.fixture
def level():
    return 0.05
"""


def test_kinds_by_calls(cli: Cli, tmp_path: Path) -> None:
    """A scorer of the project's own, a kind that the call gives, what an analysis takes; of several
    the one that the design does worst with, at the level that the test declares.
    """
    (tmp_path / "test_kinds.py").write_text(KINDS, encoding="utf-8")
    _, text, err = cli("plan", "--json", "--suite", str(tmp_path), "-p", "no:cacheprovider")
    assert err == ""
    found = {
        one["test"].rpartition("::")[2]: one["classes"]["gender"]
        for one in json.loads(text)["tests"]
    }
    kinds = {name: design["kind"] for name, design in found.items()}
    assert kinds == {
        "test_own": "categorical",
        "test_given": "ordinal",
        "test_ratio": "binary",
        "test_several": "binary",
    }
    assert found["test_several"]["power"] < found["test_ratio"]["power"]


def test_the_programme_takes_two_screens(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """296 items are nineteen entries, however few names they ask about: ten tests, and nine of them
    at temperature 0.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bias.yaml").write_text("names: 10\n", encoding="utf-8")
    suite = (
        "--pyargs",
        "pytest_fairness.suites.bias",
        "--fairness-tier=all",
        "-p",
        "no:cacheprovider",
    )
    _, text, err = cli("plan", "--suite", *suite)
    assert err == ""
    assert "  296 tests, expected " in text
    assert text.count("::test_") == 19
    assert len(text.splitlines()) <= 80


def test_the_looks_that_pass_a_fair_system(cli: Cli, project: Path) -> None:
    """Of a sample and of a suite, with what they cost; more where a rate is near 1, and none where
    nothing is so sure.
    """
    wanted = "to pass a fair system that approves 95 % in 8 of 10 runs: looks"
    code, text, _ = cli("plan", "--rate", ".95", "--groups", "4", "--pass-in", ".8")
    assert code == 0
    assert text.startswith(f"{wanted} at 10, 20, 40 and 80 names a group, about 2,6")
    shown = json.loads(cli("plan", "--rate", ".5", "--groups", "4", "--pass-in", ".8", "--json")[1])
    assert shown["looks"] == [10, 20]
    assert shown["calls"]["fair"] < shown["calls"]["most"] == 800
    chosen = ("--suite", str(project), "-k", "heat", "-p", "no:cacheprovider")
    arguments = ("plan", "--endpoint", "paid", "--rate", ".95", "--pass-in", ".8", *chosen)
    text = cli(*arguments)[1]
    assert re.search(rf"    {wanted} to 160 names, about \$\d\.\d\d\n", text), text
    assert cli("plan", "--pass-in", ".999999")[1].endswith("of 10 runs: no looks do\n")
    assert cli("plan", "--pass-in", "1")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("-k", "no_grid"), "no test with a grid among 1 collected items"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_a_suite_that_cannot_be_priced_is_refused(
    cli: Cli, project: Path, arguments: tuple[str, ...], shown: str
) -> None:
    """Exit code 2, with what pytest said."""
    code, out, err = cli("plan", "--suite", str(project), *arguments)
    assert (code, out) == (2, "")
    assert shown in err


def test_an_error_in_the_suite_is_shown(cli: Cli, tmp_path: Path) -> None:
    """A file that does not import is not left out of the price in silence."""
    (tmp_path / "test_good.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "test_broken.py").write_text("import no_such_module_at_all\n", encoding="utf-8")
    code, _, err = cli("plan", "--suite", str(tmp_path), "-p", "no:cacheprovider")
    assert code == 2
    assert "no_such_module_at_all" in err


def test_node_ids_cannot_write_to_the_terminal(suite: dict[str, Any]) -> None:
    """A hostile test name is spelled out."""
    assert "\x1b" not in plan._table(
        {**suite, "tests": [{**suite["tests"][0], "test": "test_a.py::test\x1b[31m"}]}
    )


def test_labels_for_a_reader_that_errs(cli: Cli) -> None:
    """Fewer for a better reader; of a yes or no alone."""
    needed = []
    for quality in ("0.8", "0.95"):
        code, out, _ = cli("plan", "--rate", ".3", "--reader", quality)
        assert code == 0
        needed.append(int(re.findall(r"^labels +about ([\d,]+) a group", out, re.MULTILINE)[0]))
    assert 20 < needed[1] < needed[0] < 200
    for wrong in (("--rate", ".3", "--reader", ".4"), ("--reader", ".9")):
        code, _, error = cli("plan", *wrong)
        assert code == 2
        assert "a share between .5 and 1, of a yes/no outcome" in error


FORMS = """
import pytest
from pytest_fairness import assert_no_disparity

def asks(**given):
    return pytest.mark.fairness_grid(template="Hire {name}? {answer}", groups={"gender": ["male", "female"]},
                                     names=10, system="You hire nurses.",
                                     answer={"decision": ["hire", "reject"]}, **given)

@asks()
def test_form(trials):
    assert_no_disparity(trials, outcome="decision", by="gender")

@asks(answer_form=False)
def test_prose(trials):
    assert_no_disparity(trials, outcome="decision", by="gender")
"""
SPOKEN = """
  - name: "spoken"
    type: "openai"
    model: "made-up"
    base_url: "http://localhost:2/v1"
    supports_structured_output: false
    price: {input_per_million: 2.0, output_per_million: 10.0}
"""


def test_asking_for_a_form_and_reading_are_priced(cli: Cli, tmp_path: Path) -> None:
    """The words that ask for an answer by form or by line, the schema with them, and the reading
    turns of what is asked in prose.
    """
    (tmp_path / "endpoints.yaml").write_text(ENDPOINTS + SPOKEN, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfairness_reader = paid\n", encoding="utf-8")
    (tmp_path / "test_suite.py").write_text(FORMS, encoding="utf-8")
    arguments = ("--endpoint", "paid,spoken", "--suite", str(tmp_path), "-p", "no:cacheprovider")
    suite = json.loads(cli("plan", "--json", *arguments)[1])
    tests = {(t["test"].split("::")[1], t["endpoint"]): t for t in suite["tests"]}
    form = answer_form({"decision": ["hire", "reject"]})
    assert form is not None
    schema = len(json.dumps(form.response_format))
    said = len(form.sentence(Elicitation.FORM)) + 1  # and a blank before it
    lined = len(form.sentence(Elicitation.LINE)) + 1
    for (name, endpoint), characters in {
        ("test_form", "paid"): said + schema,
        ("test_form", "spoken"): lined,
        ("test_prose", "paid"): 0,
        ("test_prose", "spoken"): 0,
    }.items():
        test = tests[name, endpoint]
        assert test["form_tokens"] == pytest.approx(test["requests"] * characters / 4, rel=0.01)
        assert test["form_cost"] == pytest.approx(test["form_tokens"] * 2 / 1e6)
        bare = test["input_tokens"] - test["form_tokens"]
        assert bare == pytest.approx(tests["test_prose", "paid"]["input_tokens"], rel=0.02)
        asked_in_prose = name == "test_prose"
        usual = 2 * test["fair_trials"] * asked_in_prose
        assert test["readings"] == pytest.approx(usual, abs=1)  # of half a trial
        assert test["most_readings"] == 2 * test["most_trials"]
        sent = 300 + test["reply_tokens"]
        each = (sent * 2 + 20 * 10) / 1e6
        assert test["most_reading_cost"] == pytest.approx(each * test["most_readings"])
    text = cli("plan", *arguments)[1]
    form_tokens = sum(test["form_tokens"] for test in tests.values())
    assert f"{form_tokens:,} of the tokens in ask for an answer by form or by line" in text
    readings = sum(test["readings"] for test in tests.values())
    assert f"paid reads: {readings:,} ($" in text
