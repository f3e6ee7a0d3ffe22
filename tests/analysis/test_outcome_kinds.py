"""The kinds of outcome: each stands in every place that the docstring of ``OutcomeKind`` names."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pytest_fairness
from pytest_fairness.analysis.explanations import explain
from pytest_fairness.analysis.planning import assess_design
from pytest_fairness.analysis.policy import MINIMUM_N, RECOMMENDED_N
from pytest_fairness.analysis.sensitivity import sensitivity_of
from pytest_fairness.commands import plan
from pytest_fairness.model import OutcomeKind

PACKAGE = Path(pytest_fairness.__file__).parent
ROOT = Path(__file__).parents[2]


def table(kind: OutcomeKind) -> pd.DataFrame:
    """Two equal groups on an outcome of *kind*."""
    values = {
        OutcomeKind.NUMERIC: np.arange(8) / 3,
        OutcomeKind.NARRATIVE: np.arange(8) / 8,
        OutcomeKind.ORDINAL: np.arange(8) % 4 + 1,
        OutcomeKind.BINARY: np.arange(8) % 2 == 0,
        OutcomeKind.REFUSAL: np.arange(8) % 4 == 0,
        OutcomeKind.CATEGORICAL: np.array(["nurse", "pilot", "baker", "clerk"] * 2),
    }[kind]
    names = np.repeat(np.arange(40), 8)
    return pd.DataFrame(
        {
            "score": np.tile(values, 40),
            "name": names,
            "group": np.where(names < 20, "a", "b"),
            "template": "t",
        }
    )


@pytest.mark.parametrize("kind", OutcomeKind)
def test_every_kind_is_compared_explained_and_planned(kind: OutcomeKind) -> None:
    frame = table(kind)
    finding = pytest_fairness.analyze_disparity(frame, "score", "group", kind=kind)
    assert finding.kind is kind
    assert finding.verdict is pytest_fairness.Verdict.PASS
    assert explain(finding).strip()
    assert 0 < MINIMUM_N[kind] <= RECOMMENDED_N[kind]
    assert sensitivity_of("disparity", frame, outcome="score", by="group", kind=kind) is not None
    design = assess_design(groups=2, names=20, trials=160, templates=1, repetitions=8, kind=kind)
    assert 0 < design.power <= 1


def test_every_kind_stands_in_the_schema_and_the_docs() -> None:
    schema = json.loads((PACKAGE / "reports" / "findings.schema.json").read_text("utf-8"))
    listed = [*OutcomeKind, None]
    assert listed in [
        node["enum"] for node in nodes(schema) if isinstance(node, dict) and "enum" in node
    ]
    verdicts = (ROOT / "docs" / "verdicts.md").read_text("utf-8")
    assert not [kind for kind in OutcomeKind if f"{kind}" not in verdicts]
    words = tomllib.loads((PACKAGE / "analysis" / "explanations.toml").read_text("utf-8"))
    assert words["kind"].keys() <= set(OutcomeKind)


def nodes(value: object) -> list[object]:
    """Return *value* and everything in it."""
    parts: list[object] = []
    if isinstance(value, dict):
        parts = list(value.values())
    if isinstance(value, list):
        parts = value
    return [value, *(node for part in parts for node in nodes(part))]


def test_the_places_that_the_recipe_names_exist() -> None:
    recipe = inspect.getdoc(OutcomeKind) or ""
    assert len(re.findall(r"``(\w+/[\w.]+)``", recipe)) >= 7
    for line in recipe.replace("\n  ", " ").splitlines():
        for path in re.findall(r"``(\w+/[\w.]+)``", line):
            folder = ROOT if path.startswith("docs/") else PACKAGE
            text = (folder / path).read_text("utf-8")
            if line.count("/") == 1 and path.endswith(".py"):
                names = re.findall(r"``(\w+)``", line)
                assert names
                assert not [name for name in names if not re.search(rf"\b{name}\b", text)], path


def test_plan_takes_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    from pytest_fairness.cli import main

    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    assert "{" + ",".join(OutcomeKind) + "}" in capsys.readouterr().out
    assert plan.OutcomeKind is OutcomeKind
