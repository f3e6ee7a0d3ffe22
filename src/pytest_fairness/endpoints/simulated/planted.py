"""What is planted in the simulated endpoint: a bias on the d scale, name effects, position, refusals, noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pytest_fairness.endpoints.simulated.chance import Draws
from pytest_fairness.endpoints.simulated.lexicon import slug
from pytest_fairness.endpoints.simulated.reading import Reading
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON

#: One SD on a logistic scale: a shift of d moves log odds by d·π/√3 (Chinn 2000, Statistics in Medicine
#: 19:3127).
LOGITS_PER_D = math.pi / math.sqrt(3.0)

#: What a bias can be confined to.
CHANNELS = ("sentiment", "word_count", "rating", "decision", "choice", "triage", "salary", "loan", "refusal")

GroupNumbers = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """The parameters, checked. Raises UsageError, naming the parameter and the mend.

    ``bias``: protected class → group → shift in SD units at noise 1; negative is worse for the group: colder,
    shorter, lower, denied, picked less, seen later, paid less, refused more. Shifts of several groups add up.
    ``noise``: SD of the chance part. ``name_sd``: SD, on the d scale, of effects that each name has of its
    own. ``position_bias``: logits in favour of the first of a list. ``refusal_rate``: one share, or class →
    group → share. ``channels``: what the bias acts on, by default everything. ``latency``: seconds a reply
    takes. ``scrub_recall``: the share of names and labels that it finds when asked to scrub a text.
    """

    bias: GroupNumbers = field(default_factory=dict)
    noise: float = 1.0
    name_sd: float = 0.0
    position_bias: float = 0.0
    refusal_rate: float | GroupNumbers = 0.0
    channels: frozenset[str] = frozenset(CHANNELS)
    latency: float = 0.0
    scrub_recall: float = 1.0
    seed: int = 0

    def shift(self, reading: Reading, channel: str) -> float:
        """How far *reading*'s person stands from the mean in *channel*, in SD: groups and name."""
        shift = name_effect(self.seed, reading.name) * self.name_sd if self.name_sd and reading.name else 0.0
        if channel in self.channels:
            for protected_class, group in reading.groups.items():
                shift += self.bias.get(protected_class, {}).get(group, 0.0)
        return shift

    def refusal_logit(self, reading: Reading, base: float | None = None) -> float:
        """Log odds of a refusal; −∞ where there are none. *base* is the share for a prompt that invites refusal."""
        if isinstance(self.refusal_rate, Mapping):
            shares = [
                shares[group]
                for protected_class, group in reading.groups.items()
                if group in (shares := self.refusal_rate.get(protected_class, {}))
            ]
            share = max(shares, default=0.0)
        else:
            share = self.refusal_rate
        share = max(share, base or 0.0)
        if share <= 0.0:
            return -math.inf
        if share >= 1.0:
            return math.inf
        return math.log(share / (1.0 - share)) - self.shift(reading, "refusal") * LOGITS_PER_D

    def identity(self) -> dict[str, JSON]:
        """All that changes what is answered."""
        rate = self.refusal_rate
        return {
            "bias": {c: dict(g) for c, g in self.bias.items()},
            "noise": self.noise,
            "name_sd": self.name_sd,
            "position_bias": self.position_bias,
            "refusal_rate": {c: dict(g) for c, g in rate.items()} if isinstance(rate, Mapping) else rate,
            "channels": [*sorted(self.channels)],
            "seed": self.seed,
            # Told only where it is planted: what was asked before there was such an option keeps its keys.
            **({} if self.scrub_recall == 1.0 else {"scrub_recall": self.scrub_recall}),
        }


@lru_cache(maxsize=65536)
def name_effect(seed: int, name: str) -> float:
    """The standard normal effect that *name* has under *seed*, whatever the prompt."""
    return Draws(seed, "name", name.casefold()).normal()


def planted(options: Mapping[str, object]) -> Planted:
    """Read the options of ``endpoints.yaml`` or of ``simulated_endpoint(…)``."""
    known = ("bias", "noise", "name_sd", "position_bias", "refusal_rate", "channels", "latency", "scrub_recall", "seed")
    for name in options:
        if name not in known:
            raise UsageError(f"simulated endpoint: no option {name!r}; there are {', '.join(known)}")
    values: dict[str, object] = {}
    for name in ("noise", "name_sd", "position_bias", "latency"):
        if name in options:
            values[name] = _number(name, options[name], low=None if name == "position_bias" else 0.0)
    if "scrub_recall" in options:
        values["scrub_recall"] = _number("scrub_recall", options["scrub_recall"], low=0.0, high=1.0)
    if "seed" in options:
        seed = options["seed"]
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise UsageError(f"simulated endpoint: seed must be a whole number, not {seed!r}")
        values["seed"] = seed
    if "bias" in options:
        values["bias"] = _groups("bias", options["bias"], low=None, high=None)
    if "refusal_rate" in options:
        rate = options["refusal_rate"]
        if isinstance(rate, Mapping):
            values["refusal_rate"] = _groups("refusal_rate", rate, low=0.0, high=1.0)
        else:
            values["refusal_rate"] = _number("refusal_rate", rate, low=0.0, high=1.0)
    if "channels" in options:
        values["channels"] = _channels(options["channels"])
    return Planted(**values)  # type: ignore[arg-type]  # each was checked above


def _number(name: str, value: object, *, low: float | None, high: float | None = None) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise UsageError(f"simulated endpoint: {name} must be a number, not {value!r}")
    if low is not None and value < low:
        raise UsageError(f"simulated endpoint: {name} must be {low:g} or more, not {value!r}")
    if high is not None and value > high:
        raise UsageError(f"simulated endpoint: {name} must be {high:g} or less, not {value!r}")
    return float(value)


def _groups(name: str, value: object, *, low: float | None, high: float | None) -> dict[str, dict[str, float]]:
    shape = (
        f"simulated endpoint: {name} must map a protected class to groups, as in {name}: {{gender: {{female: 0.5}}}}"
    )
    if not isinstance(value, Mapping):
        raise UsageError(f"{shape}, not {value!r}")
    found: dict[str, dict[str, float]] = {}
    for protected_class, groups in value.items():
        if not isinstance(groups, Mapping):
            raise UsageError(f"{shape}; {protected_class!r} has {groups!r}")
        found[slug(str(protected_class))] = {
            slug(str(group)): _number(f"{name} of {protected_class}.{group}", number, low=low, high=high)
            for group, number in groups.items()
        }
    return found


def _channels(value: object) -> frozenset[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(n, str) for n in names):
        raise UsageError(f"simulated endpoint: channels must be a list of names, not {value!r}")
    for name in names:
        if name not in CHANNELS:
            raise UsageError(f"simulated endpoint: no channel {name!r}; there are {', '.join(CHANNELS)}")
    return frozenset(names)
