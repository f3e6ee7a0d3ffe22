"""``batch:`` of an entry in endpoints.yaml: ``true``, or a mapping that says how."""

from __future__ import annotations

import math

from pytest_fairness.endpoints.batch_protocol import BatchOptions
from pytest_fairness.errors import UsageError, unknown

#: key → lowest and highest value
_RANGES: dict[str, tuple[float, float]] = {
    "poll_seconds": (0.01, 3600.0),
    "max_requests": (1, 50_000),
    "max_wait_hours": (0.0001, 720.0),
    "price_share": (0.0, 1.0),
}


def read_batch(given: object) -> BatchOptions | None:
    """What *given* says; None for ``false`` or nothing. Raises UsageError without a place."""
    if given is None or given is False:
        return None
    if given is True or isinstance(given, BatchOptions):
        return BatchOptions() if given is True else given
    if not isinstance(given, dict) or not given:
        raise UsageError(f"batch must be true, false, or a mapping with some of {', '.join(_RANGES)}")
    for key, value in given.items():
        if key not in _RANGES:
            raise UsageError(unknown("key", str(key), _RANGES))
        low, high = _RANGES[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise UsageError(f"{key} must be a number, not {value!r}")
        if not low <= value <= high:
            raise UsageError(f"{key} must be from {low:g} to {high:g}, not {value!r}")
        if key == "max_requests" and not isinstance(value, int):
            raise UsageError(f"{key} must be a whole number, not {value!r}")
    return BatchOptions(**given)
