"""Before an alarm stands it is looked at again, on this sample and one on other names together; in every mode."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints import simulated_endpoint
from tests.support.servers import ModelServer

from .conftest import BIASED, GRID, Run

Findings = Callable[[], list[dict[str, Any]]]


def names_asked(run_folder: Path) -> dict[str, set[str]]:
    """The names of each group in the run's log."""
    asked: dict[str, set[str]] = {}
    for log in run_folder.glob("trials*.jsonl"):
        for text in log.read_text(encoding="utf-8").splitlines():
            record = json.loads(text)
            if record.get("type") == "trial":
                asked.setdefault(record["cell"]["groups"]["race_ethnicity"], set()).add(record["cell"]["name"])
    return asked


def biased(pytester: pytest.Pytester, source: str = GRID) -> None:
    pytester.makepyfile(source)
    pytester.path.joinpath("endpoints.yaml").write_text(BIASED, encoding="utf-8")


def test_a_planted_bias_is_confirmed_on_other_names_and_fails(
    pytester: pytest.Pytester, run: Run, findings: Findings, last_run: Callable[[], Path]
) -> None:
    """Without any option: twice twenty names a group, none in both samples; the report has both."""
    biased(pytester)
    result = run("--fairness-endpoint", "planted")
    result.assert_outcomes(failed=1)
    (finding,) = findings()
    assert finding["verdict"] == "FAIL"
    assert finding["n_per_group"] == {"black": 160, "white": 160}
    told = finding["details"]["confirmation"]
    assert (told["confirmed"], told["sample"]) == (True, "20 other names a group")
    assert told["first"]["n_per_group"] == {"black": 80, "white": 80}
    assert {group: len(names) for group, names in names_asked(last_run()).items()} == {"black": 40, "white": 40}
    text = " ".join(result.stdout.str().split())
    assert "an alarm is first asked about again, with up to 160 trials more" in text
    assert "FAIL [simulated, confirmed]: black is worse off than white" in text
    assert "confirmed with 20 other names a group." in text
    assert "turned this session red with a chance of at most 1.3 %" in text
    assert "confirmed" in (last_run() / "report.html").read_text(encoding="utf-8")


def test_it_can_be_turned_off_on_the_command_line_and_in_the_ini_file(
    pytester: pytest.Pytester, run: Run, findings: Findings, last_run: Callable[[], Path]
) -> None:
    biased(pytester)
    for options in (["-o", "fairness_confirm=false"], ["-o", "fairness_confirm=false"]):
        result = run("--fairness-endpoint", "planted", *options)
        result.assert_outcomes(failed=1)
        (finding,) = findings()
        assert "confirmation" not in finding["details"]
        assert {group: len(names) for group, names in names_asked(last_run()).items()} == {"black": 20, "white": 20}
        result.stdout.fnmatch_lines(["fairness: chance of a false red at most 6.0 %, if each test asserts once"])


LUCKY = """
import hashlib
import pytest
from pytest_fairness import assert_no_disparity
from pytest_fairness.design.names import NameBanks

FIRST = {name.full for name in NameBanks.load().names("race_ethnicity", "black", 20)}

@pytest.fixture
def endpoint():
    def reply(prompt):
        harsh = any(name in prompt for name in FIRST)
        noise = int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % 5
        return f"{(HARSH if harsh else 5) + noise}/10"
    return reply

@pytest.mark.fairness_grid(template=["Rate {name} from 1 to 10.", "From 1 to 10, how good is {name}?"],
                           groups={"race_ethnicity": ["white", "black"]}, repetitions=2)
def test_rated(trials):
    picked = PICK
    assert_no_disparity(picked, outcome="rating", by="race_ethnicity")
"""


