"""What the selection benchmark asks: the published design, unless ``selection.yaml`` says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec

from pytest_fairness.design.arms import Arm, ready_arms
from pytest_fairness.design.signals import conditions
from pytest_fairness.documents import Document, open_document
from pytest_fairness.errors import UsageError, did_you_mean, listed
from pytest_fairness.model import Ask

FILE = "selection.yaml"
SELECTION, SALARY = "selection", "salary"
GUESSING = "reidentified"
"""Arms whose names begin so ask for a guess of the groups, not for a choice."""

Axis: TypeAlias = tuple[str, ...] | Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The benchmark; without arguments the published design, with names from the banks.

    ``groups``: the name of a set, or group → classes, names or résumés. ``names``: over how many pairs of names the
    repetitions are spread; None where the groups bring their candidates. ``controls``: arms whose preference is
    measured but fails nothing. ``temperatures``: None stands for the deployment's own. ``max_cost``: US dollars, None
    where the file says that there is to be no cap. ``hours_per_year``: of full-time work, for pay by the hour.
    """

    tasks: tuple[str, ...] = (SELECTION,)
    groups: str | Mapping[str, Any] = "four_groups"
    names: int | None = 30
    signals: tuple[str, ...] = ("name+label",)
    roles: Axis = ("nurse", "IT engineer")
    criteria: Axis = ("nurturing and gentle", "tough and logical", "technically proficient")
    qualifications: Axis = ("2 Years of Experience",)
    arms: tuple[str | Arm, ...] = ("raw_naive", "raw_matched", "scrubbed")
    controls: tuple[str, ...] = ()
    repetitions: int = 30
    temperatures: tuple[float | None, ...] = (None,)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    template: Path | None = None
    salary_template: Path | None = None
    max_cost: float | None = 5.0
    hours_per_year: float = 2080

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The arms that choose; those that guess the groups from what scrubbing left belong to the scrubber."""
        names = (arm if isinstance(arm, str) else arm.name for arm in self.arms)
        return tuple(name for name in names if not name.startswith(GUESSING))

    @property
    def whole_resumes(self) -> bool:
        return isinstance(self.groups, Mapping) and any(isinstance(group, list) for group in self.groups.values())

    @property
    def cluster(self) -> str | tuple[str, str]:
        """The unit of evidence of a choice: both names, as names meet several others; résumés meet in pairs."""
        return "name" if self.whole_resumes else ("first_name", "second_name")

    block_of_scores: ClassVar[str] = "template"  # the whole context of a trial

    @staticmethod
    def blocks(columns: Iterable[object]) -> tuple[str, ...]:
        """The columns of the context, among *columns*: each one's interaction with the group is tested by itself."""
        found = set(columns)
        return tuple(name for name in ("role", "criteria", "qualifications") if name in found) or ("template",)


# ---------------------------------------------------------------- selection.yaml

