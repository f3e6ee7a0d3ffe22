"""What a finding was judged from is a record of the run: the same table, the same outcome, the same
verdict.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from pytest_fairness import analyze_disparity
from pytest_fairness.errors import StoreError
from pytest_fairness.runs.judgements import Judgement, judgements
from pytest_fairness.runs.reader import reading
from pytest_fairness.scorers import outcome_of
from pytest_fairness.trials_frame import DESIGN
from tests.support.sessions import run_pytest

SUITE = """
    import pandas as pd
    import pytest
    from pytest_fairness import assert_four_fifths, assert_no_disparity
    from pytest_fairness.endpoints import simulated_endpoint

    @pytest.fixture
    def endpoint():
        return simulated_endpoint(bias={"race_ethnicity": {"black": -0.8}})

    @pytest.mark.fairness_grid(template="Write a reference for {name}, a nurse.",
                               groups={"race_ethnicity": ["white", "black"]}, names=(20,))
    def test_letters(trials):
        assert_no_disparity(trials, outcome="word_count", by="race_ethnicity", min_raw_diff=1000)
        assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")

    @pytest.mark.fairness
    def test_table():
        frame = pd.DataFrame({"hired": [1, 0] * 60, "race": ["a", "a", "b", "b"] * 30, "note": ["x"] * 120})
        assert_four_fifths(frame, outcome="hired", by="race", cluster=None)
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_every_finding_has_its_judgement(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(
        "\n".join(line[4:] for line in SUITE.splitlines()), encoding="utf-8"
    )
    run_pytest(tmp_path, *workers)
    (run,) = (tmp_path / ".fairness" / "runs").glob("2*")
    results = json.loads((run / "findings.json").read_text(encoding="utf-8"))
    with reading(run) as reader:
        found = judgements(reader)
        keys = {record["key"] for record in reader.all_records()}
    for item in results["items"]:
        for place, at in enumerate(item["findings"]):
            finding, judgement = results["findings"][at], found[item["nodeid"], place]
            frame = judgement.frame()
            assert judgement.outcome is not None
            assert judgement.outcome.name == finding["outcome"]
            counted = (
                frame[judgement.outcome.name]
                .notna()
                .groupby(frame[judgement.arguments["by"]])
                .sum()
            )
            assert counted.to_dict() == finding["n_per_group"]
            if "key" in frame:
                assert set(frame["key"]) <= keys
            assert "note" not in frame
            assert "reply" not in frame
    sentiment = found["test_it.py::test_letters", 1]
    assert sentiment.looks["names"] == [20]


def test_the_table_comes_back_as_it_was() -> None:
    frame = pd.DataFrame(
        {
            "key": [f"k{at}" for at in range(80)],
            "race": ["white", "black"] * 40,
            "name": [f"n{at // 2}" for at in range(80)],
            "template": ["t"] * 80,
            "words": [float(at % 7) + 3 * (at % 2) for at in range(80)],
            "refused": [False, True] * 2 + [False] * 76,
            "level": [1, True, 1.0, None] * 20,
        }
    )
    frame.attrs[DESIGN] = {"protected_classes": ["race"]}
    arguments = {"frame": frame, "outcome": "words", "by": "race", "scorers": None, "alpha": 0.05}
    made = Judgement.of("disparity", arguments, frame, outcome_of(frame, "words"))
    record = json.loads(json.dumps(made.to_record("test_it", 3)))
    assert (record["type"], record["test"], record["place"]) == ("judgement", "test_it", 3)
    back = made.frame()
    assert back.to_dict("list") == frame.to_dict("list")
    assert [type(value) for value in back["level"].tolist()[:3]] == [int, bool, float]
    again = analyze_disparity(back, made.outcome_in(back), **made.arguments)  # type: ignore[arg-type]
    assert again.to_dict() == analyze_disparity(frame, "words", "race").to_dict()


def test_a_damaged_judgement_is_named() -> None:
    frame = pd.DataFrame({"race": ["a", "b"], "y": [1.0, 2.0]})
    made = Judgement.of("disparity", {"by": "race"}, frame, outcome_of(frame, "y"))
    record = {**made.to_record("test_it.py::test_one", 0), "columns": "AAAA"}

    class Run:
        def of_type(self, _kind: str) -> list[dict[str, object]]:
            return [record]

    with pytest.raises(StoreError, match="test_one cannot be read"):
        judgements(Run())["test_it.py::test_one", 0].frame()  # type: ignore[arg-type]
