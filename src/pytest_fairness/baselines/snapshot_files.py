"""The folder of baselines on disk: names that two tests never share, guarded reads, atomic writes,
and orphans.

A baseline is judged by its content, and a contributor may propose any content of the folder, so
nothing in it is followed: no symbolic link (it could lead out of the tree, or be swapped during a
run), no hard link, no pipe.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pytest_fairness.baselines.document import BaselineDocument
from pytest_fairness.errors import BaselineError, StoreError

MAX_BYTES = 16 * 1024 * 1024  # a hundred personas take 10 kB; what is larger is not a baseline
_SUFFIX = ".json"
_MAX_SLUG = 140  # with score, hash and suffix well under the 255 bytes that file systems allow
# Windows has neither O_NOFOLLOW nor O_NONBLOCK; there the explicit link checks stand alone.
_COMMON = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON
_WRITE = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON
)  # O_EXCL: a name that somebody prepared is refused


def slug(text: str, limit: int = _MAX_SLUG) -> str:
    """*text* in ``[a-z0-9_.]``: runs of anything else become one dot. May be empty."""
    return re.sub(r"[^a-z0-9_]+", ".", text.lower()).strip(".")[:limit].strip(".")


def baseline_name(test_id: str, score: str) -> str:
    """The file name of the baseline of *score* in the test *test_id*: a readable slug and a hash of
    the exact identity.

    Equal for equal arguments alone (a collision of the 48 bits is noticed on reading), on
    case-insensitive file systems too, where syrupy's names of the ids ``a/b`` and ``a:b`` are one.
    Never hidden, never a reserved name.
    """
    identity = json.dumps(
        [test_id, score]
    ).encode()  # a list, so that ("a", "b.c") and ("a.b", "c") differ
    readable = ".".join(
        part for part in (slug(test_id.replace(".py::", "::")), slug(score, 60)) if part
    )
    return f"{readable or 'baseline'}-{hashlib.sha256(identity).hexdigest()[:12]}{_SUFFIX}"


@dataclass(frozen=True, slots=True)
class BaselineFolder:
    """*root* holds the baselines. If it lies under *anchor* (the project), its real path must do so
    too.
    """

    root: Path
    anchor: Path

    def read(self, name: str) -> bytes | None:
        """The content of the file *name*, None if there is none. Raises BaselineError for anything
        but a regular, singly linked file of a sane size inside the folder, and StoreError if it
        cannot be read.
        """
        path = self._inside(name)
        try:
            descriptor = os.open(path, _READ)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._refused(path, "it is a symbolic link") from error
            raise StoreError(f"The baseline {path} cannot be read: {error.strerror}.") from error
        try:
            self._check_regular(path, os.fstat(descriptor))
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)
        if len(content) > MAX_BYTES:
            raise self._refused(path, f"it is larger than {MAX_BYTES:,} bytes")
        return content

    def write(self, name: str, content: bytes) -> Path:
        """Put *content* in place of the file *name*, wholly or not at all, and make it durable.
        Raises BaselineError for a name that is taken by a link or anything but a regular file, and
        StoreError if the disk refuses.
        """
        path = self._inside(name)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._inside(name)  # again: mkdir follows links in what it finds on the way
            with contextlib.suppress(FileNotFoundError):
                self._check_regular(path, path.lstat())
            self._replace(path, content)
        except OSError as error:
            raise StoreError(f"The baseline {path} cannot be written: {error.strerror}.") from error
        return path

    def append(self, name: str, content: str) -> None:
        """Add *content* to the end of the file *name*, at once, so that two processes do not mix.
        Raises as :meth:`write`.
        """
        path = self._inside(name)
        try:
            with contextlib.suppress(FileNotFoundError):
                self._check_regular(path, path.lstat())
            with path.open("ab", buffering=0) as file:
                file.write(content.encode("utf-8"))
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}.") from error

    def names(self) -> list[str]:
        """The names of the baselines in the folder, sorted; links and other files' names are left
        out.
        """
        self._check_root()
        if not self.root.is_dir():
            return []
        entries = os.scandir(self.root)
        return sorted(
            entry.name
            for entry in entries
            if entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False)
        )

    def _replace(self, path: Path, content: bytes) -> None:
        temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
        descriptor = os.open(temporary, _WRITE, 0o644)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        with contextlib.suppress(
            OSError
        ):  # Windows cannot open a directory; the file itself is safe
            directory = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def _inside(self, name: str) -> Path:
        if Path(name).name != name or name in {"", ".", ".."}:
            raise BaselineError(
                f"{name!r} is not the name of a baseline: it must be a plain file name."
            )
        self._check_root()
        path = self.root / name
        if path.is_symlink() or path.resolve() != self.root.resolve() / name:
            raise self._refused(path, "it is a symbolic link")
        return path

    def _check_root(self) -> None:
        if self.root.is_symlink():
            raise self._refused(self.root, "the folder is a symbolic link")
        lexically_under = self.root.absolute().is_relative_to(self.anchor.absolute())
        if lexically_under and not self.root.resolve().is_relative_to(self.anchor.resolve()):
            raise self._refused(self.root, f"a link on the way leads out of {self.anchor}")

    def _check_regular(self, path: Path, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise self._refused(path, "it is not a regular file")
        if status.st_nlink > 1:
            raise self._refused(
                path, "it has hard links, so that it could change from outside the folder"
            )

    @staticmethod
    def _refused(path: Path, why: str) -> BaselineError:
        return BaselineError(
            f"The baseline {path} was refused: {why}. Baselines are plain files inside their own "
            "folder; "
            "put a plain copy in its place, or remove it and approve anew."
        )


def find_orphans(
    folder: BaselineFolder,
    *,
    collected: Collection[str],
    finished: Collection[str],
    used: Collection[str],
) -> dict[str, str]:
    """The baselines that no collected test claims, by name, each with why: reported, never deleted.

    *collected* and *finished* are the ids of all tests and of those that ran to their end, *used*
    the file names that were looked for. A test that did not run keeps what it has: call this for a
    run that collected everything.
    """
    orphans = {}
    functions = {test.partition("[")[0] for test in collected}
    for name in (name for name in folder.names() if name not in used):
        try:
            document = BaselineDocument.from_bytes(folder.read(name) or b"", where=name)
        except BaselineError as error:
            orphans[name] = str(error)
            continue
        test_id = document.test_id
        score = document.score
        if name != baseline_name(test_id, score):
            orphans[name] = (
                "the file was renamed: it is not where its own test and score would be looked for"
            )
        elif test_id not in collected:
            other = "its test ran with other parameters, or asked another endpoint"
            if test_id.partition("[")[0] in functions:
                orphans[name] = other
            else:
                orphans[name] = "its test is gone or renamed"
        elif test_id in finished:
            orphans[name] = f"its test no longer asks for the score {score!r}"
    return orphans
