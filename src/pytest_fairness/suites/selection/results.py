"""The results of the selection benchmark, as ``selection.json`` holds them: each class is an object
of the file, each field a key of it.

Shares lie between 0 and 1, their intervals are 95 % and have the names as their unit; effects are
on the d scale with a 90 % interval; costs are in US dollars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_fairness import Reason, Verdict
from pytest_fairness.analysis.choice_effects import ContextInteraction, GroupShare, OrderEffect
from pytest_fairness.analysis.selection_ratios import SelectionRatios
from pytest_fairness.statistics.selection_rates import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionResults:
    """All numbers of the benchmark: of each arm, of two arms against each other, and of what
    scrubs.

    ``schema`` is the version of this layout; ``alpha`` and ``correction`` are those of every family
    of pairs.
    """

    schema: int
    alpha: float
    correction: str
    run: RunFacts
    arms: tuple[ArmResults, ...]
    contrasts: tuple[ContrastResults, ...]
    scrubbers: tuple[ScrubberQuality, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The design of the run, and its size.

    ``classes`` are the protected classes of each group with its value, none where they are not
    known. ``names``: how many names a group had at least; ``names_design`` says what they allow to
    be claimed. ``cost`` is None where that of any trial is not known: a part of the sum would pass
    for the whole.
    """

    endpoint: str
    models: tuple[str, ...]
    simulated: bool
    replayed: bool
    groups: tuple[str, ...]
    classes: Mapping[str, Mapping[str, str]]
    criteria: tuple[str, ...]
    roles: tuple[str, ...]
    qualifications: tuple[str, ...]
    arms: tuple[str, ...]
    signals: tuple[str, ...]
    names: int
    names_design: str
    repetitions: int
    trials: int
    requests: int
    cost: float | None


# ---------------------------------------------------------------- an arm


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResults:
    """One arm.

    ``decided``: the trials in which one candidate was chosen. ``preference`` is that between the
    groups, ``margins`` those by each class that is crossed with another. ``order`` and
    ``strengths`` are None where not one choice could be read. ``no_choice_p``: does the share
    without a choice differ between the pairs of groups?
    """

    arm: str
    trials: int
    requests: int
    cost: float | None
    decided: int
    preference: GroupPreference
    margins: tuple[GroupPreference, ...]
    order: OrderEffect | None
    interactions: tuple[ContextInteraction, ...]
    equal_shares: EqualShares
    four_fifths: SelectionRatios
    strengths: FittedStrengths | None
    outcomes: tuple[PairOutcomes, ...]
    no_choice_p: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPreference:
    """Every two groups of class *by* (``group``: the groups themselves), as one family."""

    by: str
    rates: tuple[GroupShare, ...]
    pairs: tuple[PairPreference, ...]
    verdict: Verdict
    reason: Reason | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPreference:
    """Two groups against each other.

    ``share`` is how often *group_1* was chosen, both orders weighing the same; ``listings`` each
    order by itself. ``binomial_p`` is the plain recipe's, ``stratified_p`` that within orders,
    ``clustered_p`` that with the names as the unit (None with one name a group); ``p_value`` is the
    larger of the last two, ``corrected_p_value`` that over all pairs of the family. ``effect`` is
    positive where *group_1* is preferred, ``within_order`` the same within an order; ``scope`` is
    ``labels`` where a group has one name only; ``needs``: what would decide an INCONCLUSIVE.
    """

    group_1: str
    group_2: str
    share: Rate
    listings: tuple[ListedShare, ListedShare]
    binomial_p: float
    stratified_p: float
    clustered_p: float | None
    effect: float
    effect_low: float | None
    effect_high: float | None
    within_order: float
    name_pairs: int
    p_value: float
    corrected_p_value: float
    scope: str
    verdict: Verdict
    reason: Reason | None
    needs: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedShare:
    """The share of choices of *first* when it is listed before *second*."""

    first: str
    second: str
    share: Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualShares:
    """The χ² of equal shares over all groups: ``plain`` as the recipe has it, ``corrected`` times
    (G−1)/G, which holds its level, with the ``p_value``.
    """

    plain: float
    plain_p: float
    corrected: float
    df: int
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedStrengths:
    """Bradley–Terry: log odds of each group against the first of them (itself 0) and of standing
    first, with the likelihood ratio of equal strengths. ``ridge``: there is no maximum, so they are
    for orientation only, without errors.
    """

    groups: tuple[GroupStrength, ...]
    position: float | None
    position_error: float | None
    likelihood_ratio: float
    df: int
    p_value: float | None
    ridge: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStrength:
    """The log odds of one group, with the standard error."""

    group: str
    value: float
    error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOutcomes:
    """The number of replies of each kind to two groups, whatever their order."""

    group_1: str
    group_2: str
    trials: int
    counts: Mapping[str, int]


# ---------------------------------------------------------------- two arms


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastResults:
    """The change of the *treated* arm against the *control*, by class *by*; ``isolates`` is what the
    two differ in.
    """

    treated: str
    control: str
    isolates: str
    by: str
    pairs: tuple[PreferenceChange, ...]
    verdict: Verdict
    reason: Reason | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceChange:
    """Two groups in two arms.

    ``change`` is treated − control. ``reduction`` is by how much the leaning fell, positive where
    the treated arm is fairer; its interval is that of the change, turned so that the control's
    leaning points up. All None where the arms share nothing of the pair. ``units`` are what is
    compared, each a ``unit``: a name pair, or a context.
    """

    group_1: str
    group_2: str
    control: Leaning | None = None
    treated: Leaning | None = None
    change: Leaning | None = None
    reduction: float | None = None
    reduction_low: float | None = None
    reduction_high: float | None = None
    units: int = 0
    unit: str = ""
    corrected_p_value: float
    verdict: Verdict
    reason: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaning:
    """A win rate − ½, from −.5 to .5, or the difference of two."""

    value: float
    low: float
    high: float
    p_value: float


# ---------------------------------------------------------------- a scrubber


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubberQuality:
    """The quality of an arm that scrubs, by so many different ``texts``.

    ``recall``: of the signals that stood in the raw text, the share that is removed, for all kinds
    together and each kind (name, words of a class, pronoun); ``content``: of the job-related words
    and numbers, the share that is left; ``lines``: the share of texts whose candidates can still be
    told apart, in their order; ``reidentified``: how well the group can be guessed.
    """

    arm: str
    texts: int
    recall: tuple[TextShare, ...]
    content: tuple[TextShare, ...]
    lines: Rate
    reidentified: tuple[GuessedShare, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextShare:
    """The share of *what* is removed, or left, in each group of class *by*, and whether it differs
    between them: the names are the unit. All that compares is None where there is one group only.
    """

    what: str
    by: str
    shares: tuple[GroupShare, ...]
    overall: Rate
    p_value: float | None = None
    corrected_p_value: float | None = None
    test_statistic: str | None = None
    effect_size: str | None = None
    effect: float | None = None
    verdict: Verdict | None = None
    reason: Reason | None = None
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedShare:
    """The share of right guesses of the group (or one class of it, *by*) from one candidate's *text*
    (``raw`` or ``scrubbed``), by a *reader*: ``classifier`` or ``endpoint``.

    ``chance`` is what guessing without the text would reach; ``p_value`` is from permuting the
    truth over the names; ``unread`` texts, or replies, gave no guess.
    """

    by: str
    text: str
    reader: str
    accuracy: Rate
    chance: float
    p_value: float
    per_group: tuple[GroupShare, ...]
    unread: int
