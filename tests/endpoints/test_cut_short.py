"""Replies that ended at the limit on their length: nothing is cut behind anybody's back."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pytest_fairness.analysis.provenance import with_provenance
from pytest_fairness.endpoints import create_endpoint
from pytest_fairness.model import Cell, Finding, Status, Trial, Verdict
from pytest_fairness.trials_frame import EndpointFacts, trials_frame


def table(*reasons: str | None) -> pd.DataFrame:
    cell = Cell(id="c", template="t", turns=("Who is Ann?",), groups={"gender": "female"})
    trials = [
        Trial(
            key=str(n),
            repetition=n,
            status=Status.ANSWERED,
            replies=("Ann is",),
            finish_reason=reason,
        )
        for n, reason in enumerate(reasons)
    ]
    return trials_frame(
        [(cell, trial) for trial in trials], EndpointFacts(name="e", simulated=False)
    )


def finding() -> Finding:
    return Finding(assertion="no_disparity", verdict=Verdict.PASS, sentence="PASS: no difference.")


def test_every_providers_word_for_it() -> None:
    """The column says it, whatever the provider calls it; other reasons are none."""
    for reason in ("length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens"):
        frame = table(reason, "stop", "end_turn", "content_filter", None)
        assert frame["cut_short"].tolist() == [True, *[False] * 4]


def test_a_finding_says_how_many_were_cut() -> None:
    """Nothing where nothing was, for a table of one's own, or rows of which nobody knows it."""
    notes = " ".join(with_provenance(finding(), table("length", "stop", "length")).notes)
    assert "2 of 3 replies were cut short at the limit on their length" in notes
    assert "max_tokens" in notes
    frame = table("stop", None)
    for one in (
        frame,
        frame.assign(cut_short=[None, float("nan")]),
        frame.drop(columns="cut_short"),
    ):
        assert not with_provenance(finding(), one).notes


def anthropic(**parameters: Any) -> Any:
    entry = {
        "name": "c",
        "type": "anthropic",
        "model": "claude-x",
        "default_parameters": parameters,
    }
    return create_endpoint(entry).default_parameters


def test_where_the_api_wants_a_limit_it_is_ours_and_logged() -> None:
    """Not one that a library chooses behind our back: it stands among the parameters, and so in key
    and log.
    """
    assert anthropic() == {"max_tokens": 4096}
    assert anthropic(max_tokens=100, temperature=0.5) == {"max_tokens": 100, "temperature": 0.5}
    assert "max_tokens" not in anthropic(thinking={"type": "enabled", "budget_tokens": 8000})


def test_other_types_send_none() -> None:
    """A limit that nobody asked for would cut the replies of models that think, and be refused by
    small ones.
    """
    assert (
        create_endpoint({"name": "c", "type": "openai", "model": "gpt-x"}).default_parameters == {}
    )
