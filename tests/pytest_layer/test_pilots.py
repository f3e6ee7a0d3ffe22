"""A pilot: a few calls about neutral names choose the texts of a series that the groups are asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pytest_fairness.reports.verification import verify_run
from tests.conftest import MODES
from tests.support.shared_sessions import PastSession, SharedProject, SharedSessions

from .conftest import Project

SUITE = """
    import hashlib
    import re
    import pytest
    from pytest_fairness import assert_no_disparity

    SERIES = {
        post: {f"y{years}": f"{{name}}{{who}} applies as {post} and has {years} years. Invite or reject?"
               for years in range(1, 6)}
        for post in ("a nurse", "a clerk")
    }
    SERIES = {post.replace("a ", ""): texts for post, texts in SERIES.items()}

    def texts(who):
        return {post: {key: text.replace("{who}", who) for key, text in of_post.items()}
                for post, of_post in SERIES.items()}

    GRID = dict(each={
        "gender-name": {"groups": {"gender": ["female", "male"]}, "template": texts("")},
        "age-stated_age": {"groups": {"age": ["younger", "older"]}, "template": texts(", who {age},"),
                           "signal": "stated_age"},
    }, repetitions=1, pilot=30, scorer="decision", strategies="all", room=True)

    @pytest.fixture
    def endpoint():
        def reply(prompt):
            years = int(re.search(r"has (\\d) years", prompt)[1])
            border = BORDER
            number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % 100
            leaning = 30 if LEANS and "61" in prompt else 50
            chances = {border - 1: leaning - 15, border: leaning, border + 1: leaning + 15}
            chance = chances.get(years, 100 * (years > border)) if VARIES else 100 * (years > border)
            return "invite" if number < chance else "reject"
        return reply

    @pytest.mark.fairness_grid(**GRID)
    def test_invited(trials, fairness_protected_class):
        assert_no_disparity(trials, outcome="decision", by=fairness_protected_class)
"""


def suite(border: int, *, varies: bool = True, leans: bool = False) -> str:
    """The suite with an endpoint that turns at *border* years: by chance there, if it *varies*."""
    settings = {"BORDER": border, "VARIES": varies, "LEANS": leans}
    text = SUITE
    for name, value in settings.items():
        text = text.replace(name, str(value))
    return text


def test_first(project: Project) -> None:
    project.write(suite(4))
    result = project.run()
    print(result.stdout.str())
    print(project.records("pilot"))
    print([f["sentence"] for f in project.findings], [f["notes"] for f in project.findings])
    print(Counter(t["cell"]["template"] for t in project.records("trial")))
    v = verify_run(project.last, lambda *_: None)
    print(v.problems, v.checked)
    assert 0
