"""Before an alarm stands it is looked at again, on this sample and one on other names together."""

from __future__ import annotations

import pytest

from pytest_fairness.design.names import NameBanks
from pytest_fairness.endpoints import simulated_endpoint
from pytest_fairness.reports.verification import verify_run
from tests.support.servers import ModelServer

from .conftest import BIASED, GRID, Project, shown

PLANTED = ("--fairness-endpoint", "planted")
ONCE = ("-o", "fairness_confirm=false")


def names_in_each_group(project: Project) -> dict[str, int]:
    """How many names of each group the newest run has in its log."""
    cells = [record["cell"] for record in project.records("trial")]
    names: dict[str, set[str]] = {}
    for cell in cells:
        names.setdefault(cell["groups"]["race_ethnicity"], set()).add(cell["name"])
    return {group: len(found) for group, found in names.items()}


def test_a_planted_bias_is_confirmed_on_other_names_and_fails(project: Project) -> None:
    """Without any option: twice twenty names a group, none in both samples; the report has both. A
    replay is judged with the second sample, and asks nothing.
    """
    project.write(GRID, BIASED)
    result = project.run(*PLANTED)
    result.assert_outcomes(failed=1)
    (finding,) = project.findings
    assert finding["verdict"] == "FAIL"
    assert finding["n_per_group"] == {"black": 160, "white": 160}
    confirmation = finding["details"]["confirmation"]
    assert (confirmation["confirmed"], confirmation["sample"]) == (True, "20 other names a group")
    assert confirmation["first"]["n_per_group"] == {"black": 80, "white": 80}
    assert names_in_each_group(project) == {"black": 40, "white": 40}
    text = shown(result)
    assert "an alarm is asked about again before it stands, with up to 160 trials more" in text
    assert "FAIL [simulated, confirmed]: black is worse off than white" in text
    assert "confirmed with 20 other names a group." in text
    assert "turns such a session red" not in text, "it is rarer than 1 in 20"
    assert "confirmed" in project.page
    project.run("--fairness-replay", "last").assert_outcomes(failed=1)
    (finding,) = project.findings
    assert finding["replayed"] is True
    assert finding["details"]["confirmation"]["confirmed"] is True


def test_it_can_be_turned_off(project: Project) -> None:
    """Half as many names; a replay of such a run has no second sample, and says so."""
    project.write(GRID, BIASED)
    result = project.run(*PLANTED, *ONCE)
    result.assert_outcomes(failed=1)
    (finding,) = project.findings
    assert "confirmation" not in finding["details"]
    assert names_in_each_group(project) == {"black": 20, "white": 20}
    assert "asked about again" not in shown(result)
    project.run("--fairness-replay", "last").assert_outcomes(failed=1)
    assert project.findings[0]["details"]["confirmation"]["confirmed"] is None


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


def test_what_was_due_to_the_names_drawn_is_not_borne_out(project: Project) -> None:
    """The system is harsh to twenty names, all of one group: with other names of it the alarm does
    not stand.
    """
    project.write(LUCKY.replace("HARSH", "4").replace("PICK", "trials"))
    project.run(*ONCE).assert_outcomes(failed=1)
    project.run().assert_outcomes(passed=1)
    (finding,) = project.findings
    assert finding["verdict"] in ("PASS", "INCONCLUSIVE")
    assert finding["details"]["confirmation"]["confirmed"] is False
    assert "The first sample alone raised an alarm" in finding["sentence"]


#: What a test may make of its trials before it asserts, and the outcome that it asserts on.
MADE = {
    "picked": ('trials[trials.key.str[0] != "f"]', "rating", "race_ethnicity"),
    "added": (
        "trials.assign(points=trials.reply.str.partition('/')[0].astype(float))",
        "points",
        "race_ethnicity",
    ),
    "renamed": (
        'trials.replace({"race_ethnicity": {"white": "W", "black": "B"}})',
        "rating",
        "race_ethnicity",
    ),
    "merged": (
        'trials.merge(pd.DataFrame({"race_ethnicity": ["white", "black"], "side": ["left", "right"]}))',
        "rating",
        "side",
    ),
    "a reply mended": (
        'trials.assign(reply=trials.reply.str.replace("/10", " of 10"))',
        "rating",
        "race_ethnicity",
    ),
    "by name": (
        'trials.assign(points=trials.reply.str.partition("/")[0].astype(float))'
        '.groupby(["race_ethnicity", "name", "template"], as_index=False).points.mean()',
        "points",
        "race_ethnicity",
    ),
}


