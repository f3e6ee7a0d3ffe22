"""The command line of a session as it may be written down: no secret, and as if typed in the
project's folder.

Our own options, pytest's and the tests that were named stay. Of any other option the name stays:
its value may be a password, and nothing here shows it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from pytest_fairness.endpoints.redaction import MARK, is_secret, redact, remember, safe_url
from pytest_fairness.pytest_layer.options import OPTIONS, arguments_of

#: Options of pytest, pytest-xdist and pytest-html whose values are written down.
_WITH_VALUE = frozenset(
    (
        "-c", "-k", "-m", "-n", "-p", "-r", "-W", "--capture", "--color", "--config-file", "--confcutdir", "--deselect",
        "--dist", "--durations", "--html", "--ignore", "--ignore-glob", "--import-mode", "--junit-xml", "--junitxml",
        "--log-level", "--max-worker-restart", "--maxfail", "--maxprocesses", "--numprocesses", "--rootdir", "--tb",
        "--verbosity", *(option.flag for option in OPTIONS if option.flag is not None and option.read is not bool),
    )
)  # fmt: skip
#: Those whose values are paths, seen from where the command was typed.
_PATHS = frozenset(
    (
        "-c", "--config-file", "--confcutdir", "--fairness-markdown", "--html", "--ignore", "--junit-xml", "--junitxml",
        "--rootdir",
    )
)  # fmt: skip
#: Those whose values may be.
_PERHAPS_PATHS = frozenset(("--fairness-against", "--fairness-replay"))
_FLAGS = re.compile(r"-[hlqsvVx]+")
_INI = ("-o", "--override-ini")
_SHOWN = _WITH_VALUE.union(_INI)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s'\"]+")


def recorded_command(config: pytest.Config) -> list[str]:
    """``pytest`` and its arguments as they may stand in a file that is shown around; in a worker
    those of its controller. From now on the secrets among them are cut out of everything else, too.
    """
    given = getattr(config, "workerinput", {}).get("fairness_arguments") or arguments_of(config)
    root = Path(given["root"])
    folder = Path(given["folder"])
    for secret in secrets_of(given["all"]):
        remember(secret)
    command = ["pytest"]
    for name, between, value in parsed(given["all"]):
        is_test = between == " " and value in given["tests"]
        shown = MARK
        if not value or is_test or name in _SHOWN:
            place = value
            if _is_path(name, value, folder, is_test=is_test):
                place = str(folder / value)
            shown = _value(name, place, root)
        if between == " ":
            command += filter(None, (name, shown))
        else:
            command.append(f"{name}{between}{shown}")
    return command


def _is_path(name: str, value: str, folder: Path, *, is_test: bool) -> bool:
    """Return whether the *value* of option *name*, typed in *folder*, is a path."""
    if name in _PATHS:
        return True
    if not is_test and name != "--fairness-replay":
        return False
    return (folder / value.partition("::")[0]).exists()


def parsed(arguments: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Each option, what stands between it and its value (a blank where that is an argument by
    itself), and the value or whatever else follows; what follows no option has an empty name.
    """
    option = ""
    for argument in [*arguments, "-"]:
        if not argument.startswith("-"):
            yield option, " ", argument
            option = ""
            continue
        if option:
            yield option, "", ""
        if argument.startswith("--") or _FLAGS.fullmatch(argument):
            option, between, value = argument.partition("=")
        else:
            option = argument[:2]
            between = ""
            value = argument[2:]
        if between or value:
            yield option, between, value
            option = ""


def secrets_of(arguments: Sequence[str]) -> list[str]:
    """Those values in *arguments* that are secrets by the name of their option, or by their place
    in an address.
    """
    secrets: dict[str, None] = {}
    for name, _, value in parsed(arguments):
        if name and is_secret(name, value):
            secrets[value] = None
    for argument in arguments:
        for address in _ADDRESS.findall(argument):
            with contextlib.suppress(ValueError):
                for secret in _secrets_in(address):
                    secrets[secret] = None
    return list(secrets)


def _secrets_in(address: str) -> Iterator[str]:
    """Yield the password of *address*, and the secrets among its parameters. Raises ValueError for
    what is no address.
    """
    parts = urlsplit(address)
    if parts.password:  # as it stands there, and as it is meant
        yield parts.password
        yield unquote(parts.password)
    for name, value in parse_qsl(parts.query):
        if is_secret(name, value):
            yield value


def recorded_path(path: Path, root: Path) -> str:
    """*path* from the folder *root* on: where somebody's home lies is nobody's business."""
    try:
        return os.path.relpath(path, root)
    except ValueError:  # on another drive, as Windows has them
        return path.name


def recorded_text(text: str, root: Path) -> str:
    """*text* without secrets, and without the way to the project *root* and to the home of whoever
    runs it.
    """
    text = _ADDRESS.sub(lambda match: safe_url(match[0]), redact(text))
    for folder, short in ((str(root), "."), (str(Path.home()), "~")):
        if len(folder) > 1:
            inside = ""
            if short != ".":
                inside = short + os.sep
            text = text.replace(folder + os.sep, inside).replace(folder, short)
    return text


def _value(option: str, value: str, root: Path) -> str:
    """Return the *value* of *option* as it may be shown: of ini values those of ours alone, of
    paths the part within *root*.
    """
    if option in _INI:
        name, between, given = value.partition("=")
        if name.startswith("fairness_"):
            return f"{name}{between}{_value('', given, root)}"
        return f"{name}{between}{MARK}"
    path, between, rest = value.partition("::")
    if Path(path).is_absolute():
        path = recorded_path(Path(path), root)
    return recorded_text(f"{path}{between}{rest}", root)
