"""Folders of runs: `.fairness/runs/2026-02-28-001/`, one folder a run, the same for all processes
of a session.
"""

from __future__ import annotations

import contextlib
import datetime
import difflib
import hashlib
import itertools
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.runs import files
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.words import count

_RUN_ID = re.compile(r"\d{4}-\d{2}-\d{2}-\d{3,}")
_BACK = re.compile(r"last(?:~([0-9]{1,6}))?")
#: The name of a run to go on with, or what chooses it.
Adopt: TypeAlias = str | Callable[[], str | None] | None
_BOOKKEEPING = ".sessions"
_ENDED = ".ended"
#: Seconds that a process of a session waits for another, which is making the run.
_PATIENCE = 5.0


def reserve_run(
    root: Path, token: str, *, today: datetime.date | None = None, adopt: Adopt = None
) -> Path:
    """The folder of the session *token* under *root*: the one it has already, the earlier run
    *adopt* if that is to go on, or the next free number of the day. Where *adopt* is a function,
    one process of the session calls it.

    Whoever gives the same token gets the same folder, also from another process and on another day.
    Raises StoreError where the folder cannot be made or is a link.
    """
    _prepare(root)
    entry = _entry(root, token)
    try:
        with _one_after_the_other(entry):
            if entry.exists():
                return _reserved(root, entry)
            name = adopt
            if callable(name):
                name = name()
            made = None
            if not name:
                day = today or datetime.datetime.now().astimezone().date()
                name = made = _make_next(root, str(day))
            draft = entry.with_suffix(f".{uuid.uuid4().hex[:12]}")
            files.write_atomically(draft, name.encode("ascii", "replace"))
            try:
                os.link(draft, entry)  # of several processes, one alone
            except FileExistsError:
                if made is not None:
                    (root / made).rmdir()
            finally:
                draft.unlink()
        return _reserved(root, entry)
    except OSError as error:
        raise StoreError(
            f"{root}: no folder for the run can be made ({error.strerror}): make it writable, "
            "or choose another with fairness_run_dir in the ini file"
        ) from error


@contextlib.contextmanager
def _one_after_the_other(entry: Path) -> Iterator[None]:
    """Let one process of a session make its run, so that none takes a number that is not used.

    One that was killed here holds up the others of its session, but not for ever.
    """
    turn = entry.with_suffix(".turn")
    until = time.monotonic() + _PATIENCE
    while not entry.exists() and time.monotonic() < until:
        with contextlib.suppress(FileExistsError):
            turn.touch(exist_ok=False)
            break
        time.sleep(0.01)
    try:
        yield
    finally:
        turn.unlink(missing_ok=True)


def _make_next(root: Path, day: str) -> str:
    """Make the folder with the next number of *day*, and return its name."""
    numbers = (int(path.name[11:]) for path in run_folders(root) if path.name.startswith(day))
    for number in itertools.count(1 + max(numbers, default=0)):
        with contextlib.suppress(FileExistsError):  # another session has just made it
            (root / f"{day}-{number:03d}").mkdir(mode=0o700)
            break
    return f"{day}-{number:03d}"


def find_run(root: Path, token: str) -> Path | None:
    """The folder that the session *token* has under *root*, or None; nothing is made. Raises
    StoreError as above.
    """
    entry = _entry(root, token)
    try:
        if entry.is_file():
            return _reserved(root, entry)
    except OSError:
        # A name that is too long, a folder that may not be looked into: no run can have been made
        # there.
        return None
    return None


