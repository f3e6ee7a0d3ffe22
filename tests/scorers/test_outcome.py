"""One outcome column, whichever way it is named."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from pytest_fairness import analyze_disparity, scorer
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.running_test import TestContext, running_test
from pytest_fairness.scorers import BUILT_IN, Scorer, outcome_of


def _frame(**columns) -> pd.DataFrame:
    replies = ["A superb, reliable engineer.", "A poor candidate.", None, "I can't help with that."]
    data = {"reply": replies, "refused": [False, False, False, True], **columns}
    return pd.DataFrame(data, index=[10, 11, 12, 13])


def rated(score):
    return Scorer(name="s", score=lambda _reply: score, kind="ordinal", low=1, high=10)


def test_a_scorer_by_name_gives_a_column_on_the_tables_index():
    """Scored replies are numbers; a missing reply and a refusal have no outcome."""
    outcome = outcome_of(_frame(), "sentiment")
    assert list(outcome.values.index) == [10, 11, 12, 13]
    assert outcome.values[10] > 0 > outcome.values[11]
    assert outcome.values[[12, 13]].isna().all()
    assert (outcome.name, outcome.kind, outcome.scorer) == (
        "sentiment",
        OutcomeKind.NARRATIVE,
        BUILT_IN["sentiment"],
    )
    assert outcome_of(_frame(), "word_count").unit == "words"


def test_a_column_of_the_table_wins_over_a_scorer_of_its_name():
    """Whoever brings a column named like a scorer means the column."""
    outcome = outcome_of(_frame(sentiment=[1.0, 2.0, 3.0, 4.0]), "sentiment")
    assert outcome.values.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert (outcome.scorer, outcome.kind) == (None, None)


def test_a_callable_reads_each_reply_and_keeps_its_name():
    """A function of the reply is a scorer of its own name; it gives a yes or no, a label, or
    numpy's numbers.
    """

    def mentions_engineer(reply):
        return "engineer" in reply

    outcome = outcome_of(_frame(), mentions_engineer)
    assert (outcome.name, outcome.kind) == ("mentions_engineer", OutcomeKind.BINARY)
    assert outcome.values[[10, 11]].tolist() == [1.0, 0.0]
    assert outcome_of(_frame(), partial(mentions_engineer)).name == "mentions_engineer"
    labels = outcome_of(_frame(), lambda reply: "good" if "superb" in reply else "bad")
    assert labels.name == "custom score"
    assert labels.values.tolist()[:2] == ["good", "bad"]
    assert labels.values.isna().tolist() == [False, False, True, True]
    numbers = outcome_of(
        _frame(), lambda reply: np.float64(2.5) if "superb" in reply else float("nan")
    ).values
    assert (numbers[10], np.isnan(numbers[11])) == (2.5, True)


def test_a_refusal_scorer_sees_the_refused_rows():
    """Where refusal is the outcome, a refused row is a yes, not a gap."""
    outcome = outcome_of(_frame(), "refusal")
    assert outcome.kind is OutcomeKind.REFUSAL
    assert outcome.lower_is_worse is False
    assert outcome.values[[10, 11, 13]].tolist() == [0.0, 0.0, 1.0]
    assert np.isnan(outcome.values[12])


def test_registered_scorers_come_from_the_argument_or_the_running_test():
    """A scorer registered with the session is found by its name inside a test."""
    shout = Scorer(name="shout", score=lambda reply: reply.count("!"), unit="marks")
    assert outcome_of(_frame(), "shout", {"shout": shout}).unit == "marks"
    context = TestContext(
        test_id="t", test_module="m", description="", emit=lambda _: None, scorers={"shout": shout}
    )
    with running_test(context):
        assert outcome_of(_frame(), "shout").scorer is shout


@pytest.mark.parametrize(
    ("frame", "outcome", "error", "message"),
    [
        (
            None,
            "tone",
            UsageError,
            "'tone' is neither.*'reply', 'refused'.*'sentiment', 'word_count'",
        ),
        (None, "sentimnet", UsageError, "'sentimnet' is neither .* did you mean 'sentiment'?"),
        (None, "Reply", UsageError, "'Reply' is neither .* did you mean 'reply'?"),
        (None, 3, UsageError, "outcome= is 3"),
        (pd.DataFrame([[1, 2]], columns=["s", "s"]), "s", FrameError, "more than one column 's'"),
        (
            {"score": [1, 2]},
            "sentiment",
            FrameError,
            "'sentiment' reads the column 'reply'.*'score'",
        ),
        (None, lambda _reply: [1], UsageError, "returned a list for row 10"),
        (None, lambda _reply: float("inf"), UsageError, "returned inf for row 10"),
        (None, lambda _reply: {}, UsageError, "returned a dict"),
        (
            None,
            lambda reply: "good" if "superb" in reply else 0,
            UsageError,
            "both labels and numbers",
        ),
        (None, rated(11), UsageError, "returned 11 for row 10: its scale goes from 1 to 10"),
        (None, rated(0.5), UsageError, "returned 0.5 for row 10"),
        (None, rated(10**4000), UsageError, "a whole number of 13288 bits for row 10"),
    ],
)
def test_what_is_no_outcome_is_refused(frame, outcome, error, message):
    """The message names scorer and row, or the columns and scorers that there are."""
    with pytest.raises(error, match=message):
        outcome_of(_frame() if frame is None else pd.DataFrame(frame), outcome)


def test_an_error_in_a_custom_scorer_says_where_it_happened():
    """The author's own exception, with the scorer and the row added."""

    def broken(reply):
        raise ZeroDivisionError("oh")

    with pytest.raises(ZeroDivisionError) as raised:
        outcome_of(_frame(), broken)
    assert raised.value.__notes__ == ["while the scorer 'broken' read the reply in row 10"]


