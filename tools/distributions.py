"""Check what is in the wheel and the sdist of a folder: ``python tools/distributions.py dist``.

Ends with status 1, naming each entry that should not be there or is missing.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

#: Beginnings of paths.
IN_WHEEL = ("pytest_fairness/", "pytest_fairness-")
NEVER = ("__pycache__", ".fairness", ".venv", ".tox", ".git", ".pyc", ".env", "_build")
NEEDED_IN_WHEEL = (
    "pytest_fairness/py.typed",
    "pytest_fairness/plugin.py",
    "pytest_fairness/personas/matrix.yaml",
    "pytest_fairness/ci/github/workflow.yml",
    "pytest_fairness/docs/verdicts.md",
)
NEEDED_IN_SDIST = (
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
    "tox.ini",
    "tests/conftest.py",
    "personas/matrix.yaml",
)


def faults(names: Iterable[str], needed: Iterable[str]) -> list[str]:
    """A sentence for each name that should not be there, and for each that is missing."""
    names = set(names)
    told = [f"{name} is missing" for name in needed if name not in names]
    for name in sorted(names):
        parts = Path(name).parts
        if any(part in NEVER or part.endswith(".pyc") for part in parts):
            told.append(f"{name} should not be there")
    return told


def wheel_faults(wheel: Path) -> list[str]:
    names = zipfile.ZipFile(wheel).namelist()
    strangers = [f"{name} should not be there" for name in names if not name.startswith(IN_WHEEL)]
    licences = [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    if not licences:
        strangers.append("the licence is missing")
    return faults(names, NEEDED_IN_WHEEL) + strangers


def sdist_faults(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as archive:
        names = [member.name.partition("/")[2] for member in archive.getmembers()]
    return faults(names, NEEDED_IN_SDIST)


def main(folder: Path) -> int:
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    told = [f"{wheel.name}: {fault}" for fault in wheel_faults(wheel)]
    told += [f"{sdist.name}: {fault}" for fault in sdist_faults(sdist)]
    for fault in told:
        print(fault, file=sys.stderr)
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
