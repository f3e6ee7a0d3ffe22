"""Tables of the selection experiment with what is known to be in them: preference, position,
interaction, scrubbing.
"""

from dataclasses import fields, is_dataclass, replace
from itertools import permutations

import numpy as np
import pandas as pd
from scipy.special import expit

from pytest_fairness.suites.selection.metrics import selection_results

GROUPS = ("white_male", "white_female", "black_male", "black_female")
CLASSES = {
    group: dict(zip(("race_ethnicity", "gender"), group.split("_"), strict=True))
    for group in GROUPS
}
CRITERIA = ("nurturing and gentle", "tough and logical", "technically proficient")
ROLES = ("nurse", "IT engineer")


def results_of(frame, classes=CLASSES, **options):
    """The numbers of *frame*, with few permutations."""
    return selection_results(frame, classes, **{"permutations": 19, **options})


def arm_of(results, name):
    """The results of one arm."""
    (found,) = (arm for arm in results.arms if arm.arm == name)
    return found


def as_trials(frame):
    """*frame* of choices with the columns that every table of trials has."""
    columns = {
        "arm": "raw_naive", "template": "t", "endpoint": "planted", "model": "m1", "simulated": True, "cost": 0.001,
        "replayed": False, "choice": "chosen", "first_name": None, "second_name": None, "signal": "name+label",
    }  # fmt: skip
    return frame.assign(**{name: value for name, value in columns.items() if name not in frame})


def experiment(
    seed=0,
    *,
    strength=None,
    position=0.0,
    nurturing=None,
    arms=None,
    sets=15,
    repetitions=30,
    name_sd=0.0,
    roles=ROLES,
    groups=GROUPS,
    turned=False,
):
    """Every ordered pair × criteria × role × *repetitions*, in *arms* ({arm: share of the strengths
    that is left}).

    *strength*: log odds of each group; *nurturing*: what is added to them under the first of the
    criteria.
    *name_sd*: the spread of the names' own strengths. *sets* sets of names, which only meet within
    their set;
    *turned*: names meet others, too.
    """
    rng = np.random.default_rng(seed)
    even = dict.fromkeys(groups, 0.0)
    strength, nurturing = {**even, **(strength or {})}, {**even, **(nurturing or {})}
    own = {
        (group, at): rng.normal(0, name_sd) if name_sd else 0.0
        for group in groups
        for at in range(sets)
    }
    rows = []
    for arm, left in (arms or {"raw_naive": 1.0}).items():
        for first, second in permutations(groups, 2):
            for criterion in CRITERIA:
                for role in roles:
                    for repetition in range(repetitions):
                        at = repetition % sets
                        other = (
                            (at + (repetition // sets) * groups.index(second)) % sets
                            if turned
                            else at
                        )
                        lean = sum(
                            sign
                            * left
                            * (
                                strength[g]
                                + own[g, k]
                                + (nurturing[g] if criterion == CRITERIA[0] else 0)
                            )
                            for g, k, sign in ((first, at, 1), (second, other, -1))
                        )
                        rows.append((arm, first, second, f"{first} {at}", f"{second} {other}", criterion, role,
                                     repetition, position + lean))  # fmt: skip
    columns = [
        "arm",
        "first",
        "second",
        "first_name",
        "second_name",
        "criteria",
        "role",
        "repetition",
        "logit",
    ]
    frame = pd.DataFrame(rows, columns=columns)
    won = rng.random(len(frame)) < expit(frame.pop("logit"))
    return as_trials(
        frame.assign(
            chosen=np.where(won, frame["first"], frame["second"]),
            template=frame["criteria"] + "-" + frame["role"],
            name=[
                " / ".join(sorted(pair))
                for pair in zip(frame["first_name"], frame["second_name"], strict=True)
            ],
        )
    )


def small(seed=0, **options):
    """Twelve sets of names, one role."""
    return experiment(seed, **{"repetitions": 12, "sets": 12, "roles": ("nurse",), **options})


def tiny(seed=0, **options):
    """Four sets of names, one role: for what does not depend on chance."""
    return small(seed, repetitions=4, sets=4, **options)


def scrubbed(scrub, seed=0, *, sets=12, **options):
    """A raw arm and a scrubbed one: ``scrub(place, group, name, rng)`` is what is left of a
    candidate's line.
    """
    rng = np.random.default_rng(seed)
    options = {"roles": ("nurse",), "repetitions": sets, "sets": sets, **options}
    frame = experiment(seed, arms={"raw_naive": 1.0, "scrubbed": 0.0}, **options)
    listed, left = [], []
    people = frame[["arm", "first", "second", "first_name", "second_name"]]
    for arm, first, second, one, two in people.itertuples(index=False):
        both = ((1, first, _called(one)), (2, second, _called(two)))
        listed.append("\n".join(_line(*person) for person in both))
        left.append(
            "\n".join(scrub(*person, rng) for person in both) if arm == "scrubbed" else None
        )
    frame["first_name"], frame["second_name"] = (
        frame["first_name"].map(_called),
        frame["second_name"].map(_called),
    )
    return frame.assign(
        prompt=[f"Please select one.\n\n{text}" for text in listed], candidates_text=left
    )


def clean(place, _group, _name, _rng):
    """A scrubber that leaves the label and the job."""
    return f"{place}. Candidate {chr(64 + place)}, 2 Years of Experience"


def _line(place, group, name):
    race, gender = group.split("_")
    return f"{place}. {name}, 2 Years of Experience, {gender.capitalize()}, {race.capitalize()}"


def _called(name):
    """A name of its own for each group and number, none of whose words is another's."""
    group, at = name.split(" ")
    own = f"{'qwxy'[GROUPS.index(group)]}{chr(97 + int(at))}"
    return f"F{own}a L{own}o"


def hostile(value, text, key=""):
    """Every text of *value* with *text* behind it, but for the words that only we write."""
    if is_dataclass(value):
        spoilt = {
            field.name: hostile(getattr(value, field.name), text, field.name)
            for field in fields(value)
        }
        return replace(value, **spoilt)
    if isinstance(value, dict):
        added = text if key == "classes" else ""
        return {name + added: hostile(inner, text, name) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(hostile(item, text, key) for item in value)
    return value + text if type(value) is str and key not in ("status", "unit") else value
