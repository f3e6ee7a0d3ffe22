"""``selection.yaml``, read key by key; whatever is not understood is refused with the mend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_fairness.design.arms import Arm, ready_arms
from pytest_fairness.design.signals import conditions
from pytest_fairness.documents import Plain, load_path
from pytest_fairness.errors import UsageError, did_you_mean, listed
from pytest_fairness.model import Ask
from pytest_fairness.suites.selection.configuration import (
    ARMS,
    DOCUMENT,
    FILE,
    SALARY,
    SELECTION,
    Axis,
    Configuration,
)

_RESUMES = "resumes"


def load_configuration(root: Path, personas: Path | None = None) -> Configuration:
    """The configuration of the project in *root*: its ``selection.yaml``, or the published design without one.

    *personas* is the project's own folder of personas, whose arms can be named too. Raises UsageError, naming file
    and key, for whatever is unknown, of another type or out of range.
    """
    path = root / FILE
    document = load_path(path) if path.exists() else None
    if document is None:
        return Configuration()
    if not isinstance(document, dict):
        raise UsageError(f"{path}: expected keys and values, such as 'signal: name'")
    return _Reader(path, document, root, personas).configuration()


class _Reader:
    """One document, read key by key."""

    def __init__(self, path: Path, document: Mapping[str, Plain], root: Path, personas: Path | None) -> None:
        self._path = path
        self._personas = personas
        self._document = document
        self._root = root
        self._keys: dict[str, Callable[[Plain], dict[str, Any]]] = {
            "task": self._task,
            "groups": self._groups,
            "names": self._names,
            "signal": self._signal,
            "roles": lambda value: {"roles": self._axis("roles", value)},
            "criteria": lambda value: {"criteria": self._axis("criteria", value)},
            "qualifications": lambda value: {"qualifications": self._axis("qualifications", value)},
            "arms": self._arms,
            "controls": lambda value: {"controls": self._texts("controls", value)},
            "repetitions": lambda value: {"repetitions": self._count("repetitions", value)},
            "temperatures": self._temperatures,
            "parameters": self._parameters,
            "template": lambda value: {"template": self._file("template", value)},
            "salary_template": lambda value: {"salary_template": self._file("salary_template", value)},
            "max_cost": self._max_cost,
            "hours_per_year": self._hours,
            "scrubber_endpoint": lambda value: {"scrubber": self._texts("scrubber_endpoint", value)[0]},
        }

    def configuration(self) -> Configuration:
        for key in self._document:
            if key not in self._keys:
                raise UsageError(
                    f"{self._path}: unknown key {key!r} (known: {listed(self._keys)}){did_you_mean(key, self._keys)}"
                )
        values: dict[str, Any] = {}
        for key, read in self._keys.items():
            if key in self._document:
                values |= read(self._document[key])
        if "repetitions" in values and "names" not in values:
            values["names"] = min(values["repetitions"], Configuration().names or 1)
        if values.pop("own", False) or values.get("groups") == "four_names":
            if isinstance(self._document.get("names"), int):
                raise self._wrong("names", "the groups bring their candidates, who are all asked; leave names out")
            values["names"] = None
        given = values.get("groups")
        if isinstance(given, dict) and any(isinstance(body, list) for body in given.values()):
            if "signal" in self._document:
                raise self._wrong("signal", "résumés say themselves what a group is; leave signal out")
            values["signals"] = ("name",)
        if "scrubber" in values:
            values["arms"] = self._scrubbing_elsewhere(values.get("arms", ARMS), values.pop("scrubber"))
        made = Configuration(**values)
        lost = next((arm for arm in made.controls if arm not in made.arm_names), None)
        if lost is not None:
            raise self._wrong("controls", f"{lost!r} is none of the arms ({listed(made.arm_names)})")
        self._check_raw(made)
        return made

    def _check_raw(self, made: Configuration) -> None:
        """What scrubbing does cannot be told without the texts as they were."""
        ready = ready_arms(self._personas, rules=str)
        arms = [ready[arm] if isinstance(arm, str) else arm for arm in made.arms]
        scrubbing = next((arm.name for arm in arms if arm.steps), None)
        if scrubbing is not None and not any(not arm.steps and not arm.placebo for arm in arms):
            raise self._wrong("arms", f"{scrubbing!r} has no arm to be compared with; add raw_naive")

    def _wrong(self, key: str, why: str) -> UsageError:
        return UsageError(f"{self._path}: {key}: {why}")

    # ------------------------------------------------------------ kinds of values

    def _texts(self, key: str, value: Plain) -> tuple[str, ...]:
        items = value if isinstance(value, list) else [value]
        wrong = next((item for item in items if not isinstance(item, str) or not item.strip()), None)
        if wrong is not None or not items:
            raise self._wrong(key, f"{wrong!r} is no text; give a text, or a list of texts")
        texts = tuple(str(item) for item in items)
        twice = next((text for text in texts if texts.count(text) > 1), None)
        if twice is not None:
            raise self._wrong(key, f"{twice!r} stands twice; keep one")
        return texts

    def _axis(self, key: str, value: Plain) -> Axis:
        if isinstance(value, dict):
            wrong = next((label for label, text in value.items() if not isinstance(text, str) or not text), None)
            if wrong is not None or not value:
                raise self._wrong(key, f"{wrong or 'nothing'!r} has no text; give a short name and its text each")
            return {label: str(text) for label, text in value.items()}
        return self._texts(key, value)

    def _count(self, key: str, value: Plain) -> int:
        if type(value) is not int or value < 1:
            raise self._wrong(key, f"{value!r} is no whole number from 1")
        return value

    def _file(self, key: str, value: Plain) -> Path:
        if not isinstance(value, str):
            raise self._wrong(key, f"{value!r} is no path; give the file, relative to {self._root}")
        path = self._root / value
        if not path.is_file():
            raise self._wrong(key, f"there is no file {path}")
        return path

    # ------------------------------------------------------------ keys

    def _task(self, value: Plain) -> dict[str, Any]:
        tasks = self._texts("task", value)
        for task in tasks:
            if task not in (SELECTION, SALARY):
                known = (SELECTION, SALARY)
                raise self._wrong("task", f"{task!r} is none (there are: {listed(known)}){did_you_mean(task, known)}")
        return {"tasks": tasks}

    def _groups(self, value: Plain) -> dict[str, Any]:
        if isinstance(value, str):
            return {"groups": value}
        if not isinstance(value, dict):
            raise self._wrong("groups", "give the name of a set, such as 'four_groups', or groups with their classes")
        groups = {label: self._group(label, body) for label, body in value.items()}
        own = [label for label, body in groups.items() if isinstance(body, list) or "names" in body]
        if own and len(own) < len(groups):
            other = next(label for label in groups if label not in own)
            raise self._wrong(f"groups: {other}", f"{own[0]} brings its candidates, so every group has to")
        return {"groups": groups, "own": bool(own)}

    def _group(self, label: str, body: Plain) -> Any:
        where = f"groups: {label}"
        if not isinstance(body, dict) or not body:
            raise self._wrong(where, "give its classes, such as {gender: female}, its names, or its resumes")
        if _RESUMES in body:
            if len(body) > 1:
                raise self._wrong(where, "resumes stand alone: they say themselves what the group is")
            return [self._file(where, name) for name in self._texts(where, body[_RESUMES])]
        group = {key: self._texts(where, text)[0] for key, text in body.items() if key != "names"}
        if "names" in body:
            return {**group, "names": list(self._texts(where, body["names"]))}
        return group

    def _names(self, value: Plain) -> dict[str, Any]:
        if value == DOCUMENT:
            if self._document.get("groups", "four_groups") not in ("four_groups", "four_names"):
                raise self._wrong("names", "the document's names are those of four_groups; leave groups out")
            return {"groups": "four_names", "names": None}
        if type(value) is not int or value < 1:
            raise self._wrong("names", f"{value!r}: give a number of pairs of names, or 'document'")
        return {"names": value}

    def _signal(self, value: Plain) -> dict[str, Any]:
        signals = self._texts("signal", value)
        try:
            conditions(signals)
        except UsageError as error:
            raise self._wrong("signal", str(error)) from None
        return {"signals": signals}

    def _arms(self, value: Plain) -> dict[str, Any]:
        items = value if isinstance(value, list) else [value]
        arms = tuple(item if isinstance(item, str) else self._arm(item) for item in items)
        names = [arm if isinstance(arm, str) else arm.name for arm in arms]
        known = ready_arms(self._personas)
        for arm in arms:
            if isinstance(arm, str) and arm not in known:
                raise self._wrong(
                    "arms", f"there is no ready-made arm {arm!r} ({listed(known)}){did_you_mean(arm, known)}"
                )
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None or not names:
            raise self._wrong("arms", f"{twice!r} stands twice; keep one" if twice else "give at least one")
        return {"arms": arms}

    def _scrubbing_elsewhere(self, arms: Sequence[str | Arm], endpoint: str) -> tuple[str | Arm, ...]:
        """*arms* with the ready-made scrubbing asked of *endpoint*; the choice stays with the system under test."""
        if "scrubbed" not in arms:
            raise self._wrong("scrubber_endpoint", "only the arm 'scrubbed' asks a model to scrub, and it is left out")
        ready = ready_arms(self._personas)["scrubbed"]
        first, *others = ready.steps
        if not isinstance(first, Ask) or not others:
            raise self._wrong("scrubber_endpoint", "the arm 'scrubbed' of your personas/arms.yaml does not scrub first")
        elsewhere = replace(ready, steps=(replace(first, endpoint=endpoint), *others))
        return tuple(elsewhere if arm == "scrubbed" else arm for arm in arms)

    def _arm(self, item: Plain) -> Arm:
        known = ("name", "system", "steps")
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise self._wrong("arms", f"{item!r}: give the name of a ready-made arm, or name, system and steps")
        where = f"arms: {item['name']}"
        self._known(where, item, known)
        steps = item.get("steps", [])
        if not isinstance(steps, list):
            raise self._wrong(where, "steps is a list; each has a prompt with {text}, a system prompt, or both")
        try:
            return Arm(
                name=str(item["name"]),
                system=self._text_or_none(where, item, "system"),
                steps=tuple(self._step(where, step) for step in steps),
            )
        except UsageError as error:
            raise self._wrong("arms", str(error)) from None

    def _step(self, where: str, step: Plain) -> Ask:
        if step is None:
            return Ask()
        if not isinstance(step, dict):
            raise self._wrong(where, f"{step!r} is no step; give it a prompt with {{text}}, a system prompt, or both")
        self._known(where, step, ("prompt", "system", "endpoint"))
        prompt, system, endpoint = (self._text_or_none(where, step, key) for key in ("prompt", "system", "endpoint"))
        return Ask(prompt=prompt, system=system, endpoint=endpoint)

    def _known(self, where: str, given: Mapping[str, Plain], known: Sequence[str]) -> None:
        lost = next((key for key in given if key not in known), None)
        if lost is not None:
            raise self._wrong(where, f"unknown key {lost!r} (known: {listed(known)}){did_you_mean(lost, known)}")

    def _text_or_none(self, where: str, given: Mapping[str, Plain], key: str) -> str | None:
        return self._texts(f"{where}: {key}", given[key])[0] if key in given else None

    def _temperatures(self, value: Plain) -> dict[str, Any]:
        items = value if isinstance(value, list) else [value]
        found: list[float | None] = []
        for item in items:
            if item == "default":
                found.append(None)
            elif isinstance(item, (int, float)) and not isinstance(item, bool) and 0 <= item <= 2:
                found.append(float(item))
            else:
                raise self._wrong("temperatures", f"{item!r} is neither 'default' nor a number from 0 to 2")
        if not found or len(set(found)) < len(found):
            raise self._wrong("temperatures", "give at least one, and none twice")
        return {"temperatures": tuple(found)}

    def _parameters(self, value: Plain) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong("parameters", "give parameters of the request, such as {max_tokens: 200}")
        if "temperature" in value:
            raise self._wrong("parameters", "temperature is a key of its own: temperatures: [0.0]")
        return {"parameters": value}

    def _max_cost(self, value: Plain) -> dict[str, Any]:
        if value == "none":
            return {"max_cost": None}
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise self._wrong("max_cost", f"{value!r}: give US dollars, or 'none' for no cap at all")
        return {"max_cost": float(value)}

    def _hours(self, value: Plain) -> dict[str, Any]:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 8784:
            raise self._wrong("hours_per_year", f"{value!r} is no number of hours a year can have")
        return {"hours_per_year": float(value)}
