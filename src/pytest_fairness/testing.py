"""For authors of endpoints, scorers and suites: what their own tests need, without a model and
without a network.

A scripted endpoint answers by a script and keeps what it was asked; frames with a known disparity
show what an assertion makes of them; a baseline is taken through its whole life in a project of
pytester's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

from pytest_fairness.endpoints.protocol import Endpoint, Price, Reply, Request
from pytest_fairness.model import Message, Usage

if TYPE_CHECKING:
    import pandas as pd
    import pytest

__all__ = [
    "ScriptedEndpoint",
    "ask",
    "check_baseline_life_cycle",
    "choices_frame",
    "decisions_frame",
    "scores_frame",
]


class ScriptedEndpoint:
    """Answers each of its ``requests`` with *answer* of it, a :class:`Reply` or the text of one,
    after *delay* seconds.

    *answer* raises AttemptError where none comes. ``most``: the requests that were under way at
    once, at the most.
    """

    type = "scripted"
    supports_system_prompt = True

    def __init__(
        self,
        answer: Callable[[Request], Reply | str] = lambda request: (
            f"Answer to: {request.messages[-1].content}"
        ),
        *,
        name: str = "scripted",
        delay: float = 0.0,
        price: Price | None = None,
        simulated: bool = False,
        **parameters: Any,
    ) -> None:
        self.name = name
        self.price = price
        self.simulated = simulated
        self.default_parameters = parameters
        self.requests: list[Request] = []
        self.most = 0
        self.closed = False
        self._now = 0
        self._answer = answer
        self._delay = delay

    def identity(self) -> dict[str, Any]:
        return {"type": self.type, "name": self.name}

    async def ask(self, request: Request) -> Reply:
        self.requests.append(request)
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            if self._delay:
                await asyncio.sleep(self._delay)
            reply = self._answer(request)
        finally:
            self._now -= 1
        if isinstance(reply, Reply):
            return reply
        return Reply(text=reply, usage=Usage(input_tokens=10, output_tokens=5))

    async def aclose(self) -> None:
        self.closed = True


def ask(endpoint: Endpoint, *prompts: str, **request: Any) -> Reply:
    """The reply of *endpoint*, which is closed, to a conversation in which user and assistant take
    turns.

    *request* are further fields of the :class:`Request`. Raises AttemptError.
    """
    messages = tuple(map(Message, cycle(("user", "assistant")), prompts or ("Hello",)))

    async def once() -> Reply:
        try:
            return await endpoint.ask(Request(**{"messages": messages, **request}))
        finally:
            await endpoint.aclose()

    return asyncio.run(once())


def scores_frame(
    shifts: Mapping[str, float],
    *,
    outcome: str = "score",
    by: str = "group",
    names: int = 20,
    templates: int = 4,
    repetitions: int = 2,
    seed: int = 0,
) -> pd.DataFrame:
    """A table of trials with normal scores (mean 0, SD 1), each group of *shifts* moved by so much.

    ``names`` people a group meet every template ``repetitions`` times; another *seed* brings other
    people.
    """
    import numpy as np
    import pandas as pd

    labels = np.array(list(shifts))
    g, n, t, r = (axis.ravel() for axis in np.indices((len(shifts), names, templates, repetitions)))
    return pd.DataFrame(
        {
            by: labels[g],
            "name": [f"{labels[group]}{name}-{seed}" for group, name in zip(g, n, strict=True)],
            "template": [f"t{template}" for template in t],
            "repetition": r,
            outcome: np.random.default_rng(seed).normal(size=g.size)
            + np.array(list(shifts.values()))[g],
        }
    )


def decisions_frame(
    favourable: Mapping[str, int], *, of: int = 200, outcome: str = "hired", by: str = "group"
) -> pd.DataFrame:
    """A table of *of* yes/no decisions a group, of which so many are *favourable*; pass
    ``cluster=None`` with it.
    """
    import pandas as pd

    rows = [(group, number < count) for group, count in favourable.items() for number in range(of)]
    return pd.DataFrame(rows, columns=[by, outcome])


def choices_frame(
    wins: int, *, of: int = 150, groups: tuple[str, str] = ("a", "b")
) -> pd.DataFrame:
    """A table of choices between two groups, *of* in each order, of which the first of *groups*
    wins so many.
    """
    import pandas as pd

    first, second = groups
    rows = [
        (*order, first if number < wins else second, number)
        for order in ((first, second), (second, first))
        for number in range(of)
    ]
    return pd.DataFrame(rows, columns=["first", "second", "chosen", "repetition"])


def check_baseline_life_cycle(
    pytester: pytest.Pytester,
    fall: Callable[[], object],
    *arguments: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Take the baseline of the one test in *pytester*'s folder through its life, and raise
    AssertionError where it does not behave: missing it fails, approved with a reason it holds,
    after *fall*, which makes the scores worse, it fails and is not approved unless a regression is
    allowed. *arguments* are those of each session.
    """
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("FAIRNESS_APPROVER", "Jane Smith")
    folder = pytester.path / "baselines"

    def run(expected: str, *more: str) -> str:
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, *more)
        result.assert_outcomes(**{expected: 1})
        return result.stdout.str()

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.glob("*.json")}

    approve = ("--fairness-approve", "--fairness-justification", "reviewed 20 letters")
    run("failed")
    assert not files(), "a run that approves nothing made a baseline"
    run("failed", "--fairness-approve")
    assert not files(), "a baseline was approved without a justification"
    run("passed", *approve)
    approved = files()
    assert len(approved) == 1, "the test has one baseline"
    assert b"reviewed 20 letters" in next(iter(approved.values()))
    run("passed")
    fall()
    run("failed")
    assert "--fairness-approve-regression" in run("failed", *approve)
    assert files() == approved, "a regression changed the baseline"
    run("passed", *approve, "--fairness-approve-regression")
    assert files() != approved
    run("passed")
