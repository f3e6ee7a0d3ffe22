"""What an approved baseline says, and its text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pytest_fairness.baselines import text
from pytest_fairness.baselines.approval import Approval
from pytest_fairness.baselines.errors import BaselineError
from pytest_fairness.baselines.fingerprints import Fingerprints
from pytest_fairness.model import to_json

if TYPE_CHECKING:
    from pytest_fairness.statistics.persona_scores import ScoreSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineDocument:
    """The scores of one test, as approved; without ``approval`` it is a proposal, which is never read back.

    ``threshold`` is the score from which a persona passes, in the score's own unit, where the test has one:
    at or above it, or at or below it where not ``lower_is_worse``.
    """

    test_id: str
    score: str
    summary: ScoreSummary
    fingerprints: Fingerprints
    approval: Approval | None = None
    threshold: float | None = None
    lower_is_worse: bool = True

    @property
    def category_scores(self) -> dict[str, float]:
        """The mean of the persona means in each category that has a scored persona."""
        scores, means = {}, self._means()
        for label, ids in self.summary.categories.items():
            scored = [means[key] for key in ids if key in means]
            if scored:
                scores[label] = math.fsum(scored) / len(scored)
        return scores

    @property
    def pass_count(self) -> int | None:
        """How many personas reach the threshold; ``None`` without one."""
        if self.threshold is None:
            return None
        sign = 1 if self.lower_is_worse else -1
        return sum(sign * (mean - self.threshold) >= 0 for mean in self._means().values())

    @property
    def digest(self) -> str:
        """The digest that stands in the text."""
        return text.digest(self._body())

    def same_content(self, other: BaselineDocument) -> bool:
        """Whether nothing but the approval differs, so that there is nothing to approve anew."""
        mine, theirs = self._body(), other._body()
        mine.pop("approval"), theirs.pop("approval")
        return mine == theirs

    def to_text(self) -> str:
        """The text to be committed. Raises ValueError or TypeError for what is not plain, finite data."""
        return text.render(self._body())

    @classmethod
    def from_bytes(cls, content: bytes, *, where: str) -> Self:
        """Read the text back; *where* names the file in errors. Raises BaselineError (see ``text.parse``)."""
        from pytest_fairness.statistics.persona_scores import ScoreSummary

        body = text.parse(content, where)
        try:
            summary = ScoreSummary.from_dict(
                {
                    **body["run"],
                    "personas": body["personas"],
                    "categories": body["categories"],
                    "overall": body["overall_score"],
                }
            )
            document = cls(
                test_id=_string(body["test_id"]),
                score=_string(body["score"]),
                summary=summary,
                fingerprints=Fingerprints.from_dict(body["fingerprints"]),
                approval=Approval(**body["approval"]),
                threshold=body["threshold"],
                lower_is_worse=body["lower_is_worse"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise text.malformed(where, error) from error
        return document

    @classmethod
    def for_test(cls, content: bytes, *, where: str, test_id: str, score: str) -> Self:
        """As :meth:`from_bytes`, and BaselineError if the file is the baseline of another test or score."""
        document = cls.from_bytes(content, where=where)
        if (document.test_id, document.score) != (test_id, score):
            raise BaselineError(
                f"{where}: this is the baseline of the score {document.score!r} of {document.test_id}, and "
                f"not of {score!r} of {test_id}. A baseline cannot be copied from test to test: remove the "
                "file and approve anew with --fairness-approve."
            )
        return document

    def _means(self) -> dict[str, float]:
        """As written: what is derived from them must come out the same when the text is read back."""
        return {key: text.rounded(score.mean) for key, score in self.summary.personas.items()}

    def _body(self) -> dict[str, Any]:
        run = self.summary.to_dict()
        personas: Any = run.pop("personas")
        categories = run.pop("categories")
        overall: Any = run.pop("overall")
        body: dict[str, Any] = {
            "schema": text.SCHEMA,
            "test_id": self.test_id,
            "score": self.score,
            "overall_score": text.rounded(float(overall)),
            "category_scores": {label: text.rounded(mean) for label, mean in self.category_scores.items()},
            "threshold": self.threshold,
            "lower_is_worse": self.lower_is_worse,
            "pass_count": self.pass_count,
            "personas": {key: _rounded_row(row) for key, row in personas.items()},
            "categories": categories,
            "run": _rounded_row(run),
            "fingerprints": to_json(self.fingerprints),
            "approval": None if self.approval is None else to_json(self.approval),
        }
        return body


def _rounded_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: text.rounded(value) if isinstance(value, float) else value for key, value in row.items()}


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value
