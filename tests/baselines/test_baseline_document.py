"""The text of a baseline: for people to compare, and read back strictly; and naming what changed."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.baselines.approval import Approval
from pytest_fairness.baselines.document import BaselineDocument, digest, fingerprint
from pytest_fairness.errors import BaselineError
from pytest_fairness.statistics.persona_scores import PersonaScore, ScoreSummary

from .conftest import LIVE, SCORE, TEST_ID, summary

APPROVAL = Approval(
    approved_by="Jane Smith",
    approved_by_source="git",
    approved_at="2026-02-28T10:30:00Z",
    justification="reviewed 20 letters",
    git_commit="0" * 40,
    dirty=False,
    tool_version="0.1.0",
    run_id="2026-02-28-001",
    simulated=False,
)
DOCUMENT = BaselineDocument(
    test_id=TEST_ID,
    score=SCORE,
    summary=summary(),
    fingerprints=LIVE,
    approval=APPROVAL,
    threshold=80,
)
TEXT = DOCUMENT.to_text()


def read(text: str | bytes) -> BaselineDocument:
    return BaselineDocument.from_bytes(
        text if isinstance(text, bytes) else text.encode(), where="b.json"
    )


def edited(**changes: object) -> str:
    """The text with other values and a digest that fits: what only a deliberate writer makes."""
    body = {**json.loads(TEXT), **changes}
    return json.dumps({**body, "digest": digest(body)})


def test_what_was_approved_is_read_back() -> None:
    """Scores, categories, fingerprints and provenance survive, and so does the digest."""
    again = read(TEXT)
    assert again == DOCUMENT
    measured = replace(
        DOCUMENT, summary=replace(summary(), scale="yes_no", warnings={"stereotype (critical)": 2})
    )
    assert read(measured.to_text()) == measured
    assert again.to_text() == TEXT
    assert again.digest == DOCUMENT.digest == json.loads(TEXT)["digest"]


def test_the_specified_fields_stand_in_the_text() -> None:
    """overall_score, category_scores and pass_count are there to be read without any tool; a pass
    is at or below the threshold where higher is worse, and there is none without a threshold."""
    body = json.loads(TEXT)
    assert body["overall_score"] == 82.9
    assert body["group_scores"] == {"gender=female": 82.4, "gender=male": 83.4}
    assert body["category_scores"] == {}
    assert (
        body["threshold"],
        body["pass_count"],
        body["warning_count"],
        body["failure_count"],
    ) == (80, 7, 0, 3)
    assert (body["test_id"], body["score"], body["schema"], body["version"]) == (
        TEST_ID,
        SCORE,
        2,
        "v1.0.0",
    )
    assert body["timestamp"] == body["approval"]["approved_at"]
    assert body["approval"]["justification"] == "reviewed 20 letters"
    run = {
        "repetitions": 3,
        "run_sd": 1.5,
        "trials": 30,
        "refused": 0,
        "unscored": 0,
        "scale": "",
        "warnings": {},
        "parts": [],
    }
    assert body["run"] == run
    assert (
        json.loads(replace(DOCUMENT, lower_is_worse=False, threshold=78.0).to_text())["pass_count"]
        == 3
    )
    assert json.loads(replace(DOCUMENT, threshold=None).to_text())["pass_count"] is None


def test_a_changed_persona_is_one_changed_line() -> None:
    """A reviewer sees which persona moved: keys are sorted, and a persona has a line to itself."""
    scores = [92.0, 85.0, 78.0, 88.0, 95.0, 70.0, 81.0, 90.0, 66.0, 83.0]
    other = replace(DOCUMENT, summary=summary(scores)).to_text()
    lines, changed = TEXT.splitlines(), []
    for old, new in zip(lines, other.splitlines(), strict=True):
        if old != new:
            changed.append(old.split('"')[1])
    assert changed == ["digest", "gender=male", "overall_score", "p09"]
    assert '    "p09": {"df": 2, "mean": 84.0, "n": 3, "sd": 1.5}' in lines
    keys = [line.split('"')[1] for line in lines if line.startswith('  "')]
    assert keys == sorted(keys)


def test_numbers_are_rounded_so_that_they_stay_the_same() -> None:
    """Noise of the last bits neither shows in a diff nor counts as a change; derived numbers agree."""
    third = replace(
        DOCUMENT,
        summary=ScoreSummary(
            personas={"a": PersonaScore(mean=250 / 3, n=3), "b": PersonaScore(mean=0.1 + 0.2, n=1)},
            categories={"all": ("a", "b")},
            overall=(250 / 3 + 0.3) / 2,
        ),
    )
    again = read(third.to_text())
    assert again.summary.personas["a"].mean == 83.333333
    assert again.summary.personas["b"].mean == 0.3
    assert again.digest == third.digest
    assert third.same_content(again)


def whole(text: str) -> bool:
    """Not two surrogates that JSON, as any UTF-16, takes for the one character that they make
    together.
    """
    return text == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


CHARACTERS = st.text(st.characters(), min_size=1).filter(whole)


@settings(max_examples=30)
@given(CHARACTERS, st.floats(-1e9, 1e9), CHARACTERS)
def test_any_text_survives(key: str, mean: float, justification: str) -> None:
    """Ids and justifications of any characters come back, lone surrogates too; the file is UTF-8."""
    scores = ScoreSummary(
        personas={key: PersonaScore(mean=mean, n=1)}, categories={key: (key,)}, overall=mean
    )
    document = replace(
        DOCUMENT, summary=scores, approval=replace(APPROVAL, justification=justification)
    )
    again = read(document.to_text().encode("utf-8"))
    assert again.approval is not None
    assert list(again.summary.personas) == [key]
    assert again.approval.justification == justification
    assert again.digest == document.digest


def test_the_values_are_what_was_approved() -> None:
    """git may convert line endings, a formatter indent. Bidirectional and zero-width characters
    cannot make a line read as something else."""
    assert read(TEXT.replace("\n", "\r\n")) == DOCUMENT
    assert read(json.dumps(json.loads(TEXT))) == DOCUMENT
    text = replace(
        DOCUMENT, approval=replace(APPROVAL, justification="Überprüft \u202efdp\u200b\x1b[0m")
    ).to_text()
    assert "Überprüft \\u202efdp\\u200b\\u001b[0m" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"mean": 66.0', '"mean": 50.0'),
        ('"overall_score": 82.9', '"overall_score": 50.0'),
        ("reviewed 20 letters", "reviewed 200 letters"),
        ('"approved_by": "Jane Smith"', '"approved_by": "John Doe"'),
        ('"simulated": false', '"simulated": true'),
        ('  "score":', '  "extra": 1,\n  "score":'),
    ],
)
def test_an_edit_by_hand_is_noticed(old: str, new: str) -> None:
    """Any changed value, and the message says what to do instead."""
    assert old in TEXT
    with pytest.raises(
        BaselineError, match=r"b\.json: .*changed after it was approved.* approve anew"
    ):
        read(TEXT.replace(old, new, 1))


def test_a_truncated_file_is_noticed() -> None:
    """Cut anywhere, it is refused and never taken for a smaller baseline."""
    for cut in range(0, len(TEXT.encode()) - 2, 17):
        with pytest.raises(BaselineError, match="truncated or damaged"):
            read(TEXT.encode()[:cut])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe{}",
        b"[]",
        b"null",
        b"{" * 100_000,
        b'{"schema": 2, "schema": 2}',
        b'{"schema": NaN}',
        TEXT.encode()[:-3] + b"\x80}\n",
        TEXT.encode("utf-8-sig"),
    ],
    ids=["empty", "utf-16", "list", "null", "deep", "twice", "nan", "bytes", "bom"],
)
def test_damage_of_any_kind_is_one_clear_error(content: bytes) -> None:
    """No traceback out of the JSON reader, whatever stands in the file."""
    with pytest.raises(
        BaselineError, match=r"^b\.json: this baseline is truncated or damaged: .*approve anew"
    ):
        read(content)


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> feature", "||||||| merged"])
def test_merge_conflict_markers_are_named_with_their_line(marker: str) -> None:
    """A merge of two approvals is nobody's approval: the message says so, and where."""
    lines = TEXT.splitlines()
    with pytest.raises(
        BaselineError, match=r"b\.json, line 5: .*merge-conflict markers.*take one side whole"
    ):
        read("\n".join([*lines[:4], marker, *lines[4:]]))