def test_a_fingerprint_is_stable_and_tells_versions_and_sources_apart():
    """A baseline can tell that the scorer changed."""

    def first(reply):
        return len(reply)

    def second(reply):
        return len(reply) + 1

    one = Scorer(name="s", score=first)
    assert one.fingerprint == Scorer(name="s", score=first).fingerprint
    changed = ({"score": second}, {"name": "t"}, {"version": "2"}, {"score": len})
    others = {Scorer(**{"name": "s", "score": first, **change}).fingerprint for change in changed}
    assert len({one.fingerprint, *others}) == 5
    assert BUILT_IN["sentiment"].fingerprint == "74fdf9b975d667c1"


@pytest.mark.parametrize("reply", ["Yes. 7/10, $50,000.", "No. 7.5/10", "I cannot help with that."])
def test_the_kind_of_a_built_in_scorer_does_not_follow_its_values(reply: str) -> None:
    """Ratings that happen to be whole, or counts that happen to be one, are of the kind that they
    always are.
    """
    frame = pd.DataFrame({"reply": [reply] * 2})
    assert {name: outcome_of(frame, name).kind for name in BUILT_IN} == {
        n: one.kind for n, one in BUILT_IN.items()
    }
    assert None not in [one.kind for one in BUILT_IN.values()]


def test_the_ends_of_a_scale_stand_in_the_outcome() -> None:
    """Only where they are certain: a salary has none, a plain column and a bare function neither."""
    frame = pd.DataFrame({"reply": ["Yes. 7/10"], "n": [3]})
    ends = {name: ((found := outcome_of(frame, name)).low, found.high) for name in [*BUILT_IN, "n"]}
    assert ends == {
        "sentiment": (-1, 1),
        "word_count": (0, None),
        "char_count": (0, None),
        "rating": (1, 10),
        "decision": (0, 1),
        "salary": (None, None),
        "refusal": (0, 1),
        "triage": (1, 5),
        "triage_esi": (1, 5),
        "triage_manchester": (1, 5),
        "disclaimer": (0, 1),
        "toxicity": (0, None),
        "letter_score": (0, 100),
        "passed": (0, 1),
        "lexicon": (0, None),
        "n": (None, None),
    }
    assert (outcome_of(frame, len).low, outcome_of(frame, len).high) == (None, None)
    assert outcome_of(frame, lambda reply: "7" in reply).high == 1


ENGLISH = [name for name, scorer in BUILT_IN.items() if scorer.reads_english]


@pytest.mark.parametrize("name", ENGLISH)
@pytest.mark.parametrize(
    "reply",
    [
        "Das kann ich leider nicht für Sie schreiben. Bitte haben Sie dafür Verständnis.",
        "Je ne peux pas vous aider avec cela, mais vous êtes très aimable.",
        "Lo siento, pero no puedo ayudarle con esto.",
        "对不起，我不能帮助您处理这个请求。",
        "К сожалению, я не могу помочь с этим запросом.",
    ],
)
def test_prose_in_another_language_is_unread(name: str, reply: str) -> None:
    """An English rule finds no refusal in it, and no warm word: that is not an answer, and no 0."""
    outcome = outcome_of(pd.DataFrame({"reply": [reply, "A kind letter of thanks."]}), name)
    assert outcome.read_by is not None
    assert outcome.read_by.tolist() == ["unread", "rule"]
    assert outcome.values.isna().tolist() == [True, False]


