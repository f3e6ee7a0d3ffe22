"""Trials as a table: one row a trial, in the columns that assertions and users read."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import EndpointError
from pytest_fairness.model import JSON, Cell, Status, Trial

if TYPE_CHECKING:
    import pandas as pd

#: What is neither an answer nor an outcome: these trials were planned and came to nothing.
UNFINISHED = (Status.ERROR, Status.UNKNOWN, Status.NOT_RUN)
#: Trials without an answer that anything could be read off. A refusal is an answer.
UNUSABLE = (*UNFINISHED, Status.EMPTY, Status.MALFORMED)
#: The words by which providers say that a reply ended because it had reached the longest length
#: allowed.
CUT_SHORT = frozenset(("length", "max_tokens", "max_output_tokens", "model_length", "token_limit"))
NAME_PARTS = ("first_name", "last_name")
#: Of a test with strategies: whether the plain request was declined, and whether the reply carries
#: a disclaimer.
REFUSED_FIRST, DISCLAIMS = "refused_first", "disclaims"
#: The column that is there where an answer was empty at first, and true of the trials that were
#: asked once more for it.
EMPTY_FIRST = "empty_first"
#: The column that is there where role and request were sent as one message, and true of those
#: trials.
ONE_MESSAGE = "one_message"
#: The column that says by which :class:`~.model.Elicitation` the answer was asked for.
ELICITED_BY = "elicitation"
#: A trial that has ended so is either answered or refused.
_DETERMINED = (Status.ANSWERED, Status.REFUSED)
#: Where a table carries its design in ``frame.attrs``.
DESIGN = "pytest_fairness"


@dataclass(frozen=True, slots=True)
class AnsweredCell:
    """A cell with its trials: what the ``cell`` fixture gives.

    ``reply`` is the text of the first repetition, ``replies`` those of all.
    """

    cell: Cell
    trials: tuple[Trial, ...]

    @property
    def reply(self) -> str:
        """The reply of the first repetition. Raises EndpointError where there is none to read."""
        return self.replies[0]

    @property
    def replies(self) -> tuple[str, ...]:
        """One text a repetition, refusals included. Raises EndpointError where there is none."""
        for trial in self.trials:
            if trial.reply is None:
                raise EndpointError(f"this trial has no reply to read: {_ended(trial)}")
        return tuple(trial.reply or "" for trial in self.trials)

    @property
    def refused(self) -> bool:
        """Return whether any repetition was refused."""
        return any(trial.status is Status.REFUSED for trial in self.trials)

    @property
    def id(self) -> str:
        return self.cell.id

    @property
    def prompt(self) -> str:
        return self.cell.prompt

    @property
    def name(self) -> str | None:
        return self.cell.name

    @property
    def groups(self) -> dict[str, str]:
        """Protected class → group."""
        return dict(self.cell.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointFacts:
    """Facts about the system under test, on every row of the table, so that no slicing or merging
    loses it.
    """

    name: str
    simulated: bool
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GridFacts:
    """Facts about a grid that the table alone does not show: for the fingerprints of a baseline.

    It travels in ``frame.attrs``, which pandas keeps through slicing; a table without it is of
    unknown design. ``answer`` is the form of the answers: ``key`` and ``answers``; ``locale``
    the language of its texts, None for English.
    """

    endpoint: str = ""
    identity: Mapping[str, JSON] | None = None
    protected_classes: tuple[str, ...] = ()
    templates: Mapping[str, str] | None = None
    digest: str | None = None
    answer: Mapping[str, JSON] | None = None
    locale: str | None = None

    def persona_column(self, frame: pd.DataFrame) -> str:
        """``persona`` where the grid had personas, else ``name``."""
        if "persona" in frame and frame["persona"].notna().any():
            return "persona"
        return "name"

    def models(self, frame: pd.DataFrame) -> list[str]:
        """The models that answered, by their own account."""
        if "model" in frame:
            return list(map(str, frame["model"].dropna().unique()))
        return []


class CarriedDesign(dict[str, Any]):
    """A design as the attributes of a table carry it. It is never changed, so that pandas, which
    copies the attributes whenever it makes a table of another, need not.
    """

    def __deepcopy__(self, memo: Mapping[int, Any]) -> CarriedDesign:
        return self


def design_of(frame: pd.DataFrame) -> GridFacts:
    """The design that *frame* carries; an empty one for a table that did not come from a grid."""
    return GridFacts(**frame.attrs.get(DESIGN, {}))


def columns_named(value: Any) -> Sequence[Any]:
    """Return the columns that an argument of an assertion names: one, or a list of them."""
    if isinstance(value, (list, tuple)):
        return value
    return [value]


@contextlib.contextmanager
def any_text() -> Iterator[None]:
    """Let pandas make columns of any text: where it stores text with pyarrow, it takes no lone
    surrogate, which a reply may hold.
    """
    import pandas as pd

    with pd.option_context("mode.string_storage", "python"):
        yield


def trials_frame(
    rows: Sequence[tuple[Cell, Trial]], endpoint: EndpointFacts, design: GridFacts | None = None
) -> pd.DataFrame:
    """The table of trials, one row each, in the order of *rows*.

    Columns: ``cell``, ``template``, ``name``, ``persona``, ``first_name`` and ``last_name`` (the
    two parts of the person's name, None where it has only one; not for choices, which list several
    people), one for each protected class, one for each context axis and persona attribute, ``arm``,
    ``tier``, ``signal``, ``repetition``, ``prompt``, ``reply`` (None where there is none),
    ``status``, ``error`` (why there is no usable answer; None where there is one), ``refused``,
    ``undetermined`` (neither answered nor refused), ``cut_short`` (at the limit on its length),
    ``endpoint``, ``model``, ``simulated``, ``replayed``, ``cost`` (US dollars), ``seconds``,
    ``key``; of an endpoint that is sent one text a request, ``one_message``; where answers were
    empty at first and asked once more, ``empty_first``.
    """
    import pandas as pd

    cells = [cell for cell, _ in rows]
    trials = [trial for _, trial in rows]
    columns = _columns_of_cells(cells) | _columns_of_trials(cells, trials, endpoint)
    empty_first = _values(trials, EMPTY_FIRST)
    if any(empty_first):
        columns[EMPTY_FIRST] = empty_first
    with any_text():
        frame = pd.DataFrame(columns)
    if design is not None:
        frame.attrs[DESIGN] = CarriedDesign(asdict(design))
    return frame


def _values(rows: Sequence[object], attribute: str) -> list[Any]:
    """Return the *attribute* of each of *rows*."""
    return list(map(attrgetter(attribute), rows))


def _columns_of_cells(cells: Sequence[Cell]) -> dict[str, list[Any]]:
    """Return the columns that say what was asked, and about whom."""
    columns: dict[str, list[Any]] = {"cell": _values(cells, "id")}
    for field in ("template", "name", "persona"):
        columns[field] = _values(cells, field)
    if not any("name_2" in cell.attributes for cell in cells):
        # Before the attributes that fill them, so that every grid has them, and in one place.
        for part in NAME_PARTS:
            columns[part] = [None] * len(cells)
    for field in ("attributes", "context", "groups"):
        # Groups last: a protected class wins over a persona attribute of the same name.
        columns |= _columns_of_mappings(_values(cells, field))
    for field in ("arm", "tier", "signal"):
        columns[field] = _values(cells, field)
    return columns


def _columns_of_mappings(mappings: Sequence[Mapping[str, object]]) -> dict[str, list[Any]]:
    """Return a column for each key of any of *mappings*, None where one lacks it."""
    keys: dict[str, None] = {}
    for mapping in mappings:
        keys |= dict.fromkeys(mapping)
    return {key: [mapping.get(key) for mapping in mappings] for key in keys}


def _columns_of_trials(
    cells: Sequence[Cell], trials: Sequence[Trial], endpoint: EndpointFacts
) -> dict[str, list[Any]]:
    """Return the columns that say what came back, from whom, at which price."""
    statuses = _values(trials, "status")
    columns: dict[str, list[Any]] = {
        "repetition": _values(trials, "repetition"),
        "prompt": _values(cells, "prompt"),
        "reply": _values(trials, "reply"),
        "status": _values(trials, "status.value"),
        "error": list(map(_error, trials)),
        "refused": [status is Status.REFUSED for status in statuses],
        "undetermined": [status not in _DETERMINED for status in statuses],
        "cut_short": list(map(_was_cut_short, trials)),
        "endpoint": [endpoint.name] * len(trials),
        "model": _values(trials, "model"),
        "simulated": _are_from(trials, "simulated", whole=endpoint.simulated),
        "replayed": _are_from(trials, "replay", whole=endpoint.replayed),
    }
    for field in ("cost", "seconds", "key"):
        columns[field] = _values(trials, field)
    return columns


def _are_from(trials: Sequence[Trial], source: str, *, whole: bool) -> list[bool]:
    """Return of each trial whether it is from *source*, as all are where the *whole* run is."""
    return [whole or trial.source == source for trial in trials]


def _was_cut_short(trial: Trial) -> bool:
    """Return whether the reply ended at the limit on its length."""
    return (trial.finish_reason or "").lower() in CUT_SHORT


def _error(trial: Trial) -> str | None:
    """Return why *trial* has no usable answer; None where it has one."""
    if trial.status in UNUSABLE:
        return trial.error
    return None


def refuse_if_nothing_answered(trials: Sequence[Trial], endpoint: str) -> None:
    """Raise EndpointError where not one trial has a usable answer: that is a broken endpoint, not a
    finding, whatever an assertion would make of it.
    """
    if trials and all(trial.status in UNUSABLE for trial in trials):
        counts = Counter(_values(trials, "status.value"))
        statuses = ", ".join(
            f"{count} {status.replace('_', ' ')}" for status, count in counts.most_common()
        )
        raise EndpointError(
            f"endpoint {endpoint!r}: none of {len(trials)} trials has a usable answer "
            f"({statuses}); the first: {_ended(trials[0])}"
        )


def _ended(trial: Trial) -> str:
    if trial.error:
        return f"{trial.status} ({trial.error})"
    return str(trial.status)
