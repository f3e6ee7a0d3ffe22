"""Are personas, names and the project's dataset like those whom the system meets, and is anybody
left out?
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pytest_fairness import assert_no_disparity, conclude
from pytest_fairness.suites.governance import representativeness as judged

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness import NameBanks, PersonaMatrix
    from pytest_fairness.suites.governance.conftest import GovernanceOptions
    from pytest_fairness.suites.governance.representativeness import PersonDataset

MODULE = "iso42001-data"


@pytest.mark.fairness(id="DATA-COVER-001", module=MODULE, controls=judged.OF_TESTS)
def test_every_class_can_be_asked_about(
    persona_matrix: PersonaMatrix, name_banks: NameBanks, pytestconfig: pytest.Config
) -> None:
    """Personas, names or words convey two groups or more of each of the eight protected classes."""
    conclude(
        judged.classes_covered(persona_matrix, name_banks, judged.signals_of(pytestconfig.rootpath))
    )


@pytest.mark.fairness(id="DATA-NAMES-001", module=MODULE, controls=judged.OF_TESTS)
def test_there_are_names_enough(name_banks: NameBanks) -> None:
    """Every group that names convey has as many as a grid asks for."""
    conclude(judged.name_banks_suffice(name_banks))


def test_personas_are_like_the_population(
    persona_matrix: PersonaMatrix, governance: GovernanceOptions, declared_class: str
) -> None:
    """Every group has its declared share of the personas."""
    options = governance.data
    conclude(
        judged.matrix_shares(
            persona_matrix, declared_class, options.population[declared_class], options.margin
        )
    )


def test_the_dataset_is_like_the_population(
    dataset: PersonDataset, governance: GovernanceOptions, declared_class: str
) -> None:
    """Every group has its declared share of the rows."""
    options = governance.data
    counts = Counter(dataset.frame[declared_class].dropna().tolist())
    declared = options.population[declared_class]
    conclude(judged.representative(counts, declared, dataset.name, declared_class, options.margin))


@pytest.mark.fairness(id="DATA-INTER-001", module=MODULE, controls=judged.OF_DATASET)
def test_intersections_are_covered(dataset: PersonDataset, governance: GovernanceOptions) -> None:
    """Each combination of groups of two classes has rows enough; a dataset of one class has none."""
    classes = judged.classes_told_by(dataset.frame)
    if len(classes) == 1:
        pytest.skip(f"the dataset tells the groups of {classes[0]} alone: there is no combination")
    conclude(judged.intersections_covered(dataset.frame, governance.data.least))


@pytest.mark.fairness(id="DATA-QUAL-001", module=MODULE, controls=judged.OF_DATASET)
def test_rows_are_not_repeated(dataset: PersonDataset, governance: GovernanceOptions) -> None:
    """Few rows are the same as another."""
    conclude(judged.few_duplicates(dataset.frame, dataset.columns, governance.data.most_duplicates))


def test_values_are_missing_alike(dataset: PersonDataset, known_class: str) -> None:
    """Rows about one group lack values as often as those about another."""
    frame: pd.DataFrame = dataset.with_missing(known_class)
    assert_no_disparity(
        frame,
        outcome="incomplete",
        by=known_class,
        cluster=None,
        block=None,
        kind="binary",
        lower_is_worse=False,
    )
