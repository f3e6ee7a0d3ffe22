"""The design of the selection benchmark: the published one, unless ``selection.yaml`` says
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec

from pytest_fairness import Arm, Ask, UsageError
from pytest_fairness.design.arms import ready_arms
from pytest_fairness.design.signals import conditions
from pytest_fairness.suites.authoring import Document, did_you_mean, open_document
from pytest_fairness.words import listed

FILE = "selection.yaml"
SELECTION: Final = "selection"
SALARY: Final = "salary"
GUESSING = "reidentified"
"""Arms whose names begin so ask for a guess of the groups, not for a choice."""

Axis: TypeAlias = tuple[str, ...] | dict[str, str]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
_Temperature: TypeAlias = Literal["default"] | Annotated[float, msgspec.Meta(ge=0, le=2)]


class Configuration(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"tasks": "task", "signals": "signal"},
):
    """The benchmark; without arguments the published design, with names from the banks.

    ``groups``: the name of a set, or group → classes, names or résumés. ``names``: over how many
    pairs of names the repetitions are spread; None where the groups bring their candidates.
    ``measured_only``: arms whose preference is measured but fails nothing. ``temperatures``: ``default``
    stands for the deployment's own. ``max_cost``: US dollars, or ``none`` for no cap.
    ``hours_per_year``: of full-time work, for pay by the hour. ``answer_form``: the choice is asked
    for by form or line, in the place of the sentence that the prompts close with; False asks as published.
    """

    tasks: tuple[Literal["selection", "salary"], ...] = (SELECTION,)
    groups: str | dict[str, Any] = "four_groups"
    names: _Count | Literal["document"] | None = 30
    signals: tuple[str, ...] = ("name+label",)
    roles: Axis = ("nurse", "IT engineer")
    criteria: Axis = ("nurturing and gentle", "tough and logical", "technically proficient")
    qualifications: Axis = ("2 Years of Experience",)
    arms: tuple[Any, ...] = ("raw_naive", "raw_matched", "scrubbed")
    measured_only: tuple[str, ...] = ()
    repetitions: _Count = 30
    temperatures: tuple[_Temperature, ...] = ("default",)
    parameters: dict[str, Any] = {}
    template: str | None = None
    salary_template: str | None = None
    max_cost: Annotated[float, msgspec.Meta(ge=0)] | Literal["none"] = 5.0
    hours_per_year: Annotated[float, msgspec.Meta(gt=0, le=8784)] = 2080
    scrubber_endpoint: str | None = None
    answer_form: bool = True

    block_of_scores: ClassVar[str] = "template"  # the whole context of a trial

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The arms that choose; those that guess the groups from what scrubbing left belong to the
        scrubber.
        """
        return tuple(name for name in map(name_of, self.arms) if not name.startswith(GUESSING))

    @property
    def whole_resumes(self) -> bool:
        """Return whether the candidates are résumés, which say themselves what a group is."""
        if isinstance(self.groups, str):
            return False
        return any(isinstance(group, list) for group in self.groups.values())

    @property
    def cluster(self) -> str | tuple[str, str]:
        """The unit of evidence of a choice: both names, as names meet several others; résumés meet
        in pairs.
        """
        if self.whole_resumes:
            return "name"
        return ("first_name", "second_name")

    @staticmethod
    def blocks(columns: Iterable[object]) -> tuple[str, ...]:
        """The columns of the context, among *columns*: each one's interaction with the group is
        tested by itself.
        """
        there = set(columns)
        axes = tuple(name for name in ("role", "criteria", "qualifications") if name in there)
        return axes or ("template",)


def name_of(arm: Any) -> str:
    """The name of a ready-made arm, or of one that is written."""
    if isinstance(arm, Arm):
        return arm.name
    return str(arm)


# ---------------------------------------------------------------- selection.yaml


class _StepEntry(msgspec.Struct, forbid_unknown_fields=True):
    prompt: str | None = None
    system: str | None = None
    endpoint: str | None = None


class _ArmEntry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    system: str | None = None
    steps: tuple[_StepEntry | None, ...] = ()


#: What may be given by itself, or as a list; each thing in it once.
_LISTS = (
    "task",
    "signal",
    "roles",
    "criteria",
    "qualifications",
    "arms",
    "measured_only",
    "temperatures",
)


