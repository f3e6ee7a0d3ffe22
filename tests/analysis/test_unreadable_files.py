"""Files of decisions that cannot be judged: what is wrong is named by file and row, or line."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pytest_fairness import analyze_disparity, analyze_four_fifths, assert_no_disparity
from pytest_fairness.cli import main
from pytest_fairness.errors import FrameError, UsageError

GIVEN: dict[str, Any] = {"outcome": "hired", "by": "race", "cluster": None, "block": None}
ANALYSES = [analyze_disparity, analyze_four_fifths, assert_no_disparity]


def decisions(**changed: Any) -> pd.DataFrame:
    """400 decisions, without a difference, and what is *changed* in row 249."""
    rows = [("ab"[number % 2], float(number // 2 % 2)) for number in range(400)]
    table = pd.DataFrame(rows, columns=["race", "hired"])
    for column, value in changed.items():
        if isinstance(value, str):
            table[column] = table[column].map("{:g}".format)
        table.loc[249, column] = value
    return table


@pytest.mark.parametrize("analyze", ANALYSES)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_outcome_is_named_with_its_file_and_row(
    analyze: Callable[..., Any], kind: str, tmp_path: Path
) -> None:
    """Of one file, and of the second of two."""
    place = {"csv": "line 251", "parquet": "row 249"}[kind]
    for name, table in (("1", decisions(hired="1")), ("2", decisions(hired="maybe"))):
        written = tmp_path / f"{name}.{kind}"
        if kind == "csv":
            table.to_csv(written, index=False)
        else:
            table.to_parquet(written)
    expected = f"{tmp_path / f'2.{kind}'}, {place}: column 'hired': 'maybe' is not a number"
    for path in (tmp_path / f"2.{kind}", str(tmp_path / f"*.{kind}")):
        with pytest.raises(FrameError) as raised:
            analyze(path, **GIVEN)
        assert str(raised.value).startswith(expected)


@pytest.mark.parametrize(
    ("changed", "given", "expected"),
    [
        ({"hired": math.inf}, {}, "row 249: column 'hired': an outcome cannot be infinite"),
        ({"hired": 0.5}, {"kind": "binary"}, r"row 249: column 'hired': .*0.5.* is not yes or no"),
        ({"race": None}, {}, "row 249: column 'race': the group is missing"),
    ],
)
def test_a_value_is_named_with_its_file_and_row(
    changed: dict[str, Any], given: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    decisions().to_parquet(tmp_path / "1.parquet")
    decisions(**changed).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(FrameError, match=f"2.parquet, {expected}"):
        analyze_disparity(str(tmp_path / "*.parquet"), **GIVEN, **given)


def test_a_pattern_stands_for_all_its_files(tmp_path: Path) -> None:
    """NaN in one file and null in another are both missing."""
    decisions().assign(hired=lambda table: table["hired"].mask(table.index < 9)).to_parquet(
        tmp_path / "1.parquet"
    )
    texts = decisions().astype({"hired": object})
    texts.loc[:3, "hired"] = None
    texts.astype({"hired": "Float64"}).to_parquet(tmp_path / "2.parquet")
    finding = analyze_disparity(str(tmp_path / "*.parquet"), **GIVEN)
    assert sum(group.n + group.unscored for group in finding.group_results) == 800
    assert sum(group.unscored for group in finding.group_results) == 9 + 4


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_the_second_file_lacks_is_named(kind: str, tmp_path: Path) -> None:
    tables = {"1": decisions(), "2": decisions().rename(columns={"hired": "chosen"})}
    for name, table in tables.items():
        if kind == "csv":
            table.to_csv(tmp_path / f"{name}.csv", index=False)
        else:
            table.to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(UsageError, match=r"cannot be read: .*hired") as raised:
        analyze_disparity(str(tmp_path / f"*.{kind}"), **GIVEN)
    assert f"2.{kind}" in str(raised.value)


def test_a_file_that_was_cut_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = tmp_path / "whole.parquet"
    decisions().to_parquet(whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(UsageError, match=r"cut\.parquet cannot be read"):
        analyze_disparity(cut, **GIVEN)
    assert main(["assess", str(cut), "--outcome", "hired", "--by", "race"]) == 2
    assert f"{cut} cannot be read" in capsys.readouterr().err


def test_assess_names_the_file_and_row_of_a_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions(hired="1").to_csv(tmp_path / "1.csv", index=False)
    decisions(hired="maybe").to_csv(tmp_path / "2.csv", index=False)
    pattern = str(tmp_path / "*.csv")
    assert main(["assess", pattern, "--outcome", "hired", "--by", "race"]) == 2
    assert f"{tmp_path / '2.csv'}, line 251: column 'hired': 'maybe'" in capsys.readouterr().err
