"""The shipped data is found from a checkout and from an installed package, and the design needs
little to load.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_fairness import documents
from pytest_fairness.errors import UsageError


def test_the_data_of_a_wheel_or_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stray folder called personas beside site-packages is not ours; a broken installation says
    where it looked.
    """
    monkeypatch.setattr(
        documents, "__file__", str(tmp_path / "src" / "pytest_fairness" / "documents.py")
    )
    with pytest.raises(UsageError, match="the shipped personas are missing"):
        documents.shipped_folder()
    for place in ("personas", "src/pytest_fairness/personas"):
        (tmp_path / place / "names").mkdir(parents=True)
        (tmp_path / place / "names" / "first_names.csv").touch()
        assert documents.shipped_folder() == tmp_path / place


def test_layers(own: Path) -> None:
    """Ours alone, ours then theirs, or theirs only."""
    ours = documents.shipped_folder() / "matrix.yaml"
    assert documents.layers("matrix.yaml") == documents.layers("matrix.yaml", own) == (ours,)
    (own / "matrix.yaml").touch()
    assert documents.layers("matrix.yaml", own) == (ours, own / "matrix.yaml")
    (own / "matrix.yaml").rename(own / "matrix.only.yaml")
    assert documents.layers("matrix.yaml", own) == (own / "matrix.only.yaml",)


def test_the_design_loads_without_the_heavy_libraries() -> None:
    """A grid is planned at collection, before anybody needs numpy, pandas, scipy or pytest."""
    code = (
        "import sys; import pytest_fairness.design.grid as g; "
        "g.expand_grid(template='Rate {name}', groups={'gender': ['female', 'male']}); "
        "import pytest_fairness.design.data_checks; "
        "heavy = {'numpy', 'pandas', 'scipy', 'statsmodels', 'pytest', 'litellm'}; "
        "sys.stderr.write(','.join(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
