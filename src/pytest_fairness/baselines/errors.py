"""What can go wrong with a baseline. Standard library only.

None of these is a statistical result: nobody was found to be worse off. They say that there is nothing to
compare with, that what there is cannot be trusted, or that it may not be replaced.
"""

from __future__ import annotations

from pytest_fairness.errors import UsageError


class BaselineError(UsageError):
    """An approved baseline cannot be trusted or does not fit this run; it is never repaired automatically."""


class MissingBaselineError(BaselineError):
    """No baseline was approved for this score of this test; the message gives the command that does."""


class ApprovalRefusedError(BaselineError):
    """An approval was asked for and not given; the message names the option that would allow it, if any."""
