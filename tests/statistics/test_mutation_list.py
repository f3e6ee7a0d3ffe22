"""The list of mutations fits the source that it mutates; the mutations themselves run by one
command.
"""

from pathlib import Path

import pytest

from tests.support.benchmarks import benchmark

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mutations():
    """The benchmark as a module."""
    return benchmark("mutations")


def test_each_mutation_changes_one_place_and_names_tests(mutations):
    """Its old text occurs once; text that has moved on would mutate nothing, and seem to die or
    live by accident.
    """
    assert len(mutations.MUTATIONS) >= 60
    assert len({(one.file, one.old, one.new) for one in mutations.MUTATIONS}) == len(
        mutations.MUTATIONS
    )
    for one in mutations.MUTATIONS:
        text = (mutations.SOURCE / one.file).read_text(encoding="utf-8")
        assert text.count(one.old) == 1, f"{one.file}: {one.old}"
        assert one.new != one.old
        compile(text.replace(one.old, one.new), one.file, "exec")
        assert all((ROOT / test).is_file() for test in one.tests)
