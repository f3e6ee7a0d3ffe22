"""Effects that are planted in the simulated endpoint, and chance: a bias on the d scale, effects of
names, refusals.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Annotated, ClassVar, Literal, TypeVar, get_args

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import force_setattr

from pytest_fairness.endpoints.config import SystemConfig
from pytest_fairness.endpoints.simulated.prompt import PromptPerson, slug
from pytest_fairness.model import JSON, to_json

#: One SD on a logistic scale: a shift of d moves log odds by d·π/√3 (Chinn 2000, Statistics in
#: Medicine 19:3127).
LOGITS_PER_D = math.pi / math.sqrt(3.0)

#: What a bias can be confined to.
Channel = Literal[
    "sentiment", "word_count", "rating", "decision", "choice", "triage", "salary", "loan", "refusal"
]
CHANNELS: tuple[Channel, ...] = get_args(Channel)

#: How short answers look.
Style = Literal["plain", "terse", "modern", "thinking", "json", "hedged", "de"]

_GroupNumbers = dict[str, dict[str, float]]
_Positive = Annotated[float, Meta(ge=0, lt=1e9)]
_Share = Annotated[float, Meta(ge=0, le=1)]
_T = TypeVar("_T")
_WORDS = struct.Struct("<8Q")
_STANDARD = NormalDist()
_STEP = 2.0**-53


class Draws:
    """An endless row of independent draws for one purpose, named by *parts*: from a hash of what
    they are for.

    ``random`` would do for one machine; a hash needs no seeding in order, so that trials asked in
    any order, by any number of processes, on any Python, get the same answers.
    """

    __slots__ = ("_block", "_key", "_pool")

    def __init__(self, *parts: str | int) -> None:
        digest = hashlib.blake2b(digest_size=64)
        for part in parts:
            data = str(part).encode("utf-8", "surrogatepass")
            # The length keeps ("ab", "c") and ("a", "bc") apart.
            digest.update(b"%d:" % len(data))
            digest.update(data)
        self._key = digest.digest()
        self._block = 0
        self._pool = list(_WORDS.unpack(self._key))

    def uniform(self) -> float:
        """Between 0 and 1, both excluded, in steps of 2⁻⁵³."""
        if not self._pool:
            self._block += 1
            self._pool += _WORDS.unpack(
                hashlib.blake2b(self._block.to_bytes(8, "little"), key=self._key).digest()
            )
        # The last half step would round up to 1.
        bits: int = self._pool.pop() >> 11
        return min((bits + 0.5) * _STEP, 1.0 - _STEP)

    def normal(self) -> float:
        """Standard normal."""
        return _STANDARD.inv_cdf(self.uniform())

    def logistic(self) -> float:
        """Standard logistic: the noise under which a utility is a logit."""
        chance = self.uniform()
        return math.log(chance / (1.0 - chance))

    def gumbel(self) -> float:
        """Standard Gumbel: the noise under which the largest of several utilities follows a
        multinomial logit.
        """
        return -math.log(-math.log(self.uniform()))

    def index(self, count: int) -> int:
        """A whole number from 0 to *count* − 1."""
        return int(self.uniform() * count)

    def pick(self, options: Sequence[_T]) -> _T:
        """One of *options*, each as likely."""
        return options[self.index(len(options))]

    def shuffled(self, options: Sequence[_T]) -> list[_T]:
        """*options* in an order of chance (Fisher–Yates)."""
        mixed = list(options)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.index(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed


class ReadingQuality(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The quality of a reader: the shares of favourable and of unfavourable texts that it takes for
    what they are.
    """

    sensitivity: _Share = 1.0
    specificity: _Share = 1.0


_FAULTLESS = ReadingQuality()


