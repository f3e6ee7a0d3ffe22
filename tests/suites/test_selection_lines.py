"""Lines of the records: salaries that were read, and what the page shows of a choice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.suites.selection.reading_sections import RecordedChoice, example_parts
from pytest_fairness.suites.selection.trial_lines import with_salaries


class TestSalaries:
    def test_what_a_reply_came_to(self):
        """An amount a year, by the hour of a year of 2,000 hours; no amount, no reply, a refusal."""
        trials = pd.DataFrame(
            {
                "reply": ["$85,000", "$40 an hour", "It depends.", None, "$85,000"],
                "refused": [False, False, False, False, True],
            }
        )
        table = with_salaries(trials, 2000)
        np.testing.assert_array_equal(table["salary"], [85000, 80000, np.nan, np.nan, np.nan])
        assert table["read"].tolist()[:2] == ["salary", "salary"]
        assert table["read"].tolist()[3:] == ["unparsed", "refused"]

    def test_no_amount_at_all_is_a_column_of_numbers(self):
        trials = pd.DataFrame({"reply": [None, None], "refused": [True, False]})
        assert with_salaries(trials, 2080)["salary"].dtype == np.float64


class TestChoices:
    def choice(self, **changes: object) -> RecordedChoice:
        fields = {"arm": "raw_naive", "status": "answered", "requests": ()}
        return RecordedChoice(**fields | changes)

    @pytest.mark.parametrize(
        ("choice", "chosen", "words"),
        [
            ("chosen", "white_female", "read as chosen: white_female"),
            ("neither", "neither", "read as neither"),
            ("unparsed", None, "read as unparsed"),
            (None, None, ""),
        ],
    )
    def test_what_it_was_read_as(self, choice, chosen, words):
        assert self.choice(choice=choice, chosen=chosen).reading == words

    def test_its_context_and_names(self):
        choice = self.choice(role="nurse", qualifications="8 years", first_name="Ann")
        assert (choice.context, choice.names) == ("nurse, 8 years", "Ann")
        assert (self.choice().context, self.choice().names) == ("", "no names")

    def test_no_examples_without_records(self, tmp_path):
        assert example_parts(tmp_path / "selection.jsonl", ["raw_naive"]) == []
