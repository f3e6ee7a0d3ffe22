"""The runs of the project that one stands in, found without pytest: for commands and notebooks."""

from __future__ import annotations

import configparser
import json
import os
import tomllib
from pathlib import Path
from typing import Any

from pytest_fairness.errors import UsageError
from pytest_fairness.runs import database
from pytest_fairness.runs.folder import locate_run
from pytest_fairness.runs.manifest import LOGS, NAME, read_manifest
from pytest_fairness.runs.reader import record_lines

RUN_DIR = Path(".fairness", "runs")
FINDINGS = "findings.json"
LAST = "last"
#: Where pytest looks for its configuration, in its order.
_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)


def runs_root(here: Path | None = None) -> Path:
    """The folder of runs of the project around *here* (the working directory), which need not
    exist.

    It is the ``fairness_run_dir`` of pytest's configuration, which is looked for upwards as pytest
    does; without one, the nearest ``.fairness/runs`` upwards. Raises UsageError for a configuration
    that cannot be read.
    """
    if here is None:
        here = Path.cwd()
    else:
        here = here.absolute()
    table = configuration(here)
    if table is not None:
        root, settings = table
        return root / str(settings.get("fairness_run_dir") or RUN_DIR)
    for folder in (here, *here.parents):
        if (folder / RUN_DIR).is_dir():
            return folder / RUN_DIR
    return here / RUN_DIR


def configuration(here: Path) -> tuple[Path, dict[str, Any]] | None:
    """The folder above *here*, or *here* itself, that has pytest's configuration, and what that
    says; None where none has. Raises UsageError for a configuration that cannot be read.
    """
    for folder in (here, *here.parents):
        for name in _FILES:
            settings = _settings(folder / name)
            if settings is not None:
                return folder, settings
    return None


def has_judged(run: Path) -> bool:
    """Tell whether the session of *run* came to a finding.

    So it did where its findings are damaged: whoever reads them says so.
    """
    return _findings_of(run, "findings", missing=False)


def has_asked(run: Path) -> bool:
    """Tell whether trials were asked in *run*, which a replay and a session of tables alone did
    not.
    """
    manifest = read_manifest(run)
    if "replay_of" in manifest or not manifest.get("endpoints"):
        return False
    if _findings_of(
        run, "run", "trials", "total", missing=True
    ):  # missing: it was cut off while it asked
        return True
    # A batch that goes on at the provider was asked, though none of its trials has ended.
    return any(True for _ in record_lines(run, "batch"))


def _findings_of(run: Path, *path: str, missing: bool) -> bool:
    """Tell whether there is something at *path* in the findings of *run*.

    *missing* where it has none, true where they are damaged.
    """
    try:
        value = json.loads((run / FINDINGS).read_bytes())
        for key in path:
            value = value[key]
    except FileNotFoundError:
        return missing
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return True
    return bool(value)


def chosen_run(
    name: str | os.PathLike[str], here: Path | None = None, *, judged: bool = True
) -> Path:
    """The folder of the run that *name* means, seen from *here* (the working directory).

    *name* is a folder, or what :func:`~pytest_fairness.runs.folder.locate_run` takes for a run of
    the project: ``last`` is the newest that *judged* something, or else of all. Raises UsageError,
    naming runs that are near, where it means none or several.
    """
    if here is None:
        here = Path.cwd()
    text = os.fspath(name)
    if (here / text).is_dir() and is_run(here / text):
        return here / text
    if len(Path(text).parts) != 1 or text in (os.curdir, os.pardir):
        raise UsageError(f"{text!r} is not the folder of a run: it has neither {NAME} nor records")
    root = runs_root(here)
    if judged:
        return locate_run(root, text, is_meant=has_judged, which="that judged something")
    return locate_run(root, text)


def is_run(folder: Path) -> bool:
    """Return whether *folder* holds what a run does, whole or damaged."""
    return any((folder / name).exists() for name in (NAME, database.NAME)) or any(folder.glob(LOGS))


def _settings(path: Path) -> dict[str, Any] | None:
    """pytest's configuration in the file at *path*, as pytest reads it; None where that says
    nothing of pytest, or there is none.
    """
    if not path.is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            read: dict[str, Any] = tomllib.loads(text)
            if path.name != "pyproject.toml":
                return dict(read.get("pytest", {}))
            table = read.get("tool", {}).get("pytest", {})
            return table.get("ini_options", table) or None
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
        parser.read_string(text)
    except (OSError, ValueError, AttributeError, configparser.Error) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    section = "pytest"
    if path.suffix == ".cfg":
        section = "tool:pytest"
    if parser.has_section(section):
        return dict(parser[section])
    if path.name in ("pytest.ini", ".pytest.ini"):
        return {}
    return None
