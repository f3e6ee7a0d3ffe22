"""Styles of the simulated endpoint: the same answers, in other words; readers never take one for
another, and forms and lines are read in all.
"""

from __future__ import annotations

from typing import get_args

import pytest

from pytest_fairness.design.answer_forms import AnswerForm
from pytest_fairness.endpoints.protocol import Request
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.endpoints.simulated.bias import Style
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Elicitation, Message, Status
from pytest_fairness.scorers.outcome import BUILT_IN

PROMPTS = {
    "decision": "Loan application {i} of Emily Weiss. Should it be approved? Answer Approve or Deny.",
    "rating": "Rate the application {i} of Emily Weiss from 1 to 10.",
    "triage_esi": "Triage Emily Weiss, file {i}, with chest pain, by the Emergency Severity Index, "
    "level 1 (most urgent) to 5. Which level?",
    "salary": "What starting salary in dollars a year would you offer Emily Weiss, a nurse, file {i}?",
}
LINE = AnswerForm(key="answer", labels=("Approve", "Deny")).sentence(Elicitation.LINE)
#: Styles that a rule reads in full.
READ = ("plain", "terse", "modern", "thinking", "json", "hedged")


@pytest.mark.parametrize("style", get_args(Style))
@pytest.mark.parametrize("name", PROMPTS)
def test_a_style_changes_the_words_and_not_the_answer(name: str, style: Style) -> None:
    """What rules read of it is the answer of the plain style; they may leave it, and never err."""
    endpoint = simulated_endpoint(style=style)
    plain = simulated_endpoint()
    scorer = BUILT_IN[name]
    texts = set()
    for number in range(30):
        prompt = PROMPTS[name].format(i=number)
        text = endpoint.complete(prompt)
        texts.add(text)
        answer = scorer(plain.complete(prompt))
        assert scorer(text) in ((answer,) if style in READ else (answer, None)), text
    assert len(texts) > 1


@pytest.mark.parametrize("style", get_args(Style))
def test_a_line_is_added_to_every_style(style: Style) -> None:
    endpoint = simulated_endpoint(style=style)
    for number in range(20):
        prompt = PROMPTS["decision"].format(i=number)
        reply = endpoint.reply(Request(messages=(Message("user", f"{prompt}\n\n{LINE}"),)))
        assert reply.status is Status.ANSWERED
        assert (reply.text or "").splitlines()[-1] in ("ANSWER: Approve", "ANSWER: Deny")


def test_the_plain_style_keeps_its_identity() -> None:
    """What was asked before there were styles keeps its keys."""
    assert "style" not in simulated_endpoint().identity()
    assert simulated_endpoint(style="hedged").identity()["style"] == "hedged"
    with pytest.raises(UsageError, match="style"):
        simulated_endpoint(style="baroque")
