"""Where runs lie: `.fairness/runs/2026-02-28-001/`, one folder a run, the same for all processes of a
session."""

from __future__ import annotations

import datetime
import hashlib
import re
from pathlib import Path

from pytest_fairness.errors import StoreError
from pytest_fairness.running import files
from pytest_fairness.running.locks import FileLock

_RUN_ID = re.compile(r"\d{4}-\d{2}-\d{2}-\d{3,}")
_BOOKKEEPING = ".sessions"


def reserve_run(root: Path, token: str, *, today: datetime.date | None = None) -> Path:
    """The folder of the session *token* under *root*: the one it has already, or the next free number of the
    day.

    Whoever gives the same token gets the same folder, also from another process and on another day. Raises
    StoreError where the folder cannot be made, is a link, or lies on a file system without locks.
    """
    files.make_directory(root)
    _keep_out_of_git(root)
    sessions = root / _BOOKKEEPING
    files.make_directory(sessions)
    lock = FileLock(sessions / "lock")
    try:
        with lock.held():
            entry = _entry(root, token)
            if entry.exists():
                return _reserved(root, entry)
            day = (today or datetime.datetime.now().astimezone().date()).isoformat()
            directory = root / f"{day}-{_next_number(root, day):03d}"
            directory.mkdir(mode=0o700)
            files.write_atomically(entry, directory.name.encode("ascii"))
            return directory
    except OSError as error:
        raise StoreError(
            f"{root}: no folder for the run can be made ({error.strerror}): make it writable, "
            "or choose another with --fairness-run-dir"
        ) from error
    finally:
        lock.close()


def find_run(root: Path, token: str) -> Path | None:
    """The folder that the session *token* has under *root*, or None; nothing is made. Raises StoreError as above."""
    entry = _entry(root, token)
    return _reserved(root, entry) if entry.is_file() else None


def _entry(root: Path, token: str) -> Path:
    return root / _BOOKKEEPING / hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _reserved(root: Path, entry: Path) -> Path:
    name = entry.read_text("ascii", "replace")
    if not _RUN_ID.fullmatch(name) or not (root / name).is_dir() or (root / name).is_symlink():
        raise StoreError(f"{entry} names no run of {root}: remove that file, and the session starts a new run")
    return root / name


def _next_number(root: Path, day: str) -> int:
    numbers = (int(path.name[len(day) + 1 :]) for path in run_folders(root) if path.name.startswith(day))
    return max(numbers, default=0) + 1


def run_folders(root: Path) -> list[Path]:
    """The runs under *root*, oldest first."""
    if not root.is_dir():
        return []
    found = (path for path in root.iterdir() if _RUN_ID.fullmatch(path.name) and path.is_dir())
    return sorted(found, key=lambda path: (path.name[:10], int(path.name[11:])))


def _keep_out_of_git(root: Path) -> None:
    # Prompts and replies may hold personal data; nobody should commit them by accident.
    ignore = root / ".gitignore"
    if not ignore.exists() and not ignore.is_symlink():
        files.write_atomically(ignore, b"*\n")
