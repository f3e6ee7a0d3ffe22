"""Locks between processes: held by an open file, so that the system lets go of them when their holder
dies."""

from __future__ import annotations

import errno
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_fairness.errors import StoreError
from pytest_fairness.runs.files import open_regular, read_at, replace_text

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int, *, wait: bool) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # far from the text, which others must be able to read
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)

    def _give(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(descriptor: int, *, wait: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

    def _give(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


_HELD_BY_ANOTHER = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_open: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """An exclusive lock on a file of its own; not re-entrant. The file stays, only the lock goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        self._thread = threading.Lock()
        _open.add(self)

    def try_acquire(self) -> bool:
        """Take the lock if nobody holds it. Raises StoreError where the file system knows no locks."""
        try:
            _take(self.descriptor, wait=False)
        except OSError as error:
            if error.errno in _HELD_BY_ANOTHER:
                return False
            raise self._no_locks(error) from error
        return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lock, and hold it for the block, against other processes and other threads."""
        with self._thread:
            try:
                _take(self.descriptor, wait=True)
            except OSError as error:
                raise self._no_locks(error) from error
            try:
                yield
            finally:
                if self.descriptor >= 0:
                    _give(self.descriptor)

    def write(self, text: str) -> None:
        """Say in the file who holds the lock."""
        replace_text(self.descriptor, text)

    def read(self) -> str:
        """What the last holder wrote."""
        return read_at(self.descriptor, 4096, 0).decode("ascii", "replace")

    def close(self) -> None:
        """Let go, and close the file. May be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _no_locks(self, error: OSError) -> StoreError:
        return StoreError(
            f"{self.path} cannot be locked ({error.strerror}): put the runs on a local disk, with fairness_run_dir in "
            "the ini file"
        )


def _close_in_child() -> None:
    # A forked child shares its parent's open files, and would keep the lock after the parent is dead.
    for lock in list(_open):
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