def test_a_form_and_a_provider_decline_in_any_language() -> None:
    form = '{"no_answer": true, "reason": "Das kann ich leider nicht für Sie schreiben."}'
    frame = pd.DataFrame(
        {"reply": [form, "Das tut mir leid, aber nein."], "refused": [False, True]}
    )
    assert outcome_of(frame, "refusal").values.tolist() == [1, 1]


@pytest.mark.parametrize(
    "reply",
    [
        "Smith et al. (2022) and the review in Die Zeit agree.",
        "La Toya Jackson is a very good candidate from El Paso.",
        "7",
        "OK.",
        "{}",
        "🙂",
    ],
)
def test_english_with_names_and_short_replies_are_read(reply: str) -> None:
    assert outcome_of(pd.DataFrame({"reply": [reply]}), "refusal").values.tolist() == [0]


@scorer(kind="numeric", unit="words", low=0)
def long_words(reply: str) -> int:
    """Words of over twelve letters."""
    return sum(len(word) > 12 for word in reply.split())


def test_a_decorated_function_declares_what_it_counts() -> None:
    """It goes wherever a scorer goes, and can still be called."""
    frame = _frame(reply=["an extraordinarily long word", "none here"] * 2, refused=False)
    outcome = outcome_of(frame, long_words)
    assert (outcome.name, outcome.kind, outcome.unit, outcome.low) == (
        "long_words",
        OutcomeKind.NUMERIC,
        "words",
        0,
    )
    assert outcome.values.tolist() == [1, 0, 1, 0]
    assert long_words("extraordinarily") == 1
    assert outcome_of(frame, "long_words", {"long_words": long_words}).scorer is long_words
    assert not long_words.built_in
    assert long_words.fingerprint != scorer(len, name="long_words").fingerprint
    assert scorer(name="size")(len).name == "size"


def test_a_scorer_that_declares_nothing_is_taken_by_its_values_and_the_finding_says_so() -> None:
    """The same counts, declared and not: 0 and 1 alone are a yes or no unless somebody says what
    they are.
    """
    replies = ["an extraordinarily long word", "none here"] * 40
    frame = pd.DataFrame(
        {"reply": replies, "group": ["a", "a", "b", "b"] * 20, "name": [f"n{k}" for k in range(80)]}
    )
    bare = analyze_disparity(frame, long_words.score, "group")
    assert (bare.kind, bare.details["kind_inferred"]) == (OutcomeKind.BINARY, True)
    assert any("taken to be binary" in note for note in bare.notes)
    declared = analyze_disparity(frame, long_words, "group")
    assert (declared.kind, declared.details["kind_inferred"]) == (OutcomeKind.NUMERIC, False)
    assert not any("taken to be" in note for note in declared.notes)
    truth = analyze_disparity(frame, lambda reply: "long" in reply, "group")
    assert (truth.kind, truth.details["kind_inferred"]) == (OutcomeKind.BINARY, False)


def test_a_scorer_that_declares_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match="kind='number' is none of numeric, ordinal"):
        scorer(kind="number")(len)
    for low, high in ((1, 1), (2, 1), (None, float("inf")), (float("nan"), None)):
        with pytest.raises(UsageError, match="not the ends of a scale"):
            scorer(low=low, high=high)(len)


def test_equal_replies_are_read_once_by_built_in_scorers_only(monkeypatch):
    """A pure reader is asked once a text; a custom function may be a judge that never answers twice
    alike. What is kept forgets the oldest first, and a lone surrogate is a text like any other.
    """
    calls = []

    def count(text):
        calls.append(text)
        return len(calls)

    monkeypatch.setattr("pytest_fairness.scorers.outcome._MOST_SCORES", 2)
    monkeypatch.setattr("pytest_fairness.scorers.outcome._scores", {})
    ours = Scorer(name="ours", score=count)
    monkeypatch.setattr(Scorer, "built_in", property(lambda scorer: scorer is ours))
    for replies, scores in (
        (["a", "a", "\ud800"], [1, 1, 2]),
        (["b", "b", "\ud800", "a"], [3, 3, 2, 4]),
    ):
        assert (
            outcome_of(pd.DataFrame({"reply": replies}, dtype=object), ours).values.tolist()
            == scores
        )
    frame = pd.DataFrame({"reply": ["same", "same"]})
    assert outcome_of(frame, count).values.tolist() == [5.0, 6.0]


def test_every_built_in_scorer_takes_hostile_text():
    """Control codes, lone surrogates, emptiness and a megabyte never raise."""
    hostile = ["", "\x00\x1b[31m\r\u202e", "\ud800", "a" * 1_000_000, "💘" * 1000]
    frame = pd.DataFrame({"reply": pd.Series(hostile, dtype=object)})
    for name in BUILT_IN:
        assert len(outcome_of(frame, name).values) == len(hostile)
