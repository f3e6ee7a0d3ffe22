"""What the benchmark found, as plain data: ``selection.json``, and what its page is made from.

Everything is per arm first, then between arms, then about the scrubber itself. Shares lie between 0 and 1, intervals
are 95 % and have the names as their unit, effects are on the d scale with a 90 % interval, costs are in US dollars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from pytest_fairness.errors import FairnessError
from pytest_fairness.model import JSON, Reason, Verdict, to_json

SCHEMA = 1


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the results."""


class Concluded(Record, frozen=True, kw_only=True):
    """What was concluded of a part."""

    verdict: Verdict
    reason: Reason | None = None


class Share(Record, frozen=True, kw_only=True):
    """*count* of *n*; ``value`` is the share (not always count/n: orders may weigh the same), None where n is 0."""

    n: int
    count: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


class GroupShare(Record, frozen=True, kw_only=True):
    """The share of one group."""

    group: str
    share: Share


class RunFacts(Record, frozen=True, kw_only=True):
    """What was asked of whom.

    ``names_design`` says what the names allow to be claimed, ``names`` how many names a group had; ``cost`` is None
    where it is not known; ``requests`` counts those of all steps.
    """

    endpoint: str
    models: tuple[str, ...] = ()
    simulated: bool
    replayed: bool
    groups: tuple[str, ...]
    classes: Mapping[str, Mapping[str, str]] = {}
    criteria: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    qualifications: tuple[str, ...] = ()
    arms: tuple[str, ...]
    signals: tuple[str, ...] = ()
    names_design: str
    names: int
    repetitions: int
    trials: int
    requests: int
    cost: float | None = None


class Listing(Record, frozen=True, kw_only=True):
    """One order of a pair: how often *first*, listed first, was chosen over *second*."""

    first: str
    second: str
    share: Share


class Matchup(Concluded, frozen=True, kw_only=True):
    """Two groups against each other.

    ``share`` is how often *group_1* was chosen, both orders weighing the same; ``listings`` each order by itself.
    ``binomial_p`` is the plain recipe's, ``stratified_p`` that within orders, ``clustered_p`` that with the names as
    the unit (None with one name a group); ``p_value`` is the larger of the last two, ``corrected_p_value`` that over
    all pairs of the arm. ``effect`` is positive where *group_1* is preferred; ``scope`` is ``labels`` where a group
    has one name only.
    """

    group_1: str
    group_2: str
    share: Share
    listings: tuple[Listing, ...]
    binomial_p: float
    stratified_p: float
    clustered_p: float | None = None
    p_value: float
    corrected_p_value: float
    effect: float
    effect_low: float | None = None
    effect_high: float | None = None
    within_order: float
    name_pairs: int
    scope: str
    needs: str | None = None


class Margin(Concluded, frozen=True, kw_only=True):
    """The groups by one of their classes (gender, say): choices between candidates who differ in it."""

    by: str
    rates: tuple[GroupShare, ...]
    pairs: tuple[Matchup, ...]
    sentence: str


class OrderEffect(Record, frozen=True, kw_only=True):
    """How often the first-listed is chosen, whoever it is; likelihood ratio of leaving the position out."""

    share: Share
    log_odds: float | None = None
    error: float | None = None
    likelihood_ratio: float | None = None
    df: int = 0
    p_value: float | None = None


class Level(Record, frozen=True, kw_only=True):
    """Selection shares at one level of an axis (one of the criteria, say)."""

    level: str
    shares: tuple[GroupShare, ...]


class Interaction(Record, frozen=True, kw_only=True):
    """Does the preference between the groups of *by* depend on *axis*?

    ``likelihood_ratio`` (χ² with *df*, ``row_p``) takes trials as independent; ``clustered_p`` has the names as its
    unit, and is the ``p_value`` where there are enough of them. None where a group always or never won at some level.
    """

    axis: str
    by: str
    levels: tuple[Level, ...]
    likelihood_ratio: float
    df: int
    row_p: float | None = None
    clustered_p: float | None = None
    p_value: float | None = None


class EqualShares(Record, frozen=True, kw_only=True):
    """χ² of equal shares over all groups: ``plain`` as the recipe has it, and times (G−1)/G, which holds its level."""

    plain: float
    plain_p: float
    corrected: float
    df: int
    p_value: float


class ImpactPair(Concluded, frozen=True, kw_only=True):
    """A group's selection rate against the reference's: ``ratio`` with its 95 % interval.

    ``z`` and ``fisher_p`` are those of the 2×2 table (which counts every choice twice); ``p_value`` respects that one
    group's win is the other's loss, and the names.
    """

    group: str
    reference: str
    ratio: float
    low: float
    high: float
    z: float
    fisher_p: float
    p_value: float
    corrected_p_value: float
    shortfall: float
    flip_flop: bool
    below: bool


class FourFifths(Concluded, frozen=True, kw_only=True):
    """The four-fifths rule on selection rates, against the highest of them."""

    reference: str | None
    pairs: tuple[ImpactPair, ...]
    sentence: str


class Strength(Record, frozen=True, kw_only=True):
    """Bradley–Terry: log odds of a group against *the first of them* (itself 0); no error where there is none."""

    group: str
    value: float
    error: float | None = None


