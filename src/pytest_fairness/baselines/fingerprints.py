"""What a score was made of, so that a change since the approval can be named. Standard library only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from pytest_fairness.model import JSON, to_json

_DIGITS = 16


def fingerprint(value: Any) -> str:
    """A short, stable hex digest of anything that turns into JSON; the empty string for ``None``."""
    if value is None:
        return ""
    canonical = json.dumps(to_json(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """``endpoint`` and ``models`` by name, since people approve names; the rest as digests.

    ``models`` are those that said they answered. ``identity`` is the endpoint's (model, parameters, address),
    ``template`` the prompts', ``scorer`` the scorer's name, version and source, ``design`` everything else
    that decides what is asked: groups, names or personas, signals, repetitions, tier, arms. An empty one is
    unknown.
    """

    endpoint: str = ""
    models: tuple[str, ...] = ()
    identity: str = ""
    template: str = ""
    scorer: str = ""
    design: str = ""

    @classmethod
    def of(
        cls,
        *,
        endpoint: str = "",
        models: Iterable[str] = (),
        identity: Mapping[str, JSON] | None = None,
        template: Any = None,
        scorer: str = "",
        design: Any = None,
    ) -> Self:
        """From the things themselves; *scorer* is a fingerprint already, *models* may repeat."""
        return cls(
            endpoint=endpoint,
            models=tuple(sorted({model for model in models if model})),
            identity=fingerprint(identity),
            template=fingerprint(template),
            scorer=scorer,
            design=fingerprint(design),
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :func:`to_json`. Raises TypeError for a dictionary of another shape."""
        return cls(**{**data, "models": tuple(data.get("models", ()))})

    def changes_since(self, approved: Fingerprints) -> tuple[str, ...]:
        """What differs from *approved*, a clause each; what either side does not know is left out."""
        clauses = []
        if self.endpoint and approved.endpoint and self.endpoint != approved.endpoint:
            clauses.append(f"the endpoint changed from {approved.endpoint!r} to {self.endpoint!r}")
        if self.models and approved.models and self.models != approved.models:
            clauses.append(f"the model changed from {', '.join(approved.models)} to {', '.join(self.models)}")
        elif self._differs(approved, "identity") and not clauses:
            clauses.append("the endpoint's parameters or address changed")
        if self._differs(approved, "template"):
            clauses.append("the template changed")
        if self._differs(approved, "scorer"):
            clauses.append("the scorer changed, so that old and new scores come from different instruments")
        if self._differs(approved, "design"):
            clauses.append("the design (groups, names or personas, repetitions, tier) changed")
        return tuple(clauses)

    def _differs(self, approved: Fingerprints, name: str) -> bool:
        mine, theirs = getattr(self, name), getattr(approved, name)
        return bool(mine and theirs and mine != theirs)
