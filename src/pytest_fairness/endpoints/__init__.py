"""Whom to ask: the systems under test, each behind one small adapter."""

from __future__ import annotations

from pytest_fairness.endpoints.callable_endpoint import callable_endpoint
from pytest_fairness.endpoints.protocol import (
    AttemptError,
    Endpoint,
    Evidence,
    Price,
    Reply,
    Request,
    Wire,
)
from pytest_fairness.endpoints.simulated import simulated_endpoint

__all__ = [
    "AttemptError",
    "Endpoint",
    "Evidence",
    "Price",
    "Reply",
    "Request",
    "Wire",
    "callable_endpoint",
    "simulated_endpoint",
]
