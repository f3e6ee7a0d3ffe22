"""What the package promises to an installer, and to ``from pytest_fairness import …``."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import pytest_fairness

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8"])
def test_compromised_litellm_is_excluded(version: str) -> None:
    """Both by the floor and by name, so that neither a loosened floor nor a mirror brings them
    back.
    """
    (requirement,) = [Requirement(text) for text in PROJECT["optional-dependencies"]["llm"]]
    assert not requirement.specifier.contains(version)
    assert f"!={version}" in str(requirement.specifier)


def test_litellm_is_no_core_dependency() -> None:
    names = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert names.isdisjoint({"litellm", "openai", "pytest-xdist", "pytest-html"})


def test_the_plugin_is_registered() -> None:
    (ours,) = [point for point in entry_points(group="pytest11") if point.name == "fairness"]
    assert ours.value == "pytest_fairness.plugin"


@pytest.mark.parametrize("name", pytest_fairness.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    thing = getattr(pytest_fairness, name)
    assert thing.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'assert_fair'"):
        pytest_fairness.assert_fair  # noqa: B018 - the access is the test


def test_importing_the_package_imports_nothing_heavy() -> None:
    """A test module's ``from pytest_fairness import assert_no_disparity`` must not slow down
    collection.
    """
    heavy = ("pandas", "numpy", "scipy", "statsmodels", "litellm", "yaml", "pytest")
    code = (
        "import sys; from pytest_fairness import assert_no_disparity; "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
