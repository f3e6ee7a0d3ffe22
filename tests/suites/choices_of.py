"""Tables of the selection experiment with what is known to be in them: preference, position, interaction, scrubbing."""

from itertools import permutations

import numpy as np
import pandas as pd
from scipy.special import expit

GROUPS = ("white_male", "white_female", "black_male", "black_female")
CLASSES = {group: dict(zip(("race_ethnicity", "gender"), group.split("_"), strict=True)) for group in GROUPS}
CRITERIA = ("nurturing and gentle", "tough and logical", "technically proficient")
ROLES = ("nurse", "IT engineer")
EVEN = dict.fromkeys(GROUPS, 0.0)


def line(place, group, name):
    """A candidate as the list has it."""
    race, gender = group.split("_")
    return f"{place}. {name}, 2 Years of Experience, {gender.capitalize()}, {race.capitalize()}"


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
    criteria=CRITERIA,
    roles=ROLES,
    groups=GROUPS,
    turned=False,
):
    """Every ordered pair × criteria × role × *repetitions*, in *arms* ({arm: share of the strengths that is left}).

    *strength*: log odds of each group; *nurturing*: what is added to them under the first of the criteria.
    *name_sd*: the spread of the names' own strengths. *sets* sets of names, which only meet within their set;
    *turned*: names meet others, too.
    """
    rng = np.random.default_rng(seed)
    strength, nurturing = {**EVEN, **(strength or {})}, {**EVEN, **(nurturing or {})}
    own = {(group, at): rng.normal(0, name_sd) if name_sd else 0.0 for group in groups for at in range(sets)}
    rows = []
    for arm, left in (arms or {"raw_naive": 1.0}).items():
        for first, second in permutations(groups, 2):
            for criterion in criteria:
                for role in roles:
                    for repetition in range(repetitions):
                        at = repetition % sets
                        other = (at + (repetition // sets) * groups.index(second)) % sets if turned else at
                        lean = sum(
                            sign * left * (strength[g] + own[g, k] + (nurturing[g] if criterion == CRITERIA[0] else 0))
                            for g, k, sign in ((first, at, 1), (second, other, -1))
                        )
                        rows.append((arm, first, second, f"{first} {at}", f"{second} {other}", criterion, role,
                                     repetition, position + lean))  # fmt: skip
    columns = ["arm", "first", "second", "first_name", "second_name", "criteria", "role", "repetition", "logit"]
    frame = pd.DataFrame(rows, columns=columns)
    won = rng.random(len(frame)) < expit(frame.pop("logit"))
    return frame.assign(
        chosen=np.where(won, frame["first"], frame["second"]),
        choice="chosen",
        refused=False,
        undetermined=False,
        template=frame["criteria"] + "-" + frame["role"],
        name=[" / ".join(sorted(pair)) for pair in zip(frame["first_name"], frame["second_name"], strict=True)],
        signal="name+label",
        endpoint="planted",
        model="m1",
        simulated=True,
        replayed=False,
        cost=0.001,
    )


def arm_of(results, name):
    """The results of one arm."""
    (found,) = (arm for arm in results.arms if arm.arm == name)
    return found