class GroupStrengths(Record, frozen=True, kw_only=True):
    """All groups' strengths and the log odds of standing first. ``ridge``: no maximum, so for orientation only."""

    groups: tuple[Strength, ...]
    position: float | None = None
    position_error: float | None = None
    likelihood_ratio: float = 0.0
    df: int = 0
    p_value: float | None = None
    ridge: bool = False


class Outcomes(Record, frozen=True, kw_only=True):
    """What the replies to one pair came to: ``counts`` by chosen, neither, both, refused, unlisted, unparsed."""

    group_1: str
    group_2: str
    asked: int
    counts: Mapping[str, int]


class ArmResult(Concluded, frozen=True, kw_only=True):
    """Everything about one arm; ``order`` and ``strengths`` are None where not one choice could be read."""

    arm: str
    trials: int
    requests: int
    decided: int
    cost: float | None = None
    rates: tuple[GroupShare, ...]
    pairs: tuple[Matchup, ...]
    margins: tuple[Margin, ...] = ()
    order: OrderEffect | None = None
    interactions: tuple[Interaction, ...] = ()
    equal_shares: EqualShares
    four_fifths: FourFifths
    strengths: GroupStrengths | None = None
    outcomes: tuple[Outcomes, ...] = ()
    no_choice_p: float | None = None
    sentence: str
    notes: tuple[str, ...] = ()


class Leaning(Record, frozen=True, kw_only=True):
    """How far one group of two is preferred: win rate − ½, from −.5 to .5, with its 95 % interval."""

    value: float
    low: float
    high: float
    p_value: float


class ContrastPair(Concluded, frozen=True, kw_only=True):
    """Two groups in two arms: the leaning in each, and ``change`` = treated − control; None where nothing is shared.

    ``reduction`` is by how much |leaning| fell, positive where the treated arm is fairer; its interval is that of the
    change, turned so that the control's preference points up.
    """

    group_1: str
    group_2: str
    control: Leaning | None = None
    treated: Leaning | None = None
    change: Leaning | None = None
    reduction: float | None = None
    reduction_low: float | None = None
    reduction_high: float | None = None
    corrected_p_value: float
    units: int
    unit: str


class ContrastResult(Concluded, frozen=True, kw_only=True):
    """Two arms, fixed beforehand: what the difference between them isolates, and what it came to.

    ``by`` is ``group``, or a class of the groups (its pairs are then those of the class).
    """

    treated: str
    control: str
    isolates: str
    by: str
    pairs: tuple[ContrastPair, ...]
    sentence: str


class GroupsCompared(Record, frozen=True, kw_only=True):
    """A share measured in each group, and whether it differs between them (the names are the unit)."""

    what: str
    by: str
    shares: tuple[GroupShare, ...]
    overall: Share
    p_value: float | None = None
    corrected_p_value: float | None = None
    effect: float | None = None
    verdict: Verdict | None = None
    reason: Reason | None = None
    sentence: str = ""


class Reidentified(Record, frozen=True, kw_only=True):
    """How often the group (or one class of it, ``by``) is guessed right from one candidate's text.

    ``text`` is ``raw`` or ``scrubbed``; ``reader`` a classifier that never saw the name before, or the endpoint.
    ``chance`` is what guessing without the text would reach; ``p_value`` is from permuting the truth over the names.
    """

    by: str
    text: str
    reader: str
    accuracy: Share
    chance: float
    p_value: float | None = None
    per_group: tuple[GroupShare, ...] = ()
    unread: int = 0


class ScrubberQuality(Record, frozen=True, kw_only=True):
    """What the steps of one arm did to the candidates' texts.

    ``recall``: of the signals that stood in the raw text, the share that is gone, for all kinds together and each
    kind (name, words of a class, pronoun); ``content``: of the job-related words and numbers, the share that is left;
    ``lines``: the share of texts whose candidates could still be told apart, in their order.
    """

    arm: str
    texts: int
    recall: tuple[GroupsCompared, ...]
    content: tuple[GroupsCompared, ...]
    lines: Share
    reidentified: tuple[Reidentified, ...] = ()
    notes: tuple[str, ...] = ()


class SelectionResults(Record, frozen=True, kw_only=True):
    """The whole benchmark."""

    run: RunFacts
    arms: tuple[ArmResult, ...]
    contrasts: tuple[ContrastResult, ...] = ()
    scrubbers: tuple[ScrubberQuality, ...] = ()
    notes: tuple[str, ...] = ()
    alpha: float = 0.05
    correction: str = "bonferroni"

    def to_dict(self) -> dict[str, JSON]:
        """Plain JSON, with the schema's number."""
        return {"schema": SCHEMA, **{name: to_json(value) for name, value in msgspec.to_builtins(self).items()}}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The inverse of :meth:`to_dict`. Raises FairnessError, naming the place, for another schema or shape."""
        schema = data.get("schema") if isinstance(data, Mapping) else "of no kind"
        if schema != SCHEMA:
            raise FairnessError(
                f"selection results: schema {schema!r} cannot be read by this version, which knows schema {SCHEMA}: "
                "read them with the version that wrote them"
            )
        try:
            # Not strict about numbers: an infinite one stands as a text.
            return msgspec.convert({name: data[name] for name in data if name != "schema"}, cls, strict=False)
        except msgspec.ValidationError as error:
            raise FairnessError(f"selection results: {error}") from error
