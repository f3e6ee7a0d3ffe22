"""Documentation as a test: blocks of a page are written, run and compared, in the order in which
they stand.

A block is told what to do by an HTML comment on the line before it, which a reader of the page does
not see:

- ``<!-- file: test_x.py -->``: the block is written to that file of the page's project.
- ``<!-- run -->``, ``<!-- run: 1 -->``: each ``pytest …`` and ``pytest-fairness …`` line of a shell
  block is run there and has to exit with that code (0 if not said).
- ``<!-- exec -->``: the Python block is executed, in one namespace a page.
- ``<!-- prints: message -->``: the block is what the last run said of its failing assertion,
  pytest's margin and the name of the exception left away; ``prints: summary`` is its section
  "fairness"; ``prints: exec`` is what the last executed block printed, ``prints: command`` what the
  last ``pytest-fairness`` did, as of another day.
- ``<!-- not run: why -->``: nothing.

Every run that a session of a page has finished is verified.

With ``UPDATE_DOCS=1`` in the environment the ``prints`` blocks are rewritten with what was printed.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import os
import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from pytest_fairness.cli import main
from pytest_fairness.commands import init, plan
from pytest_fairness.reports.bundle import project_baselines
from pytest_fairness.reports.verification import verify_run
from tests.support.sessions import forked, run_pytest

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"(?:^<!-- (?P<do>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_MARGIN = re.compile(r"^E(?: {7}|$)")
_EXCEPTION = re.compile(r"^(?:pytest_fairness\.)?\w+: (?=[A-Z]+: )")
_TODAY = re.compile(r"\d{4}-\d\d-\d\d(?=-\d{3})")
_NOW = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")
ANY_SHA256 = "9f86d081…"
ANY_DAY = "2026-02-28"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the ``action`` of its comment with its ``argument``, and where it stands in
    the page.
    """

    action: str
    argument: str
    language: str
    text: str
    line: int
    span: tuple[int, int]


def blocks(page: str) -> list[Block]:
    found = []
    for match in _BLOCK.finditer(page):
        action, _, argument = (match["do"] or "").partition(": ")
        line = page.count("\n", 0, match.start("text")) + 1
        found.append(
            Block(action, argument, match["language"], match["text"], line, match.span("text"))
        )
    return found


def links(page: str) -> list[str]:
    """Where the links of *page* point, code blocks apart."""
    return _LINK.findall(_BLOCK.sub("", page))


def anchors(page: str) -> set[str]:
    """The anchors that a forge makes of the headings of *page*."""
    headings = _HEADING.findall(_BLOCK.sub("", page))
    return {
        re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
        for heading in headings
    }


@dataclass(slots=True)
class Page:
    """One page being worked through in *project*."""

    path: Path
    project: Path
    output: str = ""
    printed: str = ""
    namespace: dict[str, Any] = field(default_factory=dict)
    _rewritten: list[tuple[tuple[int, int], str]] = field(default_factory=list)

    def work_through(self) -> None:
        """Do what each block says. Raises AssertionError, naming the line, where it does not hold."""
        page = self.path.read_text(encoding="utf-8")
        for block in blocks(page):
            where = f"{self.path.name}:{block.line}"
            match block.action:
                case "file":
                    target = self.project / block.argument
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(in_force(block.text), encoding="utf-8")
                case "run":
                    self._run(block, where)
                case "exec":
                    self._execute(block, where)
                case "prints":
                    self._compare(block, where)
                case _:
                    pass
        if self._rewritten:
            for (start, end), text in reversed(self._rewritten):
                page = page[:start] + text + page[end:]
            self.path.write_text(page, encoding="utf-8")

    def _run(self, block: Block, where: str) -> None:
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")
        }
        for line in block.text.replace("\\\n", " ").splitlines():
            name, *arguments = shlex.split(line, comments=True) or [""]
            if name == "pytest-fairness":
                self._command(arguments, int(block.argument or 0), f"{where}: {line}")
            if name != "pytest":
                continue
            result = run_pytest(
                self.project, "-p", "no:cacheprovider", *arguments, environment=environment
            )
            self.output = str(result.stdout)
            assert result.ret == int(block.argument or 0), (
                f"{where}: {line}\n{result.stdout}{result.stderr}"
            )
            self._verify(f"{where}: {line}")

    def _verify(self, where: str) -> None:
        """The run that was just written, if it came to its end: an honest one verifies."""
        runs = (self.project / ".fairness" / "runs").glob("2*/findings.json")
        last = max(runs, key=lambda path: path.stat().st_mtime_ns, default=None)
        if last is None or "finished" not in json.loads(
            (last.parent / "manifest.json").read_bytes()
        ):
            return
        with contextlib.chdir(self.project):
            problems = verify_run(last.parent, project_baselines(self.project)).problems
        assert not problems, f"{where}: {last.parent.name} does not verify\n" + "\n".join(problems)

    def _command(self, arguments: list[str], code: int, where: str) -> None:
        printed = io.StringIO()
        outside = [key for key in os.environ if key.startswith("PYTEST_")]
        wide = {"COLUMNS": "160"}  # wherever the tests run
        with (
            mock.patch.dict(os.environ, wide),
            mock.patch.object(init, "subprocess", SimpleNamespace(run=forked)),
            mock.patch.object(plan, "subprocess", SimpleNamespace(run=forked)),
            contextlib.chdir(self.project),
            contextlib.redirect_stdout(printed),
        ):
            for key in outside:
                del os.environ[key]
            found = main(arguments)
        self.printed = _NOW.sub(f"{ANY_DAY} 09:30", printed.getvalue())
        assert found == code, f"{where}\n{self.printed}"

    def _execute(self, block: Block, where: str) -> None:
        printed = io.StringIO()
        code = compile("\n" * (block.line - 1) + block.text, where, "exec")
        sys.path.insert(0, str(self.project))
        try:
            with contextlib.chdir(self.project), contextlib.redirect_stdout(printed):
                exec(code, self.namespace)
        finally:
            sys.path.remove(str(self.project))
        self.printed = printed.getvalue()

    def _compare(self, block: Block, where: str) -> None:
        found = {"message": message, "summary": summary}.get(
            block.argument, lambda _: _TODAY.sub(ANY_DAY, self.printed)
        )(self.output)
        found = _SHA256.sub(ANY_SHA256, found)
        if os.environ.get("UPDATE_DOCS"):
            self._rewritten.append((block.span, found))
            return
        assert block.text == found, (
            f"{where}: UPDATE_DOCS=1 rewrites what has changed; it now prints\n{found}"
        )


def in_force(text: str) -> str:
    """*text* with its justifications as if they had been approved today: those of a page expire."""
    today = datetime.datetime.now(datetime.UTC).date()
    dates = f'"date": "{today}", "expiry": "{today + datetime.timedelta(days=180)}"'
    return re.sub(r'"date": "[\d-]+", "expiry": "[\d-]+"', dates, text)


def message(output: str) -> str:
    """What pytest said of the first failing assertion, without its margin."""
    lines = []
    for line in output.splitlines():
        if _MARGIN.match(line):
            lines.append(_MARGIN.sub("", line).rstrip())
        elif lines:
            break
    if lines:
        lines[0] = _EXCEPTION.sub("", lines[0])
    return "\n".join(lines).strip("\n") + "\n"


def summary(output: str) -> str:
    """The section "fairness" of the terminal, with one day for any."""
    section = re.search(r"^=+ fairness =+\n(.*?)^[=-]{2,} ", output, re.MULTILINE | re.DOTALL)
    return _TODAY.sub(ANY_DAY, section[1]).strip("\n") + "\n" if section else ""
