"""Errors, by who can mend them. Standard library only.

A :class:`UsageError` is mended by whoever wrote the test or the configuration (pytest exits 4 for
it, or the test errors); an :class:`EndpointError` by whoever runs the system under test; a
:class:`StoreError` by whoever owns the disk. An assertion that does not hold is a result, not an
error: ``asserts.FairnessFailure``.
"""

from __future__ import annotations

from collections.abc import Iterable


class FairnessError(Exception):
    """Base of everything that pytest-fairness raises, but for assertion failures."""


class UsageError(FairnessError):
    """The test or the configuration is wrong; the message names the place and the mend."""


class MissingExtra(UsageError):
    """An optional dependency is not installed; the message gives the command that adds it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs an optional dependency: pip install 'pytest-fairness[{extra}]'"
        )
        self.extra = extra


class FrameError(UsageError, ValueError):
    """A table has the wrong shape for a comparison; the message names the column and the row."""

    #: The column, and the value in it, that a row of counts is refused for.
    refused: tuple[str, object] | None = None


class InvalidEntry(UsageError, ValueError):
    """An entry of source data that cannot be used; whoever reads it from a file adds the line."""


class BaselineError(UsageError):
    """An approved baseline cannot be trusted or does not fit this run; it is never repaired
    automatically.
    """


class MissingBaselineError(BaselineError):
    """No baseline was approved for this score of this test; the message gives the command that
    does.
    """


class ApprovalRefusedError(BaselineError):
    """An approval was asked for and not given; the message names the option that would allow it, if
    any.
    """


class EndpointError(FairnessError):
    """The system under test could not be asked, or its answer could not be read."""


class StageUnfinished(EndpointError):
    """The deadline passed before a stage of a design was asked to its end."""


class NeverAskedError(EndpointError):
    """A recorded run does not hold what is replayed of it, and shows no change since."""


class BudgetError(FairnessError):
    """The cost cap was reached, or a price that the cap needs is not known."""


class StoreError(FairnessError):
    """The run's folder or log cannot be written or read; nothing is skipped silently."""


class InconclusiveWarning(UserWarning):
    """A comparison could not be decided with the data at hand."""


# What people call the classes and groups that have another name here.
_ALSO_CALLED = {
    "race": "race_ethnicity",
    "ethnicity": "race_ethnicity",
    "sex": "gender",
    "african_american": "black",
    "caucasian": "white",
    "latino": "hispanic",
    "latina": "hispanic",
    "latinx": "hispanic",
    "arab": "middle_eastern",
    "women": "female",
    "woman": "female",
    "men": "male",
    "man": "male",
    "nonbinary": "non_binary",
    "old": "older",
    "young": "younger",
    "nationality": "national_origin",
    "class": "socioeconomic_status",
}


def did_you_mean(wrong: str, names: Iterable[str]) -> str:
    """``; did you mean 'black'?``, or nothing where no known name is close to *wrong*."""
    import difflib

    by_folded = {_folded(name): name for name in names}
    folded = _folded(wrong)
    close = [folded]
    if folded not in by_folded:
        close = [_ALSO_CALLED.get(folded, "")]
    if close[0] not in by_folded:
        close = difflib.get_close_matches(folded, by_folded, n=1)
    if close:
        return f"; did you mean {by_folded[close[0]]!r}?"
    return ""


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def unknown(what: str, wrong: str, candidates: Iterable[str]) -> str:
    """``unknown key 'modle'; did you mean 'model'?``, with all that are known where none is close."""
    if isinstance(candidates, (set, frozenset)):
        names = sorted(candidates)
    else:
        names = list(candidates)
    hint = did_you_mean(wrong, names)
    if not hint and names:
        hint = f" (there are: {', '.join(names)})"
    elif not hint:
        hint = "; it takes none"
    return f"unknown {what} {wrong!r}{hint}"


def of_trials(argument: str, value: object) -> str:
    """Return why an *argument* that is about tables of decisions has no *value* for trials."""
    if argument == "truth":
        return (
            f"{argument}={value!r} judges a table of decisions as it is; of trials that are asked "
            "for, assert that each rate is equal on the trials that it is about, as "
            f"assert_no_disparity(trials[trials[{value!r}] == …], …)"
        )
    return (
        f"{argument}={value!r} judges a table of decisions as it is; trials that are asked for have "
        "their classes in by=[…], and their contexts in block="
    )


def refuse_twice(where: str, items: Iterable[str]) -> None:
    """Raise UsageError for the first of *items* that stands twice; *where* is what the message
    begins with.
    """
    seen: set[str] = set()
    for item in items:
        if item in seen:
            raise UsageError(f"{where} {item[:60]!r} stands twice; keep one")
        seen.add(item)