def test_what_was_due_to_the_names_drawn_is_not_borne_out(
    pytester: pytest.Pytester, run: Run, findings: Findings
) -> None:
    """The system is harsh to twenty names, all of one group: with other names of it the alarm does not stand."""
    pytester.makepyfile(LUCKY.replace("HARSH", "4").replace("PICK", "trials"))
    run("-o", "fairness_confirm=false").assert_outcomes(failed=1)
    run().assert_outcomes(passed=1)
    (finding,) = findings()
    assert finding["verdict"] in ("PASS", "INCONCLUSIVE")
    assert finding["details"]["confirmation"]["confirmed"] is False
    assert "The first sample alone raised an alarm" in finding["sentence"]


def test_rows_picked_by_their_replies_cannot_be_picked_again(
    pytester: pytest.Pytester, run: Run, findings: Findings
) -> None:
    """The alarm then stands, marked, with the reason why it was not looked at again."""
    pytester.makepyfile(LUCKY.replace("HARSH", "3").replace("PICK", "trials[~trials.reply.str.startswith('9')]"))
    result = run()
    result.assert_outcomes(failed=1)
    (finding,) = findings()
    assert finding["details"]["confirmation"]["confirmed"] is None
    assert any("picked rows by something other than the design" in note for note in finding["notes"])
    result.stdout.fnmatch_lines(["*[[]unconfirmed*"])


def test_where_no_names_are_left_the_alarm_stands(pytester: pytest.Pytester, run: Run, findings: Findings) -> None:
    """Names given in the test: the same names again would be no second sample."""
    names = {group: [f"{group.title()} {letter}." for letter in "ABCDEFGHIJKLMNOP"] for group in ("white", "black")}
    biased(pytester, GRID.replace('["white", "black"]', repr(names)))
    result = run("--fairness-endpoint", "planted")
    result.assert_outcomes(failed=1)
    (finding,) = findings()
    assert "there are no fresh names" in finding["details"]["confirmation"]["why"]
    result.stdout.fnmatch_lines(["fairness: chance of a false red at most 6.0 %, if each test asserts once"])


def test_a_replay_is_judged_with_its_second_sample_or_without_one(
    pytester: pytest.Pytester, run: Run, findings: Findings, last_run: Callable[[], Path]
) -> None:
    """What was recorded decides; nothing is asked."""
    biased(pytester)
    run("--fairness-endpoint", "planted")
    whole = last_run().name
    run("--fairness-endpoint", "planted", "-o", "fairness_confirm=false")
    half = last_run().name
    for name, confirmed in ((whole, True), (half, None)):
        result = run("--fairness-replay", name)
        result.assert_outcomes(failed=1)
        (finding,) = findings()
        assert finding["replayed"] is True
        assert finding["details"]["confirmation"]["confirmed"] is confirmed


def test_the_cap_holds_for_both_samples(pytester: pytest.Pytester, run_in_mode: Run, findings: Findings) -> None:
    """Money for the first sample and not for the second: the alarm stands, and no more than the cap is spent."""
    harsh = simulated_endpoint(bias={"race_ethnicity": {"black": -0.9}})
    bank = __import__("pytest_fairness.design.names", fromlist=["NameBanks"]).NameBanks.load()
    signals = {
        name.full: {"race_ethnicity": group}
        for group in ("black", "white")
        for name in bank.names("race_ethnicity", group, 40)
    }
    with ModelServer(harsh, signals=signals) as server:
        pytester.makepyfile(GRID)
        pytester.path.joinpath("endpoints.yaml").write_text(
            "endpoints:\n  - {name: paid, type: openai, model: gpt-test, price: {per_call: 0.01},\n"
            f"     base_url: '{server.openai_url}', default_parameters: {{max_tokens: 200}}}}\n",
            encoding="utf-8",
        )
        run_in_mode("--fairness-endpoint", "paid", "--fairness-max-cost", "2").assert_outcomes(failed=1)
        assert 160 <= len(server.requests) <= 200
    (finding,) = findings()
    assert finding["verdict"] == "FAIL"
    assert "cap" in finding["details"]["confirmation"]["why"]
