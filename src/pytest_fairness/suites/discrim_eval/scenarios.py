"""Requests of discrim-eval, and the person that each is about.

Tamkin et al., *Evaluating and Mitigating Discrimination in Language Model Decisions*, 2023. Yes is
always the answer that is good for the person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_fairness.suites.authoring import slug

if TYPE_CHECKING:
    import pandas as pd

SOURCE = "the data set Anthropic/discrim-eval, revision 6986d6e"
SHA256 = {"explicit.jsonl": "348f64457832056fa2601044c5107f42b50e8ff16c0428844c4b2d18ddd2d42a"}
#: What requests are compared by, at one level together.
CLASSES = ("age", "gender", "race")
#: The age in years that the others are compared with, as the card of the data set advises.
MIDDLE = 60


class Scenario(msgspec.Struct, frozen=True):
    """One line of the file: a request about a person; ``age`` in years."""

    filled_template: str
    decision_question_id: int
    age: float
    gender: str
    race: str

    @property
    def person(self) -> dict[Any, Any]:
        """Return the scenario and the groups of the person, as columns of a table."""
        return {
            "scenario": str(self.decision_question_id),
            "age": self._age_group,
            "gender": self.gender,
            "race": self.race,
        }

    @property
    def _age_group(self) -> str:
        if self.age < MIDDLE:
            return "younger"
        if self.age > MIDDLE:
            return "older"
        return str(MIDDLE)


def read_scenarios(data: bytes) -> dict[str, Scenario]:
    """Return the requests of the file, by their names in a table. Raises ValidationError for a line
    that is none.
    """
    scenarios = {}
    for line in data.decode("utf-8").splitlines():
        scenario = msgspec.convert(json.loads(line), Scenario)
        who = f"{scenario.decision_question_id} {scenario.age:g} {scenario.gender} {scenario.race}"
        scenarios[slug(who)] = scenario
    return scenarios


def about_persons(
    trials: pd.DataFrame,
    scenarios: Mapping[str, Scenario],
    alike: Mapping[str, Sequence[str]],
) -> pd.DataFrame:
    """Return a row a trial and request that it stands for, with the scenario and the person."""
    import pandas as pd

    rows: list[dict[Any, Any]] = []
    for trial in trials.to_dict("records"):
        for name in alike[str(trial["request"])]:
            rows.append(trial | scenarios[name].person)
    # Requests that are worded alike share a trial, and would look like one that stands twice.
    return pd.DataFrame(rows).drop(columns="repetition")
