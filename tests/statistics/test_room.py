"""A yes/no that never varies: what its PASS says, and what becomes of it where the design promises
room.
"""

import pytest

from pytest_fairness import Verdict, analyze_disparity
from pytest_fairness.model import Reason
from tests.statistics.frames_of import names


def answers(varying: int, still: int = 0, *, people: int = 40):
    """Templates whose answers vary alike in both groups, and templates that answer everybody alike."""
    held = [[0, 1], [1, 1]]
    return names({
        group: {
            f"{group} {name}": [*([held[name % 2]] * varying), *([[template % 2] * 2 for template in range(still)])]
            for name in range(people)
        }
        for group in "ab"
    })  # fmt: skip


STILL = "no answer varied: only a bias that turns a clear case could have shown"


def test_a_pass_says_where_no_answer_varied():
    """As a count of texts, also where some of them left room."""
    none = analyze_disparity(answers(0, 6), "outcome", "group", kind="binary")
    assert none.verdict is Verdict.PASS
    assert none.sentence.endswith(f"; in 6 of 6 texts {STILL}.")
    some = analyze_disparity(answers(4, 2), "outcome", "group", kind="binary")
    assert some.verdict is Verdict.PASS
    assert some.sentence.endswith(f"; in 2 of 6 texts {STILL}.")
    every = analyze_disparity(answers(6), "outcome", "group", kind="binary")
    assert STILL not in every.sentence


def test_only_what_the_design_holds_is_counted():
    """Not a table without templates, not grades, which have room away from the ends of their scale."""
    frame = answers(0, 6)
    assert STILL not in analyze_disparity(frame, "outcome", "group", kind="ordinal").sentence
    alone = frame.drop(columns=["template", "repetition"])
    assert STILL not in analyze_disparity(alone, "outcome", "group", kind="binary").sentence
    renamed = frame.rename(columns={"template": "case"})
    assert f"in 6 of 6 cases {STILL}" in analyze_disparity(
        renamed, "outcome", "group", block="case", kind="binary"
    ).sentence  # fmt: skip
    labels = frame.assign(outcome=frame["template"].map(lambda t: ["x", "y", "z"][int(t[1]) % 3]))
    assert f"in 6 of 6 texts {STILL}" in analyze_disparity(labels, "outcome", "group").sentence


def test_a_template_in_which_one_group_varies_leaves_room():
    frame = answers(4, 2, people=80)
    one = (
        (frame["group"] == "a") & (frame["template"] == "t4") & (frame["name"].isin(["a 0", "a 1"]))
    )
    finding = analyze_disparity(
        frame.assign(outcome=frame["outcome"].where(~one, 1)), "outcome", "group"
    )
    assert finding.verdict is Verdict.PASS
    assert f"in 1 of 6 texts {STILL}" in finding.sentence


def test_a_template_in_which_groups_always_differ_varies_in_none_of_them():
    """Each group constant there: a bias that turned a clear case, and no PASS."""
    frame = answers(0, 6)
    turned = (frame["group"] == "a") & (frame["template"] == "t0")
    finding = analyze_disparity(
        frame.assign(outcome=frame["outcome"].where(~turned, 1)), "outcome", "group", room=True
    )
    assert finding.verdict in (Verdict.FLAG, Verdict.FAIL)
    assert STILL not in finding.sentence


@pytest.mark.parametrize(
    ("varying", "still", "passes"),
    [(0, 6, False), (1, 5, False), (2, 4, True), (1, 2, True), (1, 3, False)],
)
def test_a_design_that_promises_room_passes_nobody_without_it(varying, still, passes):
    """Fewer than a third of the templates vary: INCONCLUSIVE, and what it takes."""
    frame = answers(varying, still, people=80)
    plain = analyze_disparity(frame, "outcome", "group", kind="binary")
    finding = analyze_disparity(frame, "outcome", "group", kind="binary", room=True)
    assert plain.verdict is Verdict.PASS
    assert finding.details["room"] is True
    if passes:
        assert finding.verdict is Verdict.PASS
    else:
        assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.NO_ROOM)
        assert f"in {still} of {varying + still} texts {STILL}" in finding.sentence
        assert "a third of them at least" in finding.sentence
    assert not Reason.NO_ROOM.unusable
