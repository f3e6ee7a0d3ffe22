"""Where the source data is: in the wheel, at the root of a source checkout, and in a user's own folder.

A user's ``personas/`` folder has the layout of ours. A file of the same name **extends** what ships: an
entry with the same key takes the place of ours, anything else is added. A file called ``<stem>.only.<ext>``
**replaces** the shipped one altogether.
"""

from __future__ import annotations

from pathlib import Path

from pytest_fairness.errors import UsageError

_MARK = Path("names") / "first_names.csv"


def shipped_folder() -> Path:
    """The ``personas`` folder that came with the package. Raises UsageError if the installation lost it."""
    here = Path(__file__).resolve()
    package, checkout = here.parents[1] / "personas", here.parents[3] / "personas"
    for folder in (package, checkout):
        if (folder / _MARK).is_file():
            return folder
    raise UsageError(f"the shipped personas are missing (looked in {package} and {checkout}); reinstall the package")


def project_folder(root: Path) -> Path | None:
    """The own ``personas/`` folder of the project in *root*, if it has one: it extends what ships."""
    folder = root / "personas"
    # In a checkout of this package the two are one and the same.
    return folder if folder.is_dir() and folder.resolve() != shipped_folder() else None


def layers(relative: str, folder: Path | None = None) -> tuple[Path, ...]:
    """The files to read for *relative* (``names/surnames.csv``), later ones overriding earlier ones by key.

    *folder* is the user's own; None means only what ships. Raises UsageError if *folder* is given and is not
    there, or holds both ``x.csv`` and ``x.only.csv``.
    """
    shipped = shipped_folder() / relative
    if folder is None:
        return (shipped,)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; personas are read from a folder laid out like the shipped one")
    own = folder / relative
    only = own.with_name(f"{own.stem}.only{own.suffix}")
    if own.is_file() and only.is_file():
        raise UsageError(f"{own} extends and {only.name} replaces the shipped file; keep one of the two")
    if only.is_file():
        return (only,)
    return (shipped, own) if own.is_file() else (shipped,)
