"""What the selection benchmark asks: the published design, unless ``selection.yaml`` says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from pytest_fairness.design.arms import Arm

FILE = "selection.yaml"
SELECTION, SALARY = "selection", "salary"
DOCUMENT = "document"
#: US dollars that the published design caps a run at.
CAP = 5.0
#: Hours a year of full-time work in the United States (40 a week, 52 weeks), for pay by the hour.
HOURS = 2080
CRITERIA = ("nurturing and gentle", "tough and logical", "technically proficient")
ROLES = ("nurse", "IT engineer")
QUALIFICATIONS = "2 Years of Experience"
ARMS = ("raw_naive", "raw_matched", "scrubbed")
GUESSING = "reidentified"
"""Arms whose names begin so ask for a guess of the groups, not for a choice."""

Axis: TypeAlias = "tuple[str, ...] | Mapping[str, str]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The benchmark; without arguments the published design, with names from the banks.

    ``groups``: the name of a set, or group → classes, names or résumés. ``names``: over how many pairs of names the
    repetitions are spread; None where the groups bring their candidates. ``controls``: arms whose preference is
    measured but fails nothing. ``temperatures``: None stands for the deployment's own. ``max_cost``: US dollars, None
    where the file says that there is to be no cap.
    """

    tasks: tuple[str, ...] = (SELECTION,)
    groups: str | Mapping[str, Any] = "four_groups"
    names: int | None = 30
    signals: tuple[str, ...] = ("name+label",)
    roles: Axis = ROLES
    criteria: Axis = CRITERIA
    qualifications: Axis = (QUALIFICATIONS,)
    arms: tuple[str | Arm, ...] = ARMS
    controls: tuple[str, ...] = ()
    repetitions: int = 30
    temperatures: tuple[float | None, ...] = (None,)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    template: Path | None = None
    salary_template: Path | None = None
    max_cost: float | None = CAP
    hours_per_year: float = HOURS

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The arms that choose; those that guess the groups from what scrubbing left are told with the scrubber."""
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