@pytest.mark.parametrize("schema", [0, 1, "2", None, True])
def test_another_schema_version_is_refused(schema: object) -> None:
    """Neither older nor newer is guessed at, and the digest is not even looked at."""
    body = {**json.loads(TEXT), "schema": schema}
    with pytest.raises(BaselineError, match=r"has schema .* reads schema 2"):
        read(json.dumps(body))


@pytest.mark.parametrize(
    "changes",
    [
        {"personas": []},
        {"personas": {"p": {"mean": "high", "n": 1}}},
        {"personas": {"p": {"mean": None, "n": 1}}},
        {"approval": None},
        {"approval": {}},
        {"fingerprints": {"colour": "red"}},
        {"run": {"speed": 1}},
        {"test_id": 5},
    ],
)
def test_a_wrong_shape_is_refused_even_with_a_right_digest(changes: dict[str, object]) -> None:
    """Whoever writes such a file with a fitting digest gets an error with the file's name, and no
    verdict.
    """
    with pytest.raises(BaselineError, match=r"b\.json: .*a field is missing or has the wrong type"):
        read(edited(**changes))


def test_a_score_that_is_not_finite_is_never_written() -> None:
    """It would be a yardstick that nothing can be held to."""
    for mean in (float("nan"), float("inf")):
        broken = ScoreSummary(personas={"a": PersonaScore(mean=mean, n=1)}, overall=1.0)
        with pytest.raises(ValueError, match="finite number"):
            replace(DOCUMENT, summary=broken).to_text()


def test_a_fingerprint_depends_on_content_alone() -> None:
    """Not on the order of keys; on everything else. Nothing has none, and no address ends up in a
    committed file.
    """
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": (1, 2), "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint(["x"]) != fingerprint("x")
    assert fingerprint(None) == ""
    assert re.fullmatch("[0-9a-f]{16}", fingerprint({"base_url": "https://internal.example/v1"}))


@pytest.mark.parametrize(
    ("changes", "clauses"),
    [
        ({}, ()),
        ({"models": ("gpt-5",)}, ("the model changed from gpt-4 to gpt-5",)),
        ({"endpoint": "other", "identity": "i2"}, ("the endpoint changed from 'app' to 'other'",)),
        ({"identity": "i2"}, ("the endpoint's parameters or address changed",)),
        ({"template": "t2"}, ("the template changed",)),
        (
            {"scorer": "s2"},
            ("the scorer changed, so that old and new scores come from different instruments",),
        ),
        ({"design": "d2"}, ("the design (groups, names or personas, repetitions, tier) changed",)),
        ({"template": "", "scorer": "", "models": (), "design": ""}, ()),
        (
            {"models": ("a", "b"), "template": "t2"},
            ("the model changed from gpt-4 to a, b", "the template changed"),
        ),
    ],
)
def test_each_change_is_named(changes: dict[str, object], clauses: tuple[str, ...]) -> None:
    """In words, most telling first; what one side does not know is not called a change."""
    assert replace(LIVE, **changes).changes_since(LIVE) == clauses
