"""Files of a run's folder: opened without following links, private to their owner, replaced whole.

Whoever can place a link in the folder could otherwise have the log written over a file of the user's, or read
from one (symbolic links, hard links and pipes are all refused).
"""

from __future__ import annotations

import os
import stat
import uuid
from pathlib import Path

from pytest_fairness.errors import StoreError

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)

_NETWORK = frozenset(
    [
        "nfs",
        "nfs3",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "sshfs",
        "afs",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "glusterfs",
        "ocfs2",
        "orangefs",
        "pvfs2",
        "davfs",
    ]
)

#: fdatasync writes the bytes and the length, all that a log needs, without the time stamps.
sync = getattr(os, "fdatasync", os.fsync)


def open_regular(path: Path, flags: int) -> int:
    """Open *path* as a plain file of our own, mode 0600. Raises StoreError for anything else, naming it."""
    try:
        # Without O_NONBLOCK, opening a pipe would wait for ever for its other end.
        descriptor = os.open(path, flags | _NOFOLLOW | _NONBLOCK | _BINARY | _CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(_why(path, error)) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise StoreError(_unfit(path, status))
    return descriptor


def check_regular(path: Path) -> None:
    """Raise StoreError unless *path* is a plain file of one name; without opening it."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise StoreError(_unfit(path, status))


def is_still(path: Path, status: os.stat_result) -> bool:
    """Whether *path* is the file that it was when it had *status*."""
    try:
        return os.path.samestat(path.lstat(), status)
    except OSError:
        return False


def network_file_system(path: Path) -> str | None:
    """The kind of network file system that *path* is on, as far as the system tells; None for a local one."""
    if str(path.absolute()).startswith("\\\\"):
        return "UNC path"
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    kinds = {line.split()[4]: line.partition(" - ")[2].split()[0] for line in mounts}
    place = path.resolve()
    mount = next((str(parent) for parent in (place, *place.parents) if str(parent) in kinds), "/")
    kind = kinds.get(mount, "")
    return kind if kind.removeprefix("fuse.") in _NETWORK else None


def _unfit(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a symbolic link, which a run's folder may not hold: remove it"
    what = "has a second name (hard link)" if stat.S_ISREG(status.st_mode) else "is not a plain file"
    return f"{path} {what}: remove it, or choose another folder with fairness_run_dir in the ini file"


def _why(path: Path, error: OSError) -> str:
    if path.is_symlink():
        return f"{path} is a symbolic link, which a run's folder may not hold: remove it"
    return (
        f"{path} cannot be opened ({error.strerror}): make it writable, "
        "or choose another folder with fairness_run_dir in the ini file"
    )


def write_all(descriptor: int, data: bytes, path: Path) -> None:
    """Write *data* with one system call; a short write raises StoreError, as a full disk gives no other
    sign."""
    try:
        written = os.write(descriptor, data)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written ({error.strerror}): free some space or mend the disk; "
            "what was written before stands"
        ) from error
    if written != len(data):
        raise StoreError(
            f"{path}: only {written} of {len(data)} bytes could be written: the disk or a quota is full; "
            "free some space and run again: what was written before stands"
        )


def flush(descriptor: int, path: Path) -> None:
    """Have the disk hold what was written. Raises StoreError if it does not."""
    try:
        sync(descriptor)
    except OSError as error:
        raise StoreError(f"{path} cannot be flushed to disk ({error.strerror}): mend the disk") from error


def removed(directory: Path) -> StoreError:
    """The error of a run whose folder is not there any more."""
    return StoreError(
        f"{directory} was removed or moved while this session wrote to it: nothing more is sent, and what was asked is "
        "in that folder alone; put it back and go on with --fairness-resume, or run again"
    )


def flush_directory(path: Path) -> None:
    """Have the disk hold the directory's entries, where the system can do that."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | _CLOEXEC)
    except FileNotFoundError:
        raise removed(path) from None
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise StoreError(f"{path} cannot be flushed to disk ({error.strerror}): mend the disk") from error
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace *path* by *data*: a reader sees the old file or the new one, whole, even after a crash."""
    # The random part keeps two processes apart; the suffix keeps a leftover from being read as a log.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    descriptor = open_regular(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(descriptor, data, temporary)
            flush(descriptor, temporary)
        finally:
            os.close(descriptor)
        replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def replace(temporary: Path, path: Path) -> None:
    """Put *temporary*, whole and flushed, in the place of *path*, which may be no link."""
    if path.is_symlink():
        raise StoreError(f"{path} is a symbolic link, which a run's folder may not hold: remove it")
    try:
        temporary.replace(path)
    except OSError as error:
        raise StoreError(_why(path, error)) from error
    flush_directory(path.parent)


def make_directory(path: Path) -> None:
    """Make *path* a directory of our own (0700) unless it is one. Raises StoreError for a file or a link."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be made a folder ({error.strerror}): make its parent writable, "
            "or choose another with fairness_run_dir in the ini file"
        ) from error
    if path.is_symlink():
        raise StoreError(f"{path} is a symbolic link: give the real folder with fairness_run_dir in the ini file")