def made(how: str, harsh: int) -> str:
    """The suite whose system is *harsh* to the names of the first sample, and whose test changes
    its table so.
    """
    table, outcome, by = MADE[how]
    text = (
        LUCKY.replace("HARSH", str(harsh))
        .replace("PICK", table)
        .replace("import pytest", "import pandas as pd\nimport pytest", 1)
    )
    return text.replace('outcome="rating", by="race_ethnicity"', f'outcome="{outcome}", by="{by}"')


@pytest.mark.parametrize("how", MADE)
def test_a_table_that_the_test_made_is_made_again(project: Project, how: str) -> None:
    """By running the test's function on other trials: the alarm is about the names of the first
    sample alone, and does not stand. Who derives the verdict from the log comes to it, too.
    """
    project.write(made(how, 4))
    project.run(*ONCE).assert_outcomes(failed=1)
    project.run().assert_outcomes(passed=1)
    (finding,) = project.findings
    confirmation = finding["details"]["confirmation"]
    assert (confirmation["confirmed"], finding["verdict"] in ("PASS", "INCONCLUSIVE")) == (
        False,
        True,
    ), finding["notes"]
    assert all(
        n > confirmation["first"]["n_per_group"][group]
        for group, n in finding["n_per_group"].items()
    )
    assert verify_run(project.last, lambda *_: None).problems == []
    project.run("--fairness-replay", "last").assert_outcomes(passed=1)
    assert project.findings[0]["details"]["confirmation"]["confirmed"] is False


def test_a_difference_of_all_names_is_confirmed_on_a_table_that_the_test_made(
    project: Project,
) -> None:
    """The assertion that is looked at again is the one that raised the alarm, however many came
    before.
    """
    suite = made("added", 3).replace('"black", 20)', '"black", 40)')
    before = '    assert_no_disparity(picked, outcome="word_count", by="race_ethnicity")\n'
    counted = '    with open("calls.txt", "a") as file:\n        file.write("run ")\n'
    suite = suite.replace("    assert_no_disparity", f"{counted}{before}    assert_no_disparity")
    project.write(suite)
    project.run().assert_outcomes(failed=1)
    first, second = project.findings
    assert (first["outcome"], first["verdict"]) == ("word_count", "PASS")
    assert second["details"]["confirmation"]["confirmed"] is True
    assert second["details"]["confirmation"]["sample"] == "20 other names a group"
    assert project.path.joinpath("calls.txt").read_text(encoding="utf-8") == "run run "


FAILS = {
    "raises": ("raise ValueError('only once')", "it raised ValueError: only once"),
    "returns": ("return", "it did not come to this assertion"),
    "skips": ("pytest.skip('only once')", "it raised Skipped: only once"),
    "asserts otherwise": (
        "assert_no_disparity(trials, outcome='word_count', by='race_ethnicity')",
        "it came to another assertion",
    ),
    "makes nothing": (
        "picked = picked[:0]",
        "the table that it makes of a second sample has no rows",
    ),
    "leaves a column out": ("picked = picked.drop(columns=['points'])", "lacks the columns points"),
    "keeps its own": ("picked = KEPT", "has rows of other trials"),
}


@pytest.mark.parametrize("how", FAILS)
def test_where_the_table_cannot_be_made_again_the_alarm_stands(project: Project, how: str) -> None:
    """Unconfirmed, with the reason; nothing is said of names that were not read."""
    second, why = FAILS[how]
    suite = made("added", 4).replace(
        "    assert_no_disparity",
        "    global KEPT\n    if KEPT is None:\n        KEPT = picked\n"
        f"    else:\n        {second}\n    assert_no_disparity",
    )
    project.write(suite.replace("@pytest.fixture", "KEPT = None\n\n@pytest.fixture", 1))
    project.run().assert_outcomes(failed=1)
    (finding,) = project.findings
    assert finding["verdict"] == "FAIL"
    assert why in finding["details"]["confirmation"]["why"]
    assert "other names" not in finding["sentence"]
    assert verify_run(project.last, lambda *_: None).problems == []


