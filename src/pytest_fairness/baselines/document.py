"""The content of an approved baseline, and its text: JSON that a person can compare line by line,
read back strictly.

JSON and not YAML: nothing in it is executed, expanded or guessed (``no`` stays a string), and a
duplicate key is an error.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pytest_fairness.baselines.approval import APPROVE, Approval
from pytest_fairness.errors import BaselineError
from pytest_fairness.model import fields_of, to_json

if TYPE_CHECKING:
    from pytest_fairness.statistics.persona_scores import PersonaScore, ScoreSummary

_SCHEMA = 2
_FIRST_VERSION = "v1.0.0"
_ONE_LINE_EACH = frozenset({"personas", "categories"})
_VERSION = re.compile(r"v\d{1,6}\.\d{1,6}\.\d{1,6}")
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( |$)", re.MULTILINE)
_REMOVE = f"or remove the file and approve anew with {APPROVE}."


def fingerprint(value: Any) -> str:
    """A short, stable hex digest of anything that turns into JSON; the empty string for ``None``."""
    if value is None:
        return ""
    return _sha256(to_json(value))[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """Fingerprints of what a score was made of, so that a change since the approval can be named;
    an empty one is unknown.

    ``endpoint`` and ``models`` (those that say they answered) are names, since people approve
    names; others digests.
    """

    endpoint: str = ""
    models: tuple[str, ...] = ()
    identity: str = ""
    template: str = ""
    scorer: str = ""
    design: str = ""

    def changes_since(self, approved: Fingerprints) -> tuple[str, ...]:
        """Return what differs from *approved*, a clause each; what either side does not know is
        left out.
        """
        old = ", ".join(approved.models)
        new = ", ".join(self.models)
        clauses = {
            "endpoint": f"the endpoint changed from {approved.endpoint!r} to {self.endpoint!r}",
            "models": f"the model changed from {old} to {new}",
            "identity": "the endpoint's parameters or address changed",
            "template": "the template changed",
            "scorer": "the scorer changed, so that old and new scores come from different instruments",
            "design": "the design (groups, names or personas, repetitions, tier) changed",
        }
        both = {name: (getattr(self, name), getattr(approved, name)) for name in clauses}
        changed = [name for name, (now, before) in both.items() if now and before and now != before]
        renamed = {"endpoint", "models"} & set(changed)
        return tuple(clauses[name] for name in changed if not (renamed and name == "identity"))

    def has_other_reader(self, approved: Fingerprints) -> bool:
        """Return whether a model read these scores, or those *approved*, and not the same one, or
        not by the same question.
        """
        both = (self.scorer, approved.scorer)
        by_model = any(str(scorer).startswith(BY_MODEL) for scorer in both)
        return by_model and self.scorer != approved.scorer


BY_MODEL = "model:"
"""How the fingerprint of a scorer begins where a model read: its question and who was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredScore:
    """A score, as a run measured it, and what it was made of.

    ``threshold`` is the score from which a persona passes, where the test has one: at or above it,
    or at or below it where not ``lower_is_worse``.
    """

    score: str
    summary: ScoreSummary
    fingerprints: Fingerprints
    threshold: float | None = None
    lower_is_worse: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineDocument(MeasuredScore):
    """The scores of one test, as approved; without ``approval`` it is a proposal, which is never
    read back. ``version`` counts the approvals: v1.0.0, v1.1.0, …
    """

    test_id: str
    approval: Approval | None = None
    version: str = _FIRST_VERSION

    @classmethod
    def proposed(cls, measured: MeasuredScore, test_id: str, approval: Approval | None) -> Self:
        """Return the document of what a test *measured*."""
        return cls(test_id=test_id, approval=approval, **fields_of(MeasuredScore, measured))

    def next_version(self) -> str:
        """The version of what takes the place of this."""
        first, second, _ = map(int, self.version.removeprefix("v").split("."))
        return f"v{first}.{second + 1}.0"

    @property
    def digest(self) -> str:
        """The digest that stands in the text."""
        return digest(self._body())

    def same_content(self, other: BaselineDocument) -> bool:
        """Return whether nothing but the approval differs, so that there is nothing to approve
        anew.
        """
        approved = dict.fromkeys(("approval", "timestamp", "version"))
        return {**self._body(), **approved} == {**other._body(), **approved}

    def to_text(self) -> str:
        """The text to be committed: sorted keys, a line a persona, its own digest. Raises
        ValueError for what is not finite.
        """
        body = self._body()
        entries = []
        for key, value in sorted({**body, "digest": digest(body)}.items()):
            if key in _ONE_LINE_EACH and value:
                lines = [
                    f"    {_dumps(name)}: {_dumps(row)}" for name, row in sorted(value.items())
                ]
                text = "{\n" + ",\n".join(lines) + "\n  }"
            else:
                text = _dumps(value, indent=2).replace("\n", "\n  ")
            entries.append(f"  {_dumps(key)}: {text}")
        return visible("{\n" + ",\n".join(entries) + "\n}\n")

    @classmethod
    def from_bytes(cls, content: bytes, *, where: str) -> Self:
        """Read the text back; *where* names the file in errors.

        Raises BaselineError for merge-conflict markers, a truncated or damaged file, another schema
        version, and a file edited by hand.
        """
        from pytest_fairness.statistics.persona_scores import ScoreSummary

        body = _parse(content, where)
        try:
            scores = {
                "personas": body["personas"],
                "categories": body["categories"],
                "overall": body["overall_score"],
            }
            if not isinstance(body["test_id"], str) or not isinstance(body["score"], str):
                raise TypeError("test_id and score are texts")
            if _VERSION.fullmatch(body["version"]) is None:
                raise ValueError(f"version is {body['version']!r}")
            return cls(
                summary=ScoreSummary.from_dict({**body["run"], **scores}),
                fingerprints=Fingerprints(
                    **{**body["fingerprints"], "models": tuple(body["fingerprints"]["models"])}
                ),
                approval=Approval(**body["approval"]),
                **{
                    name: body[name]
                    for name in ("test_id", "score", "threshold", "lower_is_worse", "version")
                },
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"a field is missing or has the wrong type ({type(error).__name__}: {error})"
            raise _damaged(where, what) from error

    def counts(self) -> dict[str, int | None]:
        """Return how many personas ``pass`` without a warning, pass with a ``warning``, and are a
        ``failure``; None where there is no threshold.
        """
        if self.threshold is None:
            return dict.fromkeys(("pass", "warning", "failure"))
        counts: dict[str, int | None] = {"pass": 0, "warning": 0, "failure": 0}
        personas = self.summary.personas.values()
        return {**counts, **Counter(self._level(persona, self.threshold) for persona in personas)}

    def _level(self, persona: PersonaScore, threshold: float) -> str:
        mean = _rounded(persona.mean)
        passed = mean <= threshold
        if self.lower_is_worse:
            passed = mean >= threshold
        if not passed:
            return "failure"
        if persona.warnings:
            return "warning"
        return "pass"

    def _body(self) -> dict[str, Any]:
        run: Any = self.summary.to_dict()
        personas = run.pop("personas")
        categories = run.pop("categories")
        overall = run.pop("overall")
        # As written: what is derived from the means must come out the same when the text is read
        # back.
        means = {key: _rounded(score.mean) for key, score in self.summary.personas.items()}
        group_scores = {}
        for label, ids in categories.items():
            if scores := [means[key] for key in ids if key in means]:
                group_scores[label] = math.fsum(scores) / len(scores)
        timestamp = ""
        if self.approval is not None:
            timestamp = self.approval.approved_at
        body = {
            "schema": _SCHEMA,
            "version": self.version,
            "timestamp": timestamp,
            "model": ", ".join(self.fingerprints.models) or self.fingerprints.endpoint,
            "test_id": self.test_id,
            "score": self.score,
            "overall_score": float(overall),
            "category_scores": self.summary.part_scores,
            "group_scores": group_scores,
            **{f"{name}_count": number for name, number in self.counts().items()},
            "personas": {key: _without_empty(row) for key, row in personas.items()},
            "run": run,
        }
        unrounded = {
            "threshold": self.threshold,
            "lower_is_worse": self.lower_is_worse,
            "categories": categories,
            "fingerprints": to_json(self.fingerprints),
            "approval": to_json(self.approval),
        }
        return {**_all_rounded(body), **unrounded}


def _without_empty(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value not in ({}, [])}


def digest(body: Mapping[str, Any]) -> str:
    """``sha256:`` and the digest of *body* without its ``digest``: of the values, since git may
    change line endings.

    It notices an edit; whoever wants to forge one can compute it, and is stopped by the review of
    the file.
    """
    return "sha256:" + _sha256({key: value for key, value in body.items() if key != "digest"})


def _sha256(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _parse(content: bytes, where: str) -> dict[str, Any]:
    """The body of the baseline in *content*, its schema and digest checked."""
    text = content.decode("utf-8", "replace")
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        raise BaselineError(
            f"{where}, line {line}: there are merge-conflict markers in this baseline. A baseline "
            "is one person's "
            "approval of one run and cannot be merged: take one side whole (git checkout --ours or "
            "--theirs), "
            f"{_REMOVE}"
        )
    try:
        body = json.loads(
            content.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise _damaged(where, f"it is not whole JSON in UTF-8 ({error})") from error
    if not isinstance(body, dict):
        raise _damaged(where, "it is not a JSON object")
    if body.get("schema") != _SCHEMA or isinstance(body.get("schema"), bool):
        raise BaselineError(
            f"{where}: this baseline has schema {body.get('schema')!r}, and this version of "
            "pytest-fairness reads "
            f"schema {_SCHEMA}. Use the version that wrote it, {_REMOVE}"
        )
    if body.get("digest") != digest(body):
        raise BaselineError(
            f"{where}: this baseline was changed after it was approved (its content does not match "
            "its digest). "
            f"Restore it (git checkout), {_REMOVE}"
        )
    return body


def _damaged(where: str, what: str) -> BaselineError:
    return BaselineError(
        f"{where}: this baseline is truncated or damaged: {what}. Restore it (git checkout), "
        f"{_REMOVE}"
    )


def _all_rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _all_rounded(inner) for key, inner in value.items()}
    if isinstance(value, float):
        return _rounded(value)
    return value


def _rounded(value: float) -> float:
    """Eight significant digits: more than any score has, fewer than make two machines disagree in a
    diff.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot stand in a baseline: a finite number is needed")
    return float(f"{value:.8g}")


def _dumps(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands there twice")
    return result


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def visible(text: str) -> str:
    """Escape what a reviewer would not see: controls, bidirectional marks, zero-width characters."""
    unseen = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return "".join(
        json.dumps(character)[1:-1]
        if character != "\n" and unicodedata.category(character) in unseen
        else character
        for character in text
    )
