"""Give a suite what its project's file asks for: options, a design for a module, items.

A suite's ``conftest.py`` reads its file once a session, puts marks on its modules, and makes an
item of each value that a test is about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from pytest_fairness.design.slugs import slug, slugs
from pytest_fairness.documents import Document, Text, entries, open_document, project_folder
from pytest_fairness.errors import UsageError, did_you_mean
from pytest_fairness.pytest_layer.fixtures import errors_as_failures
from pytest_fairness.pytest_layer.item_marks import SkipReason
from pytest_fairness.pytest_layer.options import settings_of

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness import RunContext

__all__ = [
    "Document",
    "SkipReason",
    "Text",
    "did_you_mean",
    "entries",
    "errors_as_failures",
    "level_of_tests",
    "make_items",
    "marked_item",
    "marked_module",
    "once_a_session",
    "once_a_table",
    "open_document",
    "options_document",
    "pinned_files",
    "project_folder",
    "slug",
    "slugs",
    "suite_module",
    "texts_once",
]

T = TypeVar("T")


def once_a_session(make: Callable[[pytest.Config], T]) -> Callable[[pytest.Config], T]:
    """Call *make* once a session; what is wrong with a file of the project ends its collection.

    The function that is returned raises CollectError with the message of a UsageError.
    """
    key = pytest.StashKey[T]()

    def made(config: pytest.Config) -> T:
        if key not in config.stash:
            try:
                config.stash[key] = make(config)
            except UsageError as error:
                raise pytest.Collector.CollectError(str(error)) from None
        return config.stash[key]

    made.__doc__ = make.__doc__
    return made


def once_a_table(
    make: Callable[[pytest.Config, pd.DataFrame], T],
) -> Callable[[pytest.Config, pd.DataFrame], T]:
    """Call *make* once in a process for the same trials, whichever tests pull them."""
    stash_key = pytest.StashKey[dict[int, T]]()

    def made(config: pytest.Config, trials: pd.DataFrame) -> T:
        by_trials = config.stash.setdefault(stash_key, {})
        key = hash(tuple(zip(trials["key"], trials["repetition"], trials["status"], strict=True)))
        if key not in by_trials:
            by_trials[key] = make(config, trials)
        return by_trials[key]

    made.__doc__ = make.__doc__
    return made


def options_document(config: pytest.Config, file: str) -> Document:
    """Return *file* at the root of the project, or a document without a key where there is none.

    Raises UsageError.
    """
    path = config.rootpath / file
    if path.exists():
        return open_document(path)
    return Document(str(path), {})


def pinned_files(config: pytest.Config, sha256: Mapping[str, str], source: str) -> dict[str, bytes]:
    """Return what stands in the files of a benchmark that the project has fetched, by their names
    in *sha256*: the file that the ini key ``fairness_data`` names, or those of that folder.

    Args:
        sha256: the name of each file → the hash of the version that the suite knows.
        source: where that version is fetched from, for messages.

    Raises:
        UsageError: the key is not set, nothing is there, or a file is of another version.
    """
    given = settings_of(config).data
    fetch = f"fetch {' or '.join(sha256)} from {source}"
    if not given:
        raise UsageError(f"fairness_data is not set: {fetch}, and name it there")
    path = config.rootpath / given
    paths = [file for file in (path, *map(path.joinpath, sha256)) if file.is_file()]
    if not paths:
        raise UsageError(f"fairness_data = {given}: there is nothing of it in {path}; {fetch}")
    names = {hashed: name for name, hashed in sha256.items()}
    files = {}
    for file in paths:
        data = file.read_bytes()
        hashed = hashlib.sha256(data).hexdigest()
        if hashed not in names:
            raise UsageError(
                f"{file} has the SHA-256 {hashed:.12}…, which is no version that is known: {fetch}"
            )
        files[names[hashed]] = data
    return files


def texts_once(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return, for each different one of *texts*, the names of those that are alike, by the first of
    them: what is asked once stands for all of them.
    """
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    return {alike[0]: alike for alike in names.values()}


def marked_module(
    path: Path, parent: pytest.Collector, *marks: pytest.MarkDecorator
) -> pytest.Module:
    """Return the module in *path* with *marks* on it, which all its tests share."""
    module: pytest.Module = pytest.Module.from_parent(parent, path=path)
    for mark in marks:
        module.add_marker(mark)
    return module


def suite_module(
    file: str, design: Callable[[pytest.Config], pytest.MarkDecorator]
) -> Callable[[Path, pytest.Collector], pytest.Module | None]:
    """Return the hook ``pytest_pycollect_makemodule`` of a suite of which the module *file* has the
    *design* that the project asks for: its tests share it, and replies are asked once.
    """

    def pytest_pycollect_makemodule(
        module_path: Path, parent: pytest.Collector
    ) -> pytest.Module | None:
        if module_path.name != file:
            return None
        return marked_module(module_path, parent, design(parent.config))

    return pytest_pycollect_makemodule


def marked_item(metafunc: pytest.Metafunc, suite: str, label: str) -> pytest.MarkDecorator:
    """Return the mark that calls an item ``SUITE.TEST[LABEL]`` in reports."""
    test = metafunc.definition.name.removeprefix("test_")
    return pytest.mark.fairness(id=f"{suite}.{test}[{label}]")


def make_items(metafunc: pytest.Metafunc, suite: str, values: Mapping[str, Sequence[str]]) -> None:
    """Make an item of each combination of the *values* of those arguments that a test asks for."""
    names = [name for name in values if name in metafunc.fixturenames]
    if not names:
        return
    items = []
    for combination in product(*(values[name] for name in names)):
        label = "-".join(combination)
        items.append(
            pytest.param(*combination, id=label, marks=marked_item(metafunc, suite, label))
        )
    metafunc.parametrize(names, items)


def level_of_tests(run: RunContext, alpha: float) -> float:
    """Return the level at which each test of *run* judges what it asserts first at *alpha*: its part
    of the session's, once the tests run.
    """
    from pytest_fairness.analysis.looks import budget_in_run

    looks = run.store.manifest().get("looks")
    # A replay of a run without looks is judged as a table is.
    if looks is None:
        return alpha
    return budget_in_run(looks, 0, alpha)