class Planted(SystemConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``simulated``, and so what is planted in the endpoint. Raises UsageError.

    ``bias``: protected class → group → shift in SD units at noise 1; negative is worse for the
    group: colder, shorter, lower, denied, picked less, seen later, paid less, refused more. Shifts
    of several groups add up. ``noise``: SD of the chance part. ``name_sd``: SD, on the d scale, of
    effects that each name has of its own. ``position_bias``: logits in favour of the first of a
    list. ``refusal_rate``: one share, or class → group → share. ``channels``: what the bias acts
    on, by default everything. ``latency``: seconds a reply takes. ``scrub_recall``: the share of
    names and labels that it finds when asked to scrub a text. ``slips``: class → group → the share
    of texts about the group that say what none should (``texts.yaml`` has the sentences).
    ``reads``: class → group → the quality of its reading of texts about the group, where it is
    asked for that. ``style``: how short answers look where no schema is asked for
    (``styles.yaml``).
    """

    takes_schemas: ClassVar[bool] = True

    name: str = "simulated"
    type: str = "simulated"
    bias: dict[str, dict[str, float]] = {}  # noqa: RUF012 - a struct copies it
    noise: _Positive = 1.0
    name_sd: _Positive = 0.0
    position_bias: float = 0.0
    refusal_rate: _Share | dict[str, dict[str, _Share]] = 0.0
    channels: Channel | frozenset[Channel] = frozenset(CHANNELS)
    latency: _Positive = 0.0
    scrub_recall: _Share = 1.0
    slips: dict[str, dict[str, _Share]] = {}  # noqa: RUF012
    reads: dict[str, dict[str, ReadingQuality]] = {}  # noqa: RUF012
    style: Style = "plain"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "bias", _by_slug(self.bias))
        force_setattr(self, "slips", _by_slug(self.slips))
        force_setattr(self, "reads", _by_slug(self.reads))
        if isinstance(self.refusal_rate, dict):
            force_setattr(self, "refusal_rate", _by_slug(self.refusal_rate))
        if isinstance(self.channels, str):
            force_setattr(self, "channels", frozenset((self.channels,)))

    def shift(self, reading: PromptPerson, channel: str) -> float:
        """Return how far *reading*'s person stands from the mean in *channel*, in SD: groups and
        name.
        """
        shift = 0.0
        if self.name_sd and reading.name:
            shift = _name_effect(self.seed, reading.name) * self.name_sd
        if channel in self.channels:
            return shift + sum(_of_groups(self.bias, reading))
        return shift

    def reading_quality(self, groups: Mapping[str, str]) -> ReadingQuality:
        """Return how well a text about somebody of *groups* is read."""
        for protected_class, group in groups.items():
            quality = self.reads.get(protected_class, {}).get(group)
            if quality is not None:
                return quality
        return _FAULTLESS

    def refusal_logit(self, reading: PromptPerson, base: float | None = None) -> float:
        """Log odds of a refusal; −∞ where there are none. *base* is the share for a prompt that
        invites refusal.
        """
        rate = self.refusal_rate
        share = max(_of_groups(rate, reading), default=0.0) if isinstance(rate, dict) else rate
        share = max(share, base or 0.0)
        if not 0.0 < share < 1.0:
            return math.copysign(math.inf, share - 0.5)
        return math.log(share / (1.0 - share)) - self.shift(reading, "refusal") * LOGITS_PER_D

    def identity(self) -> dict[str, JSON]:
        """All that changes what is answered."""
        names = ("bias", "noise", "name_sd", "position_bias", "refusal_rate", "seed")
        # What was asked before this option existed keeps its keys.
        scrub: dict[str, JSON] = {}
        if self.scrub_recall != 1.0:
            scrub = {"scrub_recall": self.scrub_recall}
        slips: dict[str, JSON] = {}
        if self.slips:
            slips = {"slips": to_json(self.slips)}
        reads: dict[str, JSON] = {}
        if self.reads:
            reads = {"reads": to_builtins(self.reads)}
        style: dict[str, JSON] = {}
        if self.style != "plain":
            style = {"style": self.style}
        return {
            **{name: getattr(self, name) for name in names},
            "channels": [*sorted(self.channels)],
            **scrub,
            **slips,
            **reads,
            **style,
        }


def slipped(slips: _GroupNumbers, reading: PromptPerson, draws: Draws) -> list[str]:
    """The classes by which a text about *reading*'s person slips this time."""
    return [
        protected_class
        for protected_class, group in reading.groups.items()
        if draws.uniform() < slips.get(protected_class, {}).get(group, 0.0)
    ]


def _of_groups(numbers: _GroupNumbers, reading: PromptPerson) -> list[float]:
    """The numbers of the groups that *reading* found."""
    return [
        numbers[protected_class][group]
        for protected_class, group in reading.groups.items()
        if group in numbers.get(protected_class, {})
    ]


@lru_cache(maxsize=65536)
def _name_effect(seed: int, name: str) -> float:
    """The standard normal effect that *name* has under *seed*, whatever the prompt."""
    return Draws(seed, "name", name.casefold()).normal()


def _by_slug(groups: dict[str, dict[str, _T]]) -> dict[str, dict[str, _T]]:
    return {
        slug(protected_class): {slug(group): number for group, number in numbers.items()}
        for protected_class, numbers in groups.items()
    }