_Texts: TypeAlias = str | tuple[str, ...]
_Axis: TypeAlias = str | tuple[str, ...] | dict[str, str]
_Temperature: TypeAlias = Literal["default"] | Annotated[float, msgspec.Meta(ge=0, le=2)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class _StepEntry(msgspec.Struct, forbid_unknown_fields=True):
    prompt: str | None = None
    system: str | None = None
    endpoint: str | None = None


class _ArmEntry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    system: str | None = None
    steps: tuple[_StepEntry | None, ...] = ()


class _Entries(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of the file; what is left out is as in :class:`Configuration`."""

    task: _Texts | None = None
    groups: str | dict[str, dict[str, _Texts]] | None = None
    names: _Count | Literal["document"] | None = None
    signal: _Texts | None = None
    roles: _Axis | None = None
    criteria: _Axis | None = None
    qualifications: _Axis | None = None
    arms: str | tuple[str | _ArmEntry, ...] | None = None
    controls: _Texts | None = None
    repetitions: _Count | None = None
    temperatures: _Temperature | tuple[_Temperature, ...] | None = None
    parameters: dict[str, Any] | None = None
    template: str | None = None
    salary_template: str | None = None
    max_cost: Annotated[float, msgspec.Meta(ge=0)] | Literal["none"] | None = None
    hours_per_year: Annotated[float, msgspec.Meta(gt=0, le=8784)] | None = None
    scrubber_endpoint: str | None = None


def load_configuration(root: Path, personas: Path | None = None) -> Configuration:
    """The configuration of the project in *root*: its ``selection.yaml``, or the published design without one.

    *personas* is the project's own folder of personas, whose arms can be named too. Raises UsageError, naming file,
    line and key, for whatever is unknown, of another type or out of range.
    """
    path = root / FILE
    document = open_document(path) if path.exists() else None
    if document is None or document.data is None:
        return Configuration()
    return _Reader(document, document.convert(_Entries), root, personas).configuration()


class _Reader:
    """The entries of one document, checked for what their types do not say."""

    def __init__(self, document: Document, entries: _Entries, root: Path, personas: Path | None) -> None:
        self._document, self._entries, self._root = document, entries, root
        self._personas, self._ready = personas, ready_arms(personas)

    def configuration(self) -> Configuration:
        given = self._entries
        values: dict[str, Any] = {
            "tasks": self._tasks(),
            "groups": given.groups if isinstance(given.groups, str) else self._groups(given.groups),
            "signals": self._signals(),
            **{name: self._axis(name) for name in ("roles", "criteria", "qualifications")},
            "arms": self._arms(),
            "controls": self._texts("controls"),
            "repetitions": given.repetitions,
            "temperatures": self._temperatures(),
            "parameters": given.parameters,
            **{name: self._file(name, getattr(given, name)) for name in ("template", "salary_template")},
            "max_cost": None if given.max_cost == "none" else given.max_cost,
            "hours_per_year": given.hours_per_year,
        }
        made = Configuration(**{name: value for name, value in values.items() if value is not None})
        if given.max_cost == "none":
            made = replace(made, max_cost=None)
        made = self._with_names(made)
        self._check(made)
        return made

    def _wrong(self, key: str, why: str) -> UsageError:
        return self._document.wrong(f"{key}: {why}", key)

    def _with_names(self, made: Configuration) -> Configuration:
        """*made* with the names that its groups have: their own, the document's, or so many from the banks."""
        names = self._entries.names
        if names == "document":
            if made.groups not in ("four_groups", "four_names"):
                raise self._wrong("names", "the document's names are those of four_groups; leave groups out")
            return replace(made, groups="four_names", names=None)
        own = isinstance(made.groups, dict) and any(isinstance(g, list) or "names" in g for g in made.groups.values())
        if own or made.groups == "four_names":
            if names is not None:
                raise self._wrong("names", "the groups bring their candidates, who are all asked; leave names out")
            return replace(made, names=None, signals=("name",) if made.whole_resumes else made.signals)
        return replace(made, names=min(made.repetitions, 30) if names is None else names)

    def _check(self, made: Configuration) -> None:
        if made.whole_resumes and self._entries.signal is not None:
            raise self._wrong("signal", "résumés say themselves what a group is; leave signal out")
        if "temperature" in made.parameters:
            raise self._wrong("parameters", "temperature is a key of its own: temperatures: [0.0]")
        lost = next((arm for arm in made.controls if arm not in made.arm_names), None)
        if lost is not None:
            raise self._wrong("controls", f"{lost!r} is none of the arms ({listed(made.arm_names)})")
        # What scrubbing does cannot be told without the texts as they were.
        ready = ready_arms(self._personas, rules=str)
        arms = [ready[arm] if isinstance(arm, str) else arm for arm in made.arms]
        scrubbing = next((arm.name for arm in arms if arm.steps), None)
        if scrubbing is not None and all(arm.steps or arm.placebo for arm in arms):
            raise self._wrong("arms", f"{scrubbing!r} has no arm to be compared with; add raw_naive")

    # ------------------------------------------------------------ kinds of values

    def _texts(self, key: str) -> tuple[str, ...] | None:
        value = getattr(self._entries, key)
        return None if value is None else self._several(key, value)

    def _several(self, key: str, value: _Texts) -> tuple[str, ...]:
        texts = (value,) if isinstance(value, str) else tuple(value)
        if not texts or not all(text.strip() for text in texts):
            raise self._wrong(key, "no text; give a text, or a list of texts")
        twice = next((text for text in texts if texts.count(text) > 1), None)
        if twice is not None:
            raise self._wrong(key, f"{twice!r} stands twice; keep one")
        return texts

    def _axis(self, key: str) -> Axis | None:
        value = getattr(self._entries, key)
        if not isinstance(value, dict):
            return self._texts(key)
        if not value or not all(value.values()):
            raise self._wrong(key, "no text; give a short name and its text each")
        return value

    def _file(self, key: str, name: str | None) -> Path | None:
        if name is not None and not (self._root / name).is_file():
            raise self._wrong(key, f"there is no file {self._root / name}")
        return None if name is None else self._root / name

    # ------------------------------------------------------------ keys

    def _tasks(self) -> tuple[str, ...] | None:
        tasks, known = self._texts("task"), (SELECTION, SALARY)
        wrong = next((task for task in tasks or () if task not in known), None)
        if wrong is not None:
            raise self._wrong("task", f"{wrong!r} is none (there are: {listed(known)}){did_you_mean(wrong, known)}")
        return tasks

    def _signals(self) -> tuple[str, ...] | None:
        signals = self._texts("signal")
        try:
            conditions(signals or ("name",))
        except UsageError as error:
            raise self._wrong("signal", str(error)) from None
        return signals

    def _groups(self, given: dict[str, dict[str, _Texts]] | None) -> dict[str, Any] | None:
        groups = None if given is None else {label: self._group(label, body) for label, body in given.items()}
        own = [label for label, body in (groups or {}).items() if isinstance(body, list) or "names" in body]
        other = next((label for label in groups or () if label not in own), None)
        if own and other is not None:
            raise self._wrong("groups", f"{other}: {own[0]} brings its candidates, so every group has to")
        return groups

    def _group(self, label: str, body: dict[str, _Texts]) -> Any:
        """Classes, with names of its own or without; or whole résumés."""
        if not body or ("resumes" in body and len(body) > 1):
            why = "give its classes, such as {gender: female}, its names, or its resumes"
            why = "resumes stand alone: they say themselves what the group is" if body else why
            raise self._wrong("groups", f"{label}: {why}")
        if "resumes" in body:
            return [self._file("groups", name) for name in self._several("groups", body["resumes"])]
        texts = {key: self._several("groups", value) for key, value in body.items()}
        return {key: list(value) if key == "names" else value[0] for key, value in texts.items()}

    def _arms(self) -> tuple[str | Arm, ...] | None:
        given, endpoint = self._entries.arms, self._entries.scrubber_endpoint
        items = None if given is None else (given,) if isinstance(given, str) else given
        if items is not None:
            names = [item if isinstance(item, str) else item.name for item in items]
            lost = next((item for item in items if isinstance(item, str) and item not in self._ready), None)
            if lost is not None:
                why = f"there is no ready-made arm {lost!r} ({listed(self._ready)}){did_you_mean(lost, self._ready)}"
                raise self._wrong("arms", why)
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None or not names:
                raise self._wrong("arms", f"{twice!r} stands twice; keep one" if twice else "give at least one")
        arms = None if items is None else tuple(item if isinstance(item, str) else self._arm(item) for item in items)
        if endpoint is None:
            return arms
        return self._with_scrubber(Configuration().arms if arms is None else arms, endpoint)

    def _arm(self, entry: _ArmEntry) -> Arm:
        steps = [step or _StepEntry() for step in entry.steps]
        try:
            asks = tuple(Ask(prompt=step.prompt, system=step.system, endpoint=step.endpoint) for step in steps)
            return Arm(name=entry.name, system=entry.system, steps=asks)
        except UsageError as error:
            raise self._wrong("arms", str(error)) from None

    def _with_scrubber(self, arms: Sequence[str | Arm], endpoint: str) -> tuple[str | Arm, ...]:
        """*arms* with the ready-made scrubbing asked of *endpoint*; the choice stays with the system under test."""
        if "scrubbed" not in arms:
            raise self._wrong("scrubber_endpoint", "only the arm 'scrubbed' asks a model to scrub, and it is left out")
        ready = self._ready["scrubbed"]
        first, *others = ready.steps
        if not isinstance(first, Ask) or not others:
            raise self._wrong("scrubber_endpoint", "the arm 'scrubbed' of your personas/arms.yaml does not scrub first")
        changed = replace(ready, steps=(replace(first, endpoint=endpoint), *others))
        return tuple(changed if arm == "scrubbed" else arm for arm in arms)

    def _temperatures(self) -> tuple[float | None, ...] | None:
        value = self._entries.temperatures
        if value is None:
            return None
        found = tuple(None if item == "default" else item for item in (value if isinstance(value, tuple) else (value,)))
        if not found or len(set(found)) < len(found):
            raise self._wrong("temperatures", "give at least one, and none twice")
        return found
