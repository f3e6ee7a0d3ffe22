"""Strategies: the five of the specification, as data with provenance, tried in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.design.strategies import Strategy, ladder_of, load_strategies
from pytest_fairness.errors import UsageError

FIVE = {
    "gradual_role_establishment",
    "indirect_data_request",
    "structured_output_forcing",
    "authority_framing",
    "comparative_framing",
}


def test_the_five_of_the_specification_ship() -> None:
    """Each with its source; gradual role establishment builds context over 3 to 4 turns before it asks."""
    strategies = load_strategies()
    assert strategies.keys() == FIVE
    assert all(strategy.source and strategy.description for strategy in strategies.values())
    assert len(strategies["gradual_role_establishment"].turns) == 4
    assert strategies["gradual_role_establishment"].turns[-1] == "{request}"


def test_ladders() -> None:
    """Rung 0 is the prompt as the test has it; every other holds it word for word, once; chosen ones in their order."""
    ladder = ladder_of("all", "rating")
    assert ladder is not None
    prompt = 'Rate {name} "as is" {request} {key}.'
    (name, turns), *others = ladder.rungs(prompt)
    assert (name, turns) == ("direct", (prompt,))
    assert all(sum(turn.count(prompt) for turn in turns) == 1 for _, turns in others)
    assert any('{"rating": <your answer>}' in turn for _, turns in others for turn in turns)
    chosen = ladder_of(["authority_framing", Strategy(name="mine", turns=("Please: {request}",))])
    assert chosen is not None
    assert [name for name, _ in chosen.rungs("x")] == ["direct", "authority_framing", "mine"]
    assert ladder_of(None) is None


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