def load_configuration(root: Path, personas: Path | None = None) -> Configuration:
    """The configuration of the project in *root*: its ``selection.yaml``, or the published design
    without one.

    *personas* is the project's own folder of personas, whose arms can be named too. Raises
    UsageError, naming file, line and key, for whatever is unknown, of another type or out of range.
    """
    document = _document(root / FILE)
    if document is None:
        return Configuration()
    given = document.convert(Configuration)
    ready = ready_arms(personas, rules=str, by_form=given.answer_form)
    entries: Any = document.data
    for key in set(_LISTS) & entries.keys():
        _check_texts(document, key, entries[key])
    made = msgspec.structs.replace(
        given,
        template=_file(document, "template", root, given.template),
        salary_template=_file(document, "salary_template", root, given.salary_template),
        arms=_arms(document, given, ready),
    )
    if isinstance(given.groups, dict):
        made = msgspec.structs.replace(made, groups=_groups(document, root))
    made = _with_names(document, made, entries)
    _check(document, made, ready, entries)
    return made


def _document(path: Path) -> Document | None:
    """Return what the file in *path* says, with a list wherever one may be given; None where it
    says nothing.
    """
    if not path.exists():
        return None
    document = open_document(path)
    if document.data is None:
        return None
    if not isinstance(document.data, dict):
        return document
    entries: dict[str, Any] = {}
    for key, value in document.data.items():
        # A key of ours without a value is as if it were left out; an unknown one is refused.
        if value is None and key in Configuration.__struct_encode_fields__:
            continue
        entries[key] = value
        if key in _LISTS and not isinstance(value, (list, dict)):
            entries[key] = [value]
    return replace(document, data=entries)


def _wrong(document: Document, key: str, why: str) -> UsageError:
    return document.wrong(f"{key}: {why}", key)


def _check_texts(document: Document, key: str, value: Any) -> None:
    """Check that a list, or a mapping to texts, has something in it, no empty text, and nothing
    twice.
    """
    if isinstance(value, dict):
        _check_filled(document, key, list(value.values()))
        return
    _check_filled(document, key, value)
    names: list[Any] = []
    for entry in value:
        name = entry
        if isinstance(entry, dict):
            name = entry.get("name")
        if name is not None and name in names:
            raise _wrong(document, key, f"{name!r} stands twice; keep one")
        names.append(name)


def _check_filled(document: Document, key: str, entries: Sequence[Any]) -> None:
    if not entries or any(map(_is_blank, entries)):
        raise _wrong(document, key, "no text; give a text, or a list of texts")


def _is_blank(entry: object) -> bool:
    return isinstance(entry, str) and not entry.strip()


def _file(document: Document, key: str, root: Path, name: str | None) -> str | None:
    """Return the path of the file *name* in the project, which has to be there."""
    if name is None:
        return None
    path = root / name
    if not path.is_file():
        raise _wrong(document, key, f"there is no file {path}")
    return str(path)


def _groups(document: Document, root: Path) -> dict[str, Any]:
    """Each group: its classes, with names of its own or without; or whole résumés."""
    given = document.convert(dict[str, dict[str, str | tuple[str, ...]]], "groups")
    groups = {label: _group(document, root, label, body) for label, body in given.items()}
    bringing: list[str] = []
    others: list[str] = []
    for label, body in groups.items():
        if _has_candidates(body):
            bringing.append(label)
        else:
            others.append(label)
    if bringing and others:
        why = f"{others[0]}: {bringing[0]} brings its candidates, so every group has to"
        raise _wrong(document, "groups", why)
    return groups


def _group(
    document: Document, root: Path, label: str, body: Mapping[str, str | tuple[str, ...]]
) -> list[Path] | dict[str, Any]:
    """The group *label*: the files of its résumés, or its classes and names."""
    texts: dict[str, tuple[str, ...]] = {}
    for key, value in body.items():
        if isinstance(value, str):
            texts[key] = (value,)
        else:
            texts[key] = value
        _check_texts(document, "groups", texts[key])
    if not texts:
        why = "give its classes, such as {gender: female}, its names, or its resumes"
        raise _wrong(document, "groups", f"{label}: {why}")
    resumes = texts.get("resumes")
    if resumes is None:
        return _classes(texts)
    if len(texts) > 1:
        why = "resumes stand alone: they say themselves what the group is"
        raise _wrong(document, "groups", f"{label}: {why}")
    return [Path(_file(document, "groups", root, name) or "") for name in resumes]


