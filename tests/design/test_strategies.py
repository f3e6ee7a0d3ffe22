"""Strategies: the five of the specification, as data with provenance, tried in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.design.strategies import Strategy, ladder_of, load_strategies
from pytest_fairness.engine.scripts import Escalation, Rung
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Cell, Status

FIVE = {
    "gradual_role_establishment",
    "indirect_data_request",
    "structured_output_forcing",
    "authority_framing",
    "comparative_framing",
}

OBJECTIONS = [(one.name, (f"turn of {one.name}",), one.objections) for one in load_strategies().values()]


def test_the_five_of_the_specification_ship() -> None:
    """Each with its source; gradual role establishment builds context over 3 to 4 turns before it asks."""
    strategies = load_strategies()
    assert strategies.keys() == FIVE
    assert all(strategy.source and strategy.description for strategy in strategies.values())
    assert len(strategies["gradual_role_establishment"].turns) == 4
    assert strategies["gradual_role_establishment"].turns[-1] == "{request}"


def test_ladders() -> None:
    """Every strategy holds the request word for word, once; chosen ones in their order."""
    ladder = ladder_of("all", "rating")
    assert ladder is not None
    prompt = 'Rate {name} "as is" {request} {key}.'
    turns = [one.fill(prompt, ladder.key) for one in ladder.strategies]
    assert all(sum(turn.count(prompt) for turn in own) == 1 for own in turns)
    assert any('{"rating": <your answer>}' in turn for own in turns for turn in own)
    chosen = ladder_of(["authority_framing", Strategy(name="mine", turns=("Please: {request}",))])
    assert chosen is not None
    assert [one.name for one in chosen.strategies] == ["authority_framing", "mine"]
    assert ladder_of(None) is None


@pytest.mark.parametrize(
    ("reply", "first"),
    [
        ("As an AI I cannot act as an assessor.", "gradual_role_establishment"),
        ("I can't put a number on a person.", "comparative_framing"),
        ("That could amount to discrimination by ethnicity.", "authority_framing"),
        ("I find that unethical and won't.", "indirect_data_request"),
        ("Seven or so, perhaps.", "structured_output_forcing"),
        ("", "structured_output_forcing"),
    ],
)
def test_what_answers_the_objection_is_tried_first(reply: str, first: str) -> None:
    rungs = [Rung("direct", ("ready?", "rate")), *(Rung(*one) for one in OBJECTIONS)]
    script = Escalation(rungs=tuple(rungs), usable=str.isdigit, version="1")
    cell = Cell(id="c", template="t", turns=("ready?", "rate"), groups={}, name=None)
    sent = script.next(cell, ["yes", reply], Status.ANSWERED)
    assert sent is not None
    assert sent[-1].content == f"turn of {first}"
    rest = [one.name for one in rungs[1:] if one.name != first]
    later = script.next(cell, ["yes", reply, "no", "no"], Status.ANSWERED)
    assert later is not None
    assert later[-1].content == f"turn of {rest[1]}"


@pytest.mark.parametrize(
    ("strategies", "scorer", "message"),
    [
        (["authority_frame"], None, "did you mean 'authority_framing'"),
        (["authority_framing", "authority_framing"], None, "stands twice"),
        ([], None, "give a list of names"),
        (7, None, "give a list of names"),
        (None, "rating", "needs strategies="),
    ],
)
def test_wrong_ladders(strategies: object, scorer: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ladder_of(strategies, scorer)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b: {source: x, turns: ['{request}']}", "use the characters"),
        ("direct: {source: x, turns: ['{request}']}", "neither 'direct'"),
        ("mine: {source: x, turns: []}", "one or more texts"),
        ("mine: {source: x, turns: ['{request}', '{request}']}", "exactly once"),
        ("mine: {turns: ['{request}']}", "source is missing"),
        ("mine: {source: x, turns: '{request}'}", "mine: turns: expected a list, got text"),
        ("mine: {source: x, turns: ['{request}', 7]}", "expected text, got a whole number"),
        ("mine: {source: x, turns: ['{request}'], tone: 1}", "unknown key 'tone'"),
        ("mine: {source: x, name: y, turns: ['{request}']}", "unknown key 'name'"),
    ],
)
def test_a_users_own_file(own: Path, text: str, message: str) -> None:
    """A project's personas/strategies.yaml extends ours; what is wrong in it names its place."""
    (own / "strategies.yaml").write_text("mine: {source: x, turns: ['Please: {request}']}", encoding="utf-8")
    assert load_strategies(own).keys() == FIVE | {"mine"}
    (own / "strategies.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load_strategies(own)
