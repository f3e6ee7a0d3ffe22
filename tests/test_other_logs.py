"""What other tools recorded is judged as what we asked: real logs, mapped in three lines, mistakes
that are named.
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pytest_fairness import analyze_disparity, trials_from
from pytest_fairness.errors import FrameError
from tests.support.markdown import ROOT, Page, blocks

DATA = ROOT / "tests" / "data" / "other_logs"
PAGE = ROOT / "docs" / "other_logs.md"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The logs as their tools write them."""
    (tmp_path / "logs").mkdir()
    for path in DATA.glob("*.gz"):
        folder = tmp_path / "logs" if "references" in path.name else tmp_path
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    shutil.copy(DATA / "decisions.csv", tmp_path)
    return tmp_path


def test_what_the_page_says_happens(project: Path) -> None:
    Page(PAGE, project).work_through()


@pytest.mark.filterwarnings("default")  # Inspect's own
def test_samples_df_gives_the_same(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect's own reader, as the page has it, and its JSON read by pandas."""
    pytest.importorskip("inspect_ai")
    monkeypatch.chdir(project)
    by_inspect, by_pandas = [
        block.text
        for block in blocks(PAGE.read_text(encoding="utf-8"))
        if "trials_from(samples, group" in block.text
    ][:2]
    inspect: dict[str, Any] = {}
    pandas: dict[str, Any] = {}
    exec(by_inspect, inspect)
    exec(by_pandas, pandas)
    columns = ["race", "name", "template", "reply", "refused"]
    one, other = (
        space["trials"][columns].astype(object).sort_values(columns, ignore_index=True)
        for space in (inspect, pandas)
    )
    assert one.to_dict() == other.to_dict()


def table(**columns: Any) -> pd.DataFrame:
    """Two groups of twelve names, asked two things twice."""
    rows = [
        {"race": race, "who": f"{race} {name}", "prompt": prompt, "text": f"Reply {time} is kind."}
        for race in ("a", "b") for name in range(12) for prompt in ("t1", "t2") for time in (0, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


MAPPED: dict[str, Any] = {"group": "race", "name": "who", "template": "prompt"}


def test_replies_are_read_as_ours_are() -> None:
    """A refusal is refused, nothing is empty, and what is missing is no answer; none of them is
    scored.
    """
    frame = table()
    frame.loc[:2, "text"] = ["I'm sorry, but I can't help with that.", " ", None]
    trials = trials_from(frame, **MAPPED, reply="text")
    assert trials["status"].tolist()[:4] == ["refused", "empty", "error", "answered"]
    assert trials["refused"].sum() == 1
    assert trials["undetermined"].sum() == 2
    assert trials["repetition"].tolist()[:4] == [0, 1, 0, 1]
    (group, _) = analyze_disparity(trials, "sentiment", "race").group_results
    assert (group.n, group.refused, group.undetermined) == (45, 1, 2)


def test_only_what_is_named_is_taken_over() -> None:
    """A column of theirs that is called as one of ours means something else."""
    frame = table(refused="never", status=200, score=1.5, model="m1", simulated=1)
    trials = trials_from(frame, **MAPPED, scores=["score"], endpoint="model")
    assert list(trials) == ["race", "name", "template", "endpoint", "model", "score", "repetition"]
    assert analyze_disparity(trials, "score", "race").model_endpoint == "m1"


def test_names_that_every_group_shares_are_the_same_people() -> None:
    trials = trials_from(table(who=[f"n{at // 4 % 12}" for at in range(96)]), **MAPPED)
    assert trials.groupby("name")["race"].nunique().eq(2).all()


def test_rows_that_are_people_of_their_own() -> None:
    assert trials_from(table(), group="race", name=None, template=None)["name"].is_unique


@pytest.mark.parametrize(
    ("changed", "given", "message"),
    [
        ({}, {"name": "whom"}, "no column 'whom' for the name; did you mean 'who'"),
        (
            {},
            {"group": {"sex": "gender"}},
            "no column 'gender' for the sex. The columns are race, who",
        ),
        ({}, {"scores": ["points"]}, "no column 'points' for the points"),
        ({"race": ["a", None] * 48}, {}, "column 'race' is empty in 48 of 96 rows, first in 1"),
        ({"prompt": None}, {}, "column 'prompt' is empty in 96 of 96 rows"),
        ({"who": range(96)}, {}, "numbers the rows; name the column of the person"),
        (
            {"who": ["n1"] * 49 + [f"n{at}" for at in range(47)]},
            {},
            "several groups of race, as 'n1' does in a, b",
        ),
        ({"prompt": [f"Rate {at // 4}" for at in range(96)]}, {}, "goes with one name alone"),
        ({"prompt": ["t1"] * 48 + ["t2"] * 48}, {}, "goes with one group of race alone"),
        ({"s": "0.8"}, {"scores": ["s"]}, "numbers written as text ('0.8')"),
        ({"s": ["C", "I"] * 48}, {"scores": ["s"]}, "yes and no written as text ('C')"),
        ({"text": 3}, {"reply": "text"}, "no row has a reply that is text"),
    ],
)
def test_a_mistake_is_named(changed: dict[str, Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(FrameError) as error:
        trials_from(table(**changed), **{**MAPPED, **given})
    assert message in str(error.value)