UNREPEATABLE = {
    "a fixture": (
        "@pytest.fixture\ndef picked(trials):\n    return PICKED\n\n@pytest.mark",
        "def test_rated(picked):\n",
        "the test cannot be run again",
    ),
    "no trial": (
        "@pytest.mark",
        "def test_rated(trials):\n    picked = PICKED.drop(columns=['key', 'name'])\n",
        "say of no trial",
    ),
}


@pytest.mark.parametrize("how", UNREPEATABLE)
def test_what_cannot_be_made_again_asks_nothing(project: Project, how: str) -> None:
    """A table that comes from a fixture of the project's; one whose rows do not say what they are
    about.
    """
    mark, test, why = UNREPEATABLE[how]
    suite = (
        made("added", 4).replace("@pytest.mark", mark, 1).replace("def test_rated(trials):\n", test)
    )
    kept, _, rest = suite.partition("    picked = trials")
    suite = (kept + rest[rest.index("    assert") :]).replace("PICKED", MADE["added"][0])
    if how == "no trial":
        suite = suite.replace('by="race_ethnicity")\n', 'by="race_ethnicity", cluster=None)\n')
    project.write(suite)
    project.run().assert_outcomes(failed=1)
    assert why in project.findings[0]["details"]["confirmation"]["why"]
    assert len(project.records("trial")) == 160


def test_names_that_could_not_be_read_acquit_nobody(project: Project) -> None:
    """The other names are answered with nothing that could be rated: the alarm stands, and says so."""
    known = (
        'KNOWN = {name.full for group in ("black", "white")\n'
        '         for name in NameBanks.load().names("race_ethnicity", group, 20)}\n'
    )
    suite = (
        LUCKY.replace("HARSH", "3")
        .replace("PICK", "trials")
        .replace("@pytest.fixture", f"{known}\n@pytest.fixture", 1)
    )
    read = (
        "        if not any(name in prompt for name in KNOWN):\n            return 'I cannot "
        "say.'\n        return f"
    )
    project.write(suite.replace("        return f", read))
    project.run().assert_outcomes(failed=1)
    (finding,) = project.findings
    assert (finding["verdict"], finding["details"]["confirmation"]["confirmed"]) == ("FAIL", None)
    assert "nothing could be read of the second sample" in finding["details"]["confirmation"]["why"]


def test_where_no_names_are_left_the_alarm_stands(project: Project) -> None:
    """Names given in the test: the same names again would be no second sample."""
    names = {
        group: [f"{group.title()} {letter}." for letter in "ABCDEFGHIJKLMNOP"]
        for group in ("white", "black")
    }
    project.write(GRID.replace('["white", "black"]', repr(names)), BIASED)
    result = project.run(*PLANTED)
    result.assert_outcomes(failed=1)
    (finding,) = project.findings
    assert "there are no fresh names" in finding["details"]["confirmation"]["why"]
    assert "asked about again" not in shown(result)


def test_the_cap_holds_for_both_samples(project: Project) -> None:
    """Money for the first sample and not for the second: the alarm stands, and no more than the cap
    is spent.
    """
    harsh, bank = simulated_endpoint(bias={"race_ethnicity": {"black": -0.9}}), NameBanks.load()
    signals = {
        name.full: {"race_ethnicity": group}
        for group in ("black", "white")
        for name in bank.names("race_ethnicity", group, 40)
    }
    with ModelServer(harsh, signals=signals) as server:
        project.write(
            GRID,
            "endpoints:\n  - {name: paid, type: openai, model: gpt-test, price: {per_call: 0.01},\n"
            f"     base_url: '{server.openai_url}', default_parameters: {{max_tokens: 200}}}}\n",
        )
        project.run("--fairness-endpoint", "paid", "--fairness-max-cost", "2").assert_outcomes(
            failed=1
        )
        assert 160 <= len(server.requests) <= 200
    (finding,) = project.findings
    assert finding["verdict"] == "FAIL"
    assert "cap" in finding["details"]["confirmation"]["why"]