def locate_run(
    root: Path,
    name: str,
    *,
    is_meant: Callable[[Path], bool] = lambda _: True,
    which: str = "that has begun",
) -> Path:
    """The run of *root* that *name* means: an id, or a beginning that no other id has.

    ``last`` is the newest that *is_meant*, ``last~2`` the second before it, of those that have
    begun;
    *which* says so in words. Raises UsageError, naming runs that are near, where it means none or
    several.
    """
    runs = {path.name: path for path in run_folders(root)}
    newest = list(runs.values())[::-1]
    if not runs:
        raise UsageError(
            f"{root} holds no run {name!r}, and no other: run the fairness tests first"
        )
    if name in runs:
        return runs[name]
    if back := _BACK.fullmatch(name):
        return _counted_back(root, int(back[1] or 0), is_meant, which)
    begun = [path for path in newest if name and path.name.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise UsageError(f"{root} holds {len(begun)} runs that begin with {name!r}: {_few(begun)}")
    raise UsageError(f"{root} holds no run {name!r}; {_hint(name, newest)}")


def _hint(name: str, newest: Sequence[Path]) -> str:
    """Return which runs are called much like *name*, else which are the *newest*."""
    near = difflib.get_close_matches(name, [run.name for run in reversed(newest)], n=3, cutoff=0.75)
    if near:
        return f"near ones are: {', '.join(near)}"
    return f"the newest are: {_few(newest)}"


def _counted_back(root: Path, number: int, is_meant: Callable[[Path], bool], which: str) -> Path:
    """The run *number* before the newest of those under *root* that have begun, and *is_meant*."""
    meant = list[Path]()
    later = list[Path]()
    for run in reversed(runs := run_folders(root)):
        if not has_begun(run):
            later.append(run)
        elif is_meant(run):
            meant.append(run)
        if len(meant) > number:
            return run
    which_runs = "no run"
    if meant:
        which_runs = f"only {count(len(meant), 'run')}"
    passed = ""
    if later:
        passed = f"; dated later than now, and passed over: {_few(later)}"
    raise UsageError(
        f"{root} holds {which_runs} {which}{passed}; the newest are: {_few(runs[::-1])}"
    )


def has_begun(run: Path) -> bool:
    """Tell whether *run* began before now.

    One that is dated later was put there, or made by a clock that was wrong: it is not the last.
    """
    now = datetime.datetime.now(datetime.UTC)
    # The day in a name is that of the place where the run began, which may be half a day ahead.
    latest = str((now + datetime.timedelta(hours=14)).date())
    return run.name[:10] <= latest and not _is_after(_started(run), now)


def _started(run: Path) -> str:
    """Return when *run* began, as its manifest has it; empty where that cannot be read."""
    try:
        return str(read_manifest(run).get("started") or "")
    except StoreError:  # whoever reads the run says what is wrong with it
        return ""


def _is_after(moment: str, now: datetime.datetime) -> bool:
    """Return whether *moment*, as a manifest has it, lies after *now*."""
    try:
        parsed = datetime.datetime.fromisoformat(moment)
    except ValueError:
        return False
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=datetime.UTC)
    return parsed > now


def _few(runs: Sequence[Path]) -> str:
    """Return the names of the first of *runs*, in words."""
    if not runs:
        return "none"
    names = ", ".join(path.name for path in runs[:5])
    if len(runs) > 5:
        return f"{names}, …"
    return names


def end_session(root: Path, token: str) -> None:
    """Leave word under *root* that the session *token* has ended, for those of its processes that
    still ask. Nothing is left where it has no run. Raises StoreError.
    """
    if find_run(root, token) is not None:
        files.write_atomically(_entry(root, token).with_suffix(_ENDED), b"")


def has_ended(root: Path, token: str) -> bool:
    """Return whether somebody has left word that the session *token* has ended."""
    try:
        return _entry(root, token).with_suffix(_ENDED).exists()
    except OSError:  # as in find_run: there can be no run
        return False


def _entry(root: Path, token: str) -> Path:
    """Return where the run of the session *token* is noted."""
    digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
    return root / _BOOKKEEPING / digest[:32]


def _reserved(root: Path, entry: Path) -> Path:
    """Return the run that *entry* names. Raises StoreError where there is no such folder."""
    name = entry.read_text("ascii", "replace")
    if not _RUN_ID.fullmatch(name) or not (root / name).is_dir() or (root / name).is_symlink():
        raise StoreError(
            f"{entry} names no run of {root}: remove that file, and the session starts a new run"
        )
    return root / name


def run_folders(root: Path) -> list[Path]:
    """The runs under *root*, oldest first."""
    if not root.is_dir():
        return []
    folders = []
    for path in root.iterdir():
        if _RUN_ID.fullmatch(path.name) and path.is_dir():
            folders.append(path)
    return sorted(folders, key=lambda path: (path.name[:10], int(path.name[11:])))


def _prepare(root: Path) -> None:
    """Make *root*, which git is told to leave out, and the folder for who has which run."""
    files.make_directory(root)
    # Prompts and replies may hold personal data; nobody should commit them by accident.
    ignore = root / ".gitignore"
    if not ignore.exists() and not ignore.is_symlink():
        files.write_atomically(ignore, b"*\n")
    files.make_directory(root / _BOOKKEEPING)
