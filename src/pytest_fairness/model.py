"""The nouns: what passes from one room of the package to the next. Standard library only.

Persona × Template → **Cell** → (endpoint) → **Trial** → (scorer) → *outcome column* → (statistics)
→
**Finding** → (policy, baseline) → **Verdict** → (report).  Every noun is immutable and turns into
plain JSON with :func:`to_json` and, where it is read back, from it with its ``from_dict``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    import pandas as pd

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


def fields_of(part: type[Any], holder: object) -> dict[str, Any]:
    """Return the fields of the dataclass *part* by their names, as *holder* has them."""
    return {field.name: getattr(holder, field.name) for field in fields(part)}


#: Most of what a finding holds.
_JSON_AS_IT_IS = frozenset((type(None), bool, int, str))


def to_json(value: Any) -> JSON:
    """Plain JSON of any noun or numpy scalar: NaN becomes ``null``, infinities ``"Infinity"`` and
    ``"-Infinity"``.

    Raises TypeError for anything else: what cannot cross a process boundary is seen where it is
    made.
    """
    kind = type(value)
    if kind in _JSON_AS_IT_IS:
        same: JSON = value
        return same
    if isinstance(value, (str, int, float)):
        return _scalar_to_json(value)
    if is_dataclass(kind):
        return {name: to_json(getattr(value, name)) for name in _names(kind)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(to_json, value))
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return to_json(value.item())
    raise TypeError(f"{type(value).__name__} is not JSON: {value!r}")


def _scalar_to_json(value: str | float) -> JSON:
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    return _float_to_json(value)


def _float_to_json(value: float) -> JSON:
    if math.isfinite(value):
        return float(value)
    if math.isnan(value):
        return None
    if value > 0:
        return "Infinity"
    return "-Infinity"


def number(value: Any) -> float | None:
    """A number written by :func:`to_json`, read back."""
    if value is None:
        return None
    return float(value)


@cache
def _names(noun: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(noun))


@cache
def _floats(noun: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(noun) if str(field.type).startswith("float"))


def _read_back(noun: Any, data: Mapping[str, Any], **kinds: Callable[[Any], Any]) -> dict[str, Any]:
    """The fields of *noun* that :func:`to_json` wrote: numbers, and each of *kinds* as its kind;
    ``None`` stays.
    """
    kinds = {**dict.fromkeys(_floats(noun), float), **kinds}
    return {
        **data,
        **{name: None if data[name] is None else kind(data[name]) for name, kind in kinds.items()},
    }


# ---------------------------------------------------------------- asking

#: The slots of a step's prompt: what the step before replied, and what the test asks.
TEXT, PROMPT = "text", "prompt"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A step that a model takes, in a fresh conversation: ``prompt`` with the slot ``{text}`` for
    what it is given.

    ``endpoint``: who is asked, if not the system under test: an endpoint, a function, or a name of
    ``endpoints.yaml``; it is asked with the parameters of its own entry. In an arm, ``prompt=None``
    asks the test's own template, with ``{text}`` in the place of the candidates, and ``fallback``
    says to do so where the test lacks a slot of *prompt*. In a pipeline, ``prompt=None`` hands on
    the text as it is, and ``{prompt}`` is what the test asked.
    """

    prompt: str | None = None
    system: str | None = None
    fallback: bool = False
    endpoint: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination in a grid: template × group × name × context, before it is asked.

    ``groups``: class → group; ``name`` is the cluster (the unit of evidence), a name or a persona
    id. ``signals`` are the strings that convey groups in the text, each with its groups: the
    simulated endpoint alone reads them.
    """

    id: str
    template: str
    turns: tuple[str, ...]
    groups: Mapping[str, str]
    name: str | None = None
    persona: str | None = None
    context: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    system: str | None = None
    tier: int = 2
    arm: str | None = None
    signal: str | None = None
    signals: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        """The last user message: what a reader would call the prompt."""
        return self.turns[-1]


CANDIDATES = "candidates"
"""The slot of a prompt that lists the candidates, and the word by which a form accepts any of them."""
NO_ANSWER = "no_answer"
"""The field by which a form says that a reply declines to answer: not "declined", as a loan may be."""
#: What an answer line says of such a reply, in any case and language.
DECLINING = ("no answer", "keine antwort")


class Elicitation(StrEnum):
    """The way by which a closed answer is asked for: by a JSON schema, by the line that a reply ends
    with, or as the system's users ask.
    """

    FORM = "form"
    LINE = "line"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider counted them; ``None`` where it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class Status(StrEnum):
    """The status of a trial that has ended. Only ``ANSWERED`` carries a text to score; ``REFUSED``
    is an outcome of its own.
    """

    ANSWERED = "answered"
    REFUSED = "refused"
    EMPTY = "empty"
    MALFORMED = "malformed"
    ERROR = "error"
    UNKNOWN = (
        "unknown"  # sent, and never answered: perhaps paid for, never asked again unless told to
    )
    NOT_RUN = "not_run"


#: Flags of a trial: another model answered than was asked for; charged at its worst case, as its
#: token counts are missing or cannot be true; of unknown price.
MODEL_DIFFERS, USAGE_INVALID, UNPRICED = "model_differs", "usage_invalid", "unpriced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One conversation of a trial that took several: the ``strategy`` by which it asked, ``direct``
    for the plain request; what came of its last reply; and its ``messages``, that reply included.
    """

    strategy: str
    status: Status
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One fresh conversation for a cell and a repetition, as it stands in the run's log.

    ``replies``: a text a turn. ``cost`` is in US dollars, ``seconds`` wall time; ``source``:
    ``live``, ``simulated`` or ``replay``. ``threads``: every conversation that was tried, in order,
    where a strategy asked again. ``empty_first``: an answer was empty, and was asked once more.
    """

    key: str
    repetition: int
    status: Status
    replies: tuple[str, ...] = ()
    finish_reason: str | None = None
    model: str | None = None
    usage: Usage | None = None
    cost: float | None = None
    attempts: int = 0
    seconds: float | None = None
    error: str | None = None
    source: str = "live"
    threads: tuple[Thread, ...] = ()
    empty_first: bool = False

    @property
    def reply(self) -> str | None:
        """The text of the last turn, or ``None`` if that turn was never answered."""
        if self.replies and self.status in (Status.ANSWERED, Status.REFUSED):
            return self.replies[-1]
        return None


# ---------------------------------------------------------------- concluding


class Verdict(StrEnum):
    """The verdict on a comparison. An assertion's verdict is its worst: FAIL > FLAG > INCONCLUSIVE
    > PASS.
    """

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FLAG = "FLAG"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"

    @property
    def severity(self) -> int:
        return ("PASS", "INCONCLUSIVE", "FLAG", "FAIL").index(self.value)

    @classmethod
    def worst(cls, verdicts: Sequence[Verdict]) -> Verdict:
        """The most severe of *verdicts*; nothing judged is INCONCLUSIVE, never PASS."""
        return max(verdicts, key=lambda verdict: verdict.severity, default=cls.INCONCLUSIVE)


ALARMS = (Verdict.FLAG, Verdict.FAIL)
"""What turns a test red unless it is justified."""


class Reason(StrEnum):
    """Why a verdict is INCONCLUSIVE."""

    N = "N"  # a group is under its minimum sample size
    UNSCORED = "UNSCORED"  # over 5 % of the replies could not be scored, and what is missing could turn the verdict
    RAGGED = "RAGGED"  # over 20 % of the rows stand in blocks that lack a group
    INCOMPLETE = "INCOMPLETE"  # trials were planned that never finished
    PRECISION = "PRECISION"  # the interval is too wide to decide
    TEMPLATE = "TEMPLATE"  # the groups agree on the whole, but in one template they may not
    SIGNAL = "SIGNAL"  # the groups agree over all signals, but where one conveys them they may not
    SMALL_NUMBERS = (
        "SMALL_NUMBERS"  # four-fifths below .8, but chance alone brings that often enough
    )
    DIFFERENTIAL_REFUSAL = (
        "DIFFERENTIAL_REFUSAL"  # scores agree, but one group is refused more often
    )
    NO_ROOM = "NO_ROOM"  # the design promises answers that can vary, and in most templates none did
    OVERLAP = "OVERLAP"  # under 80 % of the personas are in both baseline and run
    MIXED_MODELS = "MIXED_MODELS"  # more than one model version answered
    READER = "READER"  # a model read the replies, and what it errs could turn the verdict
    UNRECORDED = "UNRECORDED"  # what it takes to judge was never written down

    @property
    def unusable(self) -> bool:
        """Return whether the data cannot be used (the test fails), or can and leave it open (the
        test warns).
        """
        return self in (Reason.N, Reason.UNSCORED, Reason.RAGGED, Reason.INCOMPLETE)


class OutcomeKind(StrEnum):
    """The kind of an outcome, which decides how it is compared.

    A further kind is added here, and then, in the order in which a reply becomes a sentence:

    - ``statistics/arrays.py`` ``read_outcome``: which values it has, whether it is inferred from
      them;
    - ``statistics/compare.py`` ``measure``, ``impute``: its test, its effect, what a missing answer
      could have been;
    - ``analysis/policy.py`` ``MINIMUM_N``, ``RECOMMENDED_N``: how much of it can be judged;
    - ``analysis/sentences.py`` ``amount`` and ``analysis/explanations.toml``: how its numbers read,
      and its paragraph;
    - ``analysis/planning.py`` ``DesignPower``, ``analysis/sensitivity.py`` ``plant``: how it is
      simulated;
    - ``reports/findings.schema.json`` and the table of kinds in ``docs/verdicts.md``.

    Scorers, markers, ``pytest-fairness plan`` and messages take the kinds from here. A test goes
    through all kinds and these places.
    """

    NUMERIC = "numeric"
    ORDINAL = "ordinal"
    NARRATIVE = "narrative"
    BINARY = "binary"
    CATEGORICAL = "categorical"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """One group, in the outcome's own unit: ``n`` scored trials of so many ``clusters`` (names).

    ``value`` is the mean (numeric, ordinal, narrative) or the rate (binary, refusal),
    ``low``/``high`` its 95 % interval with the cluster as the unit; ``shares`` the distribution of
    a categorical outcome.
    """

    group: str
    n: int
    clusters: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    median: float | None = None
    refused: int = 0
    undetermined: int = 0
    unscored: int = 0
    refusal_rate: float | None = None
    shares: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**_read_back(cls, data))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult:
    """Two groups compared on one metric, and the verdict on that pair.

    ``effect`` is on the one d scale, positive where ``group_1`` is higher, ``effect_low`` and
    ``effect_high`` its interval of ``confidence``; ``None`` where an interval would not hold its
    estimate.
    ``spec_verdict`` is that of the literal specification, ``None`` where its minimum sample size is
    not reached. A pair that is ``alarm_only`` (refusals or missing answers beside an outcome)
    counts where it raises the alarm, and never has to pass. ``difference`` is ``group_1 − group_2``
    in the outcome's own unit. ``statistics`` carries everything reported beside the verdict (names
    as in ``docs/verdicts.md``).
    """

    group_1: str
    group_2: str
    metric: str
    verdict: Verdict
    reason: Reason | None = None
    spec_verdict: Verdict | None = None
    alarm_only: bool = False
    p_row: float = 1.0
    p_cluster: float | None = None
    p_value: float = 1.0
    corrected_p_value: float = 1.0
    effect: float = 0.0
    effect_name: str = "d"
    effect_low: float | None = None
    effect_high: float | None = None
    confidence: float = 0.9
    difference: float | None = None
    worse_off: str | None = None
    test: str = ""
    scope: str = "names"
    mde: float | None = None
    needs: str | None = None
    statistics: Mapping[str, JSON] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            **_read_back(
                cls, data, verdict=Verdict, spec_verdict=Verdict, reason=Reason, notes=tuple
            )
        )


#: What stands for a test statistic and an effect size that a finding has none of: these fields are
#: never empty.
NOT_COMPUTED = "not computed: nothing was compared"


def deciding_pair(pairs: Sequence[PairResult]) -> PairResult | None:
    """The pair that an assertion's verdict, sentence and report fields are about; ``None`` without
    pairs.

    The most severe verdict; among equals the outcome asked for before refusals and missing answers,
    then the smallest p-value, then the largest effect. Among pairs that all PASS, the one whose
    interval reaches furthest. A pair that is there to raise the alarm decides nothing without one.
    Of pairs that only rounding tells apart, the first: the order of rows must not choose what a
    sentence is about.
    """
    gating = [pair for pair in pairs if not pair.alarm_only or pair.verdict in ALARMS]
    if not gating:
        return None
    least = min(map(_urgency, gating))
    same = partial(math.isclose, rel_tol=1e-9)
    return next(pair for pair in gating if all(map(same, _urgency(pair), least)))


def _urgency(pair: PairResult) -> tuple[float, ...]:
    if pair.verdict is Verdict.PASS:
        reach = max(abs(pair.effect_low or 0.0), abs(pair.effect_high or 0.0), abs(pair.effect))
        return (0.0, 0.0, -reach, pair.p_value)
    alarm = float(pair.alarm_only)
    return (-pair.verdict.severity, alarm, pair.corrected_p_value, pair.p_value, -abs(pair.effect))


#: What a test may say of the bias scenario that it is about, as the draft prEN 18283 has it; group,
#: measurement, threshold and mitigation are known of every finding.
SCENARIO = ("hazard", "review_trigger")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One assertion's statistical comparison: the groups, the pairs, the verdict and the sentence
    that says it.

    The fields from ``test_id`` to ``notes`` carry the per-test report fields of the ISO 42001 test
    specification by their own names; ``test_statistic``, ``p_value``, ``corrected_p_value`` and
    ``effect_size`` are those of the pair that decides the verdict, and the two texts say so where
    nothing was computed. ``assertion`` names the comparison (``no_disparity``, ``four_fifths``,
    ``baseline``, …), ``family`` says which tests were corrected together, how, and at which alpha;
    ``controls`` of which controls of ISO/IEC 42001, Annex A, it is evidence, and how strong;
    ``scenario`` what the test says of the :data:`SCENARIO` that it is about.
    """

    assertion: str
    verdict: Verdict
    sentence: str
    test_id: str = ""
    test_module: str = ""
    description: str = ""
    tier: int | None = None
    protected_class: str = ""
    model_endpoint: str | None = None
    n_per_group: Mapping[str, int] = field(default_factory=dict)
    group_results: tuple[GroupResult, ...] = ()
    test_statistic: str = NOT_COMPUTED
    p_value: float | None = None
    corrected_p_value: float | None = None
    effect_size: str = NOT_COMPUTED
    refusal_rates: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reason: Reason | None = None
    spec_verdict: Verdict | None = None
    pairs: tuple[PairResult, ...] = ()
    outcome: str = ""
    kind: OutcomeKind | None = None
    unit: str = ""
    cluster: str | None = None
    block: str | None = None
    family: Mapping[str, JSON] = field(default_factory=dict)
    details: Mapping[str, JSON] = field(default_factory=dict)
    simulated: bool = False
    replayed: bool = False
    justification: Mapping[str, JSON] | None = None
    explanation: str = ""
    controls: Mapping[str, str] = field(default_factory=dict)
    scenario: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        effect = repr(re.split(r"[,:(]", self.effect_size, maxsplit=1)[0].strip())[1:-1]
        total = ""
        if self.n_per_group:
            total = f"n = {sum(self.n_per_group.values())}"
        about = f"{self.outcome or self.assertion!r}"
        if self.protected_class:
            about += f" by {self.protected_class!r}"
        if self.reason:
            verdict = f"{self.verdict} ({self.reason})"
        else:
            verdict = str(self.verdict)
        return f"<Finding {verdict}: {', '.join(filter(None, (about, effect, total)))}>"

    def __bool__(self) -> NoReturn:
        """Raise TypeError: a finding is neither true nor false, and ``assert analyze_…(…)`` would
        always hold.
        """
        __tracebackhide__ = True
        raise TypeError(
            f"a finding is neither true nor false, and this one is {self.verdict}: compare "
            "finding.verdict (with "
            "'PASS'), or let assert_no_disparity and its like act on it"
        )

    def explain(self) -> str:
        """The sentence, the method with its sources, and what would change the verdict, a paragraph
        each.
        """
        return self.explanation or self.sentence

    def to_frame(self, of: str = "groups") -> pd.DataFrame:
        """The ``groups`` or the ``pairs`` as a table, a row each.

        Columns are the fields of :class:`GroupResult` or :class:`PairResult`, in their units;
        ``share_LABEL`` for each label of a categorical outcome; for pairs, what stands in
        ``statistics``, a column each. Raises UsageError.
        """
        return _presenter().finding_frame(self, of)

    def plot(self, of: str | None = None) -> Any:
        """The picture of the ``groups`` or of the ``pairs`` (of the first there is, if not said),
        for a notebook.

        Its ``svg`` is text, its ``save(path)`` writes it. Raises UsageError where there is nothing
        to draw.
        """
        return _presenter().finding_picture(self, of)

    def to_html(self) -> str:
        """A whole page about this finding alone, as in the report: without script, loading nothing."""
        return _presenter().finding_page(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: badge, sentence, groups and their picture, in styles of
        their own.
        """
        return _presenter().finding_html(self)

    def to_dict(self) -> dict[str, JSON]:
        """The finding as plain JSON, without NaN: what ``findings.json`` holds and what crosses
        processes.
        """
        data = to_json(self)
        assert isinstance(data, dict)  # noqa: S101 - a dataclass is a dict; for the type checker
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`. Raises KeyError or ValueError for a dictionary of another
        shape.
        """
        return cls(
            **_read_back(
                cls,
                data,
                verdict=Verdict,
                spec_verdict=Verdict,
                reason=Reason,
                kind=OutcomeKind,
                group_results=lambda groups: tuple(map(GroupResult.from_dict, groups)),
                pairs=lambda pairs: tuple(map(PairResult.from_dict, pairs)),
                notes=tuple,
            )
        )


class Presenter(Protocol):
    """A presenter of findings to a reader. It lies in a room above, which hands it in with
    :func:`present_with`.
    """

    def finding_frame(self, finding: Finding, of: str) -> pd.DataFrame: ...

    def finding_picture(self, finding: Finding, of: str | None) -> Any: ...

    def finding_page(self, finding: Finding) -> str: ...

    def finding_html(self, finding: Finding) -> str: ...


def _absent() -> Presenter:
    raise RuntimeError("nothing is there to show a finding with: import pytest_fairness.reports")


_presenter: Callable[[], Presenter] = _absent


def present_with(load: Callable[[], Presenter]) -> None:
    """Let findings be shown by what *load* gives, which is called when one is first shown."""
    global _presenter  # noqa: PLW0603 - handed in once, when the room of the reports is first imported
    _presenter = load
