"""Files of a run's folder: opened without following links, private to their owner, replaced whole.

Whoever can place a link in the folder could otherwise have the log written over a file of the
user's, or read from one (symbolic links, hard links and pipes are all refused).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pytest_fairness.errors import StoreError

# Without O_NONBLOCK, opening a pipe would wait for ever for its other end.
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
_NETWORK = re.compile(
    r"(fuse\.)?(nfs[34]?|cifs|smb3|smbfs|sshfs|afs|lustre|gpfs|beegfs|ceph|glusterfs|ocfs2|orangefs|pvfs2|davfs)"
)
_CHOOSE = "or choose another folder with fairness_run_dir in the ini file"


def open_regular(path: Path, flags: int) -> int:
    """Open *path* as a plain file of our own, mode 0600. Raises StoreError for anything else,
    naming it.
    """
    try:
        descriptor = os.open(path, flags | _FLAGS, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        check_regular(path, os.fstat(descriptor))
    except StoreError:
        os.close(descriptor)
        raise
    return descriptor


def check_regular(path: Path, status: os.stat_result | None = None) -> None:
    """Raise StoreError unless *path*, of that *status*, is a plain file of one name; without
    opening it.
    """
    status = status or path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise StoreError(f"{path} is a symbolic link, which a run's folder may not hold: remove it")
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        what = "is not a plain file"
        if stat.S_ISREG(status.st_mode):
            what = "has a second name (hard link)"
        raise StoreError(f"{path} {what}: remove it, {_CHOOSE}")


def network_file_system(path: Path) -> str | None:
    """The kind of network file system that *path* is on, as far as the system tells; None for a
    local one.
    """
    if str(path.absolute()).startswith("\\\\"):
        return "UNC path"
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    kinds = {line.split()[4]: line.partition(" - ")[2].split()[0] for line in mounts}
    place = path.resolve()
    for parent in map(str, (place, *place.parents)):
        if parent not in kinds:
            continue
        if _NETWORK.fullmatch(kinds[parent]):
            return kinds[parent]
        return None
    return None


def _unwritable(path: Path, error: OSError) -> StoreError:
    """Return the error of a file that cannot be written, with the mend."""
    if path.is_symlink():
        check_regular(path)
    return StoreError(
        f"{path} cannot be opened or written ({error.strerror}): free some space, make it "
        f"writable, {_CHOOSE}; what "
        "was written before stands"
    )


def removed(directory: Path) -> StoreError:
    """The error of a run whose folder is absent."""
    return StoreError(
        f"{directory} was removed or moved while this session wrote to it: nothing more is sent, "
        "and what was asked is "
        "in that folder alone; put it back and resume it with --fairness-resume=last, or run again"
    )


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces *path* at the end of the block: a reader sees the old file or
    the new one, whole, even after a crash. Raises StoreError where that cannot be.
    """
    # The random part keeps two processes apart; the suffix keeps a leftover from being read as a
    # log.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        with os.fdopen(
            open_regular(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb"
        ) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if path.is_symlink():
            check_regular(path)
        temporary.replace(path)
        if os.name == "posix":  # the new name is on the disk when its directory is
            descriptor = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        if not path.parent.exists():
            raise removed(path.parent) from error
        raise _unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace *path* by *data*, as :func:`replacing` does."""
    with replacing(path) as stream:
        stream.write(data)


def make_directory(path: Path) -> None:
    """Make *path* a directory of our own (0700) unless it is one. Raises StoreError for a file or a
    link.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be made a folder ({error.strerror}): make its parent writable, "
            f"{_CHOOSE}"
        ) from error
    if path.is_symlink():
        raise StoreError(
            f"{path} is a symbolic link: give the real folder with fairness_run_dir in the ini file"
        )


def shown(path: Path, root: Path) -> str:
    """*path* relative to *root* where it lies inside."""
    if path.is_relative_to(root):
        return str(path.relative_to(root))
    return str(path)