def _classes(texts: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the classes of a group, each with its value, and the names that it brings."""
    classes: dict[str, Any] = {key: values[0] for key, values in texts.items()}
    if "names" in texts:
        classes["names"] = list(texts["names"])
    return classes


def _has_candidates(group: Any) -> bool:
    """Return whether a group brings its candidates: résumés, or names of its own."""
    return isinstance(group, list) or "names" in group


def _with_names(
    document: Document, made: Configuration, entries: Mapping[str, Any]
) -> Configuration:
    """Return *made* with the names that the groups have: their own, the document's, or so many from
    the banks.
    """
    if made.names == "document":
        if made.groups not in ("four_groups", "four_names"):
            raise _wrong(
                document, "names", "the document's names are those of four_groups; leave groups out"
            )
        return msgspec.structs.replace(made, groups="four_names", names=None)
    if not _bring_candidates(made.groups):
        return made
    if "names" in entries:
        raise _wrong(
            document,
            "names",
            "the groups bring their candidates, who are all asked; leave names out",
        )
    if made.whole_resumes:
        made = msgspec.structs.replace(made, signals=("name",))
    return msgspec.structs.replace(made, names=None)


def _bring_candidates(groups: str | dict[str, Any]) -> bool:
    if isinstance(groups, str):
        return groups == "four_names"
    return any(map(_has_candidates, groups.values()))


def _arms(
    document: Document, given: Configuration, ready: Mapping[str, Arm]
) -> tuple[str | Arm, ...]:
    """The arms by name or as they are written; with the ready-made scrubbing asked of another
    endpoint, if one is given: the choice stays with the system under test.
    """
    entries: tuple[str | _ArmEntry, ...] = given.arms
    if isinstance(document.data, dict) and "arms" in document.data:
        entries = document.convert(tuple[str | _ArmEntry, ...], "arms")
    arms = [_arm(document, entry, ready) for entry in entries]
    if given.scrubber_endpoint is None:
        return tuple(arms)
    if "scrubbed" not in arms:
        why = "only the arm 'scrubbed' asks a model to scrub, and it is left out"
        raise _wrong(document, "scrubber_endpoint", why)
    elsewhere = _scrubbed_at(document, given.scrubber_endpoint, ready["scrubbed"])
    return tuple(elsewhere if arm == "scrubbed" else arm for arm in arms)


def _arm(document: Document, entry: str | _ArmEntry, ready: Mapping[str, Arm]) -> str | Arm:
    """Return the name of a ready-made arm, or the arm that is written."""
    if isinstance(entry, str):
        if entry not in ready:
            near = did_you_mean(entry, ready)
            raise _wrong(
                document, "arms", f"there is no ready-made arm {entry!r} ({listed(ready)}){near}"
            )
        return entry
    steps = [msgspec.structs.asdict(step or _StepEntry()) for step in entry.steps]
    try:
        asks = tuple(Ask(**step) for step in steps)
        chooses = not entry.name.startswith(GUESSING)
        return Arm(name=entry.name, system=entry.system, steps=asks, chooses=chooses)
    except UsageError as error:
        raise _wrong(document, "arms", str(error)) from None


def _scrubbed_at(document: Document, endpoint: str, scrubbed: Arm) -> Arm:
    """Return the arm *scrubbed* with its first step asked of *endpoint*."""
    first, *others = scrubbed.steps
    if not isinstance(first, Ask) or not others:
        why = "the arm 'scrubbed' of your personas/arms.yaml does not scrub first"
        raise _wrong(document, "scrubber_endpoint", why)
    return replace(scrubbed, steps=(replace(first, endpoint=endpoint), *others))


def _check(
    document: Document, made: Configuration, ready: Mapping[str, Arm], entries: Mapping[str, Any]
) -> None:
    """Check that the signals and the arms make sense together."""
    try:
        conditions(made.signals)
    except UsageError as error:
        raise _wrong(document, "signal", str(error)) from None
    if made.whole_resumes and "signal" in entries:
        raise _wrong(document, "signal", "résumés say themselves what a group is; leave signal out")
    if "temperature" in made.parameters:
        raise _wrong(document, "parameters", "temperature is a key of its own: temperatures: [0.0]")
    for arm in made.measured_only:
        if arm not in made.arm_names:
            raise _wrong(
                document, "measured_only", f"{arm!r} is none of the arms ({listed(made.arm_names)})"
            )
    _check_compared(document, _as_arms(made.arms, ready))


def _as_arms(arms: Iterable[str | Arm], ready: Mapping[str, Arm]) -> Iterator[Arm]:
    for arm in arms:
        if isinstance(arm, str):
            yield ready[arm]
        else:
            yield arm


def _check_compared(document: Document, arms: Iterable[Arm]) -> None:
    """Check that an arm shows the texts as they were: what scrubbing does cannot be seen without
    them.
    """
    scrubbing: list[str] = []
    for arm in arms:
        if arm.steps:
            scrubbing.append(arm.name)
        elif not arm.placebo:
            return
    if scrubbing:
        raise _wrong(
            document, "arms", f"{scrubbing[0]!r} has no arm to be compared with; add raw_naive"
        )
