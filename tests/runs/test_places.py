"""The table of places behaves as a dictionary does, and takes a fraction of its memory."""

from __future__ import annotations

import hashlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.errors import StoreError
from pytest_fairness.runs.places import Places

KEYS = st.integers(0, 40).map(lambda number: f"{number:064x}")


@given(entries=st.lists(st.tuples(KEYS, st.integers(0, 2**63 - 1))))
def test_it_is_a_dictionary(entries: list[tuple[str, int]]) -> None:
    """Entered again, a key keeps its place in the order and has the new number; what is not in it is told so."""
    places, model = Places(), dict[str, int]()
    for key, value in entries:
        places[key] = model[key] = value
        assert places[key] == value
    assert dict(places) == model
    assert list(places) == list(model)
    assert list(places.numbers()) == list(model.values())
    assert len(places) == len(model)
    for number in range(41):
        key = f"{number:064x}"
        assert (key in places) == (key in model)
        assert places.get(key) == model.get(key)


@pytest.mark.parametrize("key", ["", "abc", "g" * 64, "0" * 63, "0" * 66])
def test_other_keys_are_refused(key: str) -> None:
    """What is not a content key is no trial's: an error, not a miss."""
    with pytest.raises(StoreError, match="no content key"):
        Places()[key] = 1


def test_a_trial_takes_little_memory() -> None:
    """Under 80 bytes each at its most wasteful moment, and every one is found among the others."""
    keys = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(50_000)]
    tracemalloc.start()
    places = Places()
    for number, key in enumerate(keys):
        places[key] = number
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / len(keys) < 80
    assert all(places[key] == number for number, key in enumerate(keys))
    assert hashlib.sha256(b"another").hexdigest() not in places
