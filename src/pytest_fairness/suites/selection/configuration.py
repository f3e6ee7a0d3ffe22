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
_Task: TypeAlias = Literal["selection", "salary"]
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

    task: _Task | tuple[_Task, ...] | None = None
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
    return _Reader(document, root, ready_arms(personas, rules=str)).configuration(document.convert(_Entries))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks the entries of one document for what their types do not say."""

    document: Document
    root: Path
    ready: Mapping[str, Arm]

    def configuration(self, given: _Entries) -> Configuration:
        texts = {"tasks": "task", "signals": "signal", "controls": "controls"}
        values: dict[str, Any] = {name: self._texts(key, getattr(given, key)) for name, key in texts.items()}
        values |= {name: self._axis(name, getattr(given, name)) for name in ("roles", "criteria", "qualifications")}
        values |= {name: self._file(name, getattr(given, name)) for name in ("template", "salary_template")}
        values |= {name: getattr(given, name) for name in ("repetitions", "parameters", "hours_per_year")}
        values["groups"] = given.groups if isinstance(given.groups, str) else self._groups(given.groups)
        values["arms"] = self._arms(given)
        values["temperatures"] = self._temperatures(given.temperatures)
        made = Configuration(**{name: value for name, value in values.items() if value is not None})
        if given.max_cost is not None:
            made = replace(made, max_cost=None if given.max_cost == "none" else given.max_cost)
        made = self._with_names(made, given.names)
        self._check(made, given)
        return made

    def wrong(self, key: str, why: str) -> UsageError:
        return self.document.wrong(f"{key}: {why}", key)

    def _with_names(self, made: Configuration, names: int | Literal["document"] | None) -> Configuration:
        """*made* with the names that its groups have: their own, the document's, or so many from the banks."""
        if names == "document":
            if made.groups not in ("four_groups", "four_names"):
                raise self.wrong("names", "the document's names are those of four_groups; leave groups out")
            return replace(made, groups="four_names", names=None)
        own = isinstance(made.groups, Mapping) and any(map(_has_candidates, made.groups.values()))
        if own or made.groups == "four_names":
            if names is not None:
                raise self.wrong("names", "the groups bring their candidates, who are all asked; leave names out")
            return replace(made, names=None, signals=("name",) if made.whole_resumes else made.signals)
        return replace(made, names=names or min(made.repetitions, 30))

    def _check(self, made: Configuration, given: _Entries) -> None:
        arms = [self.ready[arm] if isinstance(arm, str) else arm for arm in made.arms]
        scrubbing = next((arm.name for arm in arms if arm.steps), None)
        stray = next((arm for arm in made.controls if arm not in made.arm_names), None)
        try:
            conditions(made.signals)
        except UsageError as error:
            raise self.wrong("signal", str(error)) from None
        if made.whole_resumes and given.signal is not None:
            raise self.wrong("signal", "résumés say themselves what a group is; leave signal out")
        if "temperature" in made.parameters:
            raise self.wrong("parameters", "temperature is a key of its own: temperatures: [0.0]")
        if stray is not None:
            raise self.wrong("controls", f"{stray!r} is none of the arms ({listed(made.arm_names)})")
        # What scrubbing does cannot be seen without the texts as they were.
        if scrubbing is not None and all(arm.steps or arm.placebo for arm in arms):
            raise self.wrong("arms", f"{scrubbing!r} has no arm to be compared with; add raw_naive")

    def _distinct(self, key: str, names: Sequence[str]) -> None:
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise self.wrong(key, f"{twice!r} stands twice; keep one")

    def _texts(self, key: str, value: _Texts | None) -> tuple[str, ...] | None:
        texts = (value,) if isinstance(value, str) else value
        if texts is not None and not (texts and all(text.strip() for text in texts)):
            raise self.wrong(key, "no text; give a text, or a list of texts")
        self._distinct(key, texts or ())
        return texts

    def _axis(self, key: str, value: _Axis | None) -> Axis | None:
        if not isinstance(value, dict):
            return self._texts(key, value)
        if not value or not all(value.values()):
            raise self.wrong(key, "no text; give a short name and its text each")
        return value

    def _file(self, key: str, name: str | None) -> Path | None:
        if name is not None and not (self.root / name).is_file():
            raise self.wrong(key, f"there is no file {self.root / name}")
        return None if name is None else self.root / name

    def _groups(self, given: dict[str, dict[str, _Texts]] | None) -> dict[str, Any] | None:
        if given is None:
            return None
        groups = {label: self._group(label, body) for label, body in given.items()}
        own = [label for label, body in groups.items() if _has_candidates(body)]
        if own and len(own) < len(groups):
            other = next(label for label in groups if label not in own)
            raise self.wrong("groups", f"{other}: {own[0]} brings its candidates, so every group has to")
        return groups

    def _group(self, label: str, body: dict[str, _Texts]) -> Any:
        """Classes, with names of its own or without; or whole résumés."""
        texts = {key: self._texts("groups", value) or () for key, value in body.items()}
        if not texts:
            raise self.wrong(
                "groups", f"{label}: give its classes, such as {{gender: female}}, its names, or its resumes"
            )
        if "resumes" not in texts:
            return {key: list(value) if key == "names" else value[0] for key, value in texts.items()}
        if len(texts) > 1:
            raise self.wrong("groups", f"{label}: resumes stand alone: they say themselves what the group is")
        return [self._file("groups", name) for name in texts["resumes"]]

    def _arms(self, given: _Entries) -> tuple[str | Arm, ...] | None:
        items = (given.arms,) if isinstance(given.arms, str) else given.arms
        if items is not None:
            stray = next((item for item in items if isinstance(item, str) and item not in self.ready), None)
            if stray is not None:
                near = did_you_mean(stray, self.ready)
                raise self.wrong("arms", f"there is no ready-made arm {stray!r} ({listed(self.ready)}){near}")
            if not items:
                raise self.wrong("arms", "give at least one")
            self._distinct("arms", [item if isinstance(item, str) else item.name for item in items])
        arms = None if items is None else tuple(item if isinstance(item, str) else self._arm(item) for item in items)
        if given.scrubber_endpoint is None:
            return arms
        return self._with_scrubber(Configuration().arms if arms is None else arms, given.scrubber_endpoint)

    def _arm(self, entry: _ArmEntry) -> Arm:
        steps = [step or _StepEntry() for step in entry.steps]
        try:
            asks = tuple(Ask(prompt=step.prompt, system=step.system, endpoint=step.endpoint) for step in steps)
            return Arm(name=entry.name, system=entry.system, steps=asks)
        except UsageError as error:
            raise self.wrong("arms", str(error)) from None

    def _with_scrubber(self, arms: Sequence[str | Arm], endpoint: str) -> tuple[str | Arm, ...]:
        """*arms* with the ready-made scrubbing asked of *endpoint*; the choice stays with the system under test."""
        if "scrubbed" not in arms:
            raise self.wrong("scrubber_endpoint", "only the arm 'scrubbed' asks a model to scrub, and it is left out")
        first, *others = self.ready["scrubbed"].steps
        if not isinstance(first, Ask) or not others:
            raise self.wrong("scrubber_endpoint", "the arm 'scrubbed' of your personas/arms.yaml does not scrub first")
        changed = replace(self.ready["scrubbed"], steps=(replace(first, endpoint=endpoint), *others))
        return tuple(changed if arm == "scrubbed" else arm for arm in arms)

    def _temperatures(self, value: Any) -> tuple[float | None, ...] | None:
        if value is None:
            return None
        found = tuple(None if item == "default" else item for item in (value if isinstance(value, tuple) else (value,)))
        if not found or len(set(found)) < len(found):
            raise self.wrong("temperatures", "give at least one, and none twice")
        return found


def _has_candidates(group: Any) -> bool:
    """Whether a group brings its candidates: résumés, or names of its own."""
    return isinstance(group, list) or "names" in group
